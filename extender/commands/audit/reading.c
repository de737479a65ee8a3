#include "extender/commands/audit/reading.h"

#include "cache/objects/details.h"
#include "cache/objects/label_selector.h"

#define HOSTNAME "kubernetes.io/hostname"

#define TEXT(key_, member_) PULL_FIELD(key_, PULL_NAME, reading, member_)

/* ---- metadata ---- */

static const struct pull_field owner_fields[] = {
    PULL_FIELD("apiVersion", PULL_NAME, owner, api_version),
    PULL_FIELD("kind", PULL_NAME, owner, kind),
    PULL_FIELD("name", PULL_NAME, owner, name),
    PULL_FIELD("controller", PULL_BOOLEAN, owner, is_controller),
};
#define IGNORE PULL_FIELD(AUDIT_IGNORE_ANNOTATION, PULL_STRING, reading, ignore)
/* Arguments: the annotations. */
#define META_FIELDS_WITH(...) \
    TEXT("namespace", record.ns), \
        PULL_FIELD("name", PULL_STRING, reading, record.name), /* a template has "{{" */ \
        PULL_IN("annotations", __VA_ARGS__)
#define META_FIELDS META_FIELDS_WITH(IGNORE)

static const struct pull_field meta_fields[] = {META_FIELDS};
static const struct pull_field pod_meta_fields[] = {
    META_FIELDS,
    TEXT("uid", uid),
    TEXT("deletionTimestamp", deletion_timestamp),
    PULL_ITEMS_OF("ownerReferences", reading, owners, owner, owner_fields),
};

/* ---- pods and templates ---- */

struct pod_term {
    struct slice topology;
};

struct container {
    bool is_marked;
};

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
static const struct pull_field terms_fields[] = {
    PULL_ITEMS_OF("nodeSelectorTerms", reading, node_terms, node_term, node_term_fields),
};
static const struct pull_field pod_term_fields[] = {
    PULL_FIELD("topologyKey", PULL_STRING, pod_term, topology),
};
static const struct pull_field affinity_fields[] = {
    PULL_IN("nodeAffinity", PULL_NESTED(REQUIRED, terms_fields)),
    PULL_IN("podAffinity", PULL_ITEMS_OF(REQUIRED, reading, pod_terms, pod_term, pod_term_fields)),
};
static const struct pull_field pod_volume_fields[] = {
    PULL_FIELD("name", PULL_NAME, volume_reading, name),
    PULL_IN("persistentVolumeClaim", PULL_FIELD("claimName", PULL_NAME, volume_reading, claim)),
    PULL_IN("csi", PULL_FIELD("driver", PULL_NAME, volume_reading, driver)),
    PULL_FIELD("ephemeral", PULL_PRESENCE, volume_reading, is_ephemeral),
};
static const struct pull_field mark_fields[] = {
    PULL_FIELD(MARK, PULL_PRESENCE, container, is_marked),
};
static const struct pull_field resources_fields[] = {
    PULL_NESTED("requests", mark_fields),
    PULL_NESTED("limits", mark_fields),
};
static const struct pull_field container_fields[] = {
    PULL_NESTED("resources", resources_fields),
};
static const struct pull_field pod_spec_fields[] = {
    PULL_ITEMS_OF("volumes", reading, volumes, volume_reading, pod_volume_fields),
    PULL_ITEMS_OF("containers", reading, containers, container, container_fields),
    PULL_ITEMS_OF("initContainers", reading, containers, container, container_fields),
    PULL_READER("nodeSelector", reading, placing.selector, labels_read),
    PULL_NESTED("affinity", affinity_fields),
    TEXT("nodeName", pod.spec.node),
    TEXT("schedulerName", placing.scheduler),
    TEXT("runtimeClassName", placing.runtime_class),
};
static const struct pull_field phase_fields[] = {
    TEXT("phase", phase),
};
static const struct pull_field pod_fields[] = {
    PULL_NESTED("metadata", pod_meta_fields),
    PULL_NESTED("spec", pod_spec_fields),
    PULL_NESTED("status", phase_fields),
};

/* ---- workloads ---- */

