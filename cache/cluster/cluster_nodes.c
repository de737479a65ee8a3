/*
 * Nodes, their CSINodes, and on how many nodes each CSI driver is: a count says whether all nodes
 * have it, so that a verdict need not look at each node.
 */
#include "cache/cluster/cluster_internal.h"

/* Two sizes of the pool: a node without a CSINode takes no memory for one. */
_Static_assert(sizeof(struct node) <= 64 && sizeof(struct csi_node) <= 32, "they waste no memory");

static bool node_matches(const void *record, const void *name)
{
    const struct node *node = record;

    return slice_equal(name_slice(node->name), *(const struct slice *)name);
}

/* By the text, not by its struct name: a verdict looks up thousands of nodes, and a lookup in the
 * table of all names costs as much as this one. */
struct node *node_find(const struct cluster *cluster, struct slice name)
{
    return table_find(&cluster->nodes, names_hash(name), node_matches, &name);
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
    node = table_make(&cluster->nodes, name->record.hash, sizeof *node);
    if (node == NULL)
        names_release(&cluster->names, name);
    else
        node->name = name;
    return node;
}

void node_free_if_unused(struct cluster *cluster, struct node *node)
{
    if (node->exists || node->csi_node != NULL || node->pods != 0)
        return;
    names_release(&cluster->names, node->name);
    table_delete(&cluster->nodes, &node->record);
}

/* ---- counts of drivers ---- */

/* On how many nodes a driver, or a migrated plug-in, is registered. */
struct driver_count {
    struct table_record record; /* by name */
    uint32_t nodes;
    struct name *name;
};

static bool driver_matches(const void *record, const void *name)
{
    return ((const struct driver_count *)record)->name == name;
}

static struct driver_count *find_driver(const struct cluster *cluster, struct slice text)
{
    const struct name *name = names_find(&cluster->names, text);

    if (name == NULL)
        return NULL;
    return table_find(&cluster->drivers, name->record.hash, driver_matches, name);
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
        name == NULL ? NULL : table_make(&cluster->drivers, name->record.hash, sizeof *count);
    if (count == NULL)
        names_release(&cluster->names, name);
    else
        count->name = name;
    return count != NULL;
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

static void release_drivers(struct cluster *cluster, struct slice drivers)
{
    struct slice driver;

    while (words_next(&drivers, &driver)) {
        struct driver_count *count = find_driver(cluster, driver);
        if (count == NULL || count->nodes != 0)
            continue;
        names_release(&cluster->names, count->name);
        table_delete(&cluster->drivers, &count->record);
    }
}

static struct slice drivers_of(const struct csi_node *csi_node)
{
    return name_slice(csi_node == NULL ? NULL : csi_node->drivers);
}

/* Frees the counts of drivers that no node uses. */
static void csi_node_release_drivers(struct cluster *cluster, const struct csi_node *csi_node)
{
    release_drivers(cluster, drivers_of(csi_node));
}

/* Makes counts for the drivers of a CSINode; NULL: it has none. False: no memory. */
static bool csi_node_reserve_drivers(struct cluster *cluster, const struct csi_node *csi_node)
{
    struct slice driver, rest = drivers_of(csi_node);

    while (words_next(&rest, &driver))
        if (!add_driver(cluster, driver)) {
            csi_node_release_drivers(cluster, csi_node);
            return false;
        }
    return true;
}

/* ---- the drivers of a node ---- */

/* Whether the CSINode is the node's, not that of an earlier node with the same name. The kubelet
 * names the node as its owner; a snapshot written by hand may say nothing. */
static bool is_own(const struct csi_node *csi_node, const struct node *node)
{
    char text[UID_TEXT_BYTES], other[UID_TEXT_BYTES];
    struct slice owner = uid_text(&csi_node->owner, text);

    return owner.len == 0 || uid_text(&node->uid, other).len == 0 || uid_is(&node->uid, owner);
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
    release_drivers(cluster, name_slice(old));
    names_release(&cluster->names, old);
}

/* The node has the drivers of its CSINode now, which are reserved; none if it does not exist, or
 * the CSINode is not its own. */
static void node_update_drivers(struct cluster *cluster, struct node *node)
{
    const struct csi_node *csi_node = node->csi_node;
    bool is_present = node->exists && csi_node != NULL && is_own(csi_node, node);

    set_drivers(cluster, node, is_present, is_present ? csi_node->drivers : NULL);
}

/* ---- nodes ---- */

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

int node_apply(struct cluster *cluster, struct node *node, const struct resource_object *object,
               struct error *err)
{
    const struct meta *meta = &object->meta;
    bool failed = false;

