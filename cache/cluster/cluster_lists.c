/*
 * How a cluster keeps up with an API server: whole lists that replace what is known, and what is
 * learned beside the watch.
 */
#include <stdlib.h>
#include <string.h>

#include "cache/cluster/cluster_internal.h"
#include "cache/cluster/reservation.h"
#include "cache/cluster/unconfirmed.h"

enum { SWEEP_WORK_MAX = 32 }; /* of one step: objects, and claims of pods */

/* ---- whole lists ---- */

void cluster_list_begin(struct cluster *cluster, enum kind kind, bool overrides, uint64_t asked_ns)
{
    uint32_t number = cluster->lists[kind].number + 1;

    cluster->lists[kind] =
        (struct listing){.number = number, .asked_ns = asked_ns, .overrides = overrides};
    if (overrides)
        unconfirmed_dispose(cluster); /* in another history it may never have happened */
}

void cluster_list_keep(struct cluster *cluster, enum kind kind, struct slice ns, struct slice name)
{
    struct pod *pod = kind == KIND_POD ? cluster_find_pod(cluster, ns, name) : NULL;
    struct claim *claim = kind == KIND_CLAIM ? claim_find(cluster, ns, name) : NULL;
    struct node *node = kind == KIND_NODE ? node_find(cluster, name) : NULL;
    struct resource *resource = resource_find(cluster, kind, ns, name);
    struct listing *list = &cluster->lists[kind];

    if (name.len == 0)
        list->keeps_all = true;
    else if (pod != NULL)
        pod_list(cluster, pod);
    else if (claim != NULL)
        claim->listed = list->number;
    else if (node != NULL)
        node->listed = list->number;
    else if (resource != NULL)
        resource->listed = list->number;
}

/* What the end of a list looks at. */
struct sweep {
    struct cluster *cluster;
    enum kind kind;
    uint32_t number;
    uint64_t version; /* of the list; 0: it tells nothing */
    const struct gone_listener *listener;
};

/* Whether an object that the list did not name is gone: unless it came after the list. */
static bool is_left(const struct sweep *sweep, bool is_listed, uint64_t version)
{
    return !is_listed && (sweep->version == 0 || version <= sweep->version);
}

static void tell(const struct sweep *sweep, struct slice ns, struct slice name,
                 const struct uid *uid)
{
    char text[UID_TEXT_BYTES];
    struct object object = {.kind = sweep->kind};

    object.meta = (struct meta){.ns = ns, .name = name};
    if (uid != NULL)
        object.meta.uid = uid_text(uid, text);
    if (sweep->listener != NULL)
        sweep->listener->gone(sweep->listener->context, &object);
}

/* Each of these removes the object if it is gone, and returns how much work that was. */

static size_t sweep_pod(const struct sweep *sweep, struct pod *pod)
{
    size_t work = 1 + pod->use_count;

    if (!is_left(sweep, pod_is_listed(sweep->cluster, pod), pod->version))
        return 0;
    tell(sweep, name_slice(pod->ns), pod_name(pod), &pod->uid);
    pod_remove(sweep->cluster, pod);
    return work;
}

static size_t sweep_claim(const struct sweep *sweep, struct claim *claim)
{
    if (!claim->exists || !is_left(sweep, claim->listed == sweep->number, claim->version))
        return 0;
    tell(sweep, name_slice(claim->ns), claim_name(claim), &claim->uid);
    claim_mark_deleted(sweep->cluster, claim);
    return 1;
}

static size_t sweep_node(const struct sweep *sweep, struct node *node)
{
    if (!node->exists || !is_left(sweep, node->listed == sweep->number, node->version))
        return 0;
    tell(sweep, SLICE(""), name_slice(node->name), NULL);
    node_mark_deleted(sweep->cluster, node);
    return 1;
}

static size_t sweep_resource(const struct sweep *sweep, struct resource *resource)
{
    if (!is_left(sweep, resource->listed == sweep->number, resource->version))
        return 0;
    tell(sweep, name_slice(resource->key.ns), name_slice(resource->key.name), NULL);
    resource_remove(sweep->cluster, sweep->kind, resource);
    return 1;
}

static size_t sweep_record(const struct sweep *sweep, struct table_record *record)
{
    void *object = record;

    switch (sweep->kind) {
    case KIND_POD: return sweep_pod(sweep, object);
    case KIND_CLAIM: return sweep_claim(sweep, object);
    case KIND_NODE: return sweep_node(sweep, object);
    default: return sweep_resource(sweep, object);
    }
}

static const struct table *table_of(const struct cluster *cluster, enum kind kind)
{
    switch (kind) {
    case KIND_POD: return &cluster->pods;
    case KIND_CLAIM: return &cluster->claims;
    case KIND_NODE: return &cluster->nodes;
    default: return &cluster->resources[kind];
    }
}

