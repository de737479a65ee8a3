/* Pods: the object itself, the claims that it names, how it mounts its volumes, what kube-scheduler
 * says on it; and its details. */
#include "cache/objects/label_selector.h"
#include "cache/objects/objects_internal.h"

enum { POD_MOUNTS_MAX = 65536 }; /* of its containers; a pod with more: as POD_VOLUMES_MAX */

const char pod_has_too_many_claims[] = "a pod with over 512 claims";

/* A pod while it is read: its fields come in any order. */
struct pod_reading {
    struct pod_object pod;
    struct pod_mounts mounts;
    struct pull_items volumes;    /* struct pod_volume */
    struct slice deferred_for;    /* DEFERRED_FOR_ANNOTATION */
    struct pull_items containers; /* struct container: including init and ephemeral ones */
};

/* ---- volumes ---- */

static bool read_defer_field(struct pull *json, struct arena *arena, void *field)
{
    bool is_true = false;

    (void)arena;
    if (pull_null(json))
        return true;
    if (!pull_boolean(json, &is_true))
        return false;
    *(uint8_t *)field = is_true ? DEFER_FIELD_TRUE : DEFER_FIELD_FALSE;
    return true;
}

static const struct pull_field claim_source_fields[] = {
    PULL_FIELD("claimName", PULL_NAME, pod_volume, claim),
    PULL_READER("deferFSMount", pod_volume, field, read_defer_field),
};
static const struct pull_field ephemeral_source_fields[] = {
    PULL_READER("deferFSMount", pod_volume, field, read_defer_field),
};
static const struct pull_field csi_source_fields[] = {
    PULL_FIELD("driver", PULL_NAME, pod_volume, driver),
    PULL_FIELD("fsType", PULL_NAME, pod_volume, fs_type),
    PULL_FIELD("nodePublishSecretRef", PULL_PRESENCE, pod_volume, has_secret),
    PULL_READER("deferFSMount", pod_volume, field, read_defer_field),
};

/* Reads a volume source, unless it is null. A volume has one source; in a file with several, a
 * claim has priority, so that it cannot be hidden. */
static bool read_source(struct pull *json, struct arena *arena, struct pod_volume *volume,
                        enum volume_source source, const struct pull_field *fields, size_t count)
{
    if (pull_null(json))
        return true;
    if (volume->source == VOLUME_SOURCE_OTHER || source < volume->source)
        volume->source = (uint8_t)source;
    return pull_fields(json, PULL_CASE_EXACT, fields, count, arena, volume);
}

static bool read_claim_source(struct pull *json, struct arena *arena, void *volume)
{
    return read_source(json, arena, volume, VOLUME_SOURCE_CLAIM, claim_source_fields,
                       PULL_FIELD_COUNT(claim_source_fields));
}

static bool read_ephemeral_source(struct pull *json, struct arena *arena, void *volume)
{
    return read_source(json, arena, volume, VOLUME_SOURCE_EPHEMERAL, ephemeral_source_fields,
                       PULL_FIELD_COUNT(ephemeral_source_fields));
}

static bool read_csi_source(struct pull *json, struct arena *arena, void *volume)
{
    return read_source(json, arena, volume, VOLUME_SOURCE_CSI, csi_source_fields,
                       PULL_FIELD_COUNT(csi_source_fields));
}

/* The readers of sources get the address of the name, and use it as the volume. */
_Static_assert(offsetof(struct pod_volume, name) == 0, "a pod_volume begins with its name");

static const struct pull_field pod_volume_fields[] = {
    PULL_FIELD("name", PULL_NAME, pod_volume, name),
    PULL_READER_OF("persistentVolumeClaim", pod_volume, name, read_claim_source,
                   claim_source_fields),
    PULL_READER_OF("ephemeral", pod_volume, name, read_ephemeral_source, ephemeral_source_fields),
    PULL_READER_OF("csi", pod_volume, name, read_csi_source, csi_source_fields),
};

/* ---- containers ---- */

