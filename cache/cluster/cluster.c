/*
 * What all kinds have in common: objects are applied and deleted; lists replace what was known;
 * answers to GETs and Bindings count before the watch reports them.
 */
#include "cache/cluster/cluster.h"

#include "cache/cluster/allowance.h"
#include "cache/cluster/cluster_internal.h"
#include "cache/cluster/reservation.h"
#include "cache/cluster/unconfirmed.h"

enum { SWEEP_WORK_MAX = 32 }; /* objects, and claims of pods, that one step removes */

void cluster_init(struct cluster *cluster)
{
    *cluster = (struct cluster){0};
    struct pool *pool = &cluster->pool;
    cluster->names.table.pool = cluster->pods.pool = cluster->claims.pool = pool;
    cluster->nodes.pool = cluster->refs.pool = cluster->tallies.pool = pool;
    cluster->drivers.pool = cluster->shapes.pool = cluster->reserved.pool = pool;
    cluster->allowances.pool = pool;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        cluster->resources[kind].pool = pool;
}

void cluster_dispose(struct cluster *cluster)
{
    reservations_dispose(cluster);
    pods_dispose(cluster);
    claims_dispose(cluster);
    nodes_dispose(cluster);
    table_free_records(&cluster->refs);
    table_free_records(&cluster->drivers);
    resources_dispose(cluster);
    unconfirmed_dispose(cluster);
    allowances_dispose(cluster);
    names_dispose(&cluster->names);
    pool_dispose(&cluster->pool);
    cluster_init(cluster);
}

/* ---- records of any kind ---- */

/* What each record says of its object; that of a CSINode is its node's. */
struct known {
    bool exists;    /* else it is only named */
    bool is_listed; /* the list that is being read names it */
    uint64_t version;
    const struct uid *uid; /* NULL: nobody asks for it */
};

const struct table *cluster_table(const struct cluster *cluster, enum kind kind)
{
    switch (kind) {
    case KIND_POD: return &cluster->pods;
    case KIND_CLAIM: return &cluster->claims;
    case KIND_NODE:
    case KIND_CSI_NODE: return &cluster->nodes;
    default: return &cluster->resources[kind];
    }
}

static void *find_record(const struct cluster *cluster, enum kind kind, struct slice ns,
                         struct slice name)
{
    switch (kind) {
    case KIND_POD: return cluster_find_pod(cluster, ns, name);
    case KIND_CLAIM: return cluster_find_named_claim(cluster, ns, name);
    case KIND_NODE:
    case KIND_CSI_NODE: return node_find(cluster, name);
    default: return resource_find(cluster, kind, ns, name);
    }
}

/* record: NULL: there is none. */
static struct known know(const struct cluster *cluster, enum kind kind, const void *record)
{
    uint32_t mark = cluster_list_mark(cluster, kind);
    const struct pod *pod = record;
    const struct claim *claim = record;
    const struct node *node = record;
    const struct resource *resource = record;

    if (record == NULL || (kind == KIND_CSI_NODE && node->csi_node == NULL))
        return (struct known){.exists = false};
    switch (kind) {
    case KIND_POD: return (struct known){true, pod->listed == mark, pod->version, &pod->uid};
    case KIND_CLAIM:
        return (struct known){claim->exists, claim->listed == mark, claim->version, &claim->uid};
    case KIND_NODE: return (struct known){node->exists, node->listed == mark, node->version, NULL};
    case KIND_CSI_NODE:
        return (struct known){true, node->csi_node_listed == mark, node->csi_node->version, NULL};
    default: return (struct known){true, resource->listed == mark, resource->version, NULL};
    }
}

/* The list with that mark names the record's object. */
static void put_mark(enum kind kind, void *record, uint32_t mark)
{
    switch (kind) {
    case KIND_POD: ((struct pod *)record)->listed = mark & LISTED_MAX; break;
    case KIND_CLAIM: ((struct claim *)record)->listed = mark & LISTED_MAX; break;
    case KIND_NODE: ((struct node *)record)->listed = mark; break;
    case KIND_CSI_NODE: ((struct node *)record)->csi_node_listed = mark & LISTED_MAX; break;
    default: ((struct resource *)record)->listed = mark; break;
    }
}

