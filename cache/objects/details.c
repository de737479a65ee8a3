#include "cache/objects/details.h"
#include "cache/objects/label_selector.h"
#include "cache/objects/objects_internal.h"

/* ---- lists ---- */

static const struct pull_field owner_fields[] = {
    PULL_FIELD("apiVersion", PULL_STRING, owner, api_version),
    PULL_FIELD("kind", PULL_STRING, owner, kind),
    PULL_FIELD("name", PULL_STRING, owner, name),
    PULL_FIELD("controller", PULL_BOOLEAN, owner, is_controller),
};
static const struct pull_field condition_fields[] = {
    PULL_FIELD("type", PULL_STRING, condition, type),
    PULL_FIELD("status", PULL_STRING, condition, status),
    PULL_FIELD("reason", PULL_STRING, condition, reason),
    PULL_FIELD("message", PULL_STRING, condition, message),
    PULL_FIELD("lastTransitionTime", PULL_STRING, condition, changed),
};
/* Of objects whose messages a driver or a node chooses. */
static const struct pull_field short_condition_fields[] = {
    PULL_FIELD("type", PULL_STRING, condition, type),
    PULL_FIELD("status", PULL_STRING, condition, status),
    PULL_FIELD("reason", PULL_STRING, condition, reason),
    PULL_FIELD("lastTransitionTime", PULL_STRING, condition, changed),
};
static const struct pull_field taint_fields[] = {
    PULL_FIELD("key", PULL_STRING, taint, key),
    PULL_FIELD("value", PULL_STRING, taint, value),
    PULL_FIELD("effect", PULL_STRING, taint, effect),
};

bool details_read_owners(struct pull *json, struct arena *arena, void *field)
{
    ((struct pull_items *)field)->size = sizeof(struct owner);
    return pull_field_array(json, PULL_CASE_EXACT, owner_fields, PULL_FIELD_COUNT(owner_fields),
                            arena, field);
}

static bool read_conditions(struct pull *json, struct arena *arena, void *field)
{
    ((struct pull_items *)field)->size = sizeof(struct condition);
    return pull_field_array(json, PULL_CASE_EXACT, condition_fields,
                            PULL_FIELD_COUNT(condition_fields), arena, field);
}

static bool read_short_conditions(struct pull *json, struct arena *arena, void *field)
{
    ((struct pull_items *)field)->size = sizeof(struct condition);
    return pull_field_array(json, PULL_CASE_EXACT, short_condition_fields,
                            PULL_FIELD_COUNT(short_condition_fields), arena, field);
}

static bool read_taints(struct pull *json, struct arena *arena, void *field)
{
    ((struct pull_items *)field)->size = sizeof(struct taint);
    return pull_field_array(json, PULL_CASE_EXACT, taint_fields, PULL_FIELD_COUNT(taint_fields),
                            arena, field);
}

bool read_strings(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items *items = field;

    items->size = sizeof(struct slice);
    if (!pull_array(json))
        return json->problem == NULL;
    while (pull_item(json)) {
        struct slice *grown = arena_grow(arena, items->items, items->count, sizeof *grown);
        if (grown == NULL)
            return pull_problem(json, pull_too_big);
        items->items = grown;
        grown[items->count] = (struct slice){"", 0};
        if (!pull_string(json, arena, &grown[items->count++]))
            return false;
    }
    return json->problem == NULL;
}

/* ---- Pod ---- */

struct container_status {
    struct slice waiting_reason, started;
};

static const struct pull_field waiting_fields[] = {
    PULL_FIELD("reason", PULL_STRING, container_status, waiting_reason),
};
static const struct pull_field started_fields[] = {
    PULL_FIELD("startedAt", PULL_STRING, container_status, started),
};
static const struct pull_field state_fields[] = {
    PULL_NESTED("waiting", waiting_fields),
    PULL_NESTED("running", started_fields),
    PULL_NESTED("terminated", started_fields),
};
static const struct pull_field container_status_fields[] = {PULL_NESTED("state", state_fields)};

static bool read_containers(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct container_status)};
    struct container_states *states = field;

    if (!pull_field_array(json, PULL_CASE_EXACT, container_status_fields,
                          PULL_FIELD_COUNT(container_status_fields), arena, &items))
        return false;
    const struct container_status *statuses = items.items;
    for (size_t i = 0; i < items.count; i++) {
        if (states->waiting_reason.len == 0)
            states->waiting_reason = statuses[i].waiting_reason;
        states->has_started = states->has_started || statuses[i].started.len != 0;
    }
    return true;
}

