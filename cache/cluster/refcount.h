/*
 * refcount: how many of the pods on a node reference a claim: KEP-2485's "map the PVC name to a
 * reference count", but a count where the in-tree cache keeps a set. One table for all nodes.
 *
 * The nodes and claims are borrowed; they outlive their counts.
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

/* One reference more, or one less. False: no memory, and nothing was counted. */
bool refcount_add(struct table *refs, const struct node *node, const struct claim *claim) MUST_USE;
void refcount_remove(struct table *refs, const struct node *node, const struct claim *claim);

/* How many references there are. */
uint32_t refcount_get(const struct table *refs, const struct node *node, const struct claim *claim);

#endif
