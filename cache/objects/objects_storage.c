/* Kinds of storage.k8s.io, and Nodes: what decides where a volume can be used. */
#include <stdlib.h>

#include "cache/objects/label_selector.h"
#include "cache/objects/objects_internal.h"

/* ---- StorageClass, VolumeAttributesClass ---- */

static const struct pull_field storage_class_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    ATTRIBUTE("provisioner", STORAGE_CLASS_PROVISIONER),
};

static const struct pull_field topology_label_fields[] = {
    PULL_FIELD("key", PULL_NAME, topology_label, key),
    PULL_READER("values", topology_label, values, words_read_items),
};
static const struct pull_field topology_fields[] = {
    PULL_ITEMS_OF("matchLabelExpressions", topology, labels, topology_label, topology_label_fields),
};
static const struct pull_field storage_class_details_fields[] = {
    PULL_FIELD("volumeBindingMode", PULL_NAME, storage_class_details, binding_mode),
    PULL_ITEMS_OF("allowedTopologies", storage_class_details, topologies, topology,
                  topology_fields),
};
const struct object_tables storage_class_tables = {TABLE(storage_class_fields),
                                                   TABLE(storage_class_details_fields)};

static const struct pull_field volume_attributes_class_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    ATTRIBUTE("driverName", VOLUME_ATTRIBUTES_CLASS_DRIVER),
};
const struct object_tables volume_attributes_class_tables = {
    .core = TABLE(volume_attributes_class_fields)};

/* ---- VolumeAttachment ---- */

/* Cuts between two characters. */
static bool read_error(struct pull *json, struct arena *arena, void *field)
{
    struct slice *error = field;

    if (!pull_string(json, arena, error))
        return false;
    if (error->len <= ATTACHMENT_ERROR_BYTES_MAX)
        return true;
    error->len = ATTACHMENT_ERROR_BYTES_MAX;
    while (error->len != 0 && ((unsigned char)error->ptr[error->len] & 0xC0U) == 0x80U)
        error->len--;
    return true;
}

static const struct pull_field attachment_spec_fields[] = {
    ATTRIBUTE("attacher", VOLUME_ATTACHMENT_DRIVER),
    ATTRIBUTE("nodeName", VOLUME_ATTACHMENT_NODE),
    PULL_IN("source", ATTRIBUTE("persistentVolumeName", VOLUME_ATTACHMENT_VOLUME)),
};
static const struct pull_field attachment_status_fields[] = {
    PULL_FIELD("attached", PULL_BOOLEAN, resource_object, reading.is_attached),
    PULL_IN("attachError", PULL_READER("message", resource_object,
                                       attributes[VOLUME_ATTACHMENT_ATTACH_ERROR], read_error)),
    PULL_IN("detachError", PULL_READER("message", resource_object,
                                       attributes[VOLUME_ATTACHMENT_DETACH_ERROR], read_error)),
};
static const struct pull_field volume_attachment_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_NESTED("spec", attachment_spec_fields),
    PULL_NESTED("status", attachment_status_fields),
};
const struct object_tables volume_attachment_tables = {.core = TABLE(volume_attachment_fields)};

/* ---- CSIDriver ---- */

static const struct pull_field csi_driver_spec_fields[] = {
    PULL_READER("volumeLifecycleModes", resource_object, attributes[CSI_DRIVER_LIFECYCLE_MODES],
                words_read),
    PULL_FIELD("attachRequired", PULL_BOOLEAN, resource_object, reading.attaches),
};
static const struct pull_field csi_driver_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_NESTED("spec", csi_driver_spec_fields),
};
static const struct pull_field csi_driver_spec_details[] = {
    PULL_FIELD("storageCapacity", PULL_BOOLEAN, csi_driver_details, has_capacities),
    PULL_FIELD("preventPodSchedulingIfMissing", PULL_BOOLEAN, csi_driver_details, is_required),
};
static const struct pull_field csi_driver_details_fields[] = {
    PULL_NESTED("spec", csi_driver_spec_details)};
const struct object_tables csi_driver_tables = {TABLE(csi_driver_fields),
                                                TABLE(csi_driver_details_fields)};

/* ---- CSIStorageCapacity ---- */

static const struct pull_field storage_capacity_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    ATTRIBUTE("storageClassName", STORAGE_CAPACITY_CLASS),
    PULL_READER("nodeTopology", resource_object, attributes[STORAGE_CAPACITY_TOPOLOGY],
                selector_read),
    PULL_READER("capacity", resource_object, reading.capacity, read_quantity),
    PULL_READER("maximumVolumeSize", resource_object, reading.largest, read_quantity),
};
const struct object_tables storage_capacity_tables = {.core = TABLE(storage_capacity_fields)};

/* ---- CSINode ---- */

static bool read_limit(struct pull *json, struct arena *arena, void *field)
{
    struct volume_limit *limit = field;

    (void)arena;
    limit->is_known = !pull_null(json);
    return !limit->is_known || pull_integer(json, &limit->count);
}

enum { DRIVER_NAME, DRIVER_ALLOCATABLE, DRIVER_TOPOLOGY_KEYS, DRIVER_FIELDS };
static const struct pull_field driver_fields[DRIVER_FIELDS] = {
    [DRIVER_NAME] = PULL_FIELD("name", PULL_NAME, driver_limit, name),
    [DRIVER_ALLOCATABLE] =
        PULL_IN("allocatable", PULL_READER("count", driver_limit, volumes, read_limit)),
    [DRIVER_TOPOLOGY_KEYS] =
        PULL_READER("topologyKeys", driver_limit, topology_keys, words_read_items),
};

