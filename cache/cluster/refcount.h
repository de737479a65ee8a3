/*
 * refcount: how many pods on a node use a claim. KEP-2485 describes a map from PVC name to
 * reference count; kube-scheduler's cache stores only a set. One table serves all nodes.
 *
 * Only counts of claims that two or more pods hold are stored. Nearly every claim has one holder,
 * which the claim's uses name, and a count of 1 for each of them would be a sixth of the memory.
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

/* One pod more, or one pod less. claim->refs does not count the pod yet, or still does, and its use
 * is not linked from the claim. A pod names a claim once (objects.h). False: no memory; nothing was
 * counted. */
bool refcount_add(struct table *refs, const struct node *node, const struct claim *claim) MUST_USE;
void refcount_remove(struct table *refs, const struct node *node, const struct claim *claim);

/* The node of the pod that holds the claim, if it is the only one: claim->refs is 1. */
const struct node *refcount_only_node(const struct claim *claim);

/* How many pods there are; 0: none. */
uint32_t refcount_get(const struct table *refs, const struct node *node, const struct claim *claim);

#endif
