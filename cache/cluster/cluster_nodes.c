#include "cache/cluster/cluster_internal.h"

/* Two sizes of the pool: a node without a CSINode takes no memory for one. */
_Static_assert(sizeof(struct node) <= 64 && sizeof(struct csi_node) <= 32, "they waste no memory");

static bool node_matches(const struct table_record *record, const void *name)
{
    const struct node *node = (const struct node *)(const void *)record;

    return slice_equal(name_slice(node->name), *(const struct slice *)name);
}

/* By the text, not by its struct name: a verdict looks up thousands of nodes, and a lookup in the
 * table of all names costs as much as this one. */
struct node *node_find(const struct cluster *cluster, struct slice name)
{
    return (struct node *)(void *)table_find(&cluster->nodes, names_hash(name), node_matches,
                                             &name);
}

const struct node *cluster_find_node(const struct cluster *cluster, struct slice name)
{
    const struct node *node = node_find(cluster, name);
    return node != NULL && node->exists ? node : NULL;
}

struct node *node_get_or_create(struct cluster *cluster, struct slice text)
{
    bool failed = false;
    struct name *name = names_take(&cluster->names, text, &failed);
    struct node *node = name == NULL ? NULL : node_find(cluster, text);

    if (node != NULL || name == NULL) {
        names_release(&cluster->names, name);
        return node;
    }
    node = pool_alloc(cluster->nodes.pool, sizeof *node);
    if (node != NULL) {
        node->name = name;
        node->record.hash = name->record.hash;
        if (table_add(&cluster->nodes, &node->record))
            return node;
    }
    names_release(&cluster->names, name);
    pool_free(cluster->nodes.pool, node);
    return NULL;
}

void node_free_if_unused(struct cluster *cluster, struct node *node)
{
    if (node->exists || node->csi_node != NULL || node->pods != 0)
        return;
    table_remove(&cluster->nodes, &node->record);
    names_release(&cluster->names, node->name);
    pool_free(cluster->nodes.pool, node);
}

static void put_node(struct cluster *cluster, struct node *node,
                     const struct resource_object *object, struct uid uid)
{
    cluster->counts[KIND_NODE] += !node->exists;
    cluster->bare_nodes += !node->exists; /* until its CSINode is found */
    node->exists = true;
    node->is_not_ready = (object->number & NODE_IS_NOT_READY) != 0;
    node->is_unschedulable = (object->number & NODE_IS_UNSCHEDULABLE) != 0;
    node->version = version_of(object->meta.resource_version);
    uid_release(&cluster->names, node->uid);
    node->uid = uid;
}

int node_apply(struct cluster *cluster, const struct resource_object *object, struct error *err)
{
    const struct meta *meta = &object->meta;
    struct node *node = node_get_or_create(cluster, meta->name);
    bool failed = false;

    if (node == NULL)
        return error_no_memory(err);
    if (node->exists && cluster_is_stale(cluster, KIND_NODE, meta, node->version)) {
        node->listed = cluster->lists[KIND_NODE].number;
        return 0;
    }
    struct uid uid = uid_take(&cluster->names, meta->uid, &failed);
    if (failed || !csi_node_reserve_drivers(cluster, node->csi_node)) {
        uid_release(&cluster->names, uid);
        node_free_if_unused(cluster, node);
        return error_no_memory(err);
    }
    put_node(cluster, node, object, uid);
    node->listed = cluster->lists[KIND_NODE].number;
    node_update_drivers(cluster, node);
    csi_node_release_drivers(cluster, node->csi_node); /* of an earlier node, perhaps */
    return 0;
}

void node_mark_deleted(struct cluster *cluster, struct node *node)
{
    cluster->counts[KIND_NODE]--;
    cluster->bare_nodes -= !node->has_csi_node;
    uid_release(&cluster->names, node->uid);
    node->uid = (struct uid){{0}};
    node->exists = node->is_not_ready = node->is_unschedulable = false;
    node->version = 0;
    node_update_drivers(cluster, node);
    node_free_if_unused(cluster, node);
}

void node_delete(struct cluster *cluster, const struct meta *meta)
{
    struct node *node = node_find(cluster, meta->name);

    if (node != NULL && node->exists && !cluster_is_stale(cluster, KIND_NODE, meta, node->version))
        node_mark_deleted(cluster, node);
}

void nodes_dispose(struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};

    for (struct node *node; (node = cluster_next_node(cluster, &walk)) != NULL;)
        csi_node_free(cluster, node->csi_node);
    table_free_records(&cluster->nodes);
}
