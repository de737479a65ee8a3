/*
 * How a cluster keeps up with an API server: whole lists that replace what is known, and what is
 * learned beside the watch.
 */
#include <stdlib.h>

#include "cache/assumed.h"
#include "cache/cluster_internal.h"

static struct pod *pod_of(struct table_record *record)
{
    return (struct pod *)(void *)record;
}

static struct claim *claim_of(struct table_record *record)
{
    return (struct claim *)(void *)record;
}

/* ---- whole lists ---- */

void cluster_list_begin(struct cluster *cluster, enum kind kind, bool overrides)
{
    uint32_t cursor = 0;

    cluster->overrides[kind] = overrides;
    cluster->keeps_all[kind] = false;
    if (overrides)
        gone_dispose(cluster); /* in another history they may never have gone */
    if (kind == KIND_POD)
        for (struct table_record *record; (record = table_next(&cluster->pods, &cursor)) != NULL;)
            pod_of(record)->is_listed = false;
    else if (kind == KIND_CLAIM)
        for (struct table_record *record; (record = table_next(&cluster->claims, &cursor)) != NULL;)
            claim_of(record)->is_listed = false;
    else if (kind == KIND_NODE)
        for (struct node *node = cluster->nodes; node != NULL; node = node->hh.next)
            node->is_listed = false;
    else
        for (struct resource *resource = cluster->resources[kind]; resource != NULL;
             resource = resource->hh.next)
            resource->is_listed = false;
}

void cluster_list_keep(struct cluster *cluster, enum kind kind, struct slice namespace,
                       struct slice name)
{
    struct pod *pod = kind == KIND_POD ? cluster_find_pod(cluster, namespace, name) : NULL;
    struct claim *claim = kind == KIND_CLAIM ? claim_find(cluster, namespace, name) : NULL;
    struct node *node = kind == KIND_NODE ? node_find(cluster, name) : NULL;
    struct resource *resource = resource_find(cluster, kind, namespace, name);

    if (name.len == 0)
        cluster->keeps_all[kind] = true;
    else if (pod != NULL)
        pod->is_listed = true;
    else if (claim != NULL)
        claim->is_listed = true;
    else if (node != NULL)
        node->is_listed = true;
    else if (resource != NULL)
        resource->is_listed = true;
}

/* Whether an object that the list did not name is gone: unless it came after the list. */
static bool is_left(bool is_listed, bool exists, uint64_t version, uint64_t list_version)
{
    return exists && !is_listed && (list_version == 0 || version <= list_version);
}

static void tell(const struct gone_listener *listener, enum kind kind, struct slice namespace,
                 struct slice name, struct slice uid)
{
    struct object object = {.kind = kind};

    object.meta = (struct meta){.namespace = namespace, .name = name, .uid = uid};
    if (listener != NULL)
        listener->gone(listener->context, &object);
}

static void sweep_pods(struct cluster *cluster, uint64_t version,
                       const struct gone_listener *listener)
{
    char uid[UID_TEXT_BYTES];
    uint32_t cursor = 0;

    for (struct table_record *record; (record = table_next(&cluster->pods, &cursor)) != NULL;) {
        struct pod *pod = pod_of(record);
        if (!is_left(pod->is_listed, true, pod->version, version))
            continue;
        tell(listener, KIND_POD, name_slice(pod->namespace), pod_name(pod),
             uid_text(&pod->uid, uid));
        pod_remove(cluster, pod);
        cursor--; /* another one may have moved up into the slot */
    }
}

static void sweep_claims(struct cluster *cluster, uint64_t version,
                         const struct gone_listener *listener)
{
    char uid[UID_TEXT_BYTES];
    uint32_t cursor = 0;

    for (struct table_record *record; (record = table_next(&cluster->claims, &cursor)) != NULL;) {
        struct claim *claim = claim_of(record);
        uint32_t count = cluster->claims.count;
        if (!is_left(claim->is_listed, claim->exists, claim->version, version))
            continue;
        tell(listener, KIND_CLAIM, name_slice(claim->namespace), claim_name(claim),
             uid_text(&claim->uid, uid));
        claim_vanish(cluster, claim);
        if (cluster->claims.count != count)
            cursor--;
    }
}

static void sweep_nodes(struct cluster *cluster, uint64_t version,
                        const struct gone_listener *listener)
{
    for (struct node *node = cluster->nodes, *next; node != NULL; node = next) {
        next = node->hh.next;
        if (!is_left(node->is_listed, node->exists, node->version, version))
            continue;
        tell(listener, KIND_NODE, SLICE(""), name_slice(node->name), SLICE(""));
        node_vanish(cluster, node);
    }
}

