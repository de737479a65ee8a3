/*
 * eviction: makes one pod terminate, as kube-scheduler's preemption does: through the Eviction API,
 * which respects PodDisruptionBudgets, or by a DELETE. The pod's UID is the precondition. If the
 * pod is still there, it gets a condition DisruptionTarget, reason PreemptionByScheduler.
 *
 * Threads: any; it blocks on the API server, until the deadline.
 */
#ifndef EXTENDER_PREEMPTION_EVICTION_H
#define EXTENDER_PREEMPTION_EVICTION_H

#include "cache/watch/informer.h"

enum {
    EVICTION_CALL_MS = 5000, /* for each request, at most */
    CONDITION_CALL_MS = 1000 /* the same; a pod is also evicted without a condition */
};

enum eviction_result {
    EVICTION_DONE,      /* the API server has accepted it */
    EVICTION_NEEDLESS,  /* the pod is gone, or another pod has its name */
    EVICTION_FORBIDDEN, /* by a budget */
    EVICTION_REFUSED,   /* by the API server, for another reason */
    EVICTION_UNKNOWN,   /* it was sent, and its result is unknown */
    EVICTION_UNSENT,    /* it was not sent: the API server cannot be asked, or the time is over */
};

/* From EVICTION_FORBIDDEN on, err says why: ERROR_INVALID for a budget, else ERROR_UNAVAILABLE. */
static inline bool eviction_failed(enum eviction_result result)
{
    return result >= EVICTION_FORBIDDEN;
}

struct eviction {
    struct requests *requests;
    const struct object_reference *victim;
    uint64_t deadline_ns; /* of monotonic_ns */
    struct arena *arena;  /* of the answers */
};

/* Whether the Eviction API would evict the pod; the pod is not changed. */
enum eviction_result eviction_try(const struct eviction *eviction, struct error *err);

/* Evicts the pod: through the Eviction API if it respects budgets, else by a DELETE. */
enum eviction_result eviction_do(const struct eviction *eviction, bool respects_budgets,
                                 struct error *err);

#endif
