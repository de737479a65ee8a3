/*
 * Lists replace what was known; answers to GETs and Bindings count before the watch reports them.
 */
#include <stdlib.h>
#include <string.h>

#include "cache/cluster/allowance.h"
#include "cache/cluster/cluster_internal.h"
#include "cache/cluster/reservation.h"
#include "cache/cluster/unconfirmed.h"

enum { SWEEP_WORK_MAX = 32 }; /* objects, and claims of pods, that one step removes */

/* ---- whole lists ---- */

void cluster_list_begin(struct cluster *cluster, enum kind kind, bool overrides, uint64_t asked_ns)
{
    uint32_t number = cluster->lists[kind].number + 1;

    cluster->lists[kind] =
        (struct listing){.number = number, .asked_ns = asked_ns, .overrides = overrides};
    if (overrides)
        unconfirmed_dispose(cluster); /* the answers are about the former history */
    allowance_begin_list(cluster, kind);
}

void cluster_list_keep(struct cluster *cluster, enum kind kind, struct slice ns, struct slice name)
{
    struct pod *pod = kind == KIND_POD ? cluster_find_pod(cluster, ns, name) : NULL;
    struct claim *claim = kind == KIND_CLAIM ? claim_find(cluster, ns, name) : NULL;
    bool is_node = kind == KIND_NODE || kind == KIND_CSI_NODE;
    struct node *node = is_node ? node_find(cluster, name) : NULL;
    struct resource *resource = resource_find(cluster, kind, ns, name);
    struct listing *list = &cluster->lists[kind];

    allowance_miss(cluster, kind, ns); /* it may have been removed */
    if (name.len == 0)
        list->keeps_all = true;
    else if (pod != NULL)
        pod_list(cluster, pod);
    else if (claim != NULL)
        claim_list(cluster, claim);
    else if (node != NULL && kind == KIND_CSI_NODE)
        csi_node_list(cluster, node);
    else if (node != NULL)
        node->listed = list->number;
    else if (resource != NULL)
        resource->listed = list->number;
}

/* The end of a list. */
struct sweep {
    struct cluster *cluster;
    enum kind kind;
    uint32_t number;
    uint64_t version; /* of the list; 0: not comparable with the objects' versions */
    const struct gone_listener *listener;
};

/* Whether an object is gone: the list did not name it, and it is not newer than the list. */
static bool is_gone(const struct sweep *sweep, bool is_listed, uint64_t version)
{
    return !is_listed && (sweep->version == 0 || version <= sweep->version);
}

static void report_gone(const struct sweep *sweep, struct slice ns, struct slice name,
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

/* Each of these functions removes the object if it is gone, and returns how much work that was. */

static size_t sweep_pod(const struct sweep *sweep, struct pod *pod)
{
    size_t work = 1 + pod->use_count;

    if (!is_gone(sweep, pod_is_listed(sweep->cluster, pod), pod->version))
        return 0;
    report_gone(sweep, name_text(pod->ns), pod_name(pod), &pod->uid);
    pod_remove(sweep->cluster, pod);
    return work;
}

static size_t sweep_claim(const struct sweep *sweep, struct claim *claim)
{
    if (!claim->exists || !is_gone(sweep, claim_is_listed(sweep->cluster, claim), claim->version))
        return 0;
    report_gone(sweep, name_text(claim->ns), claim_name(claim), &claim->uid);
    claim_mark_deleted(sweep->cluster, claim);
    return 1;
}

static size_t sweep_node(const struct sweep *sweep, struct node *node)
{
    if (!node->exists || !is_gone(sweep, node->listed == sweep->number, node->version))
        return 0;
    report_gone(sweep, SLICE(""), name_slice(node->name), NULL);
    node_mark_deleted(sweep->cluster, node);
    return 1;
}

static size_t sweep_csi_node(const struct sweep *sweep, struct node *node)
{
    if (node->csi_node == NULL ||
        !is_gone(sweep, csi_node_is_listed(sweep->cluster, node), node->csi_node->version))
        return 0;
    report_gone(sweep, SLICE(""), name_slice(node->name), NULL);
    csi_node_remove(sweep->cluster, node);
    return 1;
}

static size_t sweep_resource(const struct sweep *sweep, struct resource *resource)
{
    char name[PROVISIONED_NAME_BYTES];

    if (!is_gone(sweep, resource->listed == sweep->number, resource->version))
        return 0;
    report_gone(sweep, name_slice(resource_ns(resource)), resource_name(resource, name), NULL);
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
    case KIND_CSI_NODE: return sweep_csi_node(sweep, object);
    default: return sweep_resource(sweep, object);
    }
}

