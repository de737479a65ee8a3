#include "cache/cluster/cluster.h"

#include <stdio.h>
#include <stdlib.h>

#include "cache/cluster/cluster_internal.h"
#include "cache/cluster/reservation.h"
#include "cache/cluster/unconfirmed.h"

bool cluster_is_stale(const struct cluster *cluster, enum kind kind, const struct meta *meta,
                      uint64_t known)
{
    uint64_t version = version_of(meta->resource_version);
    return version != 0 && known != 0 && version < known && !cluster->lists[kind].overrides;
}

void cluster_init(struct cluster *cluster)
{
    *cluster = (struct cluster){0};
#if !defined(RECORDS_FROM_MALLOC)
    struct pool *pool = &cluster->pool;
    cluster->names.table.pool = cluster->pods.pool = cluster->claims.pool = pool;
    cluster->nodes.pool = cluster->refs.pool = cluster->tallies.pool = pool;
    cluster->drivers.pool = pool;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        cluster->resources[kind].pool = pool;
#endif
}

void cluster_dispose(struct cluster *cluster)
{
    reservations_dispose(cluster);
    pods_dispose(cluster);
    claims_dispose(cluster);
    nodes_dispose(cluster);
    table_free_records(&cluster->refs);
    table_free_records(&cluster->drivers);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        table_free_records(&cluster->resources[kind]);
    unconfirmed_dispose(cluster);
    names_dispose(&cluster->names);
    pool_dispose(&cluster->pool);
    cluster_init(cluster);
}

/* ---- the other kinds ---- */

static void resource_free(struct names *names, struct resource *resource)
{
    for (int i = 0; i < RESOURCE_ATTRIBUTES; i++)
        names_release(names, resource->attributes[i]);
    names_release(names, resource->key.ns);
    names_release(names, resource->key.name);
    pool_free(names->table.pool, resource);
}

static uint32_t resource_hash(const struct resource_key *key)
{
    const uint32_t hashes[] = {name_hash(key->ns), name_hash(key->name)};
    return table_hash((struct slice){(const char *)hashes, sizeof hashes}, 0);
}

static struct resource *resource_new(struct names *names, const struct resource_object *object)
{
    struct resource *resource = pool_alloc(names->table.pool, sizeof *resource);
    bool failed = false;

    if (resource == NULL)
        return NULL;
    resource->key.ns = names_take(names, object->meta.ns, &failed);
    resource->key.name = names_take(names, object->meta.name, &failed);
    for (int i = 0; i < RESOURCE_ATTRIBUTES; i++)
        resource->attributes[i] = names_take(names, object->attributes[i], &failed);
    resource->number = object->number;
    resource->version = version_of(object->meta.resource_version);
    resource->record.hash = resource_hash(&resource->key);
    if (!failed)
        return resource;
    resource_free(names, resource);
    return NULL;
}

static bool resource_matches(const struct table_record *record, const void *key)
{
    const struct resource_key *a = &((const struct resource *)(const void *)record)->key, *b = key;
    return a->ns == b->ns && a->name == b->name;
}

static struct resource *find_resource(const struct cluster *cluster, enum kind kind,
                                      const struct resource_key *key)
{
    return (struct resource *)(void *)table_find(&cluster->resources[kind], resource_hash(key),
                                                 resource_matches, key);
}

struct resource *resource_find(const struct cluster *cluster, enum kind kind, struct slice ns,
                               struct slice name)
{
    struct resource_key key = {names_find(&cluster->names, ns), names_find(&cluster->names, name)};
    return find_resource(cluster, kind, &key);
}

const struct resource *cluster_find_resource(const struct cluster *cluster, enum kind kind,
                                             struct slice name)
{
    return resource_find(cluster, kind, SLICE(""), name);
}

bool cluster_has_offer(const struct cluster *cluster, struct slice offer)
{
    return names_find(&cluster->names, offer) != NULL;
}

const struct resource *cluster_find_volume(const struct cluster *cluster, const struct claim *claim)
{
    char text[UID_TEXT_BYTES], provisioned[sizeof "pvc-" + UID_TEXT_BYTES];
    struct resource_key key = {NULL, claim->volume};

    if (claim->is_volume_provisioned) {
        int length = snprintf(provisioned, sizeof provisioned, "pvc-%.*s",
                              SLICE_ARG(uid_text(&claim->uid, text)));
        key.name = names_find(&cluster->names, (struct slice){provisioned, (size_t)length});
    }
    return key.name == NULL ? NULL : find_resource(cluster, KIND_VOLUME, &key);
}

void resource_remove(struct cluster *cluster, enum kind kind, struct resource *resource)
{
    table_remove(&cluster->resources[kind], &resource->record);
    cluster->counts[kind]--;
    resource_free(&cluster->names, resource);
}

static int resource_apply(struct cluster *cluster, const struct object *object, struct error *err)
{
    struct resource *resource = resource_new(&cluster->names, &object->resource);

    if (resource == NULL)
        return error_no_memory(err);
    struct resource *known = find_resource(cluster, object->kind, &resource->key);
    resource->listed = cluster->lists[object->kind].number;
    if (known != NULL && cluster_is_stale(cluster, object->kind, &object->meta, known->version)) {
        known->listed = resource->listed;
        resource_free(&cluster->names, resource);
        return 0;
    }
    if (!table_add(&cluster->resources[object->kind], &resource->record)) {
        resource_free(&cluster->names, resource);
        return error_no_memory(err);
    }
    cluster->counts[object->kind]++;
    if (known != NULL)
        resource_remove(cluster, object->kind, known);
    return 0;
}

static void resource_delete(struct cluster *cluster, const struct object *object)
{
    struct resource *known =
        resource_find(cluster, object->kind, object->meta.ns, object->meta.name);

    if (known != NULL && !cluster_is_stale(cluster, object->kind, &object->meta, known->version))
        resource_remove(cluster, object->kind, known);
}

/* ---- any kind ---- */

static int apply(struct cluster *cluster, const struct object *object, uint64_t asked_ns,
                 struct error *err)
{
    switch (object->kind) {
    case KIND_POD: return pod_apply(cluster, &object->pod, asked_ns, err);
    case KIND_CLAIM: return claim_apply(cluster, &object->claim, err);
    case KIND_NODE: return node_apply(cluster, &object->resource, err);
    case KIND_CSI_NODE: return csi_node_apply(cluster, &object->resource, err);
    default: return resource_apply(cluster, object, err);
    }
}

int object_apply(struct cluster *cluster, const struct object *object, uint64_t asked_ns,
                 struct error *err)
{
    bool was_gone = cluster_is_known_gone(cluster, object->meta.uid);

    if (was_gone && !unconfirmed_is_older(cluster, object->meta.uid, asked_ns))
        return 0;
    int rc = apply(cluster, object, asked_ns, err);
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
    (void)pool_trim(&cluster->pool, TRIMMED_PAGES_MAX);
    unconfirmed_forget(cluster, object->meta.uid); /* the watch has caught up */
    switch (object->kind) {
    case KIND_POD: pod_delete(cluster, &object->meta); break;
    case KIND_CLAIM: claim_delete(cluster, &object->meta); break;
    case KIND_NODE: node_delete(cluster, &object->meta); break;
    case KIND_CSI_NODE: csi_node_delete(cluster, &object->meta); break;
    default: resource_delete(cluster, object); break;
    }
}
