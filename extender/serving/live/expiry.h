/*
 * expiry: ends the reservations that have expired, and the nominations that have lapsed
 * (cache/cluster/cluster.h), and requeues the pods that wait for them. A reservation whose
 * Binding is in doubt ends only after the API server was asked about its pod: the Binding may have
 * been applied at the last moment, and the watch may be late.
 *
 * Threads: any; it takes the state's lock, which must not be held.
 */
#ifndef EXTENDER_SERVING_LIVE_EXPIRY_H
#define EXTENDER_SERVING_LIVE_EXPIRY_H

#include "extender/serving/state.h"

/* Takes the lock for writing only if something is due, and for a few of them at a time. */
void expiry_run(struct state *state);

/* The same, and requeue_tick. To be called often. */
void expiry_tick(struct state *state);

/* Asks the API server about the pods of expired reservations that are in doubt, and waits for it,
 * for 2 * CONFIRM_MS at most; without an answer their claims stay reserved. To be called once a
 * second.
 */
void expiry_settle(struct state *state);

#endif
