/*
 * claim_lock: claimLock: Annotation. Before a pod is bound, its exclusive claims are locked on the
 * API server, so that several replicas and several schedulers agree on who has them. etcd behind
 * the API server is the one arbiter: there is no election and no clock.
 *
 * The lock is an annotation on the claim (claimguard.io/holder: UID/NAME of the pod), written with
 * the claim's resourceVersion as precondition, which goes into a second one (claimguard.io/
 * locked-at), so that a lock that is taken again is a change, too. It stays for as long as the pod
 * has the claim. One whose pod is gone, is finished, or was never bound is taken over, after asking
 * the API server.
 *
 * A lock of a pod that is pending may belong to a bind that is under way elsewhere, or was sent and
 * not yet applied. So that pod is fenced first: an annotation changes its resourceVersion, which
 * its Binding has as a precondition. Whichever of fence and Binding is applied first makes the
 * other fail, or show that it came second. For the same reason a pod is fenced before its own lock
 * is given back. tests/model/claim_lock.pml is this protocol, checked exhaustively:
 *
 *     the pod that binds                        the pod that takes over
 *     1 reads its own version                   a sees the lock of a pending pod, for a while
 *     2 locks the claim                         b fences that pod: bound already? then refused
 *     3 Binding, if its version is still that   c locks the claim, if it is unchanged since a
 *
 * What is written on the pod between 2 and 3 (defer_write.h) has that version as precondition, too,
 * and the Binding then has the one that was made by it.
 */
#ifndef EXTENDER_BIND_CLAIM_LOCK_H
#define EXTENDER_BIND_CLAIM_LOCK_H

#include "extender/protocol/protocol.h"
#include "extender/state.h"

enum {
    LOCK_PATIENCE_MS = 5000, /* that the lock of a pending pod is seen before it is taken over */
    LOCK_TRIES_MAX = 5,      /* against conflicts with other writers of one claim */
    LOCKED_CLAIMS_MAX = 64,  /* exclusive claims of one pod */
    LOCKS_SEEN_MAX = 2000,   /* of other pods, remembered for their age */
};

/* The claims that a pod has locked, for their release. */
struct claim_locks {
    struct state *state;
    const struct bind_request *request;
    struct arena *arena;
    uint64_t deadline_ns;
    struct slice claims[LOCKED_CLAIMS_MAX]; /* names, in their order */
    struct slice versions[LOCKED_CLAIMS_MAX];
    size_t claim_count, locked_count;
    struct slice pod_version; /* as it was read before the locks */
    bool is_bound;            /* the pod is bound already, as asked */
};

/* Locks the claims, all or none, and reads the pod's version before. Errors: ERROR_INVALID: another
 * pod has one; ERROR_UNAVAILABLE: the API server cannot be asked, or is contended. */
int claim_locks_take(struct claim_locks *locks, struct error *err);

/* Gives back what was locked: the pod will not be bound. */
void claim_locks_release(struct claim_locks *locks);

/* Locks of other pods, and since when they have been seen. Guarded by the state's lock. */
struct seen_locks {
    struct seen_lock *first; /* uthash */
};
void seen_locks_dispose(struct seen_locks *seen);

#endif
