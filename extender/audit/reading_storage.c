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
    READ("accessModes", modes, read_modes),
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
    OBJECT("modifyVolumeStatus", modify_fields),
};
const struct pull_field reading_claim[READING_STORAGE_FIELDS] = {
    OBJECT("metadata", reading_meta),
    OBJECT("spec", claim_spec_fields),
    OBJECT("status", claim_status_fields),
};

/* The sources of the plug-ins that have moved to CSI drivers, and of those that have not, and
 * attach. */
static bool read_in_tree(struct pull *json, struct reading *reading, const char *plugin)
{
    if (pull_null(json))
        return true;
    reading->in_tree = in_tree_driver(slice_of(plugin));
    reading->is_attached_in_tree = reading->in_tree.len == 0;
    return pull_skip(json);
}

#define IN_TREE(name_, plugin_) \
    static bool read_##name_(struct pull *json, struct arena *arena, void *whole) \
    { \
        (void)arena; \
        return read_in_tree(json, whole, "kubernetes.io/" plugin_); \
    }
IN_TREE(aws, "aws-ebs")
IN_TREE(gce, "gce-pd")
IN_TREE(cinder, "cinder")
IN_TREE(azure_disk, "azure-disk")
IN_TREE(azure_file, "azure-file")
IN_TREE(vsphere, "vsphere-volume")
IN_TREE(portworx, "portworx-volume")
IN_TREE(iscsi, "iscsi")
IN_TREE(fc, "fc")

static const struct pull_field volume_csi_fields[] = {
    TEXT("driver", driver),
};
static const struct pull_field claim_ref_fields[] = {
    TEXT("namespace", claim_ns),
    TEXT("name", claim),
};
static const struct pull_field volume_spec_fields[] = {
    OBJECT("csi", volume_csi_fields),
    OBJECT("claimRef", claim_ref_fields),
    READ("accessModes", modes, read_modes),
    TEXT("storageClassName", storage_class),
    TEXT("volumeAttributesClassName", class),
    FIELD("nodeAffinity", PULL_PRESENCE, reading, requires_nodes),
    READ_WHOLE("awsElasticBlockStore", read_aws),
    READ_WHOLE("gcePersistentDisk", read_gce),
    READ_WHOLE("cinder", read_cinder),
    READ_WHOLE("azureDisk", read_azure_disk),
    READ_WHOLE("azureFile", read_azure_file),
    READ_WHOLE("vsphereVolume", read_vsphere),
    READ_WHOLE("portworxVolume", read_portworx),
    READ_WHOLE("iscsi", read_iscsi),
    READ_WHOLE("fc", read_fc),
};
const struct pull_field reading_volume[READING_STORAGE_FIELDS] = {
    OBJECT("metadata", reading_meta),
    OBJECT("spec", volume_spec_fields),
    OBJECT("status", reading_phase),
};

/* ---- the other kinds ---- */

const struct pull_field reading_storage_class[2] = {
    OBJECT("metadata", reading_meta),
    TEXT("provisioner", text),
};
const struct pull_field reading_attributes_class[2] = {
    OBJECT("metadata", reading_meta),
    TEXT("driverName", text),
};

static bool read_attach_required(struct pull *json, struct arena *arena, void *field)
{
    bool is_required = true;

    (void)arena;
    if (!pull_boolean(json, &is_required))
        return false;
    *(bool *)field = !is_required;
    return true;
}

static const struct pull_field csi_driver_spec_fields[] = {
    READ("volumeLifecycleModes", text, words_read),
    READ("attachRequired", does_not_attach, read_attach_required),
};
const struct pull_field reading_csi_driver[2] = {
    OBJECT("metadata", reading_meta),
    OBJECT("spec", csi_driver_spec_fields),
};

static const struct pull_field driver_name_fields[] = {{.key = "name", .type = PULL_STRING}};

static bool read_drivers(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct slice)};

    if (!read_items(json, arena, driver_name_fields, PULL_FIELD_COUNT(driver_name_fields), &items))
        return false;
    const struct slice *names = items.items;
    for (size_t i = 0; i < items.count; i++)
        if (!words_add(json, arena, field, names[i]))
            return false;
    return true;
}

static const struct pull_field csi_node_spec_fields[] = {
    READ("drivers", text, read_drivers),
};
const struct pull_field reading_csi_node[2] = {
    OBJECT("metadata", reading_meta),
    OBJECT("spec", csi_node_spec_fields),
};

/* A taint that keeps pods away, unless they tolerate it. */
struct taint_reading {
    struct slice effect;
};

static const struct pull_field taint_fields[] = {
    FIELD("effect", PULL_STRING, taint_reading, effect),
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
    READ("labels", text, labels_read),
};
static const struct pull_field node_spec_fields[] = {
    READ("unschedulable", is_avoided, read_true),
    READ("taints", is_avoided, read_taints),
};
const struct pull_field reading_node[READING_STORAGE_FIELDS] = {
    OBJECT("metadata", node_meta_fields),
    OBJECT("spec", node_spec_fields),
    OBJECT("status", reading_conditions),
};
