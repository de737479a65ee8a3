/* PersistentVolumes; and what they and claims are matched by. */
#include "cache/objects/label_selector.h"
#include "cache/objects/objects_internal.h"
#include "config/base/quantity.h"

/* The sources of volumes without a csi source that are attached to a node. The plug-ins have moved
 * to CSI drivers (k8s.io/csi-translation-lib), but for iSCSI and Fibre Channel. */
static const struct in_tree {
    const char *plugin, *driver; /* driver NULL: none; the plug-in attaches the volume itself */
    const char *source;          /* the field of a PersistentVolume's spec */
} in_tree[IN_TREE_SOURCES] = {
    {"kubernetes.io/aws-ebs", "ebs.csi.aws.com", "awsElasticBlockStore"},
    {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "gcePersistentDisk"},
    {"kubernetes.io/cinder", "cinder.csi.openstack.org", "cinder"},
    {"kubernetes.io/azure-disk", "disk.csi.azure.com", "azureDisk"},
    {"kubernetes.io/azure-file", "file.csi.azure.com", "azureFile"},
    {"kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "vsphereVolume"},
    {"kubernetes.io/portworx-volume", "pxd.portworx.com", "portworxVolume"},
    {"kubernetes.io/iscsi", NULL, "iscsi"},
    {"kubernetes.io/fc", NULL, "fc"},
};

struct slice in_tree_driver(struct slice plugin)
{
    for (size_t i = 0; i < IN_TREE_SOURCES; i++)
        if (slice_equal(plugin, slice_of(in_tree[i].plugin)))
            return slice_of(in_tree[i].driver);
    return SLICE("");
}

const char *in_tree_source(struct slice plugin)
{
    for (size_t i = 0; i < IN_TREE_SOURCES; i++)
        if (slice_equal(plugin, slice_of(in_tree[i].plugin)))
            return in_tree[i].source;
    return NULL;
}

static enum access_mode access_mode_of(struct slice text)
{
    static const struct {
        const char *text;
        enum access_mode mode;
    } rows[] = {{"ReadWriteOnce", ACCESS_READ_WRITE_ONCE},
                {"ReadOnlyMany", ACCESS_READ_ONLY_MANY},
                {"ReadWriteMany", ACCESS_READ_WRITE_MANY},
                {"ReadWriteOncePod", ACCESS_READ_WRITE_ONCE_POD}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (slice_equal(text, slice_of(rows[i].text)))
            return rows[i].mode;
    return ACCESS_OTHER;
}

bool read_access_modes(struct pull *json, struct arena *arena, void *field)
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

/* The API server writes strings; Go also reads numbers, as a manifest may have them. */
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

static bool read_volume_mode(struct pull *json, struct arena *arena, void *field)
{
    struct slice mode = {NULL, 0};

    if (!pull_string(json, arena, &mode))
        return false;
    if (slice_equal(mode, SLICE("Block")))
        *(int64_t *)field |= VOLUME_IS_BLOCK;
    return true;
}

static const struct pull_field secret_fields[] = {ATTRIBUTE("name", VOLUME_PUBLISH_SECRET)};
static const struct pull_field volume_csi_fields[] = {
    ATTRIBUTE("driver", VOLUME_DRIVER),
    ATTRIBUTE("fsType", VOLUME_FS_TYPE),
    PULL_NESTED("nodePublishSecretRef", secret_fields),
};
static const struct pull_field claim_ref_fields[] = {
    ATTRIBUTE("namespace", VOLUME_CLAIM_NAMESPACE),
    ATTRIBUTE("name", VOLUME_CLAIM_NAME),
    PULL_FIELD("uid", PULL_NAME, resource_object, reading.claim_uid),
};
static const struct pull_field capacity_fields[] = {
    PULL_READER("storage", resource_object, reading.capacity, read_quantity),
};
#define SOURCE(key_, index_) \
    { \
        .key = (key_), .type = PULL_PRESENCE, \
        .offset = offsetof(struct resource_object, reading.sources[index_]) \
    }
static const struct pull_field volume_spec_fields[] = {
    PULL_NESTED("csi", volume_csi_fields),
    PULL_NESTED("claimRef", claim_ref_fields),
    PULL_NESTED("capacity", capacity_fields),
    PULL_READER("accessModes", resource_object, reading.access_modes, read_access_modes),
    PULL_READER("volumeMode", resource_object, number, read_volume_mode),
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
static const struct pull_field volume_status_fields[] = {
    PULL_FIELD("phase", PULL_NAME, resource_object, reading.phase),
};
static const struct pull_field volume_meta_fields[] = {
    PULL_FIELD("name", PULL_NAME, meta, name),
    PULL_FIELD("uid", PULL_NAME, meta, uid),
    PULL_FIELD("resourceVersion", PULL_NAME, meta, resource_version),
    PULL_FIELD("deletionTimestamp", PULL_NAME, meta, deletion_timestamp),
    PULL_READER("labels", resource_object, reading.labels, labels_read_kept),
};
const struct pull_field volume_fields[VOLUME_FIELDS] = {
    PULL_NESTED("metadata", volume_meta_fields),
    PULL_NESTED("spec", volume_spec_fields),
    PULL_NESTED("status", volume_status_fields),
};

/* As IsMultiAttachAllowed of Kubernetes' pkg/volume/util; ReadWriteOncePod has its own policy. */
static bool is_for_one_node(unsigned access_modes)
{
    return access_modes != 0 && (access_modes & (ACCESS_READ_WRITE_MANY | ACCESS_READ_ONLY_MANY |
                                                 ACCESS_READ_WRITE_ONCE_POD)) == 0;
}

/* Only of an offer: most volumes are bound, and share what is stored. False: no memory. */
static bool make_offer(struct arena *arena, struct resource_object *volume)
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
    for (size_t i = 0; i < IN_TREE_SOURCES; i++)
        if (volume->reading.sources[i])
            volume->attributes[VOLUME_IN_TREE] = slice_of(in_tree[i].plugin);
    if (!slice_equal(volume->reading.phase, SLICE("Available")) ||
        volume->meta.deletion_timestamp.len != 0)
        return true;
    return make_offer(arena, volume) || pull_problem(json, pull_too_big);
}

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
    size_t end = (size_t)((const char *)memchr(offer.ptr, '/', offer.len) - offer.ptr);

    *storage_class = (struct slice){offer.ptr + before, end - before};
    *attributes_class = (struct slice){offer.ptr + end + 1, offer.len - end - 1};
}
