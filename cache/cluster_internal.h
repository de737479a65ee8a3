/* What cluster.c, cluster_claims.c and cluster_pods.c share; nobody else includes this. */
#ifndef CACHE_CLUSTER_INTERNAL_H
#define CACHE_CLUSTER_INTERNAL_H

#include "cache/cluster.h"

/* resourceVersion as a number: the API server compares them so (KEP-5504). 0: unknown. */
uint64_t version_of(struct slice resource_version);

/* Whether what is told of version `told` is older than what is known. */
bool is_stale(uint64_t told, uint64_t known);

/* The record for that name, made (with exists false) when there is none; NULL without memory. */
struct node *node_obtain(struct cluster *cluster, struct slice name);
struct claim *claim_obtain(struct cluster *cluster, struct name *namespace, struct slice name);

/* Frees the record when nothing names it any more and it does not exist. */
void node_settle(struct cluster *cluster, struct node *node);
void claim_settle(struct cluster *cluster, struct claim *claim);

/* More or fewer pods hold the claim. */
void claim_add_refs(struct cluster *cluster, struct claim *claim, int change);

int claim_apply(struct cluster *cluster, const struct claim_object *object, struct error *err);
void claim_delete(struct cluster *cluster, const struct meta *meta);
void claims_dispose(struct cluster *cluster);

int pod_apply(struct cluster *cluster, const struct pod_object *object, struct error *err);
void pod_delete(struct cluster *cluster, const struct meta *meta);
void pods_dispose(struct cluster *cluster);

/* A key of pods and claims. */
struct object_key {
    const struct name *namespace;
    struct slice name;
};

static inline uint32_t object_key_hash(struct object_key key)
{
    return table_hash(key.name, key.namespace == NULL ? 0 : key.namespace->record.hash);
}

#endif
