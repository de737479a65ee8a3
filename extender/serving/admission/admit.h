/*
 * admit: the calls of admission webhooks, without HTTP: a body in, an answer out. The server adds
 * HTTP; tests and the fuzzer call this directly.
 *
 *   /admit/binding   CREATE of pods/binding and bindings: judged as `bind` judges (bind.h)
 *   /admit/pod       CREATE of pods. One that names its node is bound by that: judged as a Binding.
 *                    Another is denied if an inline CSI volume can never be mounted; what keeps it
 *                    from running now, and may change, is a warning. One without claims and inline
 *                    CSI volumes is allowed without a look; so is the kubelet's mirror pod of a
 *                    static pod without claims, which runs in any case. A pod over a limit of
 *                    claimguard (its claims, their names, its memory) is denied with its node, and
 *                    allowed with a warning without.
 *
 * Allowed, or denied with code 409 and the text of `bind` (or AlreadyExists, if the cache has
 * another pod of that name): both are answers with status 200. If no decision can be made (the
 * cache is not synced, the API server is needed and silent, too many reviews wait for it, or the
 * time is over), the call fails, so that the webhook's failurePolicy decides.
 *
 * With admission.mode Observe, what would be denied is allowed, with the reason as a warning.
 *
 * Bindings of claimguard's own user are allowed: their `bind` has decided. The user's name is what
 * the API server has authenticated. Who sends a review that is not from an API server gains
 * nothing by another name: only an answer.
 *
 * Threads: any; a call may block on the API server.
 */
#ifndef EXTENDER_SERVING_ADMISSION_ADMIT_H
#define EXTENDER_SERVING_ADMISSION_ADMIT_H

#include "extender/serving/state.h"
#include "extender/serving/verbs/scratch.h"

enum {
    REVIEW_MS_MAX = 10000,  /* if the webhook's time-out is longer */
    REVIEW_MARGIN_MS = 500, /* of the time-out: for the answer to arrive */
};

struct admit_call {
    enum admit_path path;
    const char *timeout; /* of the webhook, "10s"; NULL or anything else: REVIEW_MS_MAX */
    uint64_t started_ns; /* when the request began to arrive, of monotonic_ns */
};

/* Answers scratch->body in scratch->result. Returns the HTTP status: 200; or 400 or 500 with the
 * answer {"error": "..."}. */
unsigned admit_answer(struct state *state, const struct admit_call *call, struct scratch *scratch);

#endif