static const struct pull_field csi_node_meta_fields[] = {
    META_ROWS(PULL_NAME),
    SOME_OF("ownerReferences", resource_object, reading.owners, owner, owner_fields, OWNER_UID,
            OWNER_KIND),
    PULL_IN("annotations", PULL_FIELD("storage.alpha.kubernetes.io/migrated-plugins", PULL_STRING,
                                      resource_object, reading.migrated)),
};
static const struct pull_field csi_node_fields[] = {
    PULL_NESTED("metadata", csi_node_meta_fields),
    PULL_IN("spec", SOME_OF("drivers", resource_object, reading.drivers, driver_limit,
                            driver_fields, DRIVER_NAME, DRIVER_NAME)),
};
static const struct pull_field csi_node_details_fields[] = {
    PULL_IN("spec",
            PULL_ITEMS_OF("drivers", csi_node_details, drivers, driver_limit, driver_fields)),
};
const struct object_tables csi_node_tables = {TABLE(csi_node_fields),
                                              TABLE(csi_node_details_fields)};

/* Sorts the words and removes those that appear twice, so that nodes with the same drivers share
 * one text. */
static bool sort_words(struct arena *arena, struct slice words, struct slice *out)
{
    struct slice *list = NULL, word;
    size_t count = 0;

    while (words_next(&words, &word)) {
        list = arena_grow(arena, list, count, sizeof *list);
        if (list == NULL)
            return false;
        list[count++] = word;
    }
    if (count != 0)
        qsort(list, count, sizeof *list, slice_order);
    *out = SLICE("");
    for (size_t i = 0, kept = 0; i < count && kept < NODE_DRIVERS_MAX; i++) {
        if (list[i].len == 0 || list[i].len > JSON_NAME_BYTES_MAX ||
            (i != 0 && slice_equal(list[i], list[i - 1])))
            continue;
        if ((kept++ != 0 && !arena_append(arena, out, SLICE(","))) ||
            !arena_append(arena, out, list[i]))
            return false;
    }
    return true;
}

static bool finish_csi_node(struct pull *json, struct arena *arena, struct resource_object *node)
{
    const struct owner *owners = node->reading.owners.items;
    const struct driver_limit *drivers = node->reading.drivers.items;
    struct slice *words = &node->attributes[CSI_NODE_DRIVERS];

    for (size_t i = 0; i < node->reading.owners.count; i++)
        if (slice_equal(owners[i].kind, SLICE("Node")))
            node->attributes[CSI_NODE_OWNER] = owners[i].uid;
    for (size_t i = 0; i < node->reading.drivers.count; i++)
        if (!words_add(json, arena, words, drivers[i].name))
            return false;
    if (node->reading.migrated.len != 0 && !words_add(json, arena, words, node->reading.migrated))
        return false;
    return sort_words(arena, *words, words) || pull_problem(json, pull_too_big);
}

/* ---- Node ---- */

static const struct pull_field node_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_IN("spec",
            PULL_FIELD("unschedulable", PULL_BOOLEAN, resource_object, reading.is_unschedulable)),
    PULL_IN("status", SOME_OF("conditions", resource_object, reading.conditions, condition,
                              condition_fields, CONDITION_TYPE, CONDITION_STATUS)),
};

static const struct pull_field taint_fields[] = {
    PULL_FIELD("key", PULL_NAME, taint, key),
    PULL_FIELD("value", PULL_NAME, taint, value),
    PULL_FIELD("effect", PULL_NAME, taint, effect),
};
static const struct pull_field node_details_fields[] = {
    PULL_IN("metadata", PULL_READER("labels", node_details, labels, labels_read)),
    PULL_IN("spec", PULL_ITEMS_OF("taints", node_details, taints, taint, taint_fields)),
    PULL_IN("status", SOME_OF("conditions", node_details, conditions, condition, condition_fields,
                              CONDITION_TYPE, CONDITION_CHANGED)),
};
const struct object_tables node_tables = {TABLE(node_fields), TABLE(node_details_fields)};

static bool is_not_ready(const struct resource_object *node)
{
    const struct condition *conditions = node->reading.conditions.items;

    for (size_t i = 0; i < node->reading.conditions.count; i++)
        if (slice_equal(conditions[i].type, SLICE("Ready")) &&
            !slice_equal(conditions[i].status, SLICE("True")))
            return true;
    return false;
}

/* ---- all of them ---- */

bool storage_finish(struct pull *json, enum kind kind, struct arena *arena,
                    struct resource_object *resource)
{
    bool is_deleting = resource->meta.deletion_timestamp.len != 0;

    switch (kind) {
    case KIND_CSI_NODE: return finish_csi_node(json, arena, resource);
    case KIND_NODE:
        resource->number = (is_not_ready(resource) ? NODE_IS_NOT_READY : 0) |
                           (resource->reading.is_unschedulable ? NODE_IS_UNSCHEDULABLE : 0);
        return true;
    case KIND_CSI_DRIVER:
        resource->number = resource->reading.attaches ? 0 : CSI_DRIVER_DOES_NOT_ATTACH;
        return true;
    case KIND_VOLUME_ATTACHMENT:
        resource->number = (resource->reading.is_attached ? VOLUME_ATTACHMENT_IS_ATTACHED : 0) |
                           (is_deleting ? VOLUME_ATTACHMENT_IS_DELETING : 0);
        return true;
    case KIND_STORAGE_CAPACITY:
        resource->capacity =
            resource->reading.largest >= 0 ? resource->reading.largest : resource->reading.capacity;
        return true;
    case KIND_VOLUME_ATTRIBUTES_CLASS:
        resource->number = is_deleting ? VOLUME_ATTRIBUTES_CLASS_IS_DELETING : 0;
        return true;
    default: return true;
    }
}
