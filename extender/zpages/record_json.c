#include "cache/objects/label_selector.h"
#include "config/base/clock.h"
#include "extender/zpages/record_json_internal.h"

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

static void put_attachment_error(struct buf *out, const char *key, struct slice message)
{
    if (message.len == 0)
        return;
    json_begin(out, key, '{');
    json_text(out, "message", message);
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
    put_attachment_error(out, "attachError",
                         resource_attribute(attachment, VOLUME_ATTACHMENT_ATTACH_ERROR));
    put_attachment_error(out, "detachError",
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
    case KIND_VOLUME: record_json_volume_fields(out, resource); break;
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
