/*
 * preemption_attempt: what is done for one pod that may preempt, once. It is judged again, and the
 * pod and its holders are asked about: is there anything to evict, and is it still for that pod?
 * Its claims are reserved for it, then each holder is evicted once (eviction.h).
 *
 * Nothing is evicted for a pod that is gone, bound, being deleted, or of another priority than it
 * was rejected with; nothing if one of its conflicts could not be resolved; and nothing for a pod
 * about which the scheduler has not asked lately: then it is only tried whether it would do.
 *
 * Several holders of one pod go all, or none, as far as that can be known before: they are tried
 * first, and counted against their budgets together. So while they are evicted, nobody else evicts
 * in their namespace, which budgets are confined to.
 *
 * Threads: any; it blocks on the API server, for ATTEMPT_MS at most, and a second.
 */
#ifndef EXTENDER_PREEMPTION_PREEMPTION_ATTEMPT_H
#define EXTENDER_PREEMPTION_PREEMPTION_ATTEMPT_H

#include "extender/state.h"

enum {
    VICTIMS_MAX = 15, /* of one pod */
    ATTEMPT_MS = 8000,
    /* A preemptor's claims are reserved for so long, or for reservationTTL if that is longer: the
     * scheduler's back-off is up to ten seconds, when the holders are gone, and a look may fail. */
    PREEMPTOR_KEEP_MS = 30000
};

enum attempt_result {
    ATTEMPT_OVER,    /* nothing is to be done, now or later */
    ATTEMPT_WAIT,    /* what is in its way is on its way out */
    ATTEMPT_UNSURE,  /* the same, as far as is known: a look failed */
    ATTEMPT_FAILED,  /* by a budget, or the API server: nothing is reserved any more */
    ATTEMPT_UNASKED, /* it would do, but the scheduler is to be asked again */
};

struct attempt {
    struct state *state;
    struct arena arena;          /* of what is pointed to */
    struct object_reference pod; /* its strings lie in the arena */
    int64_t priority;
    uint64_t asked_ns;       /* when the scheduler asked about it */
    uint64_t fresh_until_ns; /* until then, what it was told about nodes counts */
    bool is_under_way;       /* a holder was evicted for it, and what is known since is that holders
                                terminate: its claims stay reserved, whatever one look says */
    bool is_told;            /* in and out: that it cannot be done */
    size_t evicted_count;    /* out */
    bool is_doubtful;        /* out: an eviction was sent, and nobody knows what became of it */

    /* of the attempt itself */
    uint64_t deadline_ns;
    bool respects_budgets;
    bool has_reserved;
    struct object_reference victims[VICTIMS_MAX];
    size_t victim_count;
    struct object_reference asked[1 + VICTIMS_MAX]; /* about whom the API server was asked */
    size_t asked_count;
    struct slice why;     /* the verdict's reasons: which claim, which holder */
    struct attempt *next; /* of those that evict */
};

static inline bool attempt_may_have_evicted(const struct attempt *attempt)
{
    return attempt->evicted_count != 0 || attempt->is_doubtful;
}

enum attempt_result attempt_run(struct attempt *attempt);

#endif
