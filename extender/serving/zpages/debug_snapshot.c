#include "extender/serving/zpages/zpages.h"

#include <stdlib.h>

#include "cache/cluster/allowance.h"
#include "extender/serving/zpages/record_json.h"

/* What a piece may have: about 50 microseconds. One record is always written as a whole. */
enum { RECORDS_A_PIECE = 32, BYTES_A_PIECE = 8 * 1024 };

struct debug_snapshot;

typedef void write_record(struct debug_snapshot *snapshot, const struct table_record *record);

/* The records of one table. */
struct section {
    size_t table; /* its offset in struct cluster */
    write_record *write;
    enum kind kind; /* of write_resource */
};

struct debug_snapshot {
    struct pieces pieces;
    struct state *state;
    struct buf *out;
    bool has_begun;
    bool has_item; /* of the list */
    const struct section *section;
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

/* ---- records ---- */

static void write_reservation(struct debug_snapshot *snapshot, const struct table_record *record)
{
    begin_item(snapshot);
    record_json_reservation(snapshot->out, (const struct reservation *)(const void *)record,
                            snapshot->now_ns);
}

static void write_pod(struct debug_snapshot *snapshot, const struct table_record *record)
{
    begin_item(snapshot);
    record_json_pod(snapshot->out, (const struct pod *)(const void *)record);
}

/* A claim that only a pod names also has a record. */
static void write_claim(struct debug_snapshot *snapshot, const struct table_record *record)
{
    const struct claim *claim = (const struct claim *)(const void *)record;

    if (!claim->exists)
        return;
    begin_item(snapshot);
    record_json_claim(snapshot->out, claim);
}

static void write_node(struct debug_snapshot *snapshot, const struct table_record *record)
{
    const struct node *node = (const struct node *)(const void *)record;

    if (node->exists) {
        begin_item(snapshot);
        record_json_node(snapshot->out, node);
    }
    if (node->csi_node != NULL) {
        begin_item(snapshot);
        record_json_csi_node(snapshot->out, node);
    }
}

static void write_resource(struct debug_snapshot *snapshot, const struct table_record *record)
{
    begin_item(snapshot);
    record_json_resource(snapshot->out, snapshot->section->kind,
                         (const struct resource *)(const void *)record);
}

/* ---- the page ---- */

#define RESOURCES(kind_) \
    { \
        offsetof(struct cluster, resources[kind_]), write_resource, (kind_) \
    }

static const struct section sections[] = {
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

static const struct section *const end = sections + sizeof sections / sizeof *sections;

/* scan_visit */
static bool visit(void *context, const struct table_record *record)
{
    struct debug_snapshot *snapshot = context;

    snapshot->section->write(snapshot, record);
    snapshot->records++;
    return snapshot->records < RECORDS_A_PIECE &&
           snapshot->out->len - snapshot->begin < BYTES_A_PIECE && !snapshot->out->failed;
}

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
    SCOPED_READ_LOCK(&snapshot->state->lock);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (cluster->is_unserved[kind])
            put_about(snapshot, OWN_UNSERVED_RESOURCE, slice_of(kind_resource((enum kind)kind)));
    while ((ns = allowance_next(cluster, &walk)).ptr != NULL)
        put_about(snapshot, OWN_NAMESPACE_GIVEN_UP, ns);
}

/* Writes some records of the section. */
static void write_some(struct debug_snapshot *snapshot)
{
    struct state *state = snapshot->state;
    const char *cluster = (const char *)&state->cluster;

    snapshot->records = 0;
    snapshot->begin = snapshot->out->len;
    (void)pthread_rwlock_rdlock(&state->lock);
    bool has_more = scan_on(
        &snapshot->scan, (const struct table *)(const void *)(cluster + snapshot->section->table),
        visit, snapshot);
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
    if (snapshot->section != end)
        return true;
    buf_put(out, SLICE("\n]}\n"));
    return false;
}

struct pieces *debug_snapshot_new(struct state *state, struct quota_share *share)
{
    struct debug_snapshot *snapshot = calloc(1, sizeof *snapshot);

    (void)share; /* it has no memory but that of a piece */
    if (snapshot == NULL)
        return NULL;
    snapshot->pieces = (struct pieces){.next = next};
    snapshot->state = state;
    snapshot->section = sections;
    snapshot->now_ns = monotonic_ns();
    return &snapshot->pieces;
}