static void sweep_resources(struct cluster *cluster, enum kind kind, uint64_t version,
                            const struct gone_listener *listener)
{
    for (struct resource *resource = cluster->resources[kind], *next; resource != NULL;
         resource = next) {
        next = resource->hh.next;
        if (!is_left(resource->is_listed, true, resource->version, version))
            continue;
        tell(listener, kind, name_slice(resource->key.namespace), name_slice(resource->key.name),
             SLICE(""));
        resource_remove(cluster, kind, resource);
    }
}

void cluster_list_end(struct cluster *cluster, enum kind kind, uint64_t version,
                      const struct gone_listener *listener)
{
    if (cluster->overrides[kind])
        version = 0; /* versions of another history tell nothing */
    if (cluster->keeps_all[kind]) {
        cluster->keeps_all[kind] = cluster->overrides[kind] = false;
        return;
    }
    switch (kind) {
    case KIND_POD: sweep_pods(cluster, version, listener); break;
    case KIND_CLAIM: sweep_claims(cluster, version, listener); break;
    case KIND_NODE: sweep_nodes(cluster, version, listener); break;
    default: sweep_resources(cluster, kind, version, listener); break;
    }
    cluster->overrides[kind] = false;
}

/* ---- what a GET said ---- */

static struct gone_object *find_gone(const struct cluster *cluster, struct slice uid)
{
    struct gone_object *gone = NULL;

    if (cluster->gone != NULL && uid.len == UID_TEXT_BYTES)
        HASH_FIND(hh, cluster->gone, uid.ptr, UID_TEXT_BYTES, gone);
    return gone;
}

static void gone_remove(struct cluster *cluster, struct gone_object *gone)
{
    HASH_DEL(cluster->gone, gone);
    free(gone);
}

bool is_gone(const struct cluster *cluster, const struct meta *meta)
{
    return find_gone(cluster, meta->uid) != NULL;
}

void gone_forget(struct cluster *cluster, struct slice uid)
{
    struct gone_object *gone = find_gone(cluster, uid);

    if (gone != NULL)
        gone_remove(cluster, gone);
}

void gone_dispose(struct cluster *cluster)
{
    while (cluster->gone != NULL)
        gone_remove(cluster, cluster->gone);
}

/* Without memory it is not remembered: then the watch's late word counts for a moment. */
static void gone_remember(struct cluster *cluster, struct slice uid)
{
    if (uid.len != UID_TEXT_BYTES || find_gone(cluster, uid) != NULL)
        return;
    if (HASH_COUNT(cluster->gone) >= GONE_OBJECTS_MAX)
        gone_remove(cluster, cluster->gone);
    struct gone_object *gone = calloc(1, sizeof *gone);
    if (gone == NULL)
        return;
    memcpy(gone->uid, uid.ptr, UID_TEXT_BYTES);
    HASH_ADD(hh, cluster->gone, uid, UID_TEXT_BYTES, gone);
    if (gone->hh.tbl == NULL)
        free(gone);
}

int cluster_learn(struct cluster *cluster, const struct object *object, uint64_t watched,
                  struct error *err)
{
    const struct meta *meta = &object->meta;

    if (version_of(meta->resource_version) <= watched)
        return 0;
    /* a list that is being read may be older, or newer: only its version can tell, so what it has
     * not named stays so */
    struct pod *pod = cluster_find_pod(cluster, meta->namespace, meta->name);
    struct claim *claim = claim_find(cluster, meta->namespace, meta->name);
    bool was_listed = object->kind == KIND_POD ? pod != NULL && pod->is_listed
                                               : claim != NULL && claim->is_listed;
    if (cluster_apply(cluster, object, err) < 0)
        return err->code;
    if (object->kind == KIND_POD &&
        (pod = cluster_find_pod(cluster, meta->namespace, meta->name)) != NULL)
        pod->is_listed = was_listed;
    if (object->kind == KIND_CLAIM &&
        (claim = claim_find(cluster, meta->namespace, meta->name)) != NULL)
        claim->is_listed = was_listed;
    return 0;
}

void cluster_learn_gone(struct cluster *cluster, enum kind kind, struct slice namespace,
                        struct slice name, struct slice uid)
{
    struct pod *pod = kind == KIND_POD ? cluster_find_pod(cluster, namespace, name) : NULL;
    struct claim *claim = kind == KIND_CLAIM ? claim_find(cluster, namespace, name) : NULL;

    if (kind == KIND_POD) /* also of a pod that the watch has not told yet */
        assumed_release_absent(cluster, &(struct object_reference){kind, namespace, name, uid});
    if (pod != NULL && uid_is(&pod->uid, uid))
        pod_remove(cluster, pod);
    else if (claim != NULL && claim->exists && uid_is(&claim->uid, uid))
        claim_vanish(cluster, claim);
    else
        return;
    gone_remember(cluster, uid);
}
