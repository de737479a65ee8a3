#include "cache/objects/objects.h"

#include "cache/objects/label_selector.h"
#include "cache/objects/objects_internal.h"

const struct pull_field owner_fields[OWNER_FIELDS] = {
    [OWNER_UID] = PULL_FIELD("uid", PULL_NAME, owner, uid),
    [OWNER_KIND] = PULL_FIELD("kind", PULL_NAME, owner, kind),
    [OWNER_NAME] = PULL_FIELD("name", PULL_NAME, owner, name),
    [OWNER_CONTROLLER] = PULL_FIELD("controller", PULL_BOOLEAN, owner, is_controller),
    [OWNER_API_VERSION] = PULL_FIELD("apiVersion", PULL_NAME, owner, api_version),
};
const struct pull_field condition_fields[CONDITION_FIELDS] = {
    [CONDITION_MESSAGE] = PULL_FIELD("message", PULL_STRING, condition, message),
    [CONDITION_TYPE] = PULL_FIELD("type", PULL_NAME, condition, type),
    [CONDITION_STATUS] = PULL_FIELD("status", PULL_NAME, condition, status),
    [CONDITION_REASON] = PULL_FIELD("reason", PULL_NAME, condition, reason),
    [CONDITION_CHANGED] = PULL_FIELD("lastTransitionTime", PULL_NAME, condition, changed),
};

/* The Pod that controls the object, as metav1.IsControlledBy. */
bool read_pod_owner(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct owner)};

    if (!pull_field_array(json, PULL_CASE_EXACT, owner_fields, POD_OWNER_FIELDS, arena, &items))
        return false;
    const struct owner *owners = items.items;
    for (size_t i = 0; i < items.count; i++)
        if (owners[i].is_controller && slice_equal(owners[i].kind, SLICE("Pod")))
            *(struct pod_owner *)field = (struct pod_owner){owners[i].name, owners[i].uid};
    return true;
}

const struct pull_field meta_fields[META_FIELDS] = {
    PULL_FIELD("namespace", PULL_NAME, meta, ns),
    META_ROWS(PULL_NAME),
    POD_OWNER_ROW,
};

bool phase_is_terminal(struct slice phase)
{
    return slice_equal(phase, SLICE("Succeeded")) || slice_equal(phase, SLICE("Failed"));
}

/* ---- lists of words ---- */

bool words_add(struct pull *json, struct arena *arena, struct slice *field, struct slice word)
{
    return ((field->len == 0 || arena_append(arena, field, SLICE(","))) &&
            arena_append(arena, field, word)) ||
           pull_problem(json, pull_too_big);
}

bool words_read(struct pull *json, struct arena *arena, void *field)
{
    size_t count = 0;

    if (!pull_array(json))
        return json->problem == NULL;
    while (pull_item(json)) {
        struct slice word = {NULL, 0};
        if (!pull_name(json, arena, &word) ||
            (count++ < WORDS_READ_MAX && !words_add(json, arena, field, word)))
            return false;
    }
    return json->problem == NULL;
}

bool words_read_items(struct pull *json, struct arena *arena, void *field)
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
        if (!pull_name(json, arena, &grown[items->count++]))
            return false;
    }
    return json->problem == NULL;
}

bool words_next(struct slice *rest, struct slice *word)
{
    if (rest->len == 0)
        return false;
    *word = slice_cut(rest, ',');
    return true;
}

bool words_have(struct slice words, struct slice word)
{
    struct slice found;

    while (words_next(&words, &found))
        if (slice_equal(found, word))
            return true;
    return false;
}

/* ---- kinds with few objects ---- */

/* The keys of an object, which are names of pods. */
static bool read_pod_names(struct pull *json, struct arena *arena, void *field)
{
    struct slice name;
    size_t count = 0;

    if (!pull_object(json))
        return json->problem == NULL;
    while (pull_key(json, &name)) {
        bool is_kept = name.len <= POD_NAME_BYTES_MAX && count < DISRUPTED_PODS_MAX;
        if (is_kept && !words_add(json, arena, field, name))
            return false;
        count += is_kept;
        (void)pull_skip(json);
    }
    return json->problem == NULL;
}

static const struct pull_field runtime_class_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    ATTRIBUTE("handler", RUNTIME_CLASS_HANDLER),
};
static const struct pull_field budget_status_fields[] = {
    PULL_FIELD("disruptionsAllowed", PULL_INTEGER, resource_object, number),
    PULL_READER("disruptedPods", resource_object, attributes[BUDGET_DISRUPTED_PODS],
                read_pod_names),
};
static const struct pull_field budget_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_IN("spec",
            PULL_READER("selector", resource_object, attributes[BUDGET_SELECTOR], selector_read)),
    PULL_NESTED("status", budget_status_fields),
};

