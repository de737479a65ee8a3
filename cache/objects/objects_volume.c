/* PersistentVolumes and claims. */
#include "cache/objects/label_selector.h"
#include "cache/objects/objects_internal.h"
#include "config/base/quantity.h"

/* ---- values ---- */

const char *const access_mode_texts[ACCESS_MODES] = {"ReadWriteOnce", "ReadOnlyMany",
                                                     "ReadWriteMany", "ReadWriteOncePod"};

static unsigned access_mode_of(struct slice text)
{
    for (unsigned i = 0; i < ACCESS_MODES; i++)
        if (slice_equal(text, slice_of(access_mode_texts[i])))
            return 1U << i;
    return ACCESS_OTHER;
}

/* Into an unsigned: enum access_mode. */
static bool read_access_modes(struct pull *json, struct arena *arena, void *field)
{
    if (!pull_array(json))
        return json->problem == NULL;
    while (pull_item(json)) {
        struct slice mode = {NULL, 0};
        if (!pull_string(json, arena, &mode))
            return false;
        *(unsigned *)field |= access_mode_of(mode);
    }
    return json->problem == NULL;
}

bool read_quantity(struct pull *json, struct arena *arena, void *field)
{
    struct slice text = {NULL, 0};

    (void)arena;
    if (pull_null(json))
        return true;
    if (!pull_raw(json, &text))
        return false;
    if (text.len >= 2 && text.ptr[0] == '"')
        text = (struct slice){text.ptr + 1, text.len - 2};
    if (!quantity_round_up(field, text))
        *(int64_t *)field = 0;
    return true;
}

/* A claim's or volume's class, before storageClassName, also if it is empty: as Kubernetes'
 * GetPersistentVolumeClaimClass. */
#define BETA_CLASS_ANNOTATION "volume.beta.kubernetes.io/storage-class"

/* ---- PersistentVolumeClaim ---- */

static const struct pull_field claim_spec_fields[] = {
    PULL_READER("accessModes", claim_object, access_modes, read_access_modes),
    PULL_IN("resources",
            PULL_IN("requests", PULL_READER("storage", claim_object, requested, read_quantity))),
    PULL_READER("selector", claim_object, selector, selector_read),
    PULL_FIELD("storageClassName", PULL_NAME, claim_object, storage_class),
    PULL_FIELD("volumeAttributesClassName", PULL_NAME, claim_object, volume_attributes_class),
    PULL_FIELD("volumeName", PULL_NAME, claim_object, volume),
    PULL_FIELD("volumeMode", PULL_NAME, claim_object, volume_mode),
};
static const struct pull_field claim_modify_fields[] = {
    PULL_FIELD("targetVolumeAttributesClassName", PULL_NAME, claim_object, target_class),
    PULL_FIELD("status", PULL_NAME, claim_object, modify_status),
};
static const struct pull_field claim_status_fields[] = {
    PULL_FIELD("phase", PULL_NAME, claim_object, phase),
    PULL_FIELD("currentVolumeAttributesClassName", PULL_NAME, claim_object, current_class),
    PULL_NESTED("modifyVolumeStatus", claim_modify_fields),
};
static const struct pull_field claim_annotation_fields[] = {
    PULL_FIELD(CLAIM_HOLDER_ANNOTATION, PULL_STRING, claim_object, holder),
    PULL_FIELD(CLAIM_ADMITTED_ANNOTATION, PULL_NAME, claim_object, admitted),
    PULL_FIELD(CLAIM_LOCKED_AT_ANNOTATION, PULL_NAME, claim_object, locked_at),
    PULL_FIELD(BETA_CLASS_ANNOTATION, PULL_NAME, claim_object, beta_class),
};
static const struct pull_field claim_meta_fields[] = {
    PULL_FIELD("namespace", PULL_NAME, meta, ns),
    META_ROWS(PULL_NAME),
    POD_OWNER_ROW,
    PULL_NESTED("annotations", claim_annotation_fields),
};
static const struct pull_field claim_fields[] = {
    PULL_NESTED("metadata", claim_meta_fields),
    PULL_NESTED("spec", claim_spec_fields),
    PULL_NESTED("status", claim_status_fields),
};

