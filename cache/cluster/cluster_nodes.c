/* Nodes, and the CSI drivers that their CSINodes list. A count for each driver says whether all
 * nodes have it, so that a verdict need not look at each node. */
#include "cache/cluster/cluster_internal.h"

/* ---- counts of drivers ---- */

/* On how many nodes a driver, or a migrated plug-in, is registered. */
struct driver_count {
    struct table_record record; /* by name */
    uint32_t nodes;
    struct name *name;
};

static bool driver_matches(const struct table_record *record, const void *name)
{
    return ((const struct driver_count *)(const void *)record)->name == name;
}

static struct driver_count *find_driver(const struct cluster *cluster, struct slice text)
{
    const struct name *name = names_find(&cluster->names, text);

    if (name == NULL)
        return NULL;
    return (struct driver_count *)(void *)table_find(&cluster->drivers, name->record.hash,
                                                     driver_matches, name);
}

uint32_t cluster_count_driver_nodes(const struct cluster *cluster, struct slice driver)
{
    const struct driver_count *count = find_driver(cluster, driver);

    return count == NULL ? 0 : count->nodes;
}

static bool add_driver(struct cluster *cluster, struct slice text)
{
    bool failed = false;

    if (find_driver(cluster, text) != NULL)
        return true;
    struct name *name = names_take(&cluster->names, text, &failed);
    struct driver_count *count =
        name == NULL ? NULL : pool_alloc(cluster->drivers.pool, sizeof *count);
    if (count != NULL) {
        *count = (struct driver_count){.record = {name->record.hash}, .name = name};
        if (table_add(&cluster->drivers, &count->record))
            return true;
    }
    names_release(&cluster->names, name);
    pool_free(cluster->drivers.pool, count);
    return false;
}

/* `change` more nodes have each of the drivers. */
static void count_drivers(struct cluster *cluster, struct slice drivers, int change)
{
    struct slice driver;

    while (words_next(&drivers, &driver)) {
        struct driver_count *count = find_driver(cluster, driver);
        if (count != NULL)
            count->nodes = (uint32_t)((int64_t)count->nodes + change);
    }
}

void node_release_drivers(struct cluster *cluster, struct slice drivers)
{
    struct slice driver;

    while (words_next(&drivers, &driver)) {
        struct driver_count *count = find_driver(cluster, driver);
        if (count == NULL || count->nodes != 0)
            continue;
        table_remove(&cluster->drivers, &count->record);
        names_release(&cluster->names, count->name);
        pool_free(cluster->drivers.pool, count);
    }
}

bool node_reserve_drivers(struct cluster *cluster, struct slice drivers)
{
    struct slice driver, rest = drivers;

    while (words_next(&rest, &driver))
        if (!add_driver(cluster, driver)) {
            node_release_drivers(cluster, drivers);
            return false;
        }
    return true;
}

/* Whether the CSINode is the node's, not that of an earlier node with the same name. The kubelet
 * names the node as its owner; a snapshot written by hand may say nothing. */
static bool is_csi_node_of(const struct resource *csi_node, const struct node *node)
{
    struct slice owner = name_slice(csi_node->attributes[CSI_NODE_OWNER]);
    char text[UID_TEXT_BYTES];

    return owner.len == 0 || uid_text(&node->uid, text).len == 0 || uid_is(&node->uid, owner);
}

static void set_drivers(struct cluster *cluster, struct node *node, bool has_csi_node,
                        struct name *drivers)
{
    struct name *old = node->drivers;

    if (drivers != NULL)
        drivers->refs++;
    cluster->bare_nodes -= node->exists && !node->has_csi_node;
    cluster->bare_nodes += node->exists && !has_csi_node;
    node->has_csi_node = has_csi_node;
    node->drivers = drivers;
    count_drivers(cluster, name_slice(drivers), 1);
    count_drivers(cluster, name_slice(old), -1);
    node_release_drivers(cluster, name_slice(old));
    names_release(&cluster->names, old);
}

void node_update_drivers(struct cluster *cluster, struct node *node,
                         const struct resource *csi_node)
{
    if (node == NULL || !node->exists)
        return;
    bool is_present = csi_node != NULL && is_csi_node_of(csi_node, node);
    set_drivers(cluster, node, is_present,
                is_present ? csi_node->attributes[CSI_NODE_DRIVERS] : NULL);
}

/* ---- nodes ---- */

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
    if (node->exists || node->pods != 0)
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
    const struct resource *csi_node = resource_find(cluster, KIND_CSI_NODE, SLICE(""), meta->name);
    if (node->exists && cluster_is_stale(cluster, KIND_NODE, meta, node->version)) {
        node->listed = cluster->lists[KIND_NODE].number;
        return 0;
    }
    struct uid uid = uid_take(&cluster->names, meta->uid, &failed);
    failed = failed ||
             (csi_node != NULL &&
              !node_reserve_drivers(cluster, name_slice(csi_node->attributes[CSI_NODE_DRIVERS])));
    if (failed) {
        uid_release(&cluster->names, uid);
        node_free_if_unused(cluster, node);
        return error_no_memory(err);
    }
    put_node(cluster, node, object, uid);
    node->listed = cluster->lists[KIND_NODE].number;
    node_update_drivers(cluster, node, csi_node);
    if (csi_node != NULL) /* of an earlier node with the same name, perhaps */
        node_release_drivers(cluster, name_slice(csi_node->attributes[CSI_NODE_DRIVERS]));
    return 0;
}

void node_mark_deleted(struct cluster *cluster, struct node *node)
{
    set_drivers(cluster, node, true, NULL); /* it does not count as a node without a CSINode */
    cluster->counts[KIND_NODE]--;
    uid_release(&cluster->names, node->uid);
    node->uid = (struct uid){{0}};
    node->exists = node->has_csi_node = node->is_not_ready = node->is_unschedulable = false;
    node->version = 0;
    node_free_if_unused(cluster, node);
}

void node_delete(struct cluster *cluster, const struct meta *meta)
{
    struct node *node = node_find(cluster, meta->name);

    if (node != NULL && node->exists && !cluster_is_stale(cluster, KIND_NODE, meta, node->version))
        node_mark_deleted(cluster, node);
}
