/*
 * refcount: how many pods on a node use a claim. KEP-2485 describes a map from PVC name to
 * reference count; kube-scheduler's cache stores only a set. One table serves all nodes.
 *
 * Ownership: nodes and claims are borrowed, and outlive their counts. Threads: as the cluster.
 */
#ifndef CACHE_CLUSTER_REFCOUNT_H
#define CACHE_CLUSTER_REFCOUNT_H

#include "cache/store/table.h"

struct claim;
struct node;

struct refcount {
    struct table_record record; /* by node and claim */
    uint32_t count;             /* over 0 */
    const struct node *node;
    const struct claim *claim;
};

/* One pod more, or one pod less. False: no memory; nothing was counted. */
bool refcount_add(struct table *refs, const struct node *node, const struct claim *claim) MUST_USE;
void refcount_remove(struct table *refs, const struct node *node, const struct claim *claim);

/* How many pods there are; 0: none. */
uint32_t refcount_get(const struct table *refs, const struct node *node, const struct claim *claim);

#endif
