/*
 * evaluate: the verdict on a pod, and no stale rejection. In a live cluster, a rejection is
 * answered only after the API server has confirmed its causes (the holders, the missing claim): the
 * scheduler often learns about a deletion before our watch does, and a pod that is rejected by
 * mistake waits for minutes. The same is done before `preempt` drops a node. A pod that passes
 * costs no request.
 *
 * If the API server does not answer within CONFIRM_MS, the cached verdict stands, and the pod is
 * requeued when the cache changes. While the API server is known to be silent, the limit is
 * CONFIRM_SILENT_MS, because scheduling cycles come one after the other.
 *
 * A scheduler that asks about each node in a call of its own makes trials (trials.h).
 *
 * Threads: any; the lock on the cluster is not held.
 */
#ifndef EXTENDER_LIVE_EVALUATE_H
#define EXTENDER_LIVE_EVALUATE_H

#include "extender/state.h"

enum {
    CONFIRM_MS = 1000,       /* of the 5 s that the scheduler waits */
    CONFIRM_SILENT_MS = 100, /* while no request is answered, see requests_are_silent */
    CONFIRM_TRIAL_MS = 300,  /* of the 1 s that Volcano waits */
    CONFIRM_ROUNDS_MAX = 3,  /* when a holder is gone, there may be another one */

    /* A pod of a scheduling group that passes reserves its claims for so long, or for
     * reservationTTL if that is shorter: the other pods of the group are tried, and all of them
     * are bound then, or none. */
    GROUP_ATTEMPT_MS = 10000
};

struct causes;

/* A question about a pod, and its answer from the cache. */
struct question {
    const struct pod_object *pod;
    struct arena *arena;
    bool reserves; /* if it passes, its exclusive claims are reserved (cache/cluster/reservation.h)
                    */
    bool is_trial; /* one of many calls, a node each: see trials.h */

    /* Sets verdict, decided_by and is_refused. Called under the lock, and again after each
     * confirmation. NULL: the verdict of all policies, policy_prefilter. */
    void (*decide)(struct question *question, const struct view *view);
    void *context;

    struct verdict verdict; /* its victims must not be read: the lock is not held any more */
    const struct policy *decided_by;
    bool is_refused;  /* the pod is rejected; of a preempt call: or a candidate is dropped */
    bool is_for_node; /* of a trial: the pod may pass on other nodes, and keeps its reservation */

    struct causes *registered; /* only for evaluate.c: what the pod waits for already */
};

/* Decides, and confirms a refusal. Reserves nothing. */
enum confirmation evaluate_question(struct state *state, struct question *question);

/* The same, and reserves as the question says. The reservation of a pod that is then rejected with
 * UnschedulableAndUnresolvable ends, except as reservation_outlasts says. A pod that is refused
 * because of a reservation, or without a confirmation, is requeued when that changes (requeue.h).
 */
void evaluate_and_remember(struct state *state, struct question *question);

/* The same for a trial. The pod is not requeued: its scheduler tries it again anyway, and soon. */
void evaluate_trial(struct state *state, struct question *question);

#endif