static const struct pull_field mount_fields[] = {
    PULL_FIELD("name", PULL_NAME, container_mount, volume),
    PULL_FIELD("subPath", PULL_NAME, container_mount, sub_path),
    PULL_FIELD("subPathExpr", PULL_NAME, container_mount, sub_path_expr),
};

static const struct pull_field container_fields[] = {
    PULL_ITEMS_OF("volumeMounts", container, mounts, container_mount, mount_fields),
    PULL_IN("securityContext", PULL_FIELD("seLinuxOptions", PULL_PRESENCE, container, has_selinux)),
};

/* ---- what kube-scheduler says on a pod that it has tried ---- */

/*
 * Of its plug-in VolumeRestrictions, what all versions have in common:
 *
 *   node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already
 *   in-use by another pod                                                                  1.37
 *   node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode
 */
static const char refusal[] = "ReadWriteOncePod access mode";

/* Of our own, which also says which pod. */
static const char named[] = " is in use by pod ";

/* The fields of a condition that are read of it, up to its reason. */
enum { POD_CONDITION_FIELDS = CONDITION_REASON + 1 };

static bool is_refusal(const struct condition *condition)
{
    return slice_equal(condition->type, SLICE("PodScheduled")) &&
           slice_equal(condition->status, SLICE("False")) &&
           slice_equal(condition->reason, SLICE("Unschedulable")) &&
           slice_has(condition->message, slice_of(refusal)) &&
           !slice_has(condition->message, slice_of(named));
}

/* Nearly no pod has the text, and for the others a search for it is all that this costs. No verdict
 * reads conditions, so those that cannot be read count as none. */
static bool read_refusal(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct condition)};
    struct pull conditions;
    struct slice text;

    if (!pull_raw(json, &text))
        return false;
    if (!slice_has(text, slice_of(refusal)))
        return true;
    pull_init(&conditions, text);
    if (!pull_field_array(&conditions, PULL_CASE_EXACT, condition_fields, POD_CONDITION_FIELDS,
                          arena, &items))
        return true;
    const struct condition *found = items.items;
    for (size_t i = 0; i < items.count; i++)
        *(bool *)field = *(bool *)field || is_refusal(&found[i]);
    return true;
}

/* ---- the pod ---- */

static bool read_priority(struct pull *json, struct arena *arena, void *field)
{
    struct pod_reading *reading = field;

    (void)arena;
    reading->pod.has_priority = !pull_null(json);
    return !reading->pod.has_priority || pull_integer(json, &reading->pod.priority);
}

static const struct pull_field pod_security_fields[] = {
    PULL_FIELD("fsGroup", PULL_PRESENCE, pod_reading, mounts.has_fs_group),
    PULL_FIELD("fsGroupChangePolicy", PULL_NAME, pod_reading, mounts.fs_group_change_policy),
    PULL_FIELD("seLinuxOptions", PULL_PRESENCE, pod_reading, mounts.has_selinux),
};

static const struct pull_field pod_spec_fields[] = {
    PULL_ITEMS_OF("volumes", pod_reading, volumes, pod_volume, pod_volume_fields),
    PULL_ITEMS_OF("initContainers", pod_reading, containers, container, container_fields),
    PULL_ITEMS_OF("containers", pod_reading, containers, container, container_fields),
    PULL_ITEMS_OF("ephemeralContainers", pod_reading, containers, container, container_fields),
    PULL_FIELD("nodeName", PULL_NAME, pod_reading, pod.node),
    PULL_READER("priority", pod_reading, pod, read_priority),
    PULL_FIELD("priorityClassName", PULL_NAME, pod_reading, pod.priority_class),
    PULL_FIELD("preemptionPolicy", PULL_NAME, pod_reading, pod.preemption_policy),
    PULL_FIELD("runtimeClassName", PULL_NAME, pod_reading, mounts.runtime_class),
    PULL_FIELD("schedulingGates", PULL_PRESENCE, pod_reading, pod.is_gated),
    PULL_FIELD("schedulingGroup", PULL_PRESENCE, pod_reading, pod.is_grouped),
    PULL_FIELD("workloadRef", PULL_PRESENCE, pod_reading, pod.is_grouped),
    PULL_NESTED("securityContext", pod_security_fields),
};

