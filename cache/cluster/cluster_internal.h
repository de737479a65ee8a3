/*
 * cluster_internal: what the files of cache/cluster share. Only they include it.
 *
 * Threads: as the cluster.
 */
#ifndef CACHE_CLUSTER_CLUSTER_INTERNAL_H
#define CACHE_CLUSTER_CLUSTER_INTERNAL_H

#include "cache/cluster/cluster.h"

/* Pages that one operation returns to the system at most. */
enum { TRIMMED_PAGES_MAX = 16 };

/* Whether the object is older than version known, the one of its record. */
bool cluster_is_stale(const struct cluster *cluster, enum kind kind, const struct meta *meta,
                      uint64_t known);

/* find: the record for that name; NULL: there is none. get_or_create: a new record has exists
 * false; NULL: no memory. */
struct node *node_get_or_create(struct cluster *cluster, struct slice name);
struct node *node_find(const struct cluster *cluster, struct slice name);
struct resource *resource_find(const struct cluster *cluster, enum kind kind, struct slice ns,
                               struct slice name);
struct claim *claim_find(const struct cluster *cluster, struct slice ns, struct slice name);
struct claim *claim_get_or_create(struct cluster *cluster, struct name *ns, struct slice name);

/* The list that is being read names the claim; and whether it has. */
static inline void claim_list(const struct cluster *cluster, struct claim *claim)
{
    claim->listed = cluster->lists[KIND_CLAIM].number & LISTED_MAX;
}

static inline bool claim_is_listed(const struct cluster *cluster, const struct claim *claim)
{
    return claim->listed == (cluster->lists[KIND_CLAIM].number & LISTED_MAX);
}

/* Frees the record when nothing names it any more and it does not exist; a node's: nor a CSINode of
 * that name. */
void node_free_if_unused(struct cluster *cluster, struct node *node);
void claim_free_if_unused(struct cluster *cluster, struct claim *claim);

/* `change` more pods hold the claim. */
void claim_add_refs(struct cluster *cluster, struct claim *claim, int change);

int claim_apply(struct cluster *cluster, const struct claim_object *object, struct error *err);
void claim_delete(struct cluster *cluster, const struct meta *meta);
void claim_mark_deleted(struct cluster *cluster, struct claim *claim);
void claims_dispose(struct cluster *cluster);

int pod_apply(struct cluster *cluster, const struct pod_object *object, uint64_t asked_ns,
              struct error *err);
void pod_delete(struct cluster *cluster, const struct meta *meta);

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

/* The list that is being read names the pod; and whether it has. */
static inline void pod_list(const struct cluster *cluster, struct pod *pod)
{
    pod->listed = cluster->lists[KIND_POD].number & LISTED_MAX;
}

static inline bool pod_is_listed(const struct cluster *cluster, const struct pod *pod)
{
    return pod->listed == (cluster->lists[KIND_POD].number & LISTED_MAX);
}

int node_apply(struct cluster *cluster, const struct resource_object *object, struct error *err);
void node_delete(struct cluster *cluster, const struct meta *meta);
void node_mark_deleted(struct cluster *cluster, struct node *node);
void nodes_dispose(struct cluster *cluster);

int csi_node_apply(struct cluster *cluster, const struct resource_object *object,
                   struct error *err);
void csi_node_delete(struct cluster *cluster, const struct meta *meta);

/* The CSINode with the node's name, which is known, is gone. The node's record may be freed. */
void csi_node_remove(struct cluster *cluster, struct node *node);

/* NULL is ignored. */
void csi_node_free(struct cluster *cluster, struct csi_node *csi_node);

/* As pod_list and pod_is_listed. */
static inline void csi_node_list(const struct cluster *cluster, struct node *node)
{
    node->csi_node_listed = cluster->lists[KIND_CSI_NODE].number & LISTED_MAX;
}

static inline bool csi_node_is_listed(const struct cluster *cluster, const struct node *node)
{
    return node->csi_node_listed == (cluster->lists[KIND_CSI_NODE].number & LISTED_MAX);
}

/* Makes counts for the drivers of a CSINode; NULL: it has none. False: no memory. release: frees
 * those that no node uses. */
bool csi_node_reserve_drivers(struct cluster *cluster, const struct csi_node *csi_node) MUST_USE;
void csi_node_release_drivers(struct cluster *cluster, const struct csi_node *csi_node);

/* The node has the drivers of its CSINode now, which are reserved; none if it does not exist, or
 * the CSINode is not its own. */
void node_update_drivers(struct cluster *cluster, struct node *node);

int resource_apply(struct cluster *cluster, const struct object *object, struct error *err);
void resource_delete(struct cluster *cluster, const struct object *object);
void resource_remove(struct cluster *cluster, enum kind kind, struct resource *resource);
void resources_dispose(struct cluster *cluster);

/* As cluster_apply. asked_ns: when the list or the GET was sent; 0: the object is from a watch. */
int object_apply(struct cluster *cluster, const struct object *object, uint64_t asked_ns,
                 struct error *err);

/* The key of pods and claims in their tables. */
struct object_key {
    const struct name *ns;
    struct slice name;
};

static inline uint32_t object_key_hash(struct object_key key)
{
    return table_hash(key.name, name_hash(key.ns));
}

#endif