/* The object is gone. Its record may stay, if others name it. */
static void remove_record(struct cluster *cluster, enum kind kind, void *record)
{
    switch (kind) {
    case KIND_POD: pod_remove(cluster, record); break;
    case KIND_CLAIM: claim_mark_deleted(cluster, record); break;
    case KIND_NODE: node_mark_deleted(cluster, record); break;
    case KIND_CSI_NODE: csi_node_remove(cluster, record); break;
    default: resource_remove(cluster, kind, record); break;
    }
}

/* Whether the object is older than version known, the one of its record. */
static bool is_stale(const struct cluster *cluster, enum kind kind, const struct meta *meta,
                     uint64_t known)
{
    uint64_t version = version_of(meta->resource_version);

    return version != 0 && known != 0 && version < known && !cluster->lists[kind].overrides;
}

/* ---- objects ---- */

static int apply(struct cluster *cluster, void *record, const struct object *object,
                 uint64_t asked_ns, struct error *err)
{
    switch (object->kind) {
    case KIND_POD: return pod_apply(cluster, record, &object->pod, asked_ns, err);
    case KIND_CLAIM: return claim_apply(cluster, record, &object->claim, err);
    case KIND_NODE: return node_apply(cluster, record, &object->resource, err);
    case KIND_CSI_NODE: return csi_node_apply(cluster, record, &object->resource, err);
    default: return resource_apply(cluster, record, object, err);
    }
}

/* Applies the object, unless it is older than the known one. */
static int apply_newer(struct cluster *cluster, const struct object *object, uint64_t asked_ns,
                       struct error *err)
{
    const struct meta *meta = &object->meta;
    void *record = find_record(cluster, object->kind, meta->ns, meta->name);
    struct known known = know(cluster, object->kind, record);

    if (!known.exists || !is_stale(cluster, object->kind, meta, known.version))
        return apply(cluster, record, object, asked_ns, err);
    put_mark(object->kind, record, cluster_list_mark(cluster, object->kind));
    return 0;
}

/* As cluster_apply. asked_ns: when the list or the GET was sent; 0: the object is from a watch. */
static int object_apply(struct cluster *cluster, const struct object *object, uint64_t asked_ns,
                        struct error *err)
{
    bool was_gone = cluster_is_known_gone(cluster, object->meta.uid);

    if (was_gone && !unconfirmed_is_older(cluster, object->meta.uid, asked_ns))
        return 0;
    struct object bare = *object;
    if (object->kind == KIND_POD && object->pod.claim_count == 0 &&
        allowance_is_over(cluster, object->meta.ns))
        bare.pod.mounts = NULL;
    int rc = allowance_admits(cluster, object) ? apply_newer(cluster, &bare, asked_ns, err) : 0;
    allowance_keep(cluster);
    if (was_gone && rc == 0)
        unconfirmed_forget(cluster, object->meta.uid);
    return rc;
}

int cluster_apply(struct cluster *cluster, const struct object *object, struct error *err)
{
    (void)pool_trim(&cluster->pool, TRIMMED_PAGES_MAX);
    return object_apply(cluster, object, cluster->lists[object->kind].asked_ns, err);
}

void cluster_delete(struct cluster *cluster, const struct object *object)
{
    const struct meta *meta = &object->meta;

    (void)pool_trim(&cluster->pool, TRIMMED_PAGES_MAX);
    unconfirmed_forget(cluster, meta->uid); /* the watch has caught up */
    void *record = find_record(cluster, object->kind, meta->ns, meta->name);
    struct known known = know(cluster, object->kind, record);
    bool is_same = known.uid != NULL && uid_is(known.uid, meta->uid);
    bool is_later = (known.uid == NULL || meta->resource_version.len != 0) &&
                    !is_stale(cluster, object->kind, meta, known.version);
    /* else it is the late deletion of an earlier object with the same name */
    if (known.exists && (is_same || is_later))
        remove_record(cluster, object->kind, record);
    allowance_keep(cluster);
}

/* ---- whole lists ---- */

void cluster_list_begin(struct cluster *cluster, enum kind kind, bool overrides, uint64_t asked_ns)
{
    struct listing *list = &cluster->lists[kind];

    list->number++;
    list->asked_ns = asked_ns;
    list->overrides = overrides;
    list->keeps_all = list->is_whole = false;
    list->swept = 0;
    list->is_open = true;
    if (overrides)
        unconfirmed_dispose(cluster); /* the answers are about the former history */
    allowance_begin_list(cluster, kind);
}