static const struct pull_field pod_status_fields[] = {
    PULL_FIELD("phase", PULL_NAME, pod_reading, pod.phase),
    PULL_FIELD("nominatedNodeName", PULL_NAME, pod_reading, pod.nominated_node),
    {.key = "conditions",
     .type = PULL_READ,
     .offset = offsetof(struct pod_reading, pod.is_refused_unnamed),
     .members = condition_fields,
     .count = POD_CONDITION_FIELDS,
     .read = read_refusal},
};

static const struct pull_field pod_annotation_fields[] = {
    PULL_FIELD(DEFER_FS_MOUNT_ANNOTATION, PULL_STRING, pod_reading, mounts.annotation),
    PULL_FIELD(DEFERRED_FOR_ANNOTATION, PULL_STRING, pod_reading, deferred_for),
};

static const struct pull_field pod_meta_fields[] = {
    PULL_FIELD("namespace", PULL_NAME, meta, ns),
    META_ROWS(PULL_BOUNDED),
    PULL_FIELD("creationTimestamp", PULL_NAME, pod_reading, pod.created),
    PULL_READER("labels", pod_reading, pod.labels, labels_read_kept),
    PULL_NESTED("annotations", pod_annotation_fields),
};
_Static_assert(offsetof(struct pod_reading, pod.meta) == 0, "for META_ROWS");

static const struct pull_field pod_fields[] = {
    PULL_NESTED("metadata", pod_meta_fields),
    PULL_NESTED("spec", pod_spec_fields),
    PULL_NESTED("status", pod_status_fields),
};

/* The claim of an ephemeral volume is <pod>-<volume> (KEP-1698). False: no memory. */
static bool name_claims(struct pod_reading *reading, struct arena *arena)
{
    struct pod_volume *volumes = reading->volumes.items;

    for (size_t i = 0; i < reading->volumes.count; i++) {
        struct pod_volume *volume = &volumes[i];
        if (volume->source != VOLUME_SOURCE_EPHEMERAL)
            continue;
        volume->claim = arena_printf(arena, "%.*s-%.*s", SLICE_ARG(reading->pod.meta.name),
                                     SLICE_ARG(volume->name));
        if (volume->claim.ptr == NULL)
            return false;
    }
    return true;
}

static bool has_too_many(const struct pod_reading *reading)
{
    const struct container *containers = reading->containers.items;
    size_t mount_count = 0;

    for (size_t i = 0; i < reading->containers.count; i++)
        mount_count += containers[i].mounts.count;
    return reading->volumes.count > POD_VOLUMES_MAX || mount_count > POD_MOUNTS_MAX ||
           reading->mounts.annotation.len > DEFER_FS_MOUNT_BYTES_MAX;
}

/* How the pod mounts its volumes; *out stays NULL if they are too many. Their deferrals are marked
 * in any case: a driver reads the annotation, however long it is. False: no memory. */
static bool finish_mounts(struct pod_reading *reading, struct arena *arena,
                          const struct pod_mounts **out)
{
    struct pod_mounts *mounts = arena_alloc(arena, sizeof *mounts);
    bool is_known = !has_too_many(reading);

    if (mounts == NULL)
        return false;
    *mounts = reading->mounts;
    mounts->volumes = reading->volumes.items;
    mounts->volume_count = (uint32_t)reading->volumes.count;
    *out = is_known ? mounts : NULL;
    return mounts_mark(mounts, reading->deferred_for, reading->containers.items,
                       is_known ? reading->containers.count : 0, arena);
}

static struct claim_reference *find_reference(const struct pod_object *pod, struct slice name)
{
    for (size_t i = 0; i < pod->claim_count; i++)
        if (slice_equal(pod->claims[i].name, name))
            return &pod->claims[i];
    return NULL;
}

/* The claims that the volumes name, each once. Returns NULL, or the problem. */
static const char *collect_claims(const struct pod_reading *reading, struct arena *arena,
                                  struct pod_object *pod)
{
    const struct pod_volume *volumes = reading->volumes.items;

