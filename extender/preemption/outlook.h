/*
 * outlook: what can be done for a pod that may preempt. The policies decide again, from the cache;
 * then the API server is asked about the pod and its victims, until no victim is new.
 *
 * Threads: any; outlook_find blocks on the API server.
 */
#ifndef EXTENDER_PREEMPTION_OUTLOOK_H
#define EXTENDER_PREEMPTION_OUTLOOK_H

#include "extender/preemption/attempt.h"

enum outlook {
    OUTLOOK_OVER,  /* nothing, now or later */
    OUTLOOK_WAIT,  /* wait: the holders terminate, or a pod is being bound */
    OUTLOOK_ASK,   /* ask the API server about the pod and its victims; outlook_find does */
    OUTLOOK_EVICT, /* evict attempt->victims */
};

/* Finds the outlook, and sets the attempt's victims, respects_budgets and why. Unless it is
 * OUTLOOK_OVER, the pod's claims are reserved if that was possible (has_reserved).
 * Errors: the API server could not be asked about all of them; ERROR_TOO_BIG: there are over
 * VICTIMS_MAX. */
int outlook_find(struct attempt *attempt, enum outlook *out, struct error *err);

/* The attempt's pod, if it still waits for a node, with the same priority; else NULL. Under the
 * lock. */
const struct pod *outlook_find_waiting(const struct attempt *attempt);

#endif
