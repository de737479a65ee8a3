/*
 * wake: requeues pending pods that would pass now, or could preempt, and of which nobody knows
 * whether they wait for us (no record in requeue.h): after a start, those that the previous
 * claimguard has rejected; after a reload, those that the former configuration has.
 *
 * Threads: any; takes the cluster's lock for one page of pods, and for one pod, at a time.
 */
#ifndef EXTENDER_LIVE_WAKE_H
#define EXTENDER_LIVE_WAKE_H

#include "extender/state.h"

/* Requeues at most WOKEN_MAX (1,000) pods; the others wait for the scheduler's own flush. */
void wake_all(struct state *state);

#endif