    pod->claims = arena_alloc(arena, reading->volumes.count * sizeof *pod->claims);
    if (pod->claims == NULL)
        return pull_too_big;
    for (size_t i = 0; i < reading->volumes.count; i++) {
        const struct pod_volume *volume = &volumes[i];
        if (volume->source != VOLUME_SOURCE_CLAIM && volume->source != VOLUME_SOURCE_EPHEMERAL)
            continue;
        struct claim_reference *reference = find_reference(pod, volume->claim);
        if (reference == NULL) {
            if (pod->claim_count == POD_CLAIMS_MAX)
                return pod_has_too_many_claims;
            reference = &pod->claims[pod->claim_count++];
            *reference = (struct claim_reference){
                .name = volume->claim, .is_ephemeral = volume->source == VOLUME_SOURCE_EPHEMERAL};
        }
        reference->is_deferred |= volume_is_deferred(volume);
    }
    return NULL;
}

bool pod_read(struct pull *json, struct arena *arena, struct pod_object *out)
{
    struct pod_reading reading = {.volumes = {0}};

    if (pull_null(json))
        return pull_problem(json, "expected an object");
    if (!pull_fields(json, PULL_CASE_EXACT, pod_fields, PULL_FIELD_COUNT(pod_fields), arena,
                     &reading))
        return false;
    *out = reading.pod;
    default_namespace(&out->meta);
    if (out->meta.name.len == 0)
        return pull_problem(json, "a Pod without metadata.name");
    if (out->priority < INT32_MIN || out->priority > INT32_MAX)
        return pull_problem(json, "spec.priority does not fit 32 bits");
    if (!name_claims(&reading, arena) || !finish_mounts(&reading, arena, &out->mounts))
        return pull_problem(json, pull_too_big);
    const char *problem = collect_claims(&reading, arena, out);
    return problem == NULL || pull_problem(json, problem);
}

/* ---- details ---- */

struct container_status {
    struct slice waiting_reason, started;
};

static const struct pull_field started_fields[] = {
    PULL_FIELD("startedAt", PULL_NAME, container_status, started),
};
static const struct pull_field state_fields[] = {
    PULL_IN("waiting", PULL_FIELD("reason", PULL_NAME, container_status, waiting_reason)),
    PULL_NESTED("running", started_fields),
    PULL_NESTED("terminated", started_fields),
};
static const struct pull_field container_status_fields[] = {PULL_NESTED("state", state_fields)};

static bool read_states(struct pull *json, struct arena *arena, void *field)
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

/* Of a container. PULL_RAW: a snapshot keeps the value, so that other programs can read the Pod. */
static const struct pull_field mark_fields[] = {
    PULL_FIELD(MARK, PULL_RAW, pod_details, mark),
};
static const struct pull_field resources_fields[] = {
    PULL_NESTED("requests", mark_fields),
    PULL_NESTED("limits", mark_fields),
};

static bool read_resources(struct pull *json, struct arena *arena, void *field)
{
    ((struct pod_details *)field)->has_resources = true;
    return pull_fields(json, PULL_CASE_EXACT, resources_fields, PULL_FIELD_COUNT(resources_fields),
                       arena, field);
}

/* No PULL_NESTED: a snapshot says that a container has resources also if it has no mark. */
static const struct pull_field marked_container_fields[] = {
    PULL_READER_OF("resources", pod_details, created, read_resources, resources_fields),
};
_Static_assert(offsetof(struct pod_details, created) == 0, "read_resources gets the whole struct");

static const struct pull_field claim_mount_fields[] = {
    PULL_FIELD("claimName", PULL_NAME, volume_source_details, claim),
    PULL_FIELD("readOnly", PULL_BOOLEAN, volume_source_details, is_read_only),
};
/* is_disk: kube-scheduler's isVolumeConflict. */
static const struct pull_field volume_details_fields[] = {
    PULL_NESTED("persistentVolumeClaim", claim_mount_fields),
    PULL_FIELD("gcePersistentDisk", PULL_PRESENCE, volume_source_details, is_disk),
    PULL_FIELD("awsElasticBlockStore", PULL_PRESENCE, volume_source_details, is_disk),
    PULL_FIELD("iscsi", PULL_PRESENCE, volume_source_details, is_disk),
    PULL_FIELD("rbd", PULL_PRESENCE, volume_source_details, is_disk),
};
static const struct pull_field gate_fields[] = {
    PULL_FIELD("name", PULL_NAME, scheduling_gate, name),
};

