/*
 * expiry: ends the reservations that have expired, and requeues the pods that wait for them.
 *
 * Threads: any; it takes the state's lock, which must not be held.
 */
#ifndef EXTENDER_LIVE_EXPIRY_H
#define EXTENDER_LIVE_EXPIRY_H

#include "extender/state.h"

/* Takes the lock for writing only if a reservation has expired, and for a few of them at a time. */
void expiry_run(struct state *state);

/* The same, and requeue_tick. To be called often. */
void expiry_tick(struct state *state);

#endif
