/*
 * claim_lock_internal: what the files of claim_lock share. Only these include it.
 *
 * Threads: as claim_lock. Texts lie in the arena of the call.
 */
#ifndef EXTENDER_BIND_CLAIM_LOCK_INTERNAL_H
#define EXTENDER_BIND_CLAIM_LOCK_INTERNAL_H

#include "extender/bind/claim_lock.h"

#define HOLDER    CLAIM_HOLDER_ANNOTATION
#define LOCKED_AT CLAIM_LOCKED_AT_ANNOTATION
#define ADMITTED  CLAIM_ADMITTED_ANNOTATION
#define FENCED    "claimguard.io/fenced"

/* What is read of a claim or a pod. */
struct remote {
    struct slice kind, ns, name, uid, version, holder, locked_at, admitted, fenced, node, phase;
};

/* One request about an object of the pod's namespace. Returns the HTTP status; 0: unknown, also if
 * a 200 or a 404 is not about that object: it may come from a proxy. */
unsigned claim_lock_ask(struct claim_locks *locks, const char *method, enum kind kind,
                        struct slice name, struct slice body, struct remote *out);

/* ERROR_UNAVAILABLE, with the API server's last refusal, if there is one. */
int claim_lock_failed(struct error *err, const struct claim_locks *locks);

/*
 * Changes the version of a pod, so that a Binding of the pod that may be on its way fails.
 * *is_bound: the pod is bound already. Errors: ERROR_UNAVAILABLE: unknown.
 *
 * A fence that is sent twice does no harm: it changes the version once more. A 409 does not prove
 * that the pod is gone: there may be too many writers (then the pod is not fenced), or it answers
 * the second of two sendings, and the first found the pod bound. So the pod is read. A 200 without
 * the text does not prove a fence: a webhook may have removed the text, and nothing has changed.
 */
int claim_lock_fence_pod(struct claim_locks *locks, struct slice uid, struct slice name,
                         bool *is_bound, struct error *err);

/* Returns 0 if the lock that was found may be replaced, or the error that says why not. */
int claim_lock_evaluate(struct claim_locks *locks, struct slice claim, const struct remote *found,
                        struct error *err);

/* Our lock, as it was written: its age begins, for the pods that ask for the claim. */
void claim_lock_note(const struct claim_locks *locks, struct slice claim,
                     const struct remote *written);

#endif
