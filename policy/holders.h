/*
 * holders: which pods hold a claim, and how; and the conflicts of a pod: the pods that hold its
 * claims against it. Where the pod needs a claim for itself, these are all that hold it; where it
 * shares one, those that have it for themselves (exclusive.h). Verdicts, Events, who, why, dry runs
 * and /debug/cache all ask here.
 *
 * Pure, as policies are. Ownership: what is returned points into the cluster; conflicts are in the
 * arena. Errors: false or NULL: there is no memory.
 */
#ifndef POLICY_HOLDERS_H
#define POLICY_HOLDERS_H

#include "cache/cluster/reservation.h"
#include "policy/policy.h"

/* ---- one holder ---- */

/* How a pod holds a claim. */
enum hold { HOLD_NONE, HOLD_BOUND, HOLD_TERMINATING, HOLD_NOMINATED, HOLD_RESERVED };

/*
 * Whether and how `holder`, which names a claim, holds it against `pod`:
 * - assigned and not finished: Bound, or Terminating: until it is gone;
 * - nominated to a node that takes pods, of equal or higher priority, and not being deleted:
 *   Nominated, on all nodes, until the nomination lapses (cluster.h). Against a pod that is
 *   nominated itself only if it is tried first: of higher priority, or older;
 * - itself (by UID): never.
 */
enum hold hold_against(const struct cluster *cluster, const struct pod *holder,
                       const struct pod_object *pod);

/* "Bound", "Reserved" and so on, as people and programs read it; "" for HOLD_NONE. */
const char *hold_text(enum hold hold);

/* The pod as the cache knows it, which may be newer than what the scheduler sent; NULL: it does
 * not. */
const struct pod *holder_cached(const struct cluster *cluster, const struct pod_object *pod);

/* The pods that hold the claim against `pod`, by name: `room` at most. *uses: how many uses of the
 * claim are checked at most, then how many were. Returns how many pods there are. */
size_t holders_list(const struct cluster *cluster, const struct claim *claim,
                    const struct pod_object *pod, const struct pod **out, size_t room,
                    size_t *uses);

/* ---- the conflicts of a pod ---- */

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
    const struct claim **claims; /* of the pod, in its order; NULL for one that does not exist */
    struct conflict *items;      /* by claim in the pod's order, then by the holder's name: reasons
                                    read the same at any time */
    size_t count;
    bool *exclusive;    /* for each of the pod's claims: it needs that for itself */
    bool has_exclusive; /* it needs any for itself */
};

/* The pod's claims alone, before its conflicts are found; the rest becomes empty. */
bool conflicts_find_claims(const struct cluster *cluster, const struct pod_object *pod,
                           struct arena *arena, struct conflicts *out);

/* Finds every pair of a claim and a pod that holds it against this one. The pod has all fields that
 * the cluster knows (cluster_complete_pod), as policies get it. out: the claims, or all zero. */
bool conflicts_find(const struct view *view, const struct pod_object *pod, struct arena *arena,
                    struct conflicts *out);

/* "claim default/data is in use by pod default/db-0 on node-2". {NULL, 0}: no memory. */
struct slice conflict_describe(const struct conflict *conflict, struct arena *arena);

/* The pod that holds the claim, or for which it is reserved. */
struct slice conflict_holder_name(const struct conflict *conflict);

#endif
