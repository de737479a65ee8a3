/*
 * conflicts: the pods that hold a pod's claims against it: where the pod needs a claim for itself,
 * all that hold it; where it shares one, those that have it for themselves (exclusive.h).
 *
 * Pure, as policies are. Ownership: all is in the arena, and points into the cluster. Errors: false
 * or NULL: there is no memory.
 */
#ifndef POLICY_CONFLICTS_H
#define POLICY_CONFLICTS_H

#include "cache/cluster/reservation.h"
#include "policy/holders.h"
#include "policy/policy.h"

/* A claim of the pod and one pod that holds it. */
struct conflict {
    const struct claim *claim;
    const struct pod *holder;              /* NULL: it is reserved */
    const struct reservation *reservation; /* NULL: it is held */
    enum hold hold;
    bool is_deferred; /* the holder's runtime mounts it */
    bool is_wanted;   /* this pod's runtime would mount it */
    bool is_locked;   /* its lock stores one pod (exclusive_by_lock) */
};

struct conflicts {
    struct conflict *items;
    size_t count;
    bool *exclusive;    /* for each of the pod's claims: it needs that for itself */
    bool has_exclusive; /* it needs any for itself */
};

/* The pod's claims as the cluster has them, in the pod's order; NULL for one that does not exist.
 */
const struct claim **conflicts_find_claims(const struct cluster *cluster,
                                           const struct pod_object *pod, struct arena *arena);

/* Finds every pair of a claim and a pod that holds it against this one. */
bool conflicts_find(const struct view *view, const struct pod_object *pod,
                    const struct claim *const *claims, struct arena *arena, struct conflicts *out);

/* By claim in the pod's order, then by the holder's name: reasons read the same at any time. */
void conflicts_sort(struct conflicts *conflicts);

/* "claim default/data is in use by pod default/db-0 on node-2". {NULL, 0}: no memory. */
struct slice conflict_describe(const struct conflict *conflict, struct arena *arena);

/* Adds a reason for each, VERDICT_REASONS_MAX at most. */
void conflicts_put_reasons(const struct conflicts *conflicts, struct arena *arena,
                           struct verdict *out);

/* The pod that holds the claim, or for which it is reserved. */
struct slice conflict_holder_name(const struct conflict *conflict);
int64_t conflict_priority(const struct conflict *conflict);

#endif
