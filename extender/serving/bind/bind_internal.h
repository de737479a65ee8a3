/*
 * bind_internal: what bind.c (who posts the Binding), bind_phases.c (what does not depend on that)
 * and bind_take.c (the decision in the cache) share. Only these include it.
 *
 * Threads: a binding belongs to the thread of its call.
 */
#ifndef EXTENDER_SERVING_BIND_BIND_INTERNAL_H
#define EXTENDER_SERVING_BIND_BIND_INTERNAL_H

#include "extender/serving/bind/bind.h"
#include "extender/serving/bind/claim_lock.h"
#include "extender/serving/bind/deferral.h"

/* Each phase of a bind returns the next one. */
enum phase {
    PHASE_TAKE,    /* decide, and take the claims, in the cache */
    PHASE_CONFIRM, /* ask the API server about claims, or owners of claims */
    PHASE_REFRESH, /* ask the API server about the pod, and about the causes of a refusal */
    PHASE_BIND,    /* lock the claims, write what is deferred, post the Binding */
    PHASE_END,     /* the error says whether the bind has failed */
};

/* What one bind has found out so far. */
struct binding {
    struct bind_call call;
    const struct pod_object *created; /* the pod, which is created with its node; NULL: it exists */
    struct slice annotation;          /* as in struct binding_review */
    bool is_dry_run;                  /* only decides: takes and writes nothing */
    struct shared_count waiting; /* reviews that wait for the API server; NULL: it is no review */
    bool is_waiting;             /* this one is among them */
    unsigned attempts;           /* to post a Binding */
    bool is_refreshed;           /* the API server was asked about the refusal of this attempt */
    bool has_asked_causes;       /* also about what rejects the pod: a verdict was known */

    /* results of bind_take_claims */
    bool is_bound;    /* the pod is bound to the node already */
    bool is_conflict; /* its claims are not free */
    bool is_rejected; /* for good: no eviction lets it be bound to this node */
    bool is_unknown;  /* refused because the cache lacks the pod, or a claim */
    bool has_to_wait; /* refused until claimguards agree */
    struct uid uid;   /* of the pod's record */
    struct verdict verdict;
    struct bind_warnings warnings;
    struct deferral deferral;
    struct claim_locks locks; /* claims to lock: in a live cluster with claimLock: Annotation */

    /* What to confirm first: the pod's claims, or pods that own them; NULL: none */
    struct kept_reference *to_confirm;
    bool is_of_owners;                             /* it is pods */
    bool is_claims_confirmed, is_owners_confirmed; /* in this attempt */

    struct slice version; /* of the pod: the Binding's precondition; empty: none */
    bool is_ours;         /* the pod is bound by our Binding, as far as is known */
};

/*
 * Decides from the cache, and takes the pod's claims, all or none. In a snapshot, this binds the
 * pod. Under the lock, for writing.
 * Errors: why the pod cannot be bound. With binding->to_confirm set, those objects have to be
 * confirmed first.
 */
int bind_take_claims(struct binding *binding, struct error *err);

typedef enum phase phase_function(struct binding *binding, struct error *err);

/* Runs the phases, from PHASE_TAKE to PHASE_END. bind: PHASE_BIND. */
void bind_run(struct binding *binding, phase_function *bind, struct error *err);

/* (give_way.c) Before a bind or a review of the pod takes anything. Errors: ERROR_INVALID: the pod
 * has to give way, and, but for a dry run, what only a filter call has reserved for it is free;
 * ERROR_NO_MEMORY.
 */
int give_way_check(const struct bind_call *call, bool is_dry_run, struct error *err);

/* Whether the pod, or a claim, is another one than was decided about. */
static inline bool bind_is_stale(const struct binding *binding)
{
    return binding->deferral.is_stale || binding->locks.replaced.len != 0;
}

/* The pod, or a claim, has changed since the decision: decides again, unless it was tried too
 * often. */
enum phase bind_try_again(struct binding *binding);

/* Whether the bind may wait for the API server. Of reviews, REVIEWS_WAITING_MAX may at a time, and
 * its REVIEWS_SHARE of a namespace. */
bool bind_may_wait(struct binding *binding);
int bind_too_many(struct error *err); /* it may not */
void bind_done_waiting(struct binding *binding);

/* Whether the error refuses the Binding; else no decision could be made. */
bool bind_is_refusal(const struct error *err);

/* Reads the pod, unless it is being created, and the causes of its refusal from the API server into
 * the cache. */
int bind_read_again(const struct binding *binding, int64_t timeout_ms, struct error *err);

/* Errors: there is no time left to send a Binding, or a request before it. */
int bind_check_time(const struct binding *binding, struct error *err);

/*
 * Writes what is deferred, before the Binding. The Binding's precondition is the version that this
 * write has made: anyone who changes the pod in between may have removed what was written. With
 * locks, which rest on the pod's version, the write's own precondition is the version that was read
 * for the locks.
 */
int bind_write_deferral(struct binding *binding, struct error *err);

/* A Binding of the pod may be applied from now on: its claims stay reserved. is_lost: it was sent,
 * and its answer was lost; else a review has let it pass. */
void bind_doubt_claims(struct binding *binding, bool is_lost);

/* Collects the verdict's warnings, and those about the node of the request. Under the lock. Errors:
 * ERROR_NO_MEMORY. */
int bind_collect_warnings(struct bind_warnings *out, const struct verdict *verdict,
                          const struct bind_call *call, struct error *err);

/* Counts each warning, and posts an Event of it. */
void bind_report_warnings(const struct bind_warnings *warnings, const struct bind_call *call);

/* The pod is not bound: its claims are free, and the pods that wait for them are requeued. */
void bind_free_claims(struct binding *binding);

#endif