    if (node == NULL)
        node = node_get_or_create(cluster, meta->name);
    if (node == NULL)
        return error_no_memory(err);
    struct uid uid = uid_take(&cluster->names, meta->uid, &failed);
    if (failed || !csi_node_reserve_drivers(cluster, node->csi_node)) {
        uid_release(&cluster->names, uid);
        node_free_if_unused(cluster, node);
        return error_no_memory(err);
    }
    put_node(cluster, node, object, uid);
    node->listed = cluster_list_mark(cluster, KIND_NODE);
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

/* ---- CSINodes ---- */

const struct csi_node *cluster_find_csi_node(const struct cluster *cluster, struct slice name)
{
    const struct node *node = node_find(cluster, name);
    return node == NULL ? NULL : node->csi_node;
}

/* NULL is ignored. */
static void csi_node_free(struct cluster *cluster, struct csi_node *csi_node)
{
    if (csi_node == NULL)
        return;
    names_release(&cluster->names, csi_node->drivers);
    uid_release(&cluster->names, csi_node->owner);
    pool_free(cluster->nodes.pool, csi_node);
}

/* With its drivers reserved. NULL: no memory. */
static struct csi_node *csi_node_new(struct cluster *cluster, const struct resource_object *object)
{
    struct csi_node *csi_node = pool_alloc(cluster->nodes.pool, sizeof *csi_node);
    bool failed = false;

    if (csi_node == NULL)
        return NULL;
    csi_node->drivers = names_take(&cluster->names, object->attributes[CSI_NODE_DRIVERS], &failed);
    csi_node->owner = uid_take(&cluster->names, object->attributes[CSI_NODE_OWNER], &failed);
    csi_node->version = version_of(object->meta.resource_version);
    if (!failed && csi_node_reserve_drivers(cluster, csi_node))
        return csi_node;
    csi_node_free(cluster, csi_node);
    return NULL;
}

int csi_node_apply(struct cluster *cluster, struct node *node, const struct resource_object *object,
                   struct error *err)
{
    if (node == NULL)
        node = node_get_or_create(cluster, object->meta.name);
    if (node == NULL)
        return error_no_memory(err);
    struct csi_node *known = node->csi_node;
    struct csi_node *csi_node = csi_node_new(cluster, object);
    if (csi_node == NULL) {
        node_free_if_unused(cluster, node);
        return error_no_memory(err);
    }
    cluster->counts[KIND_CSI_NODE] += known == NULL;
    node->csi_node = csi_node;
    node->csi_node_listed = cluster_list_mark(cluster, KIND_CSI_NODE) & LISTED_MAX;
    node_update_drivers(cluster, node);
    csi_node_release_drivers(cluster, csi_node); /* of no node, or of an earlier one, perhaps */
    csi_node_free(cluster, known);
    return 0;
}

void csi_node_remove(struct cluster *cluster, struct node *node)
{
    cluster->counts[KIND_CSI_NODE]--;
    csi_node_free(cluster, node->csi_node);
    node->csi_node = NULL;
    node_update_drivers(cluster, node);
    node_free_if_unused(cluster, node);
}

void nodes_dispose(struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};

    for (struct node *node; (node = cluster_next_node(cluster, &walk)) != NULL;)
        csi_node_free(cluster, node->csi_node);
    table_free_records(&cluster->nodes);
}
