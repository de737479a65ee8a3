/* Claims, and the volumes that they are bound to, or may be. */
#include "cache/objects/label_selector.h"
#include "extender/zpages/record_json_internal.h"

/* ---- claims ---- */

static void put_claim_metadata(struct buf *out, const struct claim *claim)
{
    record_json_begin(out, KIND_CLAIM, name_text(claim->ns), claim_name(claim), claim->version);
    record_json_uid(out, "uid", &claim->uid);
    record_json_deletion(out, claim->is_deleting);
    if (claim_owner_uid(claim) != NULL) {
        json_value(out, "ownerReferences", SLICE("[{\"kind\":\"Pod\",\"controller\":true"));
        json_text(out, "name", name_slice(claim_owner_name(claim)));
        json_text(out, "uid", name_slice(claim_owner_uid(claim)));
        buf_put(out, SLICE("}]"));
    }
    json_end(out, '}');
}

/* The name that external-provisioner gives, if it has that one. */
static void put_volume_name(struct buf *out, const struct claim *claim)
{
    char text[UID_TEXT_BYTES];

    if (!claim->is_volume_provisioned) {
        json_text(out, "volumeName", name_slice(claim_volume(claim)));
        return;
    }
    json_key(out, "volumeName");
    buf_printf(out, "\"pvc-%.*s\"", SLICE_ARG(uid_text(&claim->uid, text)));
}

static void put_access_modes(struct buf *out, unsigned modes)
{
    static const char *const texts[] = {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
                                        "ReadWriteOncePod"}; /* in the order of the bits */

    if (modes == 0)
        return;
    json_begin(out, "accessModes", '[');
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
        if ((modes & 1U << i) != 0)
            json_text(out, NULL, slice_of(texts[i]));
    json_end(out, ']');
}

/* "KEY":{"storage":"BYTES"}; of a claim, in "resources". */
static void put_size(struct buf *out, const char *key, int64_t bytes)
{
    if (bytes == 0)
        return;
    json_begin(out, key, '{');
    json_key(out, "storage");
    buf_printf(out, "\"%lld\"", (long long)bytes);
    json_end(out, '}');
}

/* What an unbound claim asks of its volume. Of another one, only ReadWriteOncePod is kept. */
static void put_wish(struct buf *out, const struct claim *claim)
{
    const struct claim_rare *rare = claim_rare_at(claim->rare);
    unsigned modes = claim->is_rwop ? ACCESS_READ_WRITE_ONCE_POD : 0;

    put_access_modes(out, rare == NULL ? modes : modes | rare->access_modes);
    if (rare == NULL)
        return;
    json_begin(out, "resources", '{');
    put_size(out, "requests", rare->requested);
    json_end(out, '}');
    if (rare->selector != NULL) {
        json_key(out, "selector");
        selector_write(name_slice(rare->selector), out);
    }
}

static void put_claim_spec(struct buf *out, const struct claim *claim)
{
    json_begin(out, "spec", '{');
    put_wish(out, claim);
    json_text(out, "storageClassName", name_slice(claim_storage_class(claim)));
    json_text(out, "volumeAttributesClassName", name_slice(claim_volume_attributes_class(claim)));
    put_volume_name(out, claim);
    json_text(out, "volumeMode", claim->is_block ? SLICE("Block") : SLICE(""));
    json_end(out, '}');
}

/* Without a modification, the claim's class is in force. */
static void put_claim_status(struct buf *out, const struct claim *claim)
{
    static const char *const phases[] = {"", "Pending", "Bound", "Lost"};
    const struct modification *modification = claim_modification(claim);
    const struct name *current =
        modification != NULL ? modification->current : claim_volume_attributes_class(claim);

    json_begin(out, "status", '{');
    json_text(out, "phase", slice_of(phases[claim_phase(claim)]));
    json_text(out, "currentVolumeAttributesClassName", name_slice(current));
    if (modification != NULL) {
        json_begin(out, "modifyVolumeStatus", '{');
        json_text(out, "targetVolumeAttributesClassName", name_slice(modification->target));
        json_text(out, "status", name_slice(modification->status));
        json_end(out, '}');
    }
    json_end(out, '}');
}