void cluster_list_keep(struct cluster *cluster, enum kind kind, struct slice ns, struct slice name)
{
    void *record = find_record(cluster, kind, ns, name);

    allowance_miss(cluster, kind, ns); /* it may have been removed */
    if (name.len == 0)
        cluster->lists[kind].keeps_all = true;
    else if (record != NULL)
        put_mark(kind, record, cluster_list_mark(cluster, kind));
}

/* The object's namespace and name; a name may be in the buffer. */
static struct meta meta_of(enum kind kind, const void *record, char buffer[PROVISIONED_NAME_BYTES])
{
    const struct pod *pod = record;
    const struct claim *claim = record;
    const struct node *node = record;
    const struct resource *resource = record;

    switch (kind) {
    case KIND_POD: return (struct meta){.ns = name_text(pod->ns), .name = pod_name(pod)};
    case KIND_CLAIM: return (struct meta){.ns = name_text(claim->ns), .name = claim_name(claim)};
    case KIND_NODE:
    case KIND_CSI_NODE: return (struct meta){.ns = SLICE(""), .name = name_slice(node->name)};
    default:
        return (struct meta){.ns = name_slice(resource_ns(resource)),
                             .name = resource_name(resource, buffer)};
    }
}

/* The end of a list. */
struct sweep {
    struct cluster *cluster;
    enum kind kind;
    uint64_t version; /* of the list; 0: not comparable with the objects' versions */
    const struct gone_listener *listener;
};

static void report_gone(const struct sweep *sweep, const void *record, const struct uid *uid)
{
    char name[PROVISIONED_NAME_BYTES], text[UID_TEXT_BYTES];
    struct object object = {.kind = sweep->kind};

    object.meta = meta_of(sweep->kind, record, name);
    if (uid != NULL)
        object.meta.uid = uid_text(uid, text);
    if (sweep->listener != NULL)
        sweep->listener->gone(sweep->listener->context, &object);
}

/* Removes the object if it is gone: the list did not name it, and it is not newer than the list.
 * Returns how much work that was. */
static size_t sweep_record(const struct sweep *sweep, void *record)
{
    struct known known = know(sweep->cluster, sweep->kind, record);
    size_t work = sweep->kind == KIND_POD ? 1U + ((const struct pod *)record)->use_count : 1U;

    if (!known.exists || known.is_listed || (sweep->version != 0 && known.version > sweep->version))
        return 0;
    report_gone(sweep, record, known.uid);
    remove_record(sweep->cluster, sweep->kind, record);
    return work;
}

bool cluster_list_end(struct cluster *cluster, enum kind kind, uint64_t version,
                      const struct gone_listener *listener)
{
    struct listing *list = &cluster->lists[kind];
    struct table_walk walk = {.at = list->swept};
    struct sweep sweep = {cluster, kind, list->overrides ? 0 : version, listener};

    cluster->is_unserved[kind] = false;
    if (list->asked_ns != 0) /* the first step */
        unconfirmed_forget_gone(cluster, kind, list->asked_ns);
    list->asked_ns = 0;
    bool has_surplus = pool_trim(&cluster->pool, TRIMMED_PAGES_MAX);
    bool has_more = !list->keeps_all && table_next_page(cluster_table(cluster, kind), &walk);
    list->is_whole = has_more;
    if (!has_more)
        allowance_end_list(cluster, kind);
    list->overrides = list->overrides && has_more;
    /* sweep_record frees no other record of the page */
    for (size_t work = 0; has_more && walk.next < walk.count && work < SWEEP_WORK_MAX;)
        work += sweep_record(&sweep, walk.records[walk.next++]);
    if (walk.next == walk.count)
        list->swept = walk.at; /* else the next step checks the rest of the page */
    return has_more || has_surplus;
}

void cluster_list_ended(struct cluster *cluster, enum kind kind, uint64_t version, uint64_t now_ns)
{
    struct listing *list = &cluster->lists[kind];

    list->is_open = false;
    list->complete++;
    list->ends[list->complete % LIST_EPOCHS] = (struct listing_end){now_ns, version};
}

/* ---- answers that the watch has not reported yet ---- */