static const struct table *table_of(const struct cluster *cluster, enum kind kind)
{
    switch (kind) {
    case KIND_POD: return &cluster->pods;
    case KIND_CLAIM: return &cluster->claims;
    case KIND_NODE:
    case KIND_CSI_NODE: return &cluster->nodes;
    default: return &cluster->resources[kind];
    }
}

bool cluster_list_end(struct cluster *cluster, enum kind kind, uint64_t version,
                      const struct gone_listener *listener)
{
    struct listing *list = &cluster->lists[kind];
    struct table_walk walk = {.at = list->swept};
    struct sweep sweep = {cluster, kind, list->number, list->overrides ? 0 : version, listener};

    cluster->is_unserved[kind] = false;
    if (list->asked_ns != 0) /* the first step */
        unconfirmed_forget_gone(cluster, kind, list->asked_ns);
    list->asked_ns = 0;
    bool has_surplus = pool_trim(&cluster->pool, TRIMMED_PAGES_MAX);
    bool has_more = !list->keeps_all && table_next_page(table_of(cluster, kind), &walk);
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

/* ---- answers that the watch has not reported yet ---- */

/* The UID of the known pod or claim with the object's name, copied into text because the record may
 * be freed. Empty: there is none, or its UID is no UUID, as unconfirmed_add needs. */
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

/* Whether the list that is being read has named the pod or claim, or has named all its objects. */
static bool is_listed(const struct cluster *cluster, const struct object *object)
{
    struct slice ns = object->meta.ns, name = object->meta.name;

    if (cluster->lists[object->kind].is_whole)
        return true;
    if (object->kind == KIND_POD) {
        const struct pod *pod = cluster_find_pod(cluster, ns, name);
        return pod != NULL && pod_is_listed(cluster, pod);
    }
    const struct claim *claim = claim_find(cluster, ns, name);
    return claim != NULL && claim_is_listed(cluster, claim);
}

/* Undoes that object_apply marked the object as named by the list: at the end of the list, its
 * version decides whether it stays. */
static void unlist(struct cluster *cluster, const struct object *object)
{
    struct slice ns = object->meta.ns, name = object->meta.name;
    struct pod *pod = object->kind == KIND_POD ? cluster_find_pod(cluster, ns, name) : NULL;
    struct claim *claim = object->kind == KIND_CLAIM ? claim_find(cluster, ns, name) : NULL;

    if (pod != NULL)
        pod->listed = (cluster->lists[KIND_POD].number - 1) & LISTED_MAX;
    if (claim != NULL)
        claim->listed = (cluster->lists[KIND_CLAIM].number - 1) & LISTED_MAX;
}

int cluster_learn(struct cluster *cluster, const struct object *object, uint64_t watched,
                  uint64_t asked_ns, struct error *err)
{
    const struct meta *meta = &object->meta;
    bool is_refuting = unconfirmed_is_older(cluster, meta->uid, asked_ns);
    char text[UID_TEXT_BYTES];

    if (!allowance_admits(cluster, object))
        return 0; /* nothing of the namespace is learned */
    if (version_of(meta->resource_version) <= watched && !is_refuting)
        return 0;
    bool stays_listed = is_refuting || is_listed(cluster, object);
    struct slice former = known_uid(cluster, object, text);
    if (object_apply(cluster, object, asked_ns, err) < 0)
        return err->code;
    learn_replaced(cluster, object, former, asked_ns);
    if (!stays_listed)
        unlist(cluster, object);
    return 0;
}

void cluster_learn_gone(struct cluster *cluster, const struct object_reference *gone,
                        uint64_t now_ns)
{
    bool is_pod = gone->kind == KIND_POD;
    struct pod *pod = is_pod ? cluster_find_pod(cluster, gone->ns, gone->name) : NULL;
    struct claim *claim =
        gone->kind == KIND_CLAIM ? claim_find(cluster, gone->ns, gone->name) : NULL;

    if (is_pod) /* the pod may have no record yet */
        reservation_release_absent(cluster, gone);
    if (pod != NULL && uid_is(&pod->uid, gone->uid))
        pod_remove(cluster, pod);
    else if (claim != NULL && claim->exists && uid_is(&claim->uid, gone->uid))
        claim_mark_deleted(cluster, claim);
    else if (!cluster_is_known_gone(cluster, gone->uid))
        return;
    unconfirmed_add(cluster, gone, true, now_ns);
}

int cluster_learn_bound(struct cluster *cluster, struct pod *pod, struct slice node,
                        uint64_t now_ns, struct error *err)
{
    char text[UID_TEXT_BYTES];
    struct object_reference bound = {KIND_POD, name_text(pod->ns), pod_name(pod),
                                     uid_text(&pod->uid, text)};

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
