/*
 * zpages: the pages of the server: probes, /metrics, /statusz, /debug/cache and /debug/snapshot.
 * Like verbs, they do not need HTTP, so tests call them directly.
 *
 * Long pages are written one piece at a time. So the whole page is never in memory, and the state's
 * lock is never held for long. The cluster may change between two pieces.
 *
 * Threads: any; a page belongs to one. It takes the state's lock for reading, for a short time.
 */
#ifndef EXTENDER_SERVING_ZPAGES_ZPAGES_H
#define EXTENDER_SERVING_ZPAGES_ZPAGES_H

#include "extender/serving/state.h"

/* The first member of a struct that writes such a page. */
struct pieces {
    /* Writes the next piece, a few KiB. False after the last piece. */
    bool (*next)(struct pieces *pieces, struct buf *out);
    void (*dispose)(
        struct pieces *pieces); /* of what it has beside its own memory; NULL: nothing */
};

void pieces_free(struct pieces *pieces); /* NULL is allowed */

struct zpages_request {
    struct slice path;
    bool is_verbose;           /* ?verbose */
    bool wants_open_metrics;   /* the header Accept names OpenMetrics */
    struct quota_share *share; /* counts the page's memory; may be NULL */
};

/* How a page is sent. */
struct zpages_answer {
    unsigned status;          /* HTTP */
    const char *content_type; /* static */
    struct pieces *rest;      /* writes the other pieces; NULL: the page is complete */
};

/* Writes the page, or its beginning. The status is 404 if there is no such page.
 * Ownership: rest: pieces_free. The request's share must live until then. */
struct zpages_answer zpages_answer(struct state *state, const struct zpages_request *request,
                                   struct buf *out);

/* Whether there is a page with that path. */
bool zpages_exists(struct slice path);

/* ---- pieces.c: for pages that are written in pieces ---- */

/*
 * scan: visits the records of a table, a few at a time, in the order of their hashes. The table may
 * change between two calls; a record that stays in it is visited exactly once.
 *
 *     scan_visit visit;
 *     struct scan scan = {.from = 0};
 *     while (scan_on(&scan, table, visit, context))
 *         continue; // the lock may be released here
 *
 * During a call, the caller holds the lock of the table.
 */
struct scan {
    uint64_t from; /* the hash at which the next call continues */
};

/* Visits a record. False to stop for now. */
typedef bool scan_visit(void *context, const struct table_record *record);

/* Continues until the visitor returns false, but at most to the end of a page of the table. False
 * at the end of the table. */
bool scan_on(struct scan *scan, const struct table *table, scan_visit *visit, void *context);

/*
 * survey: counts over all claims and all pods, a few at a time under the lock. It does nothing
 * while no pod defers a mount. Any thread.
 */
enum { SURVEY_ORPHANS_SHOWN_MAX = 50 };

struct survey {
    size_t violations; /* claims of a deferred mount that another pod also holds */
    size_t orphans;    /* deferred volumes whose entry is not in the configuration any more */
};

/* Appends a line to `shown` for each of the first SURVEY_ORPHANS_SHOWN_MAX orphans; shown may be
 * NULL. Takes the state's lock for reading. */
struct survey survey_take(struct state *state, struct buf *shown);

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

/* ---- the pages ---- */

/* Make a page. Ownership: pieces_free. NULL without memory. share: counts the page's memory; may be
 * NULL. */

/* /metrics, in the Prometheus text format or in OpenMetrics. docs/metrics.md lists the metrics. */
struct pieces *scrape_new(struct state *state, bool is_open_metrics);

/*
 * /debug/cache:
 *
 *     {"nodes": {node: {claim: count}},
 *      "claims": {claim: {"exclusive": boolean, "refs": count, "holders": []}},
 *      "reservations": []}
 *
 * Two records may be of different moments. At most DEBUG_HOLDERS_MAX holders of a claim are listed;
 * "refs" counts all pods that name it.
 */
struct pieces *debug_cache_new(struct state *state, struct quota_share *share);

enum { DEBUG_HOLDERS_MAX = 100 };

/*
 * /debug/snapshot: what this claimguard knows of the cluster, as a List that every command reads as
 * a snapshot (record_json.h), with its reservations.
 *
 * Each object is as it was at one moment, and one that stays in the cluster during the whole
 * request is there once. Reservations come first, then pods, then claims: a pod that is bound
 * meanwhile has a reservation, or is bound, so that its claims never look free.
 */
struct pieces *debug_snapshot_new(struct state *state, struct quota_share *share);

#endif
