/* Claims and volumes, classes, drivers, and nodes. */
#include "cache/objects/label_selector.h"
#include "cache/objects/objects.h"
#include "extender/audit/reading_internal.h"

/* ---- claims and volumes ---- */

/* What cache/objects does not read of a claim. */
const struct pull_field reading_claim[READING_CLAIM_FIELDS] = {
    PULL_NESTED("metadata", reading_meta),
};

static void take_claim(const struct claim_object *claim, struct reading *out)
{
    out->modes = (uint8_t)claim->access_modes;
    out->storage_class = claim->storage_class;
    out->volume = claim->volume;
    out->class = claim->volume_attributes_class;
    out->current_class = claim->current_class;
    out->target_class = claim->target_class;
    out->modify_status = claim->modify_status;
    out->phase = claim->phase;
    out->wish = (struct volume_wish){.uid = claim->meta.uid,
                                     .selector = claim->selector,
                                     .requested = claim->requested,
                                     .access_modes = claim->access_modes,
                                     .is_block = slice_equal(claim->volume_mode, SLICE("Block"))};
}

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
    out->is_available = volume->attributes[VOLUME_OFFER].len != 0;
    out->offered = (struct volume_offered){
        .attributes_class = out->class,
        .storage_class = out->storage_class,
        .labels = volume->attributes[VOLUME_LABELS],
        .kept_for = volume->attributes[VOLUME_KEPT_FOR],
        .capacity = volume->capacity,
        .access_modes = volume->reading.access_modes,
        .is_block = (volume->number & VOLUME_IS_BLOCK) != 0,
    };
}

/* ---- the other kinds ---- */

const struct pull_field reading_attributes_class[2] = {
    PULL_NESTED("metadata", reading_meta),
    TEXT("driverName", text),
};

static void take_object(const struct object *object, struct reading *out)
{
    const struct resource_object *resource = &object->resource;

    out->name = object->meta.name;
    switch (object->kind) {
    case KIND_CLAIM: take_claim(&object->claim, out); break;
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
    PULL_READER_OF("taints", reading, is_avoided, read_taints, taint_fields),
};
const struct pull_field reading_node[READING_STORAGE_FIELDS] = {
    PULL_NESTED("metadata", node_meta_fields),
    PULL_NESTED("spec", node_spec_fields),
    PULL_NESTED("status", reading_conditions),
};
