/* What cluster*.c, assumed.c and priority_class.c share; nobody else includes this. */
#ifndef CACHE_CLUSTER_CLUSTER_INTERNAL_H
#define CACHE_CLUSTER_CLUSTER_INTERNAL_H

#include "cache/cluster/cluster.h"

/* Pages that an operation gives back to the system at most. */
enum { TRIMMED_PAGES_MAX = 16 };

/* Whether what is told of an object is older than what is known of it. */
bool is_stale(const struct cluster *cluster, enum kind kind, const struct meta *told,
              uint64_t known);

/* The record for that name; NULL: there is none. Obtained: made (with exists false) when there is
 * none; NULL without memory. */
struct node *node_get_or_create(struct cluster *cluster, struct slice name);
struct node *node_find(const struct cluster *cluster, struct slice name);
struct resource *resource_find(const struct cluster *cluster, enum kind kind, struct slice ns,
                               struct slice name);
struct claim *claim_find(const struct cluster *cluster, struct slice ns, struct slice name);
struct claim *claim_get_or_create(struct cluster *cluster, struct name *ns, struct slice name);

/* Frees the record when nothing names it any more and it does not exist. */
void node_free_if_unused(struct cluster *cluster, struct node *node);
void claim_free_if_unused(struct cluster *cluster, struct claim *claim);

/* More or fewer pods hold the claim. */
void claim_add_refs(struct cluster *cluster, struct claim *claim, int change);

int claim_apply(struct cluster *cluster, const struct claim_object *object, struct error *err);
void claim_delete(struct cluster *cluster, const struct meta *meta);
void claim_mark_deleted(struct cluster *cluster, struct claim *claim);
void claims_dispose(struct cluster *cluster);

int pod_apply(struct cluster *cluster, const struct pod_object *object, uint64_t asked_ns,
              struct error *err);
void pod_delete(struct cluster *cluster, const struct meta *meta);
void pod_remove(struct cluster *cluster, struct pod *pod);
void pods_dispose(struct cluster *cluster);

/* The pod is in the list that is being read; whether it is. */
static inline void pod_list(const struct cluster *cluster, struct pod *pod)
{
    pod->listed = cluster->lists[KIND_POD].number & POD_LISTED_MAX;
}

static inline bool pod_is_listed(const struct cluster *cluster, const struct pod *pod)
{
    return pod->listed == (cluster->lists[KIND_POD].number & POD_LISTED_MAX);
}

void node_mark_deleted(struct cluster *cluster, struct node *node);
void resource_remove(struct cluster *cluster, enum kind kind, struct resource *resource);

/* As cluster_apply. asked_ns: when what says so was asked for; 0: a watch says it. */
int object_apply(struct cluster *cluster, const struct object *object, uint64_t asked_ns,
                 struct error *err);

/* A key of pods and claims. */
struct object_key {
    const struct name *ns;
    struct slice name;
};

static inline uint32_t object_key_hash(struct object_key key)
{
    return table_hash(key.name, name_hash(key.ns));
}

#endif