static const struct pull_field budget_details_fields[] = {
    PULL_IN("spec",
            PULL_FIELD("unhealthyPodEvictionPolicy", PULL_NAME, budget_details, of_unhealthy)),
    PULL_IN("status", PULL_FIELD("currentHealthy", PULL_INTEGER, budget_details, healthy),
            PULL_FIELD("desiredHealthy", PULL_INTEGER, budget_details, needed),
            PULL_FIELD("expectedPods", PULL_INTEGER, budget_details, expected)),
};

static const struct pull_field priority_class_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_FIELD("value", PULL_INTEGER, resource_object, number),
    PULL_FIELD("globalDefault", PULL_BOOLEAN, resource_object, reading.is_default),
    ATTRIBUTE("preemptionPolicy", PRIORITY_CLASS_PREEMPTION_POLICY),
};

/* ---- all kinds ---- */

static const struct object_tables runtime_class_tables = {.core = TABLE(runtime_class_fields)};
static const struct object_tables budget_tables = {TABLE(budget_fields),
                                                   TABLE(budget_details_fields)};
static const struct object_tables priority_class_tables = {.core = TABLE(priority_class_fields)};

static const struct object_tables *const tables[KIND_NAMED_COUNT] = {
    [KIND_POD] = &pod_tables,
    [KIND_NODE] = &node_tables,
    [KIND_CLAIM] = &claim_tables,
    [KIND_VOLUME] = &volume_tables,
    [KIND_STORAGE_CLASS] = &storage_class_tables,
    [KIND_CSI_DRIVER] = &csi_driver_tables,
    [KIND_CSI_NODE] = &csi_node_tables,
    [KIND_VOLUME_ATTRIBUTES_CLASS] = &volume_attributes_class_tables,
    [KIND_RUNTIME_CLASS] = &runtime_class_tables,
    [KIND_VOLUME_ATTACHMENT] = &volume_attachment_tables,
    [KIND_STORAGE_CAPACITY] = &storage_capacity_tables,
    [KIND_POD_DISRUPTION_BUDGET] = &budget_tables,
    [KIND_PRIORITY_CLASS] = &priority_class_tables,
    [KIND_DEPLOYMENT] = &workload_tables,
    [KIND_STATEFUL_SET] = &workload_tables,
    [KIND_DAEMON_SET] = &workload_tables,
    [KIND_REPLICA_SET] = &workload_tables,
    [KIND_REPLICATION_CONTROLLER] = &workload_tables,
    [KIND_JOB] = &workload_tables,
    [KIND_CRON_JOB] = &workload_tables,
    [KIND_AUTOSCALER] = &autoscaler_tables,
};

const struct object_tables *object_tables(enum kind kind)
{
    return tables[kind];
}

uint64_t version_of(struct slice resource_version)
{
    uint64_t version = 0;

    if (resource_version.len > 19) /* more digits do not fit; no etcd revision has so many */
        return 0;
    for (size_t i = 0; i < resource_version.len; i++) {
        unsigned digit = (unsigned)(unsigned char)resource_version.ptr[i] - '0';
        if (digit > 9)
            return 0;
        version = version * 10 + digit;
    }
    return version;
}

/* Checks and completes what was read of any kind but pods and claims. */
static bool finish(struct pull *json, enum kind kind, struct arena *arena,
                   struct resource_object *resource)
{
    switch (kind) {
    case KIND_VOLUME: return volume_finish(json, arena, resource);
    case KIND_PRIORITY_CLASS:
        if (resource->reading.is_default)
            resource->attributes[PRIORITY_CLASS_DEFAULT] = SLICE("true");
        return (resource->number >= INT32_MIN && resource->number <= INT32_MAX) ||
               pull_problem(json, "value does not fit 32 bits");
    default: return storage_finish(json, kind, arena, resource);
    }
}

bool object_read(struct pull *json, enum kind kind, struct arena *arena, struct object *out)
{
    *out = (struct object){.kind = kind};
    if (kind == KIND_POD)
        return pod_read(json, arena, &out->pod);
    const struct pull_table table = tables[kind]->core;
    out->resource.reading.attaches = kind == KIND_CSI_DRIVER; /* the API server's default */
    if (kind == KIND_STORAGE_CAPACITY)
        out->resource.reading.capacity = out->resource.reading.largest = -1;
    if (!pull_fields(json, PULL_CASE_EXACT, table.fields, table.count, arena, &out->meta))
        return false;
    if (out->meta.name.len == 0)
        return pull_problem(json, "an object without metadata.name");
    if (kind_is_namespaced(kind))
        default_namespace(&out->meta);
    if (kind == KIND_CLAIM) {
        out->claim.is_rwop = (out->claim.access_modes & ACCESS_READ_WRITE_ONCE_POD) != 0;
        if (out->claim.beta_class.ptr != NULL)
            out->claim.storage_class = out->claim.beta_class;
        return true;
    }
    return finish(json, kind, arena, &out->resource);
}

int object_fail(const struct pull *json, const char *what, struct place first, struct error *err)
{
    (void)pull_fail(json, what, first, err);
    if (json->problem == pod_has_too_many_claims || json->problem == pull_too_big)
        err->code = ERROR_TOO_BIG;
    return err->code;
}
