#include "extender/serving/zpages/zpages.h"

#include <stdlib.h>

#include "policy/holders.h"

enum {
    RECORDS_A_PIECE = 32, /* claims, counts or reservations: about 50 microseconds */
    USES_SEEN_MAX = 1000, /* uses of one claim that are checked for holders */
};

/* A copy of a node, whose record may be deleted meanwhile. */
struct known_node {
    const struct node *node; /* compared, not read */
    uint32_t hash;
    uint16_t name_len;
    char name[254]; /* as long as a name can be */
};

struct debug_cache {
    struct pieces pieces;
    struct state *state;
    unsigned section; /* index into sections[] */
    bool is_first;    /* no member of the section is written yet */
    struct scan scan;
    struct node_refs refs;
    struct buf nodes; /* struct known_node, of one page of the table */
    size_t node_at;   /* index of the next node */
    bool is_in_node;  /* that node is partly written, */
    bool has_refs;    /* with at least one count */
    struct buf *out;
    unsigned left; /* records that this piece may still have */
};

/* Writes a piece of a section. False at the end of the section. */
typedef bool section(struct debug_cache *cache);

static void begin_scan(struct debug_cache *cache)
{
    cache->scan = (struct scan){.from = 0};
    cache->is_first = true;
}

static void put_comma(struct debug_cache *cache)
{
    buf_put(cache->out, cache->is_first ? SLICE("\n") : SLICE(",\n"));
    cache->is_first = false;
}

/* "namespace/name" */
static void put_claim_key(struct buf *out, const struct claim *claim)
{
    struct slice ns = name_text(claim->ns);
    SCOPED_BUF(key, ns.len + 1 + claim->name_len);

    buf_put(&key, ns);
    buf_put(&key, SLICE("/"));
    buf_put(&key, claim_name(claim));
    out->failed = out->failed || key.failed;
    buf_json(out, buf_slice(&key));
}

/* ---- nodes ---- */

static bool begin_nodes(struct debug_cache *cache)
{
    begin_scan(cache);
    buf_put(cache->out, SLICE("{\n  \"nodes\": {"));
    return false;
}

static bool keep_node(void *context, const struct table_record *record)
{
    const struct node *node = (const struct node *)(const void *)record;
    struct slice name = name_slice(node->name);
    struct debug_cache *cache = context;
    struct known_node known = {.node = node, .hash = record->hash};

    known.name_len = name.len < sizeof known.name ? (uint16_t)name.len : sizeof known.name;
    memcpy(known.name, name.ptr, known.name_len);
    buf_put(&cache->nodes, (struct slice){(const char *)&known, sizeof known});
    return true;
}

static int compare_nodes(const void *a, const void *b)
{
    const struct known_node *x = a, *y = b;

    return node_refs_compare(x->node, x->hash, y->node, y->hash);
}

/* Copies the nodes of the next page of the table. False at the end of the table. */
static bool next_nodes(struct debug_cache *cache)
{
    struct state *state = cache->state;

    buf_reset(&cache->nodes, SIZE_MAX);
    cache->node_at = 0;
    (void)pthread_rwlock_rdlock(&state->lock);
    bool has_more = scan_on(&cache->scan, &state->cluster.nodes, keep_node, cache);
    (void)pthread_rwlock_unlock(&state->lock);
    cache->out->failed = cache->out->failed || cache->nodes.failed;
    if (cache->nodes.len != 0)
        qsort(cache->nodes.bytes, cache->nodes.len / sizeof(struct known_node),
              sizeof(struct known_node), compare_nodes);
    return has_more;
}

static bool is_same(const void *record, const void *key)
{
    return record == key;
}

/* Called under the lock. */
static void put_ref(struct debug_cache *cache, const struct node_count *ref)
{
    if (table_find(&cache->state->cluster.claims, ref->claim_hash, is_same, ref->claim) == NULL)
        return; /* it was deleted meanwhile */
    buf_put(cache->out, cache->has_refs ? SLICE(", ") : SLICE(""));
    cache->has_refs = true;
    put_claim_key(cache->out, ref->claim);
    buf_printf(cache->out, ": %u", ref->count);
}

