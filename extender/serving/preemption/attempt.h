/*
 * attempt: one attempt to preempt for one pod. Its outlook is found: which holders have
 * to be evicted, and does the pod still wait? Its claims are reserved, then each holder is evicted
 * once (eviction.c).
 *
 * Nothing is evicted for a pod that is gone, bound, being deleted, or of another priority than it
 * was rejected with; nothing if one of its conflicts could not be resolved; and nothing for a pod
 * about which the scheduler has not asked lately: then claimguard only tries whether the evictions
 * would succeed.
 *
 * Of several holders all are evicted, or none, as far as that can be known before: they are tried
 * first, and counted against their budgets together. Meanwhile no other attempt evicts in their
 * namespace, since a budget applies to one namespace.
 *
 * Threads: any; it blocks on the API server, for ATTEMPT_MS at most, and a second.
 */
#ifndef EXTENDER_SERVING_PREEMPTION_ATTEMPT_H
#define EXTENDER_SERVING_PREEMPTION_ATTEMPT_H

#include "extender/serving/state.h"

enum {
    VICTIMS_MAX = 15, /* of one pod */
    ATTEMPT_MS = 8000,
    /* A preemptor's claims are reserved this long, or for reservationTTL if that is longer. When
     * the holders are gone, the scheduler's back-off is up to 10 s, and a request may fail. */
    PREEMPTOR_KEEP_MS = 30000
};

enum attempt_result {
    ATTEMPT_OVER,    /* nothing is to be done, now or later */
    ATTEMPT_WAIT,    /* the holders are on their way out */
    ATTEMPT_UNSURE,  /* the same, as far as is known: the API server could not be asked */
    ATTEMPT_FAILED,  /* because of a budget or the API server: nothing is reserved any more */
    ATTEMPT_UNASKED, /* it would succeed, but the scheduler has to ask about the pod again */
};

struct attempt {
    struct state *state;
    struct arena arena; /* of all that this struct points to */
    struct object_reference pod;
    int64_t priority;
    uint64_t asked_ns;       /* when the scheduler asked about it */
    uint64_t fresh_until_ns; /* until then, the scheduler "has asked lately" */
    bool is_under_way;       /* a holder was evicted for it, and since then the holders are known to
                                terminate: its claims stay reserved, even if this attempt fails */
    bool is_reported;        /* in and out: that the preemption fails */
    size_t evicted_count;    /* out */
    bool is_doubtful;        /* out: an eviction was sent, and its result is unknown */

    /* used by the attempt itself */
    uint64_t deadline_ns;
    bool respects_budgets;
    bool has_reserved;
    struct object_reference victims[VICTIMS_MAX];
    size_t victim_count;
    bool has_too_many;                              /* over VICTIMS_MAX: none of them is listed */
    struct object_reference asked[1 + VICTIMS_MAX]; /* the API server was asked about these */
    size_t asked_count;
    struct slice why;     /* the verdict's reasons: which claim, which holder */
    struct attempt *next; /* in preemption.evicting */
};

static inline bool attempt_may_have_evicted(const struct attempt *attempt)
{
    return attempt->evicted_count != 0 || attempt->is_doubtful;
}

/* Makes the attempt. */
enum attempt_result attempt_run(struct attempt *attempt);

/* ---- eviction.c: of one pod; blocks on the API server, until the attempt's deadline ---- */

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

/* Whether the Eviction API would evict the pod; the pod is not changed. */
enum eviction_result eviction_try(struct attempt *attempt, const struct object_reference *victim,
                                  struct error *err);

/* Evicts the pod: through the Eviction API if the attempt respects budgets, else by a DELETE. */
enum eviction_result eviction_do(struct attempt *attempt, const struct object_reference *victim,
                                 struct error *err);

#endif
