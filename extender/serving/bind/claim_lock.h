/*
 * claim_lock: claimLock: Annotation. Before a pod is bound, its exclusive claims are locked on the
 * API server, so that several replicas and several schedulers agree which pod has them. etcd,
 * behind the API server, decides: there is no election, and no clock but for one wait (below).
 *
 * The lock is an annotation on the claim (claimguard.io/holder: UID/NAME of the pod). Its
 * precondition is the claim's resourceVersion, which is also written into a second annotation
 * (claimguard.io/locked-at), so that each lock changes the claim. A lock stays as long as the pod
 * has the claim. If the API server says that the pod of a lock is gone, is finished, or was never
 * bound, the lock is taken over.
 *
 * A lock of a pending pod may belong to a bind that is under way elsewhere, or to a Binding that
 * was sent and is not applied yet. So that pod is fenced first: an annotation changes its
 * resourceVersion, which is a precondition of its Binding. If the fence is applied first, the
 * Binding fails; if the Binding is first, the answer to the fence shows it. For the same reason a
 * pod is fenced before its own lock is released. tests/model/claim_lock.pml is this protocol,
 * checked exhaustively:
 *
 *     the pod that binds                        the pod that takes over
 *     1 reads its own version                   a sees the lock of a pending pod, for a while
 *     2 locks the claim                         b fences that pod: bound already? then refused
 *     3 Binding, if its version is still that   c locks the claim, if it is unchanged since a
 *
 * What is written on the pod between 2 and 3 (defer_write.c) has the same precondition, and the
 * Binding then has the version that this write made.
 *
 * A Binding that another client posts (bind.h) has no such precondition, so no fence stops
 * it. Its lock says so (claimguard.io/admitted: true; again, if the pod's lock said so before): it
 * is taken over only after it was seen for BINDING_DEAD_MS, when the API server must have abandoned
 * the Binding; and it is never released.
 *
 * A pod that is created with its node is locked for before it exists. Its lock says that, too
 * (claimguard.io/admitted: created): that the API server has no such pod proves nothing until the
 * lock was seen for BINDING_DEAD_MS, or the pod was seen (tests/model/creation_lock.pml). Both are
 * seen by the watches, too (extender/serving/live/seen_locks.h). How long a lock was seen is not
 * kept over a restart: no clock of the API server's, or of another machine's, may decide.
 *
 * A claim may be deleted while the Binding of the pod that has locked it is on its way: the API
 * server keeps a claim only for pods that are bound. The lock goes, too, and the pod uses the next
 * claim of that name. So the last lock of a claim that is gone counts for the next one
 * (seen_locks), and one that the watch has not reported yet is not locked: the watch reports
 * deletions in their order. A claimguard that has started since then does not know of it, nor one
 * that had to list the claims again. So a claim that such a list has brought is not locked for the
 * first time for LISTED_MS, while other pods name it, one of which may be the pod of that lock
 * (claim_may_have_former). What it does not know: a pod that is being created with its node, and
 * that a claim which the watch brings had an earlier one before the list. A claim that is older
 * than LISTED_AGED_MS by its creationTimestamp does not wait: this is the only look at a clock, and
 * clocks do not differ by as much.
 *
 * Threads: any; it blocks on the API server, until the deadline of the bind.
 */
#ifndef EXTENDER_SERVING_BIND_CLAIM_LOCK_H
#define EXTENDER_SERVING_BIND_CLAIM_LOCK_H

#include "extender/serving/bind/bind.h"
#include "policy/exclusive.h"

enum {
    LOCK_PATIENCE_MS = 5000, /* a lock of a pending pod is taken over after it was seen so long */
    LOCK_TRIES_MAX = 5,      /* for one claim, when other writers conflict */
    LISTED_MS = BIND_MS + BINDING_DEAD_MS, /* until the Binding of a lock before a list is dead */
    LISTED_AGED_MS = 60 * 60 * 1000,
};

/* A claim that one bind locks. */
struct locked_claim {
    struct slice name; /* first: they are sorted by it */
    struct slice uid;  /* of the claim that was decided about */
    struct slice version;
    bool is_ahead;        /* the watch has not reported it: what was locked before is not known */
    bool may_have_former; /* a list has brought it, and other pods name it: the same */
    bool is_kept;         /* for a Binding that was admitted: not to be released */
};

struct claim_locks {
    const struct bind_call *call;
    struct locked_claim claims[LOCKED_CLAIMS_MAX];
    size_t claim_count, locked_count;
    bool is_review;           /* another client posts the Binding */
    bool is_creation;         /* and the pod does not exist yet: it is created bound */
    struct slice pod_version; /* read before the locks */
    bool is_bound;            /* the pod is bound to the requested node already */
    struct slice replaced;    /* a claim that has another UID at the API server; empty: none */
    struct slice refusal;     /* the API server's last answer that a repetition does not change */
};

/* Reads the pod's version, then locks the claims, all or none; of a review that ends
 * with ERROR_UNAVAILABLE, those that were locked stay. Errors: ERROR_INVALID: another pod has a
 * claim, which counts as a bind conflict; ERROR_UNAVAILABLE: the API server cannot be asked, or is
 * contended, or a claim has been replaced. */
int claim_locks_take(struct claim_locks *locks, struct error *err);

/* Whether one of the locks is kept, though the pod will not be bound: its age begins again. */
bool claim_locks_keep(const struct claim_locks *locks);

/* Releases what was locked: the pod will not be bound. */
void claim_locks_release(struct claim_locks *locks);

#endif