void record_json_claim(struct buf *out, const struct claim *claim)
{
    put_claim_metadata(out, claim);
    put_claim_spec(out, claim);
    put_claim_status(out, claim);
    json_end(out, '}');
}

/* ---- volumes ---- */

static void put_csi_source(struct buf *out, const struct resource *volume)
{
    struct slice secret = resource_attribute(volume, VOLUME_PUBLISH_SECRET);

    if (resource_attribute(volume, VOLUME_DRIVER).len +
            resource_attribute(volume, VOLUME_FS_TYPE).len + secret.len ==
        0)
        return;
    json_begin(out, "csi", '{');
    json_text(out, "driver", resource_attribute(volume, VOLUME_DRIVER));
    json_text(out, "fsType", resource_attribute(volume, VOLUME_FS_TYPE));
    if (secret.len != 0) {
        json_begin(out, "nodePublishSecretRef", '{');
        json_text(out, "name", secret);
        json_end(out, '}');
    }
    json_end(out, '}');
}

/* Its claim's UID is kept while it is Available. */
static void put_claim_reference(struct buf *out, const struct resource *volume)
{
    struct slice kept_for = resource_attribute(volume, VOLUME_KEPT_FOR);
    const char *slash = kept_for.len == 0 ? NULL : memrchr(kept_for.ptr, '/', kept_for.len);
    struct slice uid =
        slash == NULL
            ? SLICE("")
            : (struct slice){slash + 1, kept_for.len - (size_t)(slash + 1 - kept_for.ptr)};

    json_begin(out, "claimRef", '{');
    json_text(out, "namespace", resource_attribute(volume, VOLUME_CLAIM_NAMESPACE));
    json_text(out, "name", resource_attribute(volume, VOLUME_CLAIM_NAME));
    json_text(out, "uid", uid);
    json_end(out, '}');
}

/* What decides which claim an Available volume may serve is kept, and its phase; of another volume,
 * whether it is for one node. */
static void put_offer(struct buf *out, const struct resource *volume, struct slice offer)
{
    const struct resource_shape_key *key = &resource_shape_at(volume->shape)->key;
    bool is_for_one_node = (key->number & VOLUME_IS_FOR_ONE_NODE) != 0;
    struct slice storage_class, attributes_class;

    if (offer.len == 0) {
        put_access_modes(out, is_for_one_node ? ACCESS_READ_WRITE_ONCE : 0);
        return;
    }
    put_access_modes(out, (unsigned)(key->number >> VOLUME_ACCESS_SHIFT));
    put_size(out, "capacity", key->capacity);
    volume_offer_classes(offer, &storage_class, &attributes_class);
    json_text(out, "storageClassName", storage_class);
    json_text(out, "volumeAttributesClassName", attributes_class);
}

void record_json_volume_fields(struct buf *out, const struct resource *volume)
{
    const char *source = in_tree_source(resource_attribute(volume, VOLUME_IN_TREE));
    struct slice offer = resource_attribute(volume, VOLUME_OFFER);

    json_begin(out, "spec", '{');
    put_csi_source(out, volume);
    json_presence(out, source, source != NULL);
    if (resource_attribute(volume, VOLUME_CLAIM_NAME).len != 0)
        put_claim_reference(out, volume);
    json_text(out, "volumeMode",
              (resource_number(volume) & VOLUME_IS_BLOCK) != 0 ? SLICE("Block") : SLICE(""));
    put_offer(out, volume, offer);
    json_end(out, '}');
    json_begin(out, "status", '{');
    json_text(out, "phase", offer.len != 0 ? SLICE("Available") : SLICE(""));
    json_end(out, '}');
}