static bool read_is_empty(struct pull *json, struct arena *arena, void *field)
{
    struct slice text = {NULL, 0};

    if (!pull_string(json, arena, &text))
        return false;
    *(bool *)field = text.ptr != NULL && text.len == 0;
    return true;
}

static const struct pull_field claim_annotation_details[] = {
    PULL_FIELD(CLAIM_HOLDER_ANNOTATION, PULL_STRING, claim_details, holder), /* UID and name */
    PULL_FIELD(CLAIM_ADMITTED_ANNOTATION, PULL_NAME, claim_details, admitted),
    PULL_FIELD("volume.kubernetes.io/selected-node", PULL_NAME, claim_details, selected_node),
    PULL_FIELD(BETA_CLASS_ANNOTATION, PULL_NAME, claim_details, beta_class),
};
static const struct pull_field claim_meta_details[] = {
    PULL_FIELD("creationTimestamp", PULL_NAME, claim_details, created),
    PULL_FIELD("deletionTimestamp", PULL_NAME, claim_details, deletion_timestamp),
    PULL_READER("finalizers", claim_details, finalizers, words_read_items),
    PULL_NESTED("annotations", claim_annotation_details),
};
static const struct pull_field claim_spec_details[] = {
    PULL_READER("accessModes", claim_details, access_modes, words_read_items),
    PULL_READER("storageClassName", claim_details, has_empty_class, read_is_empty),
};
static const struct pull_field claim_status_details[] = {
    PULL_FIELD("phase", PULL_NAME, claim_details, phase),
    SOME_OF("conditions", claim_details, conditions, condition, condition_fields, CONDITION_TYPE,
            CONDITION_CHANGED),
};
static const struct pull_field claim_details_fields[] = {
    PULL_NESTED("metadata", claim_meta_details),
    PULL_NESTED("spec", claim_spec_details),
    PULL_NESTED("status", claim_status_details),
};

const struct object_tables claim_tables = {TABLE(claim_fields), TABLE(claim_details_fields)};

/* Whether it may be a name or UID. It becomes part of a request, and of what is remembered. */
static bool is_name(struct slice text, size_t max)
{
    return text.len != 0 && text.len <= max && slice_is_plain(text);
}

bool claim_holder_read(struct slice annotation, struct slice *uid, struct slice *name)
{
    *uid = slice_cut(&annotation, '/');
    *name = annotation;
    return is_name(*uid, POD_UID_BYTES_MAX) && is_name(*name, POD_NAME_BYTES_MAX);
}

/* ---- PersistentVolume ---- */

/* The sources of volumes without a csi source that are attached to a node. The plug-ins have moved
 * to CSI drivers (k8s.io/csi-translation-lib), but for iSCSI and Fibre Channel. */
