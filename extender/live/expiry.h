/*
 * expiry: what is due by the clock: reservations that end, and pods that are requeued for them.
 *
 * Threads: any; takes the state's lock, which must not be held.
 */
#ifndef EXTENDER_LIVE_EXPIRY_H
#define EXTENDER_LIVE_EXPIRY_H

#include "extender/state.h"

/* Ends the reservations that have expired, and requeues the pods that wait for them. Takes the lock
 * for writing only if there are any, and for a few of them at a time. */
void expiry_run(struct state *state);

/* The same, and requeues the pods that are due. To be called often. */
void expiry_tick(struct state *state);

#endif
