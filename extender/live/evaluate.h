/*
 * judge: the verdict on a pod, and no stale rejection. With a live cluster, a rejection is answered
 * only after the API server was asked about what it rests on (the holders, the missing claim): the
 * scheduler often hears of a deletion before our watch does, and a pod that is rejected by mistake
 * waits for minutes. The same holds for a node that `preempt` would drop. What passes costs no
 * request.
 *
 * If the API server cannot be asked within CONFIRM_MS (scheduling cycles come one after the other,
 * so CONFIRM_SILENT_MS while it is known to be silent), the cache's word stands, and the pod is
 * requeued when the cache changes its mind.
 *
 * Threads: any; the lock on the cluster is not held.
 */
#ifndef EXTENDER_LIVE_EVALUATE_H
#define EXTENDER_LIVE_EVALUATE_H

#include "extender/state.h"

enum {
    CONFIRM_MS = 1000,       /* of the scheduler's 5 s */
    CONFIRM_SILENT_MS = 100, /* while the API server answers nobody, see requests_are_silent */
    CONFIRM_ROUNDS_MAX = 3   /* a new holder may stand behind the one that is gone */
};

/* What is asked about a pod, and answered from the cache. */
struct question {
    const struct pod_object *pod;
    struct arena *arena;
    bool reserves; /* when it passes, its exclusive claims are reserved for it (cache/assumed.h) */

    /* Sets verdict, judge and is_refused. Called with the lock held for reading, and again when
     * more is known. NULL: the verdict of all policies, policy_prefilter. */
    void (*decide)(struct question *question, const struct view *view);
    void *context;

    struct verdict verdict; /* but for victims, which are not to be looked at afterwards: the lock
                               is not held any more */
    const struct policy *decided_by;
    bool is_refused; /* it is rejected, or some of its nodes are */
};

/* Decides, and confirms a refusal. */
enum confirmation evaluate_question(struct state *state, struct question *question);

/* The same; and a pod that is refused something for a reservation, or without being confirmed, is
 * remembered, to be requeued when that changes (requeue.h). */
void evaluate_and_remember(struct state *state, struct question *question);

#endif
