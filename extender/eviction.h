/*
 * eviction: one pod is asked to go, as kube-scheduler's preemption does it: through the Eviction
 * API, which asks the PodDisruptionBudgets, or by a DELETE; with its UID as precondition, and with
 * a condition DisruptionTarget, reason PreemptionByScheduler, as far as it is there to have one.
 *
 * Errors of both: ERROR_INVALID: a budget forbids it; ERROR_UNAVAILABLE: the API server refused, or
 * there was no time to ask; ERROR_TIMEOUT: what became of the request is unknown. A pod that is
 * gone, or whose name another one has, is no error.
 *
 * Threads: any; they block on the API server, until deadline_ns of the clock of monotonic_ns.
 */
#ifndef EXTENDER_EVICTION_H
#define EXTENDER_EVICTION_H

#include "cache/follow.h"

enum {
    EVICTION_CALL_MS = 5000, /* for each request, at most */
    CONDITION_CALL_MS = 1000 /* the same: a pod is evicted without one, too */
};

/* Whether the Eviction API would evict the pod; nothing happens to it. */
int eviction_try(struct follow *follow, const struct object_reference *victim, uint64_t deadline_ns,
                 struct arena *arena, struct error *err);

/* Evicts it. *is_evicted: it was there, and is asked to go. */
int eviction_do(struct follow *follow, const struct object_reference *victim, bool respects_budgets,
                uint64_t deadline_ns, struct arena *arena, bool *is_evicted, struct error *err);

#endif
