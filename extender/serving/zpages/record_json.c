/* All records but those of pods (record_json_pod.c). */
#include "extender/serving/zpages/record_json.h"
#include "cache/objects/label_selector.h"
#include "config/base/clock.h"

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

static void put_access_modes(struct buf *out, unsigned modes)
{
    if (modes == 0)
        return;
    json_begin(out, "accessModes", '[');
    for (unsigned i = 0; i < ACCESS_MODES; i++)
        if ((modes & 1U << i) != 0)
            json_text(out, NULL, slice_of(access_mode_texts[i]));
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
    char volume[PROVISIONED_NAME_BYTES];

    json_begin(out, "spec", '{');
    put_wish(out, claim);
    json_text(out, "storageClassName", name_slice(claim_storage_class(claim)));
    json_text(out, "volumeAttributesClassName", name_slice(claim_volume_attributes_class(claim)));
    json_text(out, "volumeName", claim_volume_name(claim, volume));
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
    bool has_secret = (resource_number(volume) & VOLUME_HAS_SECRET) != 0;

    if (resource_attribute(volume, VOLUME_DRIVER).len +
                resource_attribute(volume, VOLUME_FS_TYPE).len ==
            0 &&
        !has_secret)
        return;
    json_begin(out, "csi", '{');
    json_text(out, "driver", resource_attribute(volume, VOLUME_DRIVER));
    json_text(out, "fsType", resource_attribute(volume, VOLUME_FS_TYPE));
    json_presence(out, "nodeStageSecretRef", has_secret); /* or another one that a node gets */
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
    put_access_modes(out, (unsigned)(key->number >> VOLUME_ACCESS_SHIFT) & ACCESS_ALL);
    put_size(out, "capacity", key->capacity);
    volume_offer_classes(offer, &storage_class, &attributes_class);
    json_text(out, "storageClassName", storage_class);
    json_text(out, "volumeAttributesClassName", attributes_class);
}

static void put_volume(struct buf *out, const struct resource *volume)
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

/* ---- nodes ---- */

void record_json_node(struct buf *out, const struct node *node)
{
    record_json_begin(out, KIND_NODE, SLICE(""), name_slice(node->name), node->version);
    record_json_uid(out, "uid", &node->uid);
    json_end(out, '}');
    json_begin(out, "spec", '{');
    json_flag(out, "unschedulable", node->is_unschedulable);
    json_end(out, '}');
    json_begin(out, "status", '{');
    json_value(out, "conditions",
               node->is_not_ready ? SLICE("[{\"type\":\"Ready\",\"status\":\"False\"}]")
                                  : SLICE("[{\"type\":\"Ready\",\"status\":\"True\"}]"));
    json_end(out, '}');
    json_end(out, '}');
}

/* An array of the words, which are joined by ','; of objects with that key, unless it is NULL. */
static void put_words(struct buf *out, const char *field, const char *key, struct slice words)
{
    struct slice word;

    json_begin(out, field, '[');
    while (words_next(&words, &word)) {
        if (key != NULL)
            json_begin(out, NULL, '{');
        json_text(out, key, word);
        if (key != NULL)
            json_end(out, '}');
    }
    json_end(out, ']');
}

/* Migrated in-tree plug-ins are among its drivers. */
void record_json_csi_node(struct buf *out, const struct node *node)
{
    const struct csi_node *csi_node = node->csi_node;
    char text[UID_TEXT_BYTES];
    struct slice owner = uid_text(&csi_node->owner, text);

    record_json_begin(out, KIND_CSI_NODE, SLICE(""), name_slice(node->name), csi_node->version);
    if (owner.len != 0) {
        json_value(out, "ownerReferences", SLICE("[{\"kind\":\"Node\""));
        json_text(out, "uid", owner);
        buf_put(out, SLICE("}]"));
    }
    json_end(out, '}');
    json_begin(out, "spec", '{');
    put_words(out, "drivers", "name", name_slice(csi_node->drivers));
    json_end(out, '}');
    json_end(out, '}');
}

/* ---- the other kinds ---- */

static void put_csi_driver(struct buf *out, const struct resource *driver)
{
    json_begin(out, "spec", '{');
    put_words(out, "volumeLifecycleModes", NULL,
              resource_attribute(driver, CSI_DRIVER_LIFECYCLE_MODES));
    if ((resource_number(driver) & CSI_DRIVER_DOES_NOT_ATTACH) != 0)
        json_value(out, "attachRequired", SLICE("false"));
    json_end(out, '}');
}

/* When the API server counted its disrupted pods is not kept. */
static void put_budget(struct buf *out, const struct resource *budget)
{
    struct slice pods = resource_attribute(budget, BUDGET_DISRUPTED_PODS), pod;
    const char *before = "";

    json_begin(out, "spec", '{');
    if (resource_attribute(budget, BUDGET_SELECTOR).len != 0) {
        json_key(out, "selector");
        selector_write(resource_attribute(budget, BUDGET_SELECTOR), out);
    }
    json_end(out, '}');
    json_begin(out, "status", '{');
    json_number(out, "disruptionsAllowed", resource_number(budget));
    json_begin(out, "disruptedPods", '{');
    for (; words_next(&pods, &pod); before = ",") {
        buf_put(out, slice_of(before));
        buf_json(out, pod);
        buf_put(out, SLICE(":\"1970-01-01T00:00:00Z\""));
    }
    json_end(out, '}');
    json_end(out, '}');
}

