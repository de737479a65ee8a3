/* Kinds of storage.k8s.io, and Nodes: what decides where a volume can be used. */
#include "cache/objects/objects_internal.h"

#include <stdlib.h>

/* ---- StorageClass, VolumeAttributesClass ---- */

const struct pull_field storage_class_fields[STORAGE_CLASS_FIELDS] = {
    PULL_NESTED("metadata", meta_fields),
    ATTRIBUTE("provisioner", STORAGE_CLASS_PROVISIONER),
};

const struct pull_field volume_attributes_class_fields[VOLUME_ATTRIBUTES_CLASS_FIELDS] = {
    PULL_NESTED("metadata", meta_fields),
    ATTRIBUTE("driverName", VOLUME_ATTRIBUTES_CLASS_DRIVER),
};

/* ---- VolumeAttachment ---- */

static bool read_attached(struct pull *json, struct arena *arena, void *field)
{
    bool is_attached = false;

    (void)arena;
    if (!pull_boolean(json, &is_attached))
        return false;
    if (is_attached)
        *(int64_t *)field |= VOLUME_ATTACHMENT_IS_ATTACHED;
    return true;
}

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

static const struct pull_field attachment_source_fields[] = {
    ATTRIBUTE("persistentVolumeName", VOLUME_ATTACHMENT_VOLUME),
};
static const struct pull_field attachment_spec_fields[] = {
    ATTRIBUTE("attacher", VOLUME_ATTACHMENT_DRIVER),
    ATTRIBUTE("nodeName", VOLUME_ATTACHMENT_NODE),
    PULL_NESTED("source", attachment_source_fields),
};
static const struct pull_field attach_error_fields[] = {
    PULL_READER("message", resource_object, attributes[VOLUME_ATTACHMENT_ATTACH_ERROR], read_error),
};
static const struct pull_field detach_error_fields[] = {
    PULL_READER("message", resource_object, attributes[VOLUME_ATTACHMENT_DETACH_ERROR], read_error),
};
static const struct pull_field attachment_status_fields[] = {
    PULL_READER("attached", resource_object, number, read_attached),
    PULL_NESTED("attachError", attach_error_fields),
    PULL_NESTED("detachError", detach_error_fields),
};
const struct pull_field volume_attachment_fields[VOLUME_ATTACHMENT_FIELDS] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_NESTED("spec", attachment_spec_fields),
    PULL_NESTED("status", attachment_status_fields),
};

/* ---- CSIDriver ---- */

static bool read_attach_required(struct pull *json, struct arena *arena, void *field)
{
    bool is_required = true; /* the API server's default */

    (void)arena;
    if (!pull_boolean(json, &is_required))
        return false;
    if (!is_required)
        *(int64_t *)field |= CSI_DRIVER_DOES_NOT_ATTACH;
    return true;
}

static const struct pull_field csi_driver_spec_fields[] = {
    PULL_READER("volumeLifecycleModes", resource_object, attributes[CSI_DRIVER_LIFECYCLE_MODES],
                words_read),
    PULL_READER("attachRequired", resource_object, number, read_attach_required),
};
const struct pull_field csi_driver_fields[CSI_DRIVER_FIELDS] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_NESTED("spec", csi_driver_spec_fields),
};

/* ---- CSINode ---- */

static const struct pull_field driver_name_fields[] = {{.key = "name", .type = PULL_NAME}};

static bool read_driver_names(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct slice)};

    if (!pull_field_array(json, PULL_CASE_EXACT, driver_name_fields,
                          PULL_FIELD_COUNT(driver_name_fields), arena, &items))
        return false;
    const struct slice *names = items.items;
    for (size_t i = 0; i < items.count; i++)
        if (!words_add(json, arena, field, names[i]))
            return false;
    return true;
}

struct node_owner {
    struct slice kind, uid;
};

static const struct pull_field node_owner_fields[] = {
    PULL_FIELD("kind", PULL_NAME, node_owner, kind),
    PULL_FIELD("uid", PULL_NAME, node_owner, uid),
};

static bool read_node_owner(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct node_owner)};

    if (!pull_field_array(json, PULL_CASE_EXACT, node_owner_fields,
                          PULL_FIELD_COUNT(node_owner_fields), arena, &items))
        return false;
    const struct node_owner *owners = items.items;
    for (size_t i = 0; i < items.count; i++)
        if (slice_equal(owners[i].kind, SLICE("Node")))
            *(struct slice *)field = owners[i].uid;
    return true;
}

static const struct pull_field csi_node_annotation_fields[] = {
    PULL_FIELD("storage.alpha.kubernetes.io/migrated-plugins", PULL_STRING, resource_object,
               reading.migrated),
};
static const struct pull_field csi_node_meta_fields[] = {
    PULL_FIELD("name", PULL_NAME, meta, name),
    PULL_FIELD("uid", PULL_NAME, meta, uid),
    PULL_FIELD("resourceVersion", PULL_NAME, meta, resource_version),
    PULL_FIELD("deletionTimestamp", PULL_NAME, meta, deletion_timestamp),
    PULL_READER_OF("ownerReferences", resource_object, attributes[CSI_NODE_OWNER], read_node_owner,
                   node_owner_fields),
    PULL_NESTED("annotations", csi_node_annotation_fields),
};
static const struct pull_field csi_node_spec_fields[] = {
    PULL_READER_OF("drivers", resource_object, attributes[CSI_NODE_DRIVERS], read_driver_names,
                   driver_name_fields),
};
const struct pull_field csi_node_fields[CSI_NODE_FIELDS] = {
    PULL_NESTED("metadata", csi_node_meta_fields),
    PULL_NESTED("spec", csi_node_spec_fields),
};

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

bool csi_node_finish(struct pull *json, struct arena *arena, struct resource_object *node)
{
    struct slice *drivers = &node->attributes[CSI_NODE_DRIVERS];

    if (node->reading.migrated.len != 0 && !words_add(json, arena, drivers, node->reading.migrated))
        return false;
    return sort_words(arena, *drivers, drivers) || pull_problem(json, pull_too_big);
}

/* ---- Node ---- */

struct node_condition {
    struct slice type, status;
};

static const struct pull_field condition_fields[] = {
    PULL_FIELD("type", PULL_NAME, node_condition, type),
    PULL_FIELD("status", PULL_NAME, node_condition, status),
};

static bool read_conditions(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct node_condition)};

    if (!pull_field_array(json, PULL_CASE_EXACT, condition_fields,
                          PULL_FIELD_COUNT(condition_fields), arena, &items))
        return false;
    const struct node_condition *conditions = items.items;
    for (size_t i = 0; i < items.count; i++)
        if (slice_equal(conditions[i].type, SLICE("Ready")) &&
            !slice_equal(conditions[i].status, SLICE("True")))
            *(int64_t *)field |= NODE_IS_NOT_READY;
    return true;
}

static bool read_unschedulable(struct pull *json, struct arena *arena, void *field)
{
    bool is_unschedulable = false;

    (void)arena;
    if (!pull_boolean(json, &is_unschedulable))
        return false;
    if (is_unschedulable)
        *(int64_t *)field |= NODE_IS_UNSCHEDULABLE;
    return true;
}

static const struct pull_field node_spec_fields[] = {
    PULL_READER("unschedulable", resource_object, number, read_unschedulable),
};
static const struct pull_field node_status_fields[] = {
    PULL_READER_OF("conditions", resource_object, number, read_conditions, condition_fields),
};
const struct pull_field node_fields[NODE_FIELDS] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_NESTED("spec", node_spec_fields),
    PULL_NESTED("status", node_status_fields),
};
