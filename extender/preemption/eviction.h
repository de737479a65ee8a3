/*
 * eviction: one pod is asked to go, as kube-scheduler's preemption does it: through the Eviction
 * API, which asks the PodDisruptionBudgets, or by a DELETE; with its UID as precondition, and with
 * a condition DisruptionTarget, reason PreemptionByScheduler, as far as it is there to have one.
 *
 * Threads: any; they block on the API server, until deadline_ns of the clock of monotonic_ns.
 */
#ifndef EXTENDER_PREEMPTION_EVICTION_H
#define EXTENDER_PREEMPTION_EVICTION_H

#include "cache/watch/informer.h"

enum {
    EVICTION_CALL_MS = 5000, /* for each request, at most */
    CONDITION_CALL_MS = 1000 /* the same: a pod is evicted without one, too */
};

enum eviction_result {
    EVICTION_DONE,      /* the pod is asked to go */
    EVICTION_NEEDLESS,  /* it is gone, or another pod has its name */
    EVICTION_FORBIDDEN, /* by a budget */
    EVICTION_REFUSED,   /* by the API server, for another reason */
    EVICTION_UNKNOWN,   /* it was sent, and what became of it is unknown */
    EVICTION_UNSENT,    /* the API server cannot be asked, or there is no time to ask */
};

/* From EVICTION_FORBIDDEN on, err says why: ERROR_INVALID for a budget, else ERROR_UNAVAILABLE. */
static inline bool eviction_failed(enum eviction_result result)
{
    return result >= EVICTION_FORBIDDEN;
}

/* Whether the Eviction API would evict the pod; nothing happens to it. */
enum eviction_result eviction_try(struct requests *requests, const struct object_reference *victim,
                                  uint64_t deadline_ns, struct arena *arena, struct error *err);

/* Evicts it. */
enum eviction_result eviction_do(struct requests *requests, const struct object_reference *victim,
                                 bool respects_budgets, uint64_t deadline_ns, struct arena *arena,
                                 struct error *err);

#endif