static const struct pull_field pod_label_fields[] = {
    PULL_FIELD("pod-template-hash", PULL_NAME, pod_details, template_hash),
    PULL_FIELD("component", PULL_NAME, pod_details, component),
    PULL_FIELD("app.kubernetes.io/name", PULL_NAME, pod_details, app),
};
static const struct pull_field pod_meta_details[] = {
    PULL_FIELD("creationTimestamp", PULL_NAME, pod_details, created),
    PULL_FIELD("deletionTimestamp", PULL_NAME, pod_details, deletion_timestamp),
    PULL_FIELD("deletionGracePeriodSeconds", PULL_INTEGER, pod_details, grace_seconds),
    PULL_READER("finalizers", pod_details, finalizers, words_read_items),
    SOME_OF("ownerReferences", pod_details, owners, owner, owner_fields, OWNER_KIND,
            OWNER_API_VERSION),
    PULL_NESTED("labels", pod_label_fields),
};
static const struct pull_field required_affinity_fields[] = {
    PULL_ITEMS_OF("nodeSelectorTerms", pod_details, node_terms, node_term, node_term_fields),
};
static const struct pull_field node_affinity_fields[] = {
    PULL_NESTED("requiredDuringSchedulingIgnoredDuringExecution", required_affinity_fields),
};
static const struct pull_field affinity_fields[] = {
    PULL_NESTED("nodeAffinity", node_affinity_fields),
};
static const struct pull_field toleration_fields[] = {
    PULL_FIELD("key", PULL_NAME, toleration, key),
    PULL_FIELD("operator", PULL_NAME, toleration, operator),
    PULL_FIELD("value", PULL_NAME, toleration, value),
    PULL_FIELD("effect", PULL_NAME, toleration, effect),
};
static const struct pull_field pod_spec_details[] = {
    PULL_FIELD("schedulerName", PULL_NAME, pod_details, scheduler),
    PULL_FIELD("dnsPolicy", PULL_NAME, pod_details, dns_policy),
    PULL_FIELD("hostNetwork", PULL_BOOLEAN, pod_details, is_host_network),
    PULL_READER("nodeSelector", pod_details, node_selector, labels_read),
    PULL_NESTED("affinity", affinity_fields),
    PULL_ITEMS_OF("tolerations", pod_details, tolerations, toleration, toleration_fields),
    PULL_EACH_OF("containers", marked_container_fields),
    PULL_EACH_OF("initContainers", marked_container_fields),
    PULL_ITEMS_OF("schedulingGates", pod_details, gates, scheduling_gate, gate_fields),
    PULL_ITEMS_OF("volumes", pod_details, volumes, volume_source_details, volume_details_fields),
};
static const struct pull_field pod_status_details[] = {
    PULL_FIELD("phase", PULL_NAME, pod_details, phase),
    PULL_FIELD("reason", PULL_NAME, pod_details, reason),
    PULL_FIELD("startTime", PULL_NAME, pod_details, started),
    PULL_ITEMS_OF("conditions", pod_details, conditions, condition, condition_fields),
    PULL_READER_OF("containerStatuses", pod_details, containers, read_states,
                   container_status_fields),
    PULL_READER_OF("initContainerStatuses", pod_details, containers, read_states,
                   container_status_fields),
};
static const struct pull_field pod_details_fields[] = {
    PULL_NESTED("metadata", pod_meta_details),
    PULL_NESTED("spec", pod_spec_details),
    PULL_NESTED("status", pod_status_details),
};

const struct object_tables pod_tables = {TABLE(pod_fields), TABLE(pod_details_fields)};