bool cluster_list_end(struct cluster *cluster, enum kind kind, uint64_t version,
                      const struct gone_listener *listener)
{
    struct listing *list = &cluster->lists[kind];
    struct table_walk walk = {.at = list->swept};
    /* versions of another history tell nothing */
    struct sweep sweep = {cluster, kind, list->number, list->overrides ? 0 : version, listener};

    if (list->asked_ns != 0) /* the first step */
        unconfirmed_list(cluster, kind, list->asked_ns);
    list->asked_ns = 0;
    bool has_surplus = pool_trim(&cluster->pool, TRIMMED_PAGES_MAX);
    bool has_more = !list->keeps_all && table_next_page(table_of(cluster, kind), &walk);
    list->is_whole = has_more;
    list->overrides = list->overrides && has_more;
    /* each frees its own record at most, so the others of the page stay what they are */
    for (size_t work = 0; has_more && walk.next < walk.count && work < SWEEP_WORK_MAX;)
        work += sweep_record(&sweep, walk.records[walk.next++]);
    if (walk.next == walk.count)
        list->swept = walk.at; /* else the page's rest comes next time */
    return has_more || has_surplus;
}

/* ---- what a GET said ---- */

/* The UID of the pod or claim that has the object's name, in text, since it may end with its
 * record. Empty: none has, or one that nobody can remember (unconfirmed.h). */
static struct slice known_uid(const struct cluster *cluster, const struct object *object,
                              char text[UID_TEXT_BYTES])
{
    struct slice ns = object->meta.ns, name = object->meta.name;
    const struct pod *pod = object->kind == KIND_POD ? cluster_find_pod(cluster, ns, name) : NULL;
    const struct claim *claim =
        object->kind == KIND_CLAIM ? cluster_find_claim(cluster, ns, name) : NULL;
    struct slice uid = {"", 0};

    if (pod != NULL || claim != NULL)
        uid = uid_text(pod != NULL ? &pod->uid : &claim->uid, text);
    if (uid.len != UID_TEXT_BYTES)
        return (struct slice){"", 0};
    if (uid.ptr != text)
        memcpy(text, uid.ptr, UID_TEXT_BYTES);
    return (struct slice){text, UID_TEXT_BYTES};
}

/* If another object has the name now, the former one is gone: a late watch still tells of it, also
 * when the other one is gone again. */
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

int cluster_learn(struct cluster *cluster, const struct object *object, uint64_t watched,
                  uint64_t asked_ns, struct error *err)
{
    const struct meta *meta = &object->meta;
    bool refutes = unconfirmed_is_refuted(cluster, meta->uid, asked_ns);
    char text[UID_TEXT_BYTES];

    if (version_of(meta->resource_version) <= watched && !refutes)
        return 0;
    /* a list that is being read may be older, or newer: only its version can tell, so what it has
     * not named stays so; one that is whole is older. It may have named what was believed gone */
    struct pod *pod = cluster_find_pod(cluster, meta->ns, meta->name);
    struct claim *claim = claim_find(cluster, meta->ns, meta->name);
    bool was_listed = refutes || cluster->lists[object->kind].is_whole ||
                      (object->kind == KIND_POD
                           ? pod != NULL && pod_is_listed(cluster, pod)
                           : claim != NULL && claim->listed == cluster->lists[KIND_CLAIM].number);
    struct slice former = known_uid(cluster, object, text);
    if (object_apply(cluster, object, asked_ns, err) < 0)
        return err->code;
    learn_replaced(cluster, object, former, asked_ns);
    if (was_listed)
        return 0;
    if (object->kind == KIND_POD && (pod = cluster_find_pod(cluster, meta->ns, meta->name)) != NULL)
        pod->listed = (cluster->lists[KIND_POD].number - 1) & POD_LISTED_MAX;
    if (object->kind == KIND_CLAIM && (claim = claim_find(cluster, meta->ns, meta->name)) != NULL)
        claim->listed = cluster->lists[KIND_CLAIM].number - 1;
    return 0;
}

void cluster_learn_gone(struct cluster *cluster, const struct object_reference *gone,
                        uint64_t now_ns)
{
    bool is_pod = gone->kind == KIND_POD;
    struct pod *pod = is_pod ? cluster_find_pod(cluster, gone->ns, gone->name) : NULL;
    struct claim *claim =
        gone->kind == KIND_CLAIM ? claim_find(cluster, gone->ns, gone->name) : NULL;

    if (is_pod) /* also of a pod that the watch has not told yet */
        reservation_release_absent(cluster, gone);
    if (pod != NULL && uid_is(&pod->uid, gone->uid))
        pod_remove(cluster, pod);
    else if (claim != NULL && claim->exists && uid_is(&claim->uid, gone->uid))
        claim_mark_deleted(cluster, claim);
    else if (!cluster_believes_gone(cluster, gone->uid))
        return;
    unconfirmed_add(cluster, gone, true, now_ns);
}

int cluster_learn_bound(struct cluster *cluster, struct pod *pod, struct slice node,
                        uint64_t now_ns, struct error *err)
{
    char text[UID_TEXT_BYTES];
    struct object_reference bound = {KIND_POD, name_slice(pod->ns), pod_name(pod),
                                     uid_text(&pod->uid, text)};

    if (cluster_assign(cluster, pod, node, err) < 0)
        return err->code;
    unconfirmed_add(cluster, &bound, false, now_ns);
    return 0;
}

bool cluster_believes_gone(const struct cluster *cluster, struct slice uid)
{
    const struct unconfirmed *answer = unconfirmed_find(cluster, uid);

    return answer != NULL && answer->is_gone;
}
