/* Metadata, pods, and workloads. */
#include "cache/objects/label_selector.h"
#include "extender/audit/reading_internal.h"

/* ---- metadata ---- */

struct owner_reading {
    struct slice kind, name;
    bool is_controller;
};

static const struct pull_field owner_fields[] = {
    FIELD("kind", PULL_STRING, owner_reading, kind),
    FIELD("name", PULL_STRING, owner_reading, name),
    FIELD("controller", PULL_BOOLEAN, owner_reading, is_controller),
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
    READ_WHOLE("ownerReferences", read_owners),
    OBJECT("annotations", annotation_fields),
};

/* ---- pods and templates ---- */

static const struct pull_field claim_source_fields[] = {
    FIELD("claimName", PULL_STRING, volume_reading, claim),
};
static const struct pull_field csi_source_fields[] = {
    FIELD("driver", PULL_STRING, volume_reading, driver),
};
static const struct pull_field pod_volume_fields[] = {
    FIELD("name", PULL_STRING, volume_reading, name),
    OBJECT("persistentVolumeClaim", claim_source_fields),
    OBJECT("csi", csi_source_fields),
    FIELD("ephemeral", PULL_PRESENCE, volume_reading, is_ephemeral),
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
    FIELD(AUDIT_MARK, PULL_PRESENCE, container_reading, is_marked),
};
static const struct pull_field resources_fields[] = {
    OBJECT("requests", mark_fields),
    OBJECT("limits", mark_fields),
};
static const struct pull_field container_fields[] = {
    OBJECT("resources", resources_fields),
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

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
static const struct pull_field node_affinity_fields[] = {
    FIELD(REQUIRED, PULL_PRESENCE, reading, requires_nodes),
};
static const struct pull_field pod_affinity_fields[] = {
    FIELD(REQUIRED, PULL_PRESENCE, reading, requires_pods),
};
static const struct pull_field affinity_fields[] = {
    OBJECT("nodeAffinity", node_affinity_fields),
    OBJECT("podAffinity", pod_affinity_fields),
};
static const struct pull_field pod_spec_fields[] = {
    READ("volumes", volumes, read_volumes),
    READ("containers", is_marked, read_containers),
    READ("initContainers", is_marked, read_containers),
    READ("nodeSelector", selector, labels_read),
    OBJECT("affinity", affinity_fields),
    TEXT("nodeName", node),
    TEXT("schedulerName", scheduler),
};
const struct pull_field reading_phase[READING_PHASE_FIELDS] = {
    TEXT("phase", phase),
};
static const struct pull_field pod_fields[] = {
    OBJECT("metadata", reading_meta),
    OBJECT("spec", pod_spec_fields),
    OBJECT("status", reading_phase),
};
static const struct pull_field template_fields[] = {
    OBJECT("spec", pod_spec_fields),
};

/* ---- workloads ---- */

static const struct pull_field rolling_update_fields[] = {
    FIELD("maxSurge", PULL_RAW, reading, surge),
    FIELD("maxUnavailable", PULL_RAW, reading, unavailable),
};
static const struct pull_field strategy_fields[] = {
    TEXT("type", strategy),
    OBJECT("rollingUpdate", rolling_update_fields),
};

static const struct pull_field template_name_fields[] = {{.key = "name", .type = PULL_STRING}};
static const struct pull_field template_meta_fields[] = {
    OBJECT("metadata", template_name_fields),
};

static bool read_claim_templates(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items *items = field;

    items->size = sizeof(struct slice);
    return read_items(json, arena, template_meta_fields, PULL_FIELD_COUNT(template_meta_fields),
                      items);
}

/* Of a Deployment, a ReplicaSet, a StatefulSet and a DaemonSet, and of a Job. */
static const struct pull_field workload_spec_fields[] = {
    FIELD("replicas", PULL_INTEGER, reading, replicas),
    FIELD("parallelism", PULL_INTEGER, reading, parallelism),
    FIELD("completions", PULL_INTEGER, reading, completions),
    OBJECT("strategy", strategy_fields),
    READ("volumeClaimTemplates", claim_templates, read_claim_templates),
    OBJECT("template", template_fields),
};

struct condition_reading {
    struct slice type, status;
};

static const struct pull_field condition_fields[] = {
    FIELD("type", PULL_STRING, condition_reading, type),
    FIELD("status", PULL_STRING, condition_reading, status),
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
    READ_WHOLE("conditions", read_conditions),
};
static const struct pull_field workload_fields[] = {
    OBJECT("metadata", reading_meta),
    OBJECT("spec", workload_spec_fields),
    OBJECT("status", reading_conditions),
};

static const struct pull_field job_template_fields[] = {
    OBJECT("spec", workload_spec_fields),
};
static const struct pull_field cron_job_spec_fields[] = {
    TEXT("concurrencyPolicy", concurrency_policy),
    OBJECT("jobTemplate", job_template_fields),
};
static const struct pull_field cron_job_fields[] = {
    OBJECT("metadata", reading_meta),
    OBJECT("spec", cron_job_spec_fields),
};

static const struct pull_field target_fields[] = {
    TEXT("kind", target_kind),
    TEXT("name", target),
};
static const struct pull_field autoscaler_spec_fields[] = {
    FIELD("maxReplicas", PULL_INTEGER, reading, replicas),
    OBJECT("scaleTargetRef", target_fields),
};
static const struct pull_field autoscaler_fields[] = {
    OBJECT("metadata", reading_meta),
    OBJECT("spec", autoscaler_spec_fields),
};

/* ---- all kinds ---- */

static const struct kind_row {
    const char *kind, *group;
    const struct pull_field *fields;
    size_t count;
} kinds[RECORD_KIND_COUNT] = {
#define KIND(kind_, group_, fields_) \
    { \
        (kind_), (group_), (fields_), sizeof(fields_) / sizeof *(fields_) \
    }
    [RECORD_POD] = KIND("Pod", "", pod_fields),
    [RECORD_DEPLOYMENT] = KIND("Deployment", "apps", workload_fields),
    [RECORD_STATEFUL_SET] = KIND("StatefulSet", "apps", workload_fields),
    [RECORD_DAEMON_SET] = KIND("DaemonSet", "apps", workload_fields),
    [RECORD_REPLICA_SET] = KIND("ReplicaSet", "apps", workload_fields),
    [RECORD_JOB] = KIND("Job", "batch", workload_fields),
    [RECORD_CRON_JOB] = KIND("CronJob", "batch", cron_job_fields),
    [RECORD_AUTOSCALER] = KIND("HorizontalPodAutoscaler", "autoscaling", autoscaler_fields),
    [RECORD_CLAIM] = KIND("PersistentVolumeClaim", "", reading_claim),
    [RECORD_VOLUME] = KIND("PersistentVolume", "", reading_volume),
    [RECORD_STORAGE_CLASS] = KIND("StorageClass", "storage.k8s.io", reading_storage_class),
    [RECORD_CSI_DRIVER] = KIND("CSIDriver", "storage.k8s.io", reading_csi_driver),
    [RECORD_CSI_NODE] = KIND("CSINode", "storage.k8s.io", reading_csi_node),
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

bool reading_read(struct pull *json, enum record_kind kind, struct arena *arena,
                  struct reading *out)
{
    *out = (struct reading){.replicas = -1, .parallelism = -1, .completions = -1};
    if (!pull_fields(json, PULL_CASE_EXACT, kinds[kind].fields, kinds[kind].count, arena, out))
        return false;
    return pull_finish(json);
}