static const struct pull_field rolling_update_fields[] = {
    PULL_FIELD("maxSurge", PULL_RAW, reading, surge),
    PULL_FIELD("maxUnavailable", PULL_RAW, reading, unavailable),
};
static const struct pull_field strategy_fields[] = {
    TEXT("type", workload.rollout.strategy),
    PULL_NESTED("rollingUpdate", rolling_update_fields),
};
static const struct pull_field claim_template_fields[] = {
    PULL_IN("metadata", PULL_FIELD("name", PULL_NAME, claim_template, name)),
};
/* Of a Deployment (strategy), a ReplicaSet, a StatefulSet and a DaemonSet (updateStrategy), and of
 * a Job. */
static const struct pull_field workload_spec_fields[] = {
    PULL_FIELD("replicas", PULL_INTEGER, reading, replicas),
    PULL_FIELD("parallelism", PULL_INTEGER, reading, parallelism),
    PULL_FIELD("completions", PULL_INTEGER, reading, completions),
    PULL_NESTED("strategy", strategy_fields),
    PULL_NESTED("updateStrategy", strategy_fields),
    PULL_ITEMS_OF("volumeClaimTemplates", reading, claim_templates, claim_template,
                  claim_template_fields),
    PULL_IN("template", PULL_NESTED("spec", pod_spec_fields)),
};
static const struct pull_field condition_fields[] = {
    PULL_FIELD("type", PULL_NAME, condition, type),
    PULL_FIELD("status", PULL_NAME, condition, status),
};
static const struct pull_field workload_fields[] = {
    PULL_NESTED("metadata", pod_meta_fields),
    PULL_NESTED("spec", workload_spec_fields),
    PULL_IN("status",
            PULL_ITEMS_OF("conditions", reading, conditions, condition, condition_fields)),
};
static const struct pull_field cron_job_spec_fields[] = {
    TEXT("concurrencyPolicy", concurrency_policy),
    PULL_FIELD("suspend", PULL_BOOLEAN, reading, workload.is_suspended),
    PULL_IN("jobTemplate", PULL_NESTED("spec", workload_spec_fields)),
};
static const struct pull_field cron_job_fields[] = {
    PULL_NESTED("metadata", pod_meta_fields),
    PULL_NESTED("spec", cron_job_spec_fields),
};
static const struct pull_field target_fields[] = {
    TEXT("apiVersion", controller.api_version),
    TEXT("kind", controller.kind),
    TEXT("name", controller.name),
};
static const struct pull_field autoscaler_spec_fields[] = {
    PULL_FIELD("minReplicas", PULL_INTEGER, reading, workload.least),
    PULL_FIELD("maxReplicas", PULL_INTEGER, reading, replicas),
    PULL_NESTED("scaleTargetRef", target_fields),
};
static const struct pull_field autoscaler_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_NESTED("spec", autoscaler_spec_fields),
};

/* ---- kinds that the cluster has ---- */

static const struct pull_field stored_fields[] = {
    PULL_NESTED("metadata", meta_fields),
};

static const struct pull_field claim_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_IN("spec", PULL_FIELD("storageClassName", PULL_PRESENCE, reading, claim.names_class)),
};
static const struct pull_field class_fields[] = {
    PULL_IN("metadata", TEXT("creationTimestamp", created),
            META_FIELDS_WITH(TEXT("storageclass.kubernetes.io/is-default-class", is_default),
                             TEXT("storageclass.beta.kubernetes.io/is-default-class", is_default))),
};

/* A taint that keeps pods away, unless they tolerate it. */
static bool has_taint(const struct node_details *node)
{
    const struct taint *taints = node->taints.items;

    for (size_t i = 0; i < node->taints.count; i++)
        if (!slice_equal(taints[i].effect, SLICE("PreferNoSchedule")))
            return true;
    return false;
}

static bool read_details(struct pull *json, enum kind kind, struct arena *arena, void *out)
{
    const struct pull_table table = details_table(kind);

    return pull_fields(json, PULL_CASE_EXACT, table.fields, table.count, arena, out) &&
           pull_finish(json);
}

/* What a Node's labels and taints say. */
static bool read_node(struct pull *json, struct arena *arena, struct reading *out)
{
    struct node_details details = {.taints = {0}};

    if (!read_details(json, KIND_NODE, arena, &details))
        return false;
    out->node.labels = details.labels;
    out->node.is_avoided = out->stored.resource.number != 0 || has_taint(&details);
    return true;
}

