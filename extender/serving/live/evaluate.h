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
 * A scheduler that asks about each node in a call of its own makes trials (below).
 *
 * Threads: any; the lock on the cluster is not held.
 */
#ifndef EXTENDER_SERVING_LIVE_EVALUATE_H
#define EXTENDER_SERVING_LIVE_EVALUATE_H

#include "extender/serving/state.h"

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
    bool is_trial; /* one of many calls, a node each: see below */

    /* Sets verdict and is_refused. Called under the lock, and again after each
     * confirmation. NULL: the verdict of all policies, policy_prefilter. */
    void (*decide)(struct question *question, const struct view *view);
    void *context;

    struct verdict verdict; /* its victims must not be read: the lock is not held any more */
    bool is_refused;        /* the pod is rejected; of a preempt call: or a candidate is dropped */
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

/*
 * ---- trials ----
 *
 * What is remembered of a pod that a scheduler tries on one node after the other, with a
 * call for each. Volcano does so, for every pod that waits, in each cycle (1 s), and binds a pod
 * only when its whole gang has room. kube-scheduler binds a pod of a scheduling group only then,
 * too, so its reservations end as those of Volcano's pods do. Two things must not be repeated with
 * the calls:
 *
 *   a confirmation   holds for TRIAL_CONFIRMED_MS, for the same pod and the same causes: a pod that
 *                    is rejected costs requests once in a cycle, and not for each node. So does an
 *                    API server that does not answer.
 *   a reservation    ends with its time, also if the trials continue: a gang that is never complete
 *                    must not keep a claim from pods that can run. A trial that passes reserves
 *                    until reservationTTL after the first one that did, or for TRIAL_LEAD_MS if
 *                    that is later, since a bind may follow it. From reservationTTL on, trials do
 *                    not reserve, until other pods have had TRIAL_PAUSE_MS without a reservation.
 *
 * A slot for each pod, chosen by its hash. A pod that takes over the slot of another one costs that
 * pod a confirmation, or lets it reserve again.
 */
enum {
    TRIAL_SLOTS = 1024,
    TRIAL_CONFIRMED_MS = 1000,
    TRIAL_LEAD_MS = 5000,
    TRIAL_PAUSE_MS = 5000,
};

struct trial {
    uint64_t pod;          /* hash of its namespace, name and UID */
    uint64_t causes;       /* hash of the causes that were confirmed, */
    uint64_t confirmed_ns; /* then; 0: none were */
    enum confirmation confirmation;
    uint64_t reserved_ns; /* when the first of these trials passed; 0: none has */
};

struct trials {
    pthread_mutex_t lock; /* guards slots */
    struct trial slots[TRIAL_SLOTS];
};

void trials_init(struct trials *trials);
void trials_dispose(struct trials *trials);

/* Whether the rejection was confirmed just now: then *confirmation is the result. */
bool trials_recall(struct trials *trials, const struct meta *pod, const struct verdict *verdict,
                   enum confirmation *confirmation);

/* The rejection was confirmed, or could not be. */
void trials_note(struct trials *trials, const struct meta *pod, const struct verdict *verdict,
                 enum confirmation confirmation);

/* The pod passes: until when its claims are to be reserved, on the clock of monotonic_ns; 0: they
 * are not. ttl_ns: reservationTTL. */
uint64_t trials_reserve_until(struct trials *trials, const struct meta *pod, uint64_t ttl_ns);

/* The pod is rejected on every node, so it reserves nothing: the next trial that passes is the
 * first one again. */
void trials_rejected(struct trials *trials, const struct meta *pod);

#endif
