/*
 * cluster_internal: what the files of cache/cluster share. Only they include it.
 *
 * Threads: as the cluster.
 */
#ifndef CACHE_CLUSTER_CLUSTER_INTERNAL_H
#define CACHE_CLUSTER_CLUSTER_INTERNAL_H

#include "cache/cluster/reservation.h"

/* Pages that one operation returns to the system at most. */
enum { TRIMMED_PAGES_MAX = 16 };

/* The records of a kind; of CSINodes, the nodes. */
const struct table *cluster_table(const struct cluster *cluster, enum kind kind);

/* What the list that is being read writes on the records of its objects. */
static inline uint32_t cluster_list_mark(const struct cluster *cluster, enum kind kind)
{
    return cluster->lists[kind].number & LISTED_MAX;
}

/* find: the record for that name; NULL: there is none. get_or_create: a new record has exists
 * false; NULL: no memory. */
struct node *node_get_or_create(struct cluster *cluster, struct slice name);
struct node *node_find(const struct cluster *cluster, struct slice name);
struct resource *resource_find(const struct cluster *cluster, enum kind kind, struct slice ns,
                               struct slice name);
struct claim *claim_get_or_create(struct cluster *cluster, struct name *ns, struct slice name);

/* Frees the record when nothing names it any more and it does not exist; a node's: nor a CSINode of
 * that name. */
void node_free_if_unused(struct cluster *cluster, struct node *node);
void claim_free_if_unused(struct cluster *cluster, struct claim *claim);

/* `change` more pods hold the claim. */
void claim_add_refs(struct cluster *cluster, struct claim *claim, int change);

/* In all *_apply, known is the record of that name, which is older; NULL: there is none. */
int claim_apply(struct cluster *cluster, struct claim *known, const struct claim_object *object,
                struct error *err);
void claim_mark_deleted(struct cluster *cluster, struct claim *claim);
void claims_dispose(struct cluster *cluster);

int pod_apply(struct cluster *cluster, struct pod *known, const struct pod_object *object,
              uint64_t asked_ns, struct error *err);

/* The pod is gone: its record and its reservation end. */
void pod_remove(struct cluster *cluster, struct pod *pod);
void pods_dispose(struct cluster *cluster);

/* A record that names its claims and its node, but is not counted, not linked from its claims and
 * not in the table. NULL: no memory. */
struct pod *pod_new(struct cluster *cluster, const struct pod_object *object);

/* Counts it and puts it into the table. False: no memory; the record is freed. */
bool pod_add(struct cluster *cluster, struct pod *pod) MUST_USE;

/* Takes a record out of the table and frees it. Another record may describe the same pod. */
void pod_drop(struct cluster *cluster, struct pod *pod);

/* Nominations of the records of pods that appear and go; a pod without one is ignored. */
void nominated_add(struct cluster *cluster, struct pod *pod);
void nominated_remove(struct cluster *cluster, struct pod *pod);

int node_apply(struct cluster *cluster, struct node *known, const struct resource_object *object,
               struct error *err);
void node_mark_deleted(struct cluster *cluster, struct node *node);
void nodes_dispose(struct cluster *cluster);

int csi_node_apply(struct cluster *cluster, struct node *known,
                   const struct resource_object *object, struct error *err);

/* The CSINode with the node's name, which is known, is gone. The node's record may be freed. */
void csi_node_remove(struct cluster *cluster, struct node *node);

int resource_apply(struct cluster *cluster, struct resource *known, const struct object *object,
                   struct error *err);
void resource_remove(struct cluster *cluster, enum kind kind, struct resource *resource);
void resources_dispose(struct cluster *cluster);

/* The key of pods and claims in their tables. */
struct object_key {
    const struct name *ns;
    struct slice name;
};

static inline uint32_t object_key_hash(struct object_key key)
{
    return table_hash(key.name, name_hash(key.ns));
}

/* ---- reservation.c, reservation_binds.c ---- */

/* Adds a claim to the reservation, which has memory for it; it is not reserved yet. */
static inline void reservation_add_exclusive(struct reservation *reservation, struct claim *claim)
{
    reservation->claims[reservation->claim_count++] = claim;
    claim->named++;
}

/* The reservation, which is not in the table yet, is of a pod that is being created: counts it, and
 * adds the claims that will be created after the pod, for it alone. former: the pod's reservation
 * that this one will replace; NULL: none. Errors: ERROR_UNAVAILABLE: too many; ERROR_NO_MEMORY. */
int reservation_begin_creation(struct cluster *cluster, struct reservation *reservation,
                               const struct reservation *former, const struct pod_object *pod,
                               struct error *err);

/* It is counted no more. */
void reservation_end_creation(struct cluster *cluster, const struct reservation *reservation);

#endif