/* Writes some counts of the node. False if it has no more. */
static bool put_refs(struct debug_cache *cache, const struct known_node *known)
{
    size_t count;
    const struct node_count *refs =
        node_refs_take(&cache->refs, known->node, known->hash, RECORDS_A_PIECE, &count);

    cache->out->failed = cache->out->failed || cache->refs.batch.failed;
    if (refs == NULL)
        return false;
    SCOPED_READ_LOCK(&cache->state->lock);
    for (size_t i = 0; i < count; i++)
        put_ref(cache, &refs[i]);
    return true;
}

static void begin_node(struct debug_cache *cache, const struct known_node *known)
{
    put_comma(cache);
    buf_put(cache->out, SLICE("    "));
    buf_json(cache->out, (struct slice){known->name, known->name_len});
    buf_put(cache->out, SLICE(": {"));
    cache->is_in_node = true;
    cache->has_refs = false;
}

static bool write_nodes(struct debug_cache *cache)
{
    if (cache->node_at * sizeof(struct known_node) == cache->nodes.len && !next_nodes(cache)) {
        buf_put(cache->out, SLICE("\n  },\n  \"claims\": {"));
        begin_scan(cache);
        return false;
    }
    if (cache->nodes.len == 0)
        return true; /* the page of the table was empty */
    const struct known_node *known =
        (const struct known_node *)(const void *)cache->nodes.bytes + cache->node_at;
    if (!cache->is_in_node)
        begin_node(cache, known);
    if (put_refs(cache, known))
        return true;
    buf_put(cache->out, SLICE("}"));
    cache->is_in_node = false;
    cache->node_at++;
    return true;
}

/* ---- claims ---- */

/* The fields of a pod that holds a claim. */
static void put_holder(struct buf *out, const struct object_reference *pod, struct slice node,
                       int priority, enum hold hold)
{
    static const char *const keys[] = {"namespace", "name", "uid", "node"};
    const struct slice texts[] = {pod->ns, pod->name, pod->uid, node};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        buf_printf(out, "\"%s\": ", keys[i]);
        buf_json(out, texts[i]);
        buf_put(out, SLICE(", "));
    }
    buf_printf(out, "\"priority\": %d, \"as\": \"%s\"", priority, hold_text(hold));
}

static void put_pod(struct buf *out, const struct pod *pod, enum hold hold)
{
    char uid[UID_TEXT_BYTES];
    struct object_reference reference = pod_reference(pod, uid);

    put_holder(out, &reference, pod_is_assigned(pod) ? pod_node(pod) : pod_nominated_node(pod),
               pod->priority, hold);
}

static void put_reserved(struct buf *out, const struct reservation *reservation)
{
    char uid[UID_TEXT_BYTES];
    struct object_reference reference = {KIND_POD, name_slice(reservation->ns),
                                         name_slice(reservation->name),
                                         uid_text(&reservation->uid, uid)};

    put_holder(out, &reference, name_slice(reservation->node), reservation->priority,
               HOLD_RESERVED);
}

/* Returns the number of pods that it checked. */
static size_t put_holders(struct buf *out, const struct cluster *cluster, const struct claim *claim)
{
    static const struct pod_object nobody = {.priority =
                                                 INT32_MIN}; /* so each nominated pod holds */
    const struct pod *pods[DEBUG_HOLDERS_MAX];
    size_t seen = USES_SEEN_MAX;
    size_t count = holders_list(cluster, claim, &nobody, pods, DEBUG_HOLDERS_MAX, &seen);

    for (size_t i = 0; i < count; i++) {
        buf_put(out, i == 0 ? SLICE("{") : SLICE(", {"));
        put_pod(out, pods[i], hold_against(cluster, pods[i], &nobody));
        buf_put(out, SLICE("}"));
    }
    if (claim_is_reserved(claim)) {
        buf_put(out, count == 0 ? SLICE("{") : SLICE(", {"));
        put_reserved(out, reservation_at(claim->reservation));
        buf_put(out, SLICE("}"));
    }
    return seen;
}

