#include "extender/zpages/debug_snapshot.h"

#include <stdlib.h>

#include "cache/cluster/allowance.h"
#include "extender/zpages/record_json.h"
#include "extender/zpages/scan.h"

/* What a piece may have: about 50 microseconds. One record is always written as a whole. */
enum { RECORDS_A_PIECE = 32, BYTES_A_PIECE = 8 * 1024 };

struct debug_snapshot {
    struct pieces pieces;
    struct state *state;
    struct buf *out;
    bool has_begun;
    bool has_item;    /* of the list */
    unsigned section; /* index into sections[] */
    enum kind kind;   /* of the section */
    struct scan scan;
    unsigned records; /* in this piece */
    size_t begin;     /* where this piece begins in out */
    uint64_t now_ns;
};

static void begin_item(struct debug_snapshot *snapshot)
{
    buf_put(snapshot->out, snapshot->has_item ? SLICE(",\n") : SLICE("\n"));
    snapshot->has_item = true;
}

/* Counts a record. Whether the piece may have another one. */
static bool has_room(struct debug_snapshot *snapshot)
{
    snapshot->records++;
    return snapshot->records < RECORDS_A_PIECE &&
           snapshot->out->len - snapshot->begin < BYTES_A_PIECE && !snapshot->out->failed;
}

/* ---- records: scan_visit ---- */

static bool write_reservation(void *context, const struct table_record *record)
{
    struct debug_snapshot *snapshot = context;

    begin_item(snapshot);
    record_json_reservation(snapshot->out, (const struct reservation *)(const void *)record,
                            snapshot->now_ns);
    return has_room(snapshot);
}

static bool write_pod(void *context, const struct table_record *record)
{
    struct debug_snapshot *snapshot = context;

    begin_item(snapshot);
    record_json_pod(snapshot->out, (const struct pod *)(const void *)record);
    return has_room(snapshot);
}

/* A claim that only a pod names also has a record. */
static bool write_claim(void *context, const struct table_record *record)
{
    const struct claim *claim = (const struct claim *)(const void *)record;
    struct debug_snapshot *snapshot = context;

    if (claim->exists) {
        begin_item(snapshot);
        record_json_claim(snapshot->out, claim);
    }
    return has_room(snapshot);
}

static bool write_node(void *context, const struct table_record *record)
{
    const struct node *node = (const struct node *)(const void *)record;
    struct debug_snapshot *snapshot = context;

    if (node->exists) {
        begin_item(snapshot);
        record_json_node(snapshot->out, node);
    }
    if (node->csi_node != NULL) {
        begin_item(snapshot);
        record_json_csi_node(snapshot->out, node);
    }
    return has_room(snapshot);
}

static bool write_resource(void *context, const struct table_record *record)
{
    struct debug_snapshot *snapshot = context;

    begin_item(snapshot);
    record_json_resource(snapshot->out, snapshot->kind,
                         (const struct resource *)(const void *)record);
    return has_room(snapshot);
}

/* ---- the page ---- */

#define RESOURCES(kind_) \
    { \
        offsetof(struct cluster, resources[kind_]), write_resource, (kind_) \
    }

static const struct section {
    size_t table; /* its offset in struct cluster */
    scan_visit *write;
    enum kind kind; /* of write_resource */
} sections[] = {
    {offsetof(struct cluster, reserved), write_reservation, KIND_OTHER},
    {offsetof(struct cluster, pods), write_pod, KIND_POD},
    {offsetof(struct cluster, claims), write_claim, KIND_CLAIM},
    RESOURCES(KIND_VOLUME),
    RESOURCES(KIND_STORAGE_CLASS),
    RESOURCES(KIND_CSI_DRIVER),
    RESOURCES(KIND_VOLUME_ATTRIBUTES_CLASS),
    RESOURCES(KIND_POD_DISRUPTION_BUDGET),
    RESOURCES(KIND_PRIORITY_CLASS),
    RESOURCES(KIND_RUNTIME_CLASS),
    RESOURCES(KIND_VOLUME_ATTACHMENT),
    {offsetof(struct cluster, nodes), write_node, KIND_NODE}, /* and CSINodes */
};

enum { SECTIONS = sizeof sections / sizeof *sections };

static void put_about(struct debug_snapshot *snapshot, enum own_kind about, struct slice name)
{
    begin_item(snapshot);
    record_json_about(snapshot->out, about, name);
}

/* What the API server does not serve, and what was given up, is also known; and all reservations
 * are. */
static void begin(struct debug_snapshot *snapshot)
{
    const struct cluster *cluster = &snapshot->state->cluster;
    struct table_walk walk = {.at = 0};
    struct slice ns;

    snapshot->has_begun = true;
    buf_put(snapshot->out, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":["));
    put_about(snapshot, OWN_LISTED_RESOURCE, SLICE(OWN_RESERVATIONS));
    (void)pthread_rwlock_rdlock(&snapshot->state->lock);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (cluster->is_unserved[kind])
            put_about(snapshot, OWN_UNSERVED_RESOURCE, slice_of(kind_resource((enum kind)kind)));
    while ((ns = allowance_next(cluster, &walk)).ptr != NULL)
        put_about(snapshot, OWN_NAMESPACE_GIVEN_UP, ns);
    (void)pthread_rwlock_unlock(&snapshot->state->lock);
}

/* Writes some records of the section. */
static void write_some(struct debug_snapshot *snapshot)
{
    const struct section *section = &sections[snapshot->section];
    struct state *state = snapshot->state;
    const char *cluster = (const char *)&state->cluster;

    snapshot->kind = section->kind;
    snapshot->records = 0;
    snapshot->begin = snapshot->out->len;
    (void)pthread_rwlock_rdlock(&state->lock);
    bool has_more =
        scan_on(&snapshot->scan, (const struct table *)(const void *)(cluster + section->table),
                section->write, snapshot);
    (void)pthread_rwlock_unlock(&state->lock);
    if (has_more)
        return;
    snapshot->section++;
    snapshot->scan = (struct scan){.from = 0};
}

static bool next(struct pieces *pieces, struct buf *out)
{
    struct debug_snapshot *snapshot = (struct debug_snapshot *)pieces;

    snapshot->out = out;
    if (!snapshot->has_begun)
        begin(snapshot);
    else
        write_some(snapshot);
    if (snapshot->section < SECTIONS)
        return true;
    buf_put(out, SLICE("\n]}\n"));
    return false;
}

static void debug_snapshot_free(struct pieces *pieces)
{
    free(pieces);
}

struct pieces *debug_snapshot_new(struct state *state, struct quota_share *share)
{
    struct debug_snapshot *snapshot = calloc(1, sizeof *snapshot);

    (void)share; /* it has no memory but that of a piece */
    if (snapshot == NULL)
        return NULL;
    snapshot->pieces = (struct pieces){next, debug_snapshot_free};
    snapshot->state = state;
    snapshot->now_ns = monotonic_ns();
    return &snapshot->pieces;
}
