#include "cache/cluster/cluster.h"

#include "cache/cluster/allowance.h"
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
    struct object bare = *object;
    if (object->kind == KIND_POD && object->pod.claim_count == 0 &&
        allowance_is_over(cluster, object->meta.ns))
        bare.pod.mounts = NULL;
    int rc = allowance_admits(cluster, object) ? apply(cluster, &bare, asked_ns, err) : 0;
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
    (void)pool_trim(&cluster->pool, TRIMMED_PAGES_MAX);
    unconfirmed_forget(cluster, object->meta.uid); /* the watch has caught up */
    switch (object->kind) {
    case KIND_POD: pod_delete(cluster, &object->meta); break;
    case KIND_CLAIM: claim_delete(cluster, &object->meta); break;
    case KIND_NODE: node_delete(cluster, &object->meta); break;
    case KIND_CSI_NODE: csi_node_delete(cluster, &object->meta); break;
    default: resource_delete(cluster, object); break;
    }
    allowance_keep(cluster);
}
