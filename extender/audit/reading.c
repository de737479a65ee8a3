/* Metadata, pods, and workloads. */
#include "cache/objects/label_selector.h"
#include "extender/audit/reading_internal.h"

/* ---- metadata ---- */

struct owner_reading {
    struct slice version, kind, name;
    bool is_controller;
};

static const struct pull_field owner_fields[] = {
    PULL_FIELD("apiVersion", PULL_STRING, owner_reading, version),
    PULL_FIELD("kind", PULL_STRING, owner_reading, kind),
    PULL_FIELD("name", PULL_STRING, owner_reading, name),
    PULL_FIELD("controller", PULL_BOOLEAN, owner_reading, is_controller),
};

static bool read_owners(struct pull *json, struct arena *arena, void *whole)
{
    struct reading *reading = whole;
    struct pull_items items = {.size = sizeof(struct owner_reading)};

    if (!read_items(json, arena, owner_fields, PULL_FIELD_COUNT(owner_fields), &items))
        return false;
    const struct owner_reading *owners = items.items;
    for (size_t i = 0; i < items.count; i++) {
        if (!owners[i].is_controller)
            continue;
        reading->owner_version = owners[i].version;
        reading->owner_kind = owners[i].kind;
        reading->owner = owners[i].name;
    }
    return true;
}

static const struct pull_field annotation_fields[] = {
    TEXT(AUDIT_IGNORE_ANNOTATION, ignore),
};
const struct pull_field reading_meta[READING_META_FIELDS] = {
    TEXT("namespace", ns),
    TEXT("name", name),
    TEXT("uid", uid),
    TEXT("deletionTimestamp", deletion_timestamp),
    READ_WHOLE_OF("ownerReferences", read_owners, owner_fields),
    PULL_NESTED("annotations", annotation_fields),
};

/* ---- pods and templates ---- */

static const struct pull_field claim_source_fields[] = {
    PULL_FIELD("claimName", PULL_STRING, volume_reading, claim),
};
static const struct pull_field csi_source_fields[] = {
    PULL_FIELD("driver", PULL_STRING, volume_reading, driver),
};
static const struct pull_field pod_volume_fields[] = {
    PULL_FIELD("name", PULL_STRING, volume_reading, name),
    PULL_NESTED("persistentVolumeClaim", claim_source_fields),
    PULL_NESTED("csi", csi_source_fields),
    PULL_FIELD("ephemeral", PULL_PRESENCE, volume_reading, is_ephemeral),
};

static bool read_volumes(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items *items = field;

    items->size = sizeof(struct volume_reading);
    return read_items(json, arena, pod_volume_fields, PULL_FIELD_COUNT(pod_volume_fields), items);
}

struct container_reading {
    bool is_marked;
};

static const struct pull_field mark_fields[] = {
    PULL_FIELD(AUDIT_MARK, PULL_PRESENCE, container_reading, is_marked),
};
static const struct pull_field resources_fields[] = {
    PULL_NESTED("requests", mark_fields),
    PULL_NESTED("limits", mark_fields),
};
static const struct pull_field container_fields[] = {
    PULL_NESTED("resources", resources_fields),
};

static bool read_containers(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct container_reading)};

    if (!read_items(json, arena, container_fields, PULL_FIELD_COUNT(container_fields), &items))
        return false;
    const struct container_reading *containers = items.items;
    for (size_t i = 0; i < items.count; i++)
        *(bool *)field |= containers[i].is_marked;
    return true;
}

static const struct pull_field pod_spec_fields[] = {
    PULL_READER_OF("volumes", reading, volumes, read_volumes, pod_volume_fields),
    PULL_READER_OF("containers", reading, is_marked, read_containers, container_fields),
    PULL_READER_OF("initContainers", reading, is_marked, read_containers, container_fields),
    PULL_READER("nodeSelector", reading, selector, labels_read),
    PULL_NESTED("affinity", reading_affinity),
    TEXT("nodeName", node),
    TEXT("schedulerName", scheduler),
    TEXT("runtimeClassName", runtime_class),
};
const struct pull_field reading_phase[READING_PHASE_FIELDS] = {
    TEXT("phase", phase),
};
static const struct pull_field pod_fields[] = {
    PULL_NESTED("metadata", reading_meta),
    PULL_NESTED("spec", pod_spec_fields),
    PULL_NESTED("status", reading_phase),
};
static const struct pull_field template_fields[] = {
    PULL_NESTED("spec", pod_spec_fields),
};