/* Counts a record with so many parts. Whether the piece may have another one. */
static bool has_room(struct debug_cache *cache, size_t parts)
{
    size_t weight = 1 + parts / 4;

    cache->left -= weight < cache->left ? (unsigned)weight : cache->left;
    return cache->left != 0;
}

/* Writes some records of the table. False at the end of the table. */
static bool write_some(struct debug_cache *cache, const struct table *table, scan_visit *write)
{
    struct state *state = cache->state;

    cache->left = RECORDS_A_PIECE;
    SCOPED_READ_LOCK(&state->lock);
    return scan_on(&cache->scan, table, write, cache);
}

static bool write_claim(void *context, const struct table_record *record)
{
    const struct claim *claim = (const struct claim *)(const void *)record;
    struct debug_cache *cache = context;
    struct buf *out = cache->out;

    put_comma(cache);
    buf_put(out, SLICE("    "));
    put_claim_key(out, claim);
    buf_printf(out, ": {\"exclusive\": %s, \"refs\": %u, \"holders\": [",
               claim->is_rwop ? "true" : "false", claim->refs);
    size_t pods = put_holders(out, &cache->state->cluster, claim);
    buf_put(out, SLICE("]}"));
    return has_room(cache, pods);
}

static bool write_claims(struct debug_cache *cache)
{
    if (write_some(cache, &cache->state->cluster.claims, write_claim))
        return true;
    buf_put(cache->out, SLICE("\n  },\n  \"reservations\": ["));
    begin_scan(cache);
    return false;
}

/* ---- reservations ---- */

static bool write_reservation(void *context, const struct table_record *record)
{
    const struct reservation *reservation = (const struct reservation *)(const void *)record;
    struct debug_cache *cache = context;
    struct buf *out = cache->out;
    bool is_first = true;

    put_comma(cache);
    buf_put(out, SLICE("    {"));
    put_reserved(out, reservation);
    buf_printf(out, ", \"binding\": %s, \"claims\": [",
               reservation_binds(reservation) ? "true" : "false");
    for (size_t i = 0; i < reservation->claim_count; i++) {
        if (!reservation_has(reservation, reservation->claims[i]))
            continue;
        buf_put(out, is_first ? SLICE("") : SLICE(", "));
        buf_json(out, claim_name(reservation->claims[i]));
        is_first = false;
    }
    buf_put(out, SLICE("]}"));
    return has_room(cache, reservation->claim_count);
}

static bool write_reservations(struct debug_cache *cache)
{
    if (write_some(cache, &cache->state->cluster.reserved, write_reservation))
        return true;
    buf_put(cache->out, cache->is_first ? SLICE("]\n}\n") : SLICE("\n  ]\n}\n"));
    return false;
}

/* ---- the page ---- */

static section *const sections[] = {begin_nodes, write_nodes, write_claims, write_reservations};

static bool next(struct pieces *pieces, struct buf *out)
{
    struct debug_cache *cache = (struct debug_cache *)pieces;

    cache->out = out;
    if (!sections[cache->section](cache))
        cache->section++;
    return cache->section < sizeof sections / sizeof *sections;
}

static void dispose(struct pieces *pieces)
{
    struct debug_cache *cache = (struct debug_cache *)pieces;

    node_refs_dispose(&cache->refs);
    buf_dispose(&cache->nodes);
}

struct pieces *debug_cache_new(struct state *state, struct quota_share *share)
{
    struct debug_cache *cache = calloc(1, sizeof *cache);

    if (cache == NULL)
        return NULL;
    cache->pieces = (struct pieces){next, dispose};
    cache->state = state;
    node_refs_init(&cache->refs, state, share);
    buf_init(&cache->nodes, SIZE_MAX);
    cache->nodes.share = share;
    return &cache->pieces;
}