static bool names_host(const struct pull_items *requirements)
{
    const struct node_requirement *items = requirements->items;

    for (size_t i = 0; i < requirements->count; i++)
        if ((slice_equal(items[i].key, SLICE(HOSTNAME)) ||
             slice_equal(items[i].key, SLICE("metadata.name"))) &&
            slice_equal(items[i].operator, SLICE("In")) && items[i].values.count == 1)
            return true;
    return false;
}

/* Whether the terms, of which one is enough, allow one node, by its name. */
static bool is_one_host(const struct pull_items *node_terms)
{
    const struct node_term *terms = node_terms->items;

    return node_terms->count == 1 &&
           (names_host(&terms[0].expressions) || names_host(&terms[0].fields));
}

/* Which nodes a volume that a manifest makes allows. */
static bool read_volume(struct pull *json, struct arena *arena, struct reading *out)
{
    struct volume_details details = {.terms = {0}};

    if (!read_details(json, KIND_VOLUME, arena, &details))
        return false;
    out->volume.is_on_one_host = is_one_host(&details.terms);
    return true;
}

/* ---- all kinds ---- */

static const struct kind_row {
    const struct pull_field *fields; /* NULL: none besides those of cache/objects */
    size_t count;
    bool is_stored; /* cache/objects reads it, too */
    bool is_read;
} kinds[KIND_NAMED_COUNT] = {
#define KIND(fields_) \
    { \
        (fields_), sizeof(fields_) / sizeof *(fields_), false, true \
    }
#define STORED(fields_) \
    { \
        (fields_), sizeof(fields_) / sizeof *(fields_), true, true \
    }
    [KIND_POD] = KIND(pod_fields),
    [KIND_DEPLOYMENT] = KIND(workload_fields),
    [KIND_STATEFUL_SET] = KIND(workload_fields),
    [KIND_DAEMON_SET] = KIND(workload_fields),
    [KIND_REPLICA_SET] = KIND(workload_fields),
    [KIND_JOB] = KIND(workload_fields),
    [KIND_CRON_JOB] = KIND(cron_job_fields),
    [KIND_AUTOSCALER] = KIND(autoscaler_fields),
    [KIND_CLAIM] = STORED(claim_fields),
    [KIND_VOLUME] = STORED(stored_fields),
    [KIND_STORAGE_CLASS] = STORED(class_fields),
    [KIND_CSI_DRIVER] = STORED(stored_fields),
    [KIND_CSI_NODE] = {NULL, 0, true, true},
    [KIND_NODE] = {NULL, 0, true, true},
    [KIND_VOLUME_ATTRIBUTES_CLASS] = STORED(stored_fields),
#undef STORED
#undef KIND
};

bool reading_has(enum kind kind)
{
    return kinds[kind].is_read;
}

struct pull_table reading_table(enum kind kind)
{
    return (struct pull_table){kinds[kind].fields, kinds[kind].count};
}

/* ---- what follows from the fields ---- */

/* What the pod requires of nodes, and of pods on its node. */
static void complete_affinity(struct reading *out)
{
    struct pod_spec *spec = &out->pod.spec;
    const struct pod_term *pod_terms = out->pod_terms.items;

    spec->requires_nodes = out->node_terms.size != 0; /* without terms, no node is allowed */
    spec->requires_host = is_one_host(&out->node_terms);
    for (size_t i = 0; i < out->pod_terms.count; i++)
        spec->requires_pods |= slice_equal(pod_terms[i].topology, SLICE(HOSTNAME));
}

/* Without a version, a kind is taken for that of Kubernetes. */
static enum kind kind_named(const struct owner *owner)
{
    for (int i = 0; i < KIND_NAMED_COUNT; i++)
        if (kinds[i].is_read && slice_equal(owner->kind, slice_of(kind_text((enum kind)i))))
            return owner->api_version.len == 0 ? (enum kind)i
                                               : kind_of_any(owner->api_version, owner->kind);
    return KIND_OTHER;
}

