/*
 * node_refs: how many pods of each node reference which claims, node by node. The counts lie in one
 * table for all nodes; each walk through it keeps the first NODE_REFS_BATCH counts behind those of
 * the walk before, by node. So memory is a batch's, and the lock is held for one of the table's
 * pages.
 *
 * Nodes and claims are no more than identities here: without the lock they may go at any time.
 *
 * Threads: one at a time; it takes the state's lock, for reading.
 */
#ifndef EXTENDER_ZPAGES_NODE_REFS_H
#define EXTENDER_ZPAGES_NODE_REFS_H

#include "extender/state.h"

enum { NODE_REFS_BATCH = 16384 }; /* so that a walk for each is few, at any size */

struct node_ref {
    const struct node *node;
    const struct claim *claim;
    uint32_t node_hash, claim_hash; /* of their records */
    uint32_t count;
};

struct node_refs {
    struct state *state;
    struct buf batch;          /* struct node_ref: sorted, each once */
    size_t at;                 /* of the batch: the next one */
    struct node_ref last_seen; /* of the batch before; all zero: there was none */
    struct node_ref bound;     /* of this batch, if has_more: the first one of the next */
    bool has_begun, has_more;
};

/* share: of what it takes; may be NULL. Ownership: node_refs_dispose. */
void node_refs_init(struct node_refs *refs, struct state *state, struct quota_share *share);
void node_refs_dispose(struct node_refs *refs);

/* Some of the node's counts that were not taken yet, at most `most`; NULL: there are no more.
 * Valid until the next call. Nodes are asked about in the order of node_refs_compare.
 * Errors: without memory refs->batch has failed. */
const struct node_ref *node_refs_take(struct node_refs *refs, const struct node *node,
                                      uint32_t node_hash, size_t most, size_t *count);

/* By their hashes; of one hash, somehow. */
int node_refs_compare(const struct node *a, uint32_t a_hash, const struct node *b, uint32_t b_hash);

#endif