static const struct pull_field pod_label_fields[] = {
    PULL_FIELD("pod-template-hash", PULL_STRING, pod_details, template_hash),
};
static const struct pull_field pod_meta_details[] = {
    PULL_FIELD("creationTimestamp", PULL_STRING, pod_details, created),
    PULL_FIELD("deletionTimestamp", PULL_STRING, pod_details, deletion_timestamp),
    PULL_FIELD("deletionGracePeriodSeconds", PULL_INTEGER, pod_details, grace_seconds),
    PULL_READER("finalizers", pod_details, finalizers, read_strings),
    PULL_READER_OF("ownerReferences", pod_details, owners, details_read_owners, owner_fields),
    PULL_NESTED("labels", pod_label_fields),
};
static const struct pull_field pod_spec_details[] = {
    PULL_FIELD("schedulerName", PULL_STRING, pod_details, scheduler),
};
static const struct pull_field pod_status_details[] = {
    PULL_FIELD("phase", PULL_STRING, pod_details, phase),
    PULL_FIELD("reason", PULL_STRING, pod_details, reason),
    PULL_FIELD("startTime", PULL_STRING, pod_details, started),
    PULL_READER_OF("conditions", pod_details, conditions, read_conditions, condition_fields),
    PULL_READER_OF("containerStatuses", pod_details, containers, read_containers,
                   container_status_fields),
    PULL_READER_OF("initContainerStatuses", pod_details, containers, read_containers,
                   container_status_fields),
};
static const struct pull_field pod_details_fields[] = {
    PULL_NESTED("metadata", pod_meta_details),
    PULL_NESTED("spec", pod_spec_details),
    PULL_NESTED("status", pod_status_details),
};

/* ---- PersistentVolumeClaim ---- */

static bool read_is_empty(struct pull *json, struct arena *arena, void *field)
{
    struct slice text = {NULL, 0};

    if (!pull_string(json, arena, &text))
        return false;
    *(bool *)field = text.ptr != NULL && text.len == 0;
    return true;
}

static const struct pull_field claim_annotation_fields[] = {
    PULL_FIELD(CLAIM_HOLDER_ANNOTATION, PULL_STRING, claim_details, holder),
    PULL_FIELD(CLAIM_ADMITTED_ANNOTATION, PULL_STRING, claim_details, admitted),
    PULL_FIELD("volume.kubernetes.io/selected-node", PULL_STRING, claim_details, selected_node),
};
static const struct pull_field claim_meta_details[] = {
    PULL_FIELD("creationTimestamp", PULL_STRING, claim_details, created),
    PULL_FIELD("deletionTimestamp", PULL_STRING, claim_details, deletion_timestamp),
    PULL_READER("finalizers", claim_details, finalizers, read_strings),
    PULL_NESTED("annotations", claim_annotation_fields),
};
static const struct pull_field claim_spec_details[] = {
    PULL_READER("accessModes", claim_details, access_modes, read_strings),
    PULL_READER("storageClassName", claim_details, has_no_class, read_is_empty),
};
static const struct pull_field claim_status_details[] = {
    PULL_FIELD("phase", PULL_STRING, claim_details, phase),
    PULL_READER_OF("conditions", claim_details, conditions, read_short_conditions,
                   short_condition_fields),
};
static const struct pull_field claim_details_fields[] = {
    PULL_NESTED("metadata", claim_meta_details),
    PULL_NESTED("spec", claim_spec_details),
    PULL_NESTED("status", claim_status_details),
};

/* ---- Node ---- */

static const struct pull_field node_meta_details[] = {
    PULL_READER("labels", node_details, labels, labels_read),
};
static const struct pull_field node_spec_details[] = {
    PULL_READER_OF("taints", node_details, taints, read_taints, taint_fields),
};
static const struct pull_field node_status_details[] = {
    PULL_READER_OF("conditions", node_details, conditions, read_short_conditions,
                   short_condition_fields),
};
static const struct pull_field node_details_fields[] = {
    PULL_NESTED("metadata", node_meta_details),
    PULL_NESTED("spec", node_spec_details),
    PULL_NESTED("status", node_status_details),
};

/* ---- PersistentVolume ---- */

static const struct pull_field volume_meta_details[] = {
    PULL_FIELD("deletionTimestamp", PULL_STRING, volume_details, deletion_timestamp),
    PULL_READER("finalizers", volume_details, finalizers, read_strings),
    PULL_READER("labels", volume_details, labels, labels_read),
};
static const struct pull_field required_fields[] = {
    PULL_READER_OF("nodeSelectorTerms", volume_details, terms, node_terms_read, node_term_fields),
};
static const struct pull_field affinity_fields[] = {PULL_NESTED("required", required_fields)};
static const struct pull_field claim_ref_fields[] = {
    PULL_FIELD("uid", PULL_STRING, volume_details, claim_uid),
};
static const struct pull_field volume_spec_details[] = {
    PULL_NESTED("claimRef", claim_ref_fields),
    PULL_NESTED("nodeAffinity", affinity_fields),
    PULL_FIELD("persistentVolumeReclaimPolicy", PULL_STRING, volume_details, reclaim_policy),
};
static const struct pull_field volume_details_fields[] = {
    PULL_NESTED("metadata", volume_meta_details),
    PULL_NESTED("spec", volume_spec_details),
};

/* ---- StorageClass ---- */

static const struct pull_field topology_label_fields[] = {
    PULL_FIELD("key", PULL_STRING, topology_label, key),
    PULL_READER("values", topology_label, values, read_strings),
};

