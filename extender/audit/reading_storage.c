/* Claims and volumes, classes, drivers, and nodes. */
#include "cache/objects/label_selector.h"
#include "cache/objects/objects.h"
#include "extender/audit/reading_internal.h"

/* ---- claims and volumes ---- */

static uint8_t mode_of(struct slice mode)
{
    static const char *const modes[] = {"ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany",
                                        "ReadWriteOncePod"};

    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++)
        if (slice_equal(mode, slice_of(modes[i])))
            return (uint8_t)(1U << i);
    return MODE_OTHER;
}

static bool read_modes(struct pull *json, struct arena *arena, void *field)
{
    if (!pull_array(json))
        return json->problem == NULL;
    while (pull_item(json)) {
        struct slice mode = {NULL, 0};
        if (!pull_string(json, arena, &mode))
            return false;
        *(uint8_t *)field |= mode_of(mode);
    }
    return json->problem == NULL;
}

static const struct pull_field claim_spec_fields[] = {
    PULL_READER("accessModes", reading, modes, read_modes),
    TEXT("storageClassName", storage_class),
    TEXT("volumeAttributesClassName", class),
    TEXT("volumeName", volume),
};
static const struct pull_field modify_fields[] = {
    TEXT("targetVolumeAttributesClassName", target_class),
    TEXT("status", modify_status),
};
static const struct pull_field claim_status_fields[] = {
    TEXT("phase", phase),
    TEXT("currentVolumeAttributesClassName", current_class),
    PULL_NESTED("modifyVolumeStatus", modify_fields),
};
const struct pull_field reading_claim[READING_STORAGE_FIELDS] = {
    PULL_NESTED("metadata", reading_meta),
    PULL_NESTED("spec", claim_spec_fields),
    PULL_NESTED("status", claim_status_fields),
};

/* What cache/objects does not read of a volume. */
static const struct pull_field volume_spec_fields[] = {
    PULL_FIELD("nodeAffinity", PULL_PRESENCE, reading, requires_nodes),
};
const struct pull_field reading_volume[READING_VOLUME_FIELDS] = {
    PULL_NESTED("metadata", reading_meta),
    PULL_NESTED("spec", volume_spec_fields),
};

static void take_volume(const struct resource_object *volume, struct reading *out)
{
    struct slice plugin = volume->attributes[VOLUME_IN_TREE];

    out->driver = volume->attributes[VOLUME_DRIVER];
    if (out->driver.len == 0)
        out->driver = in_tree_driver(plugin);
    out->is_attached_in_tree = plugin.len != 0 && in_tree_driver(plugin).len == 0;
    out->claim_ns = volume->attributes[VOLUME_CLAIM_NAMESPACE];
    out->claim = volume->attributes[VOLUME_CLAIM_NAME];
    out->is_for_one_node = (volume->number & VOLUME_IS_FOR_ONE_NODE) != 0;
    out->class = volume->reading.attributes_class;
    out->storage_class = volume->reading.storage_class;
    out->phase = volume->reading.phase;
}

/* ---- the other kinds ---- */

const struct pull_field reading_attributes_class[2] = {
    PULL_NESTED("metadata", reading_meta),
    TEXT("driverName", text),
};

static void take_object(const struct object *object, struct reading *out)
{
    const struct resource_object *resource = &object->resource;

    out->name = resource->meta.name;
    switch (object->kind) {
    case KIND_VOLUME: take_volume(resource, out); break;
    case KIND_STORAGE_CLASS: out->text = resource->attributes[STORAGE_CLASS_PROVISIONER]; break;
    case KIND_CSI_NODE: out->text = resource->attributes[CSI_NODE_DRIVERS]; break;
    default: /* a CSIDriver */
        out->text = resource->attributes[CSI_DRIVER_LIFECYCLE_MODES];
        out->does_not_attach = (resource->number & CSI_DRIVER_DOES_NOT_ATTACH) != 0;
    }
}

bool reading_object(struct pull *json, enum kind kind, struct arena *arena, struct reading *out)
{
    struct object object;

    if (!object_read(json, kind, arena, &object))
        return false;
    take_object(&object, out);
    return true;
}

/* A taint that keeps pods away, unless they tolerate it. */
struct taint_reading {
    struct slice effect;
};

static const struct pull_field taint_fields[] = {
    PULL_FIELD("effect", PULL_STRING, taint_reading, effect),
};

static bool read_taints(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct taint_reading)};

    if (!read_items(json, arena, taint_fields, PULL_FIELD_COUNT(taint_fields), &items))
        return false;
    const struct taint_reading *taints = items.items;
    for (size_t i = 0; i < items.count; i++)
        *(bool *)field |= !slice_equal(taints[i].effect, SLICE("PreferNoSchedule"));
    return true;
}

static bool read_true(struct pull *json, struct arena *arena, void *field)
{
    bool is_true = false;

    (void)arena;
    if (!pull_boolean(json, &is_true))
        return false;
    *(bool *)field |= is_true;
    return true;
}

static const struct pull_field node_meta_fields[] = {
    TEXT("name", name),
    TEXT("uid", uid),
    PULL_READER("labels", reading, text, labels_read),
};
static const struct pull_field node_spec_fields[] = {
    PULL_READER("unschedulable", reading, is_avoided, read_true),
    PULL_READER("taints", reading, is_avoided, read_taints),
};
const struct pull_field reading_node[READING_STORAGE_FIELDS] = {
    PULL_NESTED("metadata", node_meta_fields),
    PULL_NESTED("spec", node_spec_fields),
    PULL_NESTED("status", reading_conditions),
};
