/*
 * node_refs: reads, node by node, how many pods of the node use which claims. The cluster has these
 * counts in its claims and in one table for all nodes, not sorted by node. So each batch walks
 * through both tables, and keeps the NODE_REFS_BATCH counts that follow the batch before in the
 * order of nodes. It needs the memory of one batch, and holds the lock for one page of a table.
 *
 * The count of a claim that gets a second holder between the two walks may be missing.
 *
 * Pointers to nodes and claims are only compared: without the lock, they may be freed at any time.
 *
 * Threads: one at a time. It takes the state's lock for reading.
 */
#ifndef EXTENDER_ZPAGES_NODE_REFS_H
#define EXTENDER_ZPAGES_NODE_REFS_H

#include "extender/state.h"

enum { NODE_REFS_BATCH = 16384 }; /* large enough that few walks are needed */

struct node_count {
    const struct node *node;
    const struct claim *claim;
    uint32_t node_hash, claim_hash; /* the hashes of their records */
    uint32_t count;
};

struct node_refs {
    struct state *state;
    struct buf batch;            /* struct node_count, sorted, without duplicates */
    size_t at;                   /* index of the next count in the batch */
    struct node_count last_seen; /* the last count of the batch before; all zero: none */
    struct node_count bound;     /* if has_more: the first count that is not in this batch */
    bool has_begun, has_more;
};

/* share: counts the memory of the batch; may be NULL. Ownership: node_refs_dispose. */
void node_refs_init(struct node_refs *refs, struct state *state, struct quota_share *share);
void node_refs_dispose(struct node_refs *refs);

/* The next counts of the node, at most `most`; NULL if there are no more. Valid until the next
 * call. The caller takes the nodes in the order of node_refs_compare. Errors: without memory, NULL,
 * and refs->batch is failed. */
const struct node_count *node_refs_take(struct node_refs *refs, const struct node *node,
                                        uint32_t node_hash, size_t most, size_t *count);

/* The order of nodes: by hash; nodes with the same hash are in any, but a fixed order. */
int node_refs_compare(const struct node *a, uint32_t a_hash, const struct node *b, uint32_t b_hash);

#endif
