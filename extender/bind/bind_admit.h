/*
 * bind_admit: a Binding that another client posts. The API server asks before it applies it
 * (admission, on pods/binding and bindings), so the decision is that of `bind`: the claims are
 * taken, locked (claimLock: Annotation), and what is deferred is written, before it is allowed.
 *
 * A pod that is created with spec.nodeName is bound by its creation, and judged in the same way. It
 * is not stored yet, so nothing can be written on it: what is to be deferred must be on it already.
 * Its UID is final: the API server sets UID and generated name before it asks validating webhooks.
 *
 * The API server does not say whether it has applied what was allowed. So the claims stay reserved,
 * as those of a Binding whose answer was lost: until the pod is seen bound or gone, or for
 * BINDING_DEAD_MS; but not without end, if its Bindings are never applied (give_way.h). They also
 * stay if no decision could be made after they were taken: with
 * failurePolicy: Ignore, the API server then applies the Binding.
 *
 * The API server copies a Binding's annotations to the pod. So one that sets the annotation for
 * deferrals is denied, unless the pod has the same one: it would change what is decided.
 *
 * The Binding has no precondition of ours. So what was written as deferred may be removed before
 * the pod is bound. Its UID is its client's precondition: without one, it might bind a later pod of
 * that name, so it is denied.
 *
 * Threads: any; it blocks on the API server, until the review's deadline.
 */
#ifndef EXTENDER_BIND_BIND_ADMIT_H
#define EXTENDER_BIND_BIND_ADMIT_H

#include "extender/bind/bind_warnings.h"

/* Reviews that wait for the API server, in all and in one namespace (or in several whose names have
 * one hash); others are decided without it, or fail. A kube-scheduler with its usual rate limit
 * binds a burst of 100 pods at once. */
enum { REVIEWS_WAITING_MAX = 192, REVIEWS_SHARE = 2 /* of a namespace (shares.h) */ };

struct binding_review {
    struct bind_request request; /* UID empty: denied, but for a dry run */
    struct slice annotation; /* for deferrals, which the Binding sets on the pod; {NULL, 0}: not */
    const struct pod_object *created; /* the pod, which is being created; NULL: it exists */
    bool is_dry_run;                  /* decides, but takes and writes nothing */
    uint64_t deadline_ns;             /* of monotonic_ns: later, nothing is allowed */
    struct bind_warnings warnings;    /* out; in the arena */
    const char *status_reason;        /* of a denial: a metav1.StatusReason; NULL: "Conflict" */
};

enum admission {
    ADMISSION_ALLOWED,
    ADMISSION_DENIED, /* the error says why; the cache's answer if the API server is silent, unless
                         that is only that the pod, or its claim, is not known */
    ADMISSION_FAILED, /* no decision could be made */
    ADMISSION_COUNT,
};

enum admission bind_admit(struct state *state, struct binding_review *review, struct arena *arena,
                          struct error *err);

#endif