static bool read_topology_labels(struct pull *json, struct arena *arena, void *field)
{
    ((struct pull_items *)field)->size = sizeof(struct topology_label);
    return pull_field_array(json, PULL_CASE_EXACT, topology_label_fields,
                            PULL_FIELD_COUNT(topology_label_fields), arena, field);
}

static const struct pull_field topology_fields[] = {
    PULL_READER_OF("matchLabelExpressions", topology, labels, read_topology_labels,
                   topology_label_fields),
};

static bool read_topologies(struct pull *json, struct arena *arena, void *field)
{
    ((struct pull_items *)field)->size = sizeof(struct topology);
    return pull_field_array(json, PULL_CASE_EXACT, topology_fields,
                            PULL_FIELD_COUNT(topology_fields), arena, field);
}

static const struct pull_field storage_class_details_fields[] = {
    PULL_FIELD("volumeBindingMode", PULL_STRING, storage_class_details, binding_mode),
    PULL_READER_OF("allowedTopologies", storage_class_details, topologies, read_topologies,
                   topology_fields),
};

/* ---- CSINode ---- */

static bool read_limit(struct pull *json, struct arena *arena, void *field)
{
    struct volume_limit *limit = field;

    (void)arena;
    limit->is_known = !pull_null(json);
    return !limit->is_known || pull_integer(json, &limit->count);
}

static const struct pull_field allocatable_fields[] = {
    PULL_READER("count", driver_limit, volumes, read_limit),
};
static const struct pull_field driver_limit_fields[] = {
    PULL_FIELD("name", PULL_STRING, driver_limit, name),
    PULL_NESTED("allocatable", allocatable_fields),
};

static bool read_drivers(struct pull *json, struct arena *arena, void *field)
{
    ((struct pull_items *)field)->size = sizeof(struct driver_limit);
    return pull_field_array(json, PULL_CASE_EXACT, driver_limit_fields,
                            PULL_FIELD_COUNT(driver_limit_fields), arena, field);
}

static const struct pull_field csi_node_spec_details[] = {
    PULL_READER_OF("drivers", csi_node_details, drivers, read_drivers, driver_limit_fields),
};
static const struct pull_field csi_node_details_fields[] = {
    PULL_NESTED("spec", csi_node_spec_details),
};

/* ---- all of them ---- */

struct pull_table details_table(enum kind kind)
{
#define TABLE(fields_) ((struct pull_table){(fields_), sizeof(fields_) / sizeof *(fields_)})
    switch (kind) {
    case KIND_POD: return TABLE(pod_details_fields);
    case KIND_CLAIM: return TABLE(claim_details_fields);
    case KIND_NODE: return TABLE(node_details_fields);
    case KIND_VOLUME: return TABLE(volume_details_fields);
    case KIND_STORAGE_CLASS: return TABLE(storage_class_details_fields);
    case KIND_CSI_NODE: return TABLE(csi_node_details_fields);
    default: return (struct pull_table){NULL, 0};
    }
#undef TABLE
}

static bool read_details(struct slice text, enum kind kind, struct arena *arena, void *out)
{
    struct pull_table table = details_table(kind);
    struct pull json;

    pull_init(&json, text);
    return pull_fields(&json, PULL_CASE_EXACT, table.fields, table.count, arena, out) &&
           pull_finish(&json);
}

bool pod_details_read(struct slice text, struct arena *arena, struct pod_details *out)
{
    *out = (struct pod_details){.grace_seconds = -1};
    return read_details(text, KIND_POD, arena, out);
}

bool claim_details_read(struct slice text, struct arena *arena, struct claim_details *out)
{
    *out = (struct claim_details){.created = {NULL, 0}};
    return read_details(text, KIND_CLAIM, arena, out);
}

bool node_details_read(struct slice text, struct arena *arena, struct node_details *out)
{
    *out = (struct node_details){.taints = {0}};
    return read_details(text, KIND_NODE, arena, out);
}

bool volume_details_read(struct slice text, struct arena *arena, struct volume_details *out)
{
    *out = (struct volume_details){.terms = {0}};
    return read_details(text, KIND_VOLUME, arena, out);
}

bool storage_class_details_read(struct slice text, struct arena *arena,
                                struct storage_class_details *out)
{
    *out = (struct storage_class_details){.topologies = {0}};
    return read_details(text, KIND_STORAGE_CLASS, arena, out);
}

bool csi_node_details_read(struct slice text, struct arena *arena, struct csi_node_details *out)
{
    *out = (struct csi_node_details){.drivers = {0}};
    return read_details(text, KIND_CSI_NODE, arena, out);
}

const struct owner *details_controller(const struct pull_items *owners)
{
    const struct owner *items = owners->items;

    for (size_t i = 0; i < owners->count; i++)
        if (items[i].is_controller)
            return &items[i];
    return NULL;
}

const struct condition *details_condition(const struct pull_items *conditions, struct slice type)
{
    const struct condition *items = conditions->items;

    for (size_t i = 0; i < conditions->count; i++)
        if (slice_equal(items[i].type, type))
            return &items[i];
    return NULL;
}