/* ---- workloads ---- */

static const struct pull_field rolling_update_fields[] = {
    PULL_FIELD("maxSurge", PULL_RAW, reading, surge),
    PULL_FIELD("maxUnavailable", PULL_RAW, reading, unavailable),
};
static const struct pull_field strategy_fields[] = {
    TEXT("type", strategy),
    PULL_NESTED("rollingUpdate", rolling_update_fields),
};

static const struct pull_field template_name_fields[] = {{.key = "name", .type = PULL_STRING}};
static const struct pull_field template_meta_fields[] = {
    PULL_NESTED("metadata", template_name_fields),
};

static bool read_claim_templates(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items *items = field;

    items->size = sizeof(struct slice);
    return read_items(json, arena, template_meta_fields, PULL_FIELD_COUNT(template_meta_fields),
                      items);
}

/* Of a Deployment (strategy), a ReplicaSet, a StatefulSet and a DaemonSet (updateStrategy), and of
 * a Job. */
static const struct pull_field workload_spec_fields[] = {
    PULL_FIELD("replicas", PULL_INTEGER, reading, replicas),
    PULL_FIELD("parallelism", PULL_INTEGER, reading, parallelism),
    PULL_FIELD("completions", PULL_INTEGER, reading, completions),
    PULL_NESTED("strategy", strategy_fields),
    PULL_NESTED("updateStrategy", strategy_fields),
    PULL_READER("volumeClaimTemplates", reading, claim_templates, read_claim_templates),
    PULL_NESTED("template", template_fields),
};

struct condition_reading {
    struct slice type, status;
};

static const struct pull_field condition_fields[] = {
    PULL_FIELD("type", PULL_STRING, condition_reading, type),
    PULL_FIELD("status", PULL_STRING, condition_reading, status),
};

/* The conditions of a Job, or of a Node. */
static bool read_conditions(struct pull *json, struct arena *arena, void *whole)
{
    struct reading *reading = whole;
    struct pull_items items = {.size = sizeof(struct condition_reading)};

    if (!read_items(json, arena, condition_fields, PULL_FIELD_COUNT(condition_fields), &items))
        return false;
    const struct condition_reading *conditions = items.items;
    for (size_t i = 0; i < items.count; i++) {
        bool is_true = slice_equal(conditions[i].status, SLICE("True"));
        if (slice_equal(conditions[i].type, SLICE("Ready")))
            reading->is_avoided |= !is_true;
        if (slice_equal(conditions[i].type, SLICE("Complete")) ||
            slice_equal(conditions[i].type, SLICE("Failed")))
            reading->is_finished |= is_true;
    }
    return true;
}

const struct pull_field reading_conditions[READING_CONDITIONS_FIELDS] = {
    READ_WHOLE_OF("conditions", read_conditions, condition_fields),
};
static const struct pull_field workload_fields[] = {
    PULL_NESTED("metadata", reading_meta),
    PULL_NESTED("spec", workload_spec_fields),
    PULL_NESTED("status", reading_conditions),
};

static const struct pull_field job_template_fields[] = {
    PULL_NESTED("spec", workload_spec_fields),
};
static const struct pull_field cron_job_spec_fields[] = {
    TEXT("concurrencyPolicy", concurrency_policy),
    PULL_FIELD("suspend", PULL_BOOLEAN, reading, is_suspended),
    PULL_NESTED("jobTemplate", job_template_fields),
};
static const struct pull_field cron_job_fields[] = {
    PULL_NESTED("metadata", reading_meta),
    PULL_NESTED("spec", cron_job_spec_fields),
};

static const struct pull_field target_fields[] = {
    TEXT("apiVersion", target_version),
    TEXT("kind", target_kind),
    TEXT("name", target),
};
static const struct pull_field autoscaler_spec_fields[] = {
    PULL_FIELD("minReplicas", PULL_INTEGER, reading, least_replicas),
    PULL_FIELD("maxReplicas", PULL_INTEGER, reading, replicas),
    PULL_NESTED("scaleTargetRef", target_fields),
};
static const struct pull_field autoscaler_fields[] = {
    PULL_NESTED("metadata", reading_meta),
    PULL_NESTED("spec", autoscaler_spec_fields),
};

