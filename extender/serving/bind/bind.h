/*
 * bind: takes all of the pod's exclusive claims, or none, and binds the pod: in a snapshot in
 * memory, in a live cluster by a Binding with the pod's UID. From then on the pod holds its claims,
 * even before the watch reports it. If the pod is rejected for good, the reservation of its filter
 * call ends.
 *
 * Idempotent (kubernetes#96579): a pod that is bound to that node already is a success, also when
 * the answer to our own Binding was lost. A failure gives the claims back, once the API server has
 * shown that the pod is not bound. As long as it is unknown whether the Binding was applied, the
 * claims stay reserved: until the watch reports the outcome, or for BINDING_DEAD_MS.
 *
 * Neither a refusal nor a pass rests on a stale cache. The causes of a refusal are read again
 * first. A claim that another pod has is shared only if the API server confirms that it may be.
 *
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
 * BINDING_DEAD_MS; but not without end, if its Bindings are never applied (give_way.c). They also
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
 * Requests of one bind: docs/operations.md, "What a bind costs".
 *
 * Threads: any; it blocks on the API server, for BIND_MS at most, or until the review's deadline.
 */
#ifndef EXTENDER_SERVING_BIND_BIND_H
#define EXTENDER_SERVING_BIND_BIND_H

#include "extender/serving/protocol/protocol.h"
#include "extender/serving/state.h"

enum {
    BIND_MS = 4000,    /* for the whole bind; the scheduler waits 5 s by default */
    SEND_MS_MIN = 100, /* a Binding is not sent with less time than this: if its answer does not
                          come in time, its claims stay reserved */
};

/* Errors: why the pod is not bound. Claims that are not free count as a bind conflict. */
int bind_pod(struct state *state, const struct bind_request *request, struct arena *arena,
             struct error *err);

/* What policies warn of, about the pod that is being bound, and the node: collected when the bind
 * decides, reported once the pod is bound. A pod that was bound already, or by another call, is not
 * reported again. The texts lie in the arena. */
struct bind_warnings {
    struct warning items[WARNINGS_MAX]; /* each policy's texts, each once; more are left out */
    size_t count;
};

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
    ADMISSION_OBSERVED, /* a denial that admission.mode Observe lets pass; bind_admit has none */
    ADMISSION_COUNT,
};

enum admission bind_admit(struct state *state, struct binding_review *review, struct arena *arena,
                          struct error *err);

/* A pod that is being created, without the claims of its generic ephemeral volumes that do not
 * exist: those are created after the pod, for it alone. They are behind the others in out->claims,
 * up to created's claim_count. What is made lies in the arena, and borrows from the pod. Under the
 * lock. False: out of memory. */
bool bind_describe_created(const struct cluster *cluster, const struct pod_object *created,
                           struct arena *arena, struct pod_object *out);

/*
 * ---- what every step of one bind works with ----
 *
 * It lies on the stack of bind_pod or bind_admit; the steps only read it, and put what they read
 * from the API server into its arena.
 */
struct bind_call {
    struct state *state;
    const struct bind_request *request;
    struct arena *arena;
    uint64_t deadline_ns; /* of monotonic_ns, for all requests together */
};

#endif