static const struct in_tree {
    const char *plugin, *driver; /* driver NULL: none; the plug-in attaches the volume itself */
    const char *source;          /* the field of a PersistentVolume's spec */
    const char *zone_key;        /* the driver's label of a node's zone; NULL: none */
    bool attaches;               /* the CSIDriver of each release of the driver says so */
} in_tree[IN_TREE_SOURCES] = {
    {"kubernetes.io/aws-ebs", "ebs.csi.aws.com", "awsElasticBlockStore",
     "topology.ebs.csi.aws.com/zone", true},
    {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "gcePersistentDisk", "topology.gke.io/zone",
     true},
    {"kubernetes.io/cinder", "cinder.csi.openstack.org", "cinder",
     "topology.cinder.csi.openstack.org/zone", true},
    {"kubernetes.io/azure-disk", "disk.csi.azure.com", "azureDisk", NULL, true},
    {"kubernetes.io/azure-file", "file.csi.azure.com", "azureFile", NULL, false},
    {"kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "vsphereVolume", NULL, true},
    {"kubernetes.io/portworx-volume", "pxd.portworx.com", "portworxVolume", NULL, false},
    {"kubernetes.io/iscsi", NULL, "iscsi", NULL, false},
    {"kubernetes.io/fc", NULL, "fc", NULL, false},
};

/* Of that plug-in; without driver and source: it is none of them. */
static struct in_tree find_in_tree(struct slice plugin)
{
    for (size_t i = 0; i < IN_TREE_SOURCES; i++)
        if (slice_equal(plugin, slice_of(in_tree[i].plugin)))
            return in_tree[i];
    return (struct in_tree){.driver = ""};
}

struct slice in_tree_driver(struct slice plugin)
{
    return slice_of(find_in_tree(plugin).driver);
}

bool in_tree_driver_attaches(struct slice driver)
{
    for (size_t i = 0; i < IN_TREE_SOURCES; i++)
        if (in_tree[i].attaches && slice_equal(driver, slice_of(in_tree[i].driver)))
            return true;
    return false;
}

const char *in_tree_source(struct slice plugin)
{
    return find_in_tree(plugin).source;
}

struct slice in_tree_zone_key(struct slice plugin)
{
    return slice_of(find_in_tree(plugin).zone_key);
}

static const struct pull_field volume_csi_fields[] = {
    ATTRIBUTE("driver", VOLUME_DRIVER),
    ATTRIBUTE("fsType", VOLUME_FS_TYPE),
    PULL_FIELD("nodePublishSecretRef", PULL_PRESENCE, resource_object, reading.has_secret),
    PULL_FIELD("nodeStageSecretRef", PULL_PRESENCE, resource_object, reading.has_secret),
    PULL_FIELD("nodeExpandSecretRef", PULL_PRESENCE, resource_object, reading.has_secret),
};
static const struct pull_field claim_ref_fields[] = {
    ATTRIBUTE("namespace", VOLUME_CLAIM_NAMESPACE),
    ATTRIBUTE("name", VOLUME_CLAIM_NAME),
    PULL_FIELD("uid", PULL_NAME, resource_object, reading.claim_uid),
};
#define SOURCE(key_, index_) \
    { \
        .key = (key_), .type = PULL_PRESENCE, \
        .offset = offsetof(struct resource_object, reading.sources[index_]) \
    }
static const struct pull_field volume_spec_fields[] = {
    PULL_NESTED("csi", volume_csi_fields),
    PULL_NESTED("claimRef", claim_ref_fields),
    PULL_IN("capacity", PULL_READER("storage", resource_object, reading.capacity, read_quantity)),
    PULL_READER("accessModes", resource_object, reading.access_modes, read_access_modes),
    PULL_FIELD("volumeMode", PULL_NAME, resource_object, reading.volume_mode),
    PULL_FIELD("nodeAffinity", PULL_PRESENCE, resource_object, reading.requires_nodes),
    PULL_FIELD("storageClassName", PULL_NAME, resource_object, reading.storage_class),
    PULL_FIELD("volumeAttributesClassName", PULL_NAME, resource_object, reading.attributes_class),
    SOURCE("awsElasticBlockStore", 0), /* in the order of in_tree */
    SOURCE("gcePersistentDisk", 1),
    SOURCE("cinder", 2),
    SOURCE("azureDisk", 3),
    SOURCE("azureFile", 4),
    SOURCE("vsphereVolume", 5),
    SOURCE("portworxVolume", 6),
    SOURCE("iscsi", 7),
    SOURCE("fc", 8),
};
static const struct pull_field volume_meta_fields[] = {
    META_ROWS(PULL_NAME),
    PULL_READER("labels", resource_object, reading.labels, labels_read_kept),
    PULL_IN("annotations",
            PULL_FIELD(BETA_CLASS_ANNOTATION, PULL_NAME, resource_object, reading.beta_class)),
};
static const struct pull_field volume_fields[] = {
    PULL_NESTED("metadata", volume_meta_fields),
    PULL_NESTED("spec", volume_spec_fields),
    PULL_IN("status", PULL_FIELD("phase", PULL_NAME, resource_object, reading.phase)),
};

static const struct pull_field volume_meta_details[] = {
    PULL_FIELD("deletionTimestamp", PULL_NAME, volume_details, deletion_timestamp),
    PULL_READER("finalizers", volume_details, finalizers, words_read_items),
    PULL_READER("labels", volume_details, labels, labels_read),
};
static const struct pull_field volume_spec_details[] = {
    PULL_IN("capacity", PULL_READER("storage", volume_details, capacity, read_quantity)),
    PULL_IN("claimRef", PULL_FIELD("uid", PULL_NAME, volume_details, claim_uid)),
    PULL_IN("csi", PULL_FIELD("volumeHandle", PULL_STRING, volume_details, handle)),
    PULL_IN("nodeAffinity", PULL_IN("required", PULL_ITEMS_OF("nodeSelectorTerms", volume_details,
                                                              terms, node_term, node_term_fields))),
    PULL_FIELD("persistentVolumeReclaimPolicy", PULL_NAME, volume_details, reclaim_policy),
};
static const struct pull_field volume_details_fields[] = {
    PULL_NESTED("metadata", volume_meta_details),
    PULL_NESTED("spec", volume_spec_details),
};
const struct object_tables volume_tables = {TABLE(volume_fields), TABLE(volume_details_fields)};

/* As IsMultiAttachAllowed of Kubernetes' pkg/volume/util; ReadWriteOncePod has its own policy. */
static bool is_for_one_node(unsigned access_modes)
{
    return access_modes != 0 && (access_modes & (ACCESS_READ_WRITE_MANY | ACCESS_READ_ONLY_MANY |
                                                 ACCESS_READ_WRITE_ONCE_POD)) == 0;
}

/* Only of an offer: most volumes are bound, and share what is stored. */
bool volume_make_offer(struct arena *arena, struct resource_object *volume)
{
    const struct slice *claim = &volume->attributes[VOLUME_CLAIM_NAME];

    volume->attributes[VOLUME_OFFER] =
        volume_offer(volume->reading.storage_class, volume->reading.attributes_class, arena);
    volume->attributes[VOLUME_LABELS] = volume->reading.labels;
    volume->capacity = volume->reading.capacity;
    volume->number |= (int64_t)volume->reading.access_modes << VOLUME_ACCESS_SHIFT;
    if (claim->len != 0)
        volume->attributes[VOLUME_KEPT_FOR] = arena_printf(
            arena, "%.*s/%.*s/%.*s", SLICE_ARG(volume->attributes[VOLUME_CLAIM_NAMESPACE]),
            SLICE_ARG(*claim), SLICE_ARG(volume->reading.claim_uid));
    return volume->attributes[VOLUME_OFFER].ptr != NULL &&
           (claim->len == 0 || volume->attributes[VOLUME_KEPT_FOR].ptr != NULL);
}

bool volume_finish(struct pull *json, struct arena *arena, struct resource_object *volume)
{
    if (is_for_one_node(volume->reading.access_modes))
        volume->number |= VOLUME_IS_FOR_ONE_NODE;
    if (slice_equal(volume->reading.volume_mode, SLICE("Block")))
        volume->number |= VOLUME_IS_BLOCK;
    if (volume->reading.requires_nodes)
        volume->number |= VOLUME_REQUIRES_NODES;
    if (volume->reading.has_secret)
        volume->number |= VOLUME_HAS_SECRET;
    if (volume->reading.beta_class.ptr != NULL)
        volume->reading.storage_class = volume->reading.beta_class;
    for (size_t i = 0; i < IN_TREE_SOURCES; i++)
        if (volume->reading.sources[i])
            volume->attributes[VOLUME_IN_TREE] = slice_of(in_tree[i].plugin);
    if (!slice_equal(volume->reading.phase, SLICE("Available")) ||
        volume->meta.deletion_timestamp.len != 0)
        return true;
    return volume_make_offer(arena, volume) || pull_problem(json, pull_too_big);
}

/* ---- the text by which pods wait for volumes ---- */

struct slice volume_offer(struct slice storage_class, struct slice attributes_class,
                          struct arena *arena)
{
    return arena_printf(arena, "offer:%.*s/%.*s", SLICE_ARG(storage_class),
                        SLICE_ARG(attributes_class));
}

void volume_offer_classes(struct slice offer, struct slice *storage_class,
                          struct slice *attributes_class)
{
    size_t before = sizeof "offer:" - 1;

    *attributes_class = (struct slice){offer.ptr + before, offer.len - before};
    *storage_class = slice_cut(attributes_class, '/');
}