static void put_attachment(struct buf *out, const struct resource *attachment)
{
    json_begin(out, "spec", '{');
    json_text(out, "attacher", resource_attribute(attachment, VOLUME_ATTACHMENT_DRIVER));
    json_text(out, "nodeName", resource_attribute(attachment, VOLUME_ATTACHMENT_NODE));
    json_begin(out, "source", '{');
    json_text(out, "persistentVolumeName",
              resource_attribute(attachment, VOLUME_ATTACHMENT_VOLUME));
    json_end(out, '}');
    json_end(out, '}');
    json_begin(out, "status", '{');
    json_flag(out, "attached", (resource_number(attachment) & VOLUME_ATTACHMENT_IS_ATTACHED) != 0);
    json_object_of(out, "attachError", "message",
                   resource_attribute(attachment, VOLUME_ATTACHMENT_ATTACH_ERROR));
    json_object_of(out, "detachError", "message",
                   resource_attribute(attachment, VOLUME_ATTACHMENT_DETACH_ERROR));
    json_end(out, '}');
}

static void put_priority_class(struct buf *out, const struct resource *class)
{
    json_number(out, "value", resource_number(class));
    json_flag(out, "globalDefault", resource_attribute(class, PRIORITY_CLASS_DEFAULT).len != 0);
    json_text(out, "preemptionPolicy", resource_attribute(class, PRIORITY_CLASS_PREEMPTION_POLICY));
}

static void put_fields(struct buf *out, enum kind kind, const struct resource *resource)
{
    switch (kind) {
    case KIND_VOLUME: put_volume(out, resource); break;
    case KIND_STORAGE_CLASS:
        json_text(out, "provisioner", resource_attribute(resource, STORAGE_CLASS_PROVISIONER));
        break;
    case KIND_CSI_DRIVER: put_csi_driver(out, resource); break;
    case KIND_VOLUME_ATTRIBUTES_CLASS:
        json_text(out, "driverName", resource_attribute(resource, VOLUME_ATTRIBUTES_CLASS_DRIVER));
        break;
    case KIND_POD_DISRUPTION_BUDGET: put_budget(out, resource); break;
    case KIND_VOLUME_ATTACHMENT: put_attachment(out, resource); break;
    case KIND_PRIORITY_CLASS: put_priority_class(out, resource); break;
    case KIND_RUNTIME_CLASS:
        json_text(out, "handler", resource_attribute(resource, RUNTIME_CLASS_HANDLER));
        break;
    default: break;
    }
}

static bool is_deleting(enum kind kind, const struct resource *resource)
{
    switch (kind) {
    case KIND_VOLUME_ATTRIBUTES_CLASS:
        return (resource_number(resource) & VOLUME_ATTRIBUTES_CLASS_IS_DELETING) != 0;
    case KIND_VOLUME_ATTACHMENT:
        return (resource_number(resource) & VOLUME_ATTACHMENT_IS_DELETING) != 0;
    default: return false;
    }
}

void record_json_resource(struct buf *out, enum kind kind, const struct resource *resource)
{
    char name[PROVISIONED_NAME_BYTES];

    record_json_begin(out, kind, name_slice(resource_ns(resource)), resource_name(resource, name),
                      resource->version);
    record_json_deletion(out, is_deleting(kind, resource));
    if (kind == KIND_VOLUME && resource_attribute(resource, VOLUME_LABELS).len != 0) {
        json_key(out, "labels");
        labels_write(resource_attribute(resource, VOLUME_LABELS), SLICE(""), out);
    }
    json_end(out, '}');
    put_fields(out, kind, resource);
    json_end(out, '}');
}

/* ---- claimguard's own kinds ---- */

static void begin_own(struct buf *out, enum own_kind kind)
{
    json_begin(out, NULL, '{');
    json_text(out, "apiVersion", SLICE(OWN_API_VERSION));
    json_text(out, "kind", slice_of(own_kind_text(kind)));
    json_begin(out, "metadata", '{');
}

static void put_reserved_claims(struct buf *out, const struct reservation *reservation)
{
    json_begin(out, "claims", '[');
    for (size_t i = 0; i < reservation->claim_count; i++)
        if (reservation_has(reservation, reservation->claims[i]))
            json_text(out, NULL, claim_name(reservation->claims[i]));
    json_end(out, ']');
    json_begin(out, "sharedClaims", '[');
    for (size_t i = 0; i < reservation->shared_count; i++)
        json_text(out, NULL, claim_name(reservation->claims[reservation->claim_count + i]));
    json_end(out, ']');
}

void record_json_reservation(struct buf *out, const struct reservation *reservation,
                             uint64_t now_ns)
{
    uint64_t end_ns = reservation->expires_ns;
    uint64_t left_ms = end_ns > now_ns ? (end_ns - now_ns) / NS_PER_MS : 0;

    begin_own(out, OWN_RESERVATION);
    json_text(out, "namespace", name_slice(reservation->ns));
    json_text(out, "name", name_slice(reservation->name));
    json_end(out, '}');
    json_begin(out, "spec", '{');
    record_json_uid(out, "podUID", &reservation->uid);
    json_number(out, "priority", reservation->priority);
    json_text(out, "node", name_slice(reservation->node));
    put_reserved_claims(out, reservation);
    json_flag(out, "binding", reservation_binds(reservation));
    json_flag(out, "preemptor", reservation->is_of_preemptor);
    json_number(out, "expiresInMilliseconds", left_ms < INT32_MAX ? (int64_t)left_ms : INT32_MAX);
    json_end(out, '}');
    json_end(out, '}');
}

void record_json_about(struct buf *out, enum own_kind about, struct slice name)
{
    begin_own(out, about);
    json_text(out, "name", name);
    json_end(out, '}');
    json_end(out, '}');
}
