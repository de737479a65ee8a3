/*
 * bind_internal: what bind.c (the phases of a bind) and bind_take.c (the decision in the cache)
 * share. Only these two include it.
 *
 * Threads: a binding belongs to the thread of its call.
 */
#ifndef EXTENDER_BIND_BIND_INTERNAL_H
#define EXTENDER_BIND_BIND_INTERNAL_H

#include "extender/bind/bind_call.h"
#include "extender/bind/bind_warnings.h"
#include "extender/bind/claim_lock.h"
#include "extender/bind/deferral.h"

/* What one bind has found out so far. */
struct binding {
    struct bind_call call;
    unsigned attempts; /* to post a Binding */
    bool is_refreshed; /* the API server was asked about the refusal of this attempt */

    /* results of bind_take_claims */
    bool is_bound;    /* the pod is bound to the node already */
    bool is_conflict; /* its claims are not free */
    bool is_rejected; /* for good: no eviction lets it be bound to this node */
    struct uid uid;   /* of the pod's record */
    struct verdict verdict;
    struct bind_warnings warnings;
    struct deferral deferral;
    struct claim_locks locks; /* claims to lock: in a live cluster with claimLock: Annotation */

    struct kept_reference *shared; /* claims to confirm first: the pod shares them; NULL: none */
    bool is_shared_confirmed;      /* in this attempt */

    struct slice version; /* of the pod: the Binding's precondition; empty: none */
    bool is_ours;         /* the pod is bound by our Binding, as far as is known */
};

/*
 * Decides from the cache, and takes the pod's claims, all or none. In a snapshot, this binds the
 * pod. Under the lock, for writing.
 * Errors: why the pod cannot be bound. With binding->shared set, those claims have to be confirmed
 * first.
 */
int bind_take_claims(struct binding *binding, struct error *err);

#endif