/* The UID of the known pod or claim with the object's name, copied into text because the record may
 * be freed. Empty: there is none, or its UID is no UUID, as unconfirmed_add needs. */
static struct slice known_uid(const struct cluster *cluster, const struct object *object,
                              char text[UID_TEXT_BYTES])
{
    void *record = find_record(cluster, object->kind, object->meta.ns, object->meta.name);
    struct known known = know(cluster, object->kind, record);
    struct slice uid = known.exists ? uid_text(known.uid, text) : SLICE("");

    if (uid.len != UID_TEXT_BYTES)
        return (struct slice){"", 0};
    if (uid.ptr != text)
        memcpy(text, uid.ptr, UID_TEXT_BYTES);
    return (struct slice){text, UID_TEXT_BYTES};
}

/* If another object has the name now, the former one is gone. This is remembered, because a late
 * watch still reports the former one, even after the other object is gone as well. */
static void learn_replaced(struct cluster *cluster, const struct object *object,
                           struct slice former, uint64_t asked_ns)
{
    const struct meta *meta = &object->meta;
    char text[UID_TEXT_BYTES];

    if (former.len != 0 && !slice_equal(known_uid(cluster, object, text), former))
        unconfirmed_add(cluster,
                        &(struct object_reference){object->kind, meta->ns, meta->name, former},
                        true, asked_ns);
}

/* Whether the object is a claim that the watch has not reported. former: the UID of the one that is
 * known; empty: none. */
static bool is_ahead(const struct object *object, const void *record, struct slice former)
{
    const struct claim *claim = record;

    return object->kind == KIND_CLAIM &&
           (claim == NULL || !slice_equal(former, object->meta.uid) || claim->is_ahead);
}

int cluster_learn(struct cluster *cluster, const struct object *object, uint64_t watched,
                  uint64_t asked_ns, struct error *err)
{
    const struct meta *meta = &object->meta;
    enum kind kind = object->kind;
    bool is_refuting = unconfirmed_is_older(cluster, meta->uid, asked_ns);
    char text[UID_TEXT_BYTES];

    if (!allowance_admits(cluster, object))
        return 0; /* nothing of the namespace is learned */
    if (version_of(meta->resource_version) <= watched && !is_refuting)
        return 0;
    void *record = find_record(cluster, kind, meta->ns, meta->name);
    bool stays_listed =
        is_refuting || cluster->lists[kind].is_whole || know(cluster, kind, record).is_listed;
    struct slice former = known_uid(cluster, object, text);
    bool will_be_ahead = !is_refuting && is_ahead(object, record, former);
    if (object_apply(cluster, object, asked_ns, err) < 0)
        return err->code;
    learn_replaced(cluster, object, former, asked_ns);
    record = find_record(cluster, kind, meta->ns, meta->name);
    if (will_be_ahead && record != NULL)
        ((struct claim *)record)->is_ahead = true;
    if (!stays_listed && record != NULL) /* at the end of the list, its version decides */
        put_mark(kind, record, cluster_list_mark(cluster, kind) - 1);
    return 0;
}

void cluster_learn_gone(struct cluster *cluster, const struct object_reference *gone,
                        uint64_t now_ns)
{
    if (gone->kind == KIND_POD) /* the pod may have no record yet */
        reservation_release_absent(cluster, gone);
    void *record = find_record(cluster, gone->kind, gone->ns, gone->name);
    struct known known = know(cluster, gone->kind, record);
    if (known.exists && uid_is(known.uid, gone->uid))
        remove_record(cluster, gone->kind, record);
    else if (!cluster_is_known_gone(cluster, gone->uid))
        return;
    unconfirmed_add(cluster, gone, true, now_ns);
}

int cluster_learn_bound(struct cluster *cluster, struct pod *pod, struct slice node,
                        uint64_t now_ns, struct error *err)
{
    char text[UID_TEXT_BYTES];
    struct object_reference bound = pod_reference(pod, text);

    if (cluster_assign(cluster, pod, node, err) < 0)
        return err->code;
    unconfirmed_add(cluster, &bound, false, now_ns);
    return 0;
}

bool cluster_is_known_gone(const struct cluster *cluster, struct slice uid)
{
    const struct unconfirmed *answer = unconfirmed_find(cluster, uid);

    return answer != NULL && answer->is_gone;
}