static void complete_pod(enum kind kind, struct reading *out)
{
    struct pod_record *pod = &out->pod;
    const struct owner *controller = details_controller(&out->owners);
    const struct container *containers = out->containers.items;

    if (controller == NULL) /* or an autoscaler's target */
        controller = &out->controller;
    pod->owner = controller->name;
    pod->owner_kind = kind_named(controller);
    complete_affinity(out);
    for (size_t i = 0; i < out->containers.count; i++)
        pod->spec.is_marked |= containers[i].is_marked;
    if (slice_equal(out->placing.scheduler, SLICE("default-scheduler")))
        out->placing.scheduler = SLICE("");
    if (kind != KIND_POD)
        return;
    pod->is_finished = phase_is_terminal(out->phase);
    pod->is_manifest = out->phase.len == 0 && out->uid.len == 0;
}

/* The first field of the rollout, or of the CronJob, whose value is a variable; NULL: none. */
static const char *find_unknown(const struct reading *reading)
{
    const struct {
        const char *name;
        struct slice value;
    } fields[] = {{"strategy", reading->workload.rollout.strategy},
                  {"maxSurge", reading->surge},
                  {"maxUnavailable", reading->unavailable},
                  {"concurrencyPolicy", reading->concurrency_policy}};

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (audit_is_variable(fields[i].value))
            return fields[i].name;
    return NULL;
}

/* The pods of a Job at the same time: at most as many as are to complete. */
static int64_t job_pods(const struct reading *reading)
{
    int64_t parallelism = reading->parallelism < 0 ? 1 : reading->parallelism;

    return reading->completions >= 0 && reading->completions < parallelism ? reading->completions
                                                                           : parallelism;
}

/* Whether a Job is complete, or has failed. */
static bool has_ended(const struct pull_items *conditions)
{
    const struct condition *complete = details_condition(conditions, SLICE("Complete"));
    const struct condition *failed = details_condition(conditions, SLICE("Failed"));

    return (complete != NULL && slice_equal(complete->status, SLICE("True"))) ||
           (failed != NULL && slice_equal(failed->status, SLICE("True")));
}

static void complete_workload(enum kind kind, struct reading *out)
{
    struct workload *workload = &out->workload;

    workload->pod.is_finished = has_ended(&out->conditions);
    workload->rollout.replicas = out->replicas < 0 ? 1 : out->replicas;
    if (kind == KIND_JOB || kind == KIND_CRON_JOB)
        workload->rollout.replicas = job_pods(out);
    workload->rollout.surge = amount_of(out->surge);
    workload->rollout.unavailable = amount_of(out->unavailable);
    workload->unknown_field = find_unknown(out);
    workload->is_finite = out->completions >= 0;
    workload->forbids_overlap =
        out->concurrency_policy.len != 0 && !slice_equal(out->concurrency_policy, SLICE("Allow"));
}

/* ---- an object ---- */

static bool read_stored(struct pull *json, enum kind kind, struct arena *arena, struct reading *out)
{
    struct slice text = {json->start, (size_t)(json->end - json->start)};

    if (!object_read(json, kind, arena, &out->stored) || !pull_finish(json))
        return false;
    if (out->record.name.len == 0)
        out->record.name = out->stored.meta.name;
    pull_init_checked(json, text);
    if (kind == KIND_NODE)
        return read_node(json, arena, out);
    if (kind == KIND_VOLUME && out->stored.resource.reading.phase.len == 0 &&
        (out->stored.resource.number & VOLUME_REQUIRES_NODES) != 0)
        return read_volume(json, arena, out);
    return true;
}

bool reading_read(struct pull *json, enum kind kind, struct arena *arena, struct reading *out)
{
    const struct kind_row *row = &kinds[kind];
    const struct slice text = {json->start, (size_t)(json->end - json->start)};

    *out = (struct reading){.replicas = -1, .parallelism = -1, .completions = -1};
    if (kind == KIND_AUTOSCALER)
        out->workload.least = 1;
    if (row->fields != NULL) {
        if (!pull_fields(json, PULL_CASE_EXACT, row->fields, row->count, arena, out) ||
            !pull_finish(json))
            return false;
        pull_init_checked(json, text);
    }
    if (row->is_stored)
        return (row->fields != NULL && out->record.name.len == 0) ||
               read_stored(json, kind, arena, out);
    complete_pod(kind, out);
    if (kind != KIND_POD)
        complete_workload(kind, out);
    return true;
}
