/*
 * judge: the verdict on a pod, and no stale rejection. With a live cluster, a rejection is answered
 * only after the API server was asked about what it rests on (the holders, the missing claim): the
 * scheduler often hears of a deletion before our watch does, and a pod that is rejected by mistake
 * waits for minutes. A pod that passes costs no request.
 *
 * If the API server cannot be asked within CONFIRM_MS, the cache's word stands, and the pod is
 * nudged when the cache changes its mind.
 */
#ifndef EXTENDER_JUDGE_H
#define EXTENDER_JUDGE_H

#include "extender/state.h"

enum {
    CONFIRM_MS = 1000,     /* of the scheduler's 5 s */
    CONFIRM_ROUNDS_MAX = 3 /* a new holder may stand behind the one that is gone */
};

/* The verdict of all policies, as policy_prefilter has it, but for victims: those are not to be
 * looked at, since the lock on the cluster is not held any more. Returns whether a rejection is
 * confirmed. */
enum confirmation judge_pod(struct state *state, const struct pod_object *pod, struct arena *arena,
                            struct verdict *out, const struct policy **judge);

/* The same; a pod that passes has its exclusive claims reserved (cache/assumed.h), and one that is
 * rejected for a reservation, or without being confirmed, is remembered, to be nudged when that
 * changes (nudge.h). */
void judge_and_reserve(struct state *state, const struct pod_object *pod, struct arena *arena,
                       struct verdict *out, const struct policy **judge);

#endif