/* ---- all kinds ---- */

static const struct kind_row {
    const char *kind, *group;
    const struct pull_field *fields; /* NULL: none besides those of cache/objects */
    size_t count;
    enum kind object; /* that cache/objects reads first; 0: none */
} kinds[RECORD_KIND_COUNT] = {
#define KIND(kind_, group_, fields_) \
    { \
        .kind = (kind_), .group = (group_), .fields = (fields_), \
        .count = sizeof(fields_) / sizeof *(fields_) \
    }
    [RECORD_POD] = KIND("Pod", "", pod_fields),
    [RECORD_DEPLOYMENT] = KIND("Deployment", "apps", workload_fields),
    [RECORD_STATEFUL_SET] = KIND("StatefulSet", "apps", workload_fields),
    [RECORD_DAEMON_SET] = KIND("DaemonSet", "apps", workload_fields),
    [RECORD_REPLICA_SET] = KIND("ReplicaSet", "apps", workload_fields),
    [RECORD_JOB] = KIND("Job", "batch", workload_fields),
    [RECORD_CRON_JOB] = KIND("CronJob", "batch", cron_job_fields),
    [RECORD_AUTOSCALER] = KIND("HorizontalPodAutoscaler", "autoscaling", autoscaler_fields),
    [RECORD_CLAIM] = {"PersistentVolumeClaim", "", reading_claim, READING_CLAIM_FIELDS, KIND_CLAIM},
    [RECORD_VOLUME] = {"PersistentVolume", "", reading_volume, READING_VOLUME_FIELDS, KIND_VOLUME},
    [RECORD_STORAGE_CLASS] = {"StorageClass", "storage.k8s.io", NULL, 0, KIND_STORAGE_CLASS},
    [RECORD_CSI_DRIVER] = {"CSIDriver", "storage.k8s.io", NULL, 0, KIND_CSI_DRIVER},
    [RECORD_CSI_NODE] = {"CSINode", "storage.k8s.io", NULL, 0, KIND_CSI_NODE},
    [RECORD_NODE] = KIND("Node", "", reading_node),
    [RECORD_ATTRIBUTES_CLASS] =
        KIND("VolumeAttributesClass", "storage.k8s.io", reading_attributes_class),
#undef KIND
};

static struct slice group_of(struct slice api_version)
{
    const char *slash = api_version.len == 0 ? NULL : memchr(api_version.ptr, '/', api_version.len);

    return (struct slice){api_version.ptr, slash == NULL ? 0 : (size_t)(slash - api_version.ptr)};
}

const char *record_kind_text(enum record_kind kind)
{
    return kinds[kind].kind;
}

enum record_kind record_kind_of(struct slice kind)
{
    int i = 0;

    while (i < RECORD_KIND_COUNT && !slice_equal(kind, slice_of(kinds[i].kind)))
        i++;
    return (enum record_kind)i;
}

enum record_kind reading_kind(struct slice api_version, struct slice kind)
{
    enum record_kind found = record_kind_of(kind);

    if (found != RECORD_KIND_COUNT &&
        !slice_equal(group_of(api_version), slice_of(kinds[found].group)))
        return RECORD_KIND_COUNT;
    return found;
}

struct pull_table reading_table(enum kind kind)
{
    enum record_kind found = record_kind_of(slice_of(kind_text(kind)));

    return found == RECORD_KIND_COUNT
               ? (struct pull_table){NULL, 0}
               : (struct pull_table){kinds[found].fields, kinds[found].count};
}

bool reading_read(struct pull *json, enum record_kind kind, struct arena *arena,
                  struct reading *out)
{
    const struct kind_row *row = &kinds[kind];
    struct slice text = {json->start, (size_t)(json->end - json->start)};

    *out = (struct reading){
        .replicas = -1, .least_replicas = -1, .parallelism = -1, .completions = -1};
    if (row->object != 0 && (!reading_object(json, row->object, arena, out) || !pull_finish(json)))
        return false;
    if (row->fields == NULL)
        return true;
    if (row->object != 0)
        pull_init(json, text);
    return pull_fields(json, PULL_CASE_EXACT, row->fields, row->count, arena, out) &&
           pull_finish(json);
}
