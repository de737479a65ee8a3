/* Pods: the object itself, the claims that it names, and how it mounts its volumes. */
#include "cache/objects/label_selector.h"
#include "cache/objects/objects_internal.h"

enum { POD_MOUNTS_MAX = 65536 }; /* of its containers; a pod with more: as POD_VOLUMES_MAX */

const char pod_has_too_many_claims[] = "a pod with over 512 claims";

/* A pod while it is read: its fields come in any order. */
struct pod_reading {
    struct pod_object pod;
    struct pod_mounts mounts;
    struct pod_volume *volumes;
    size_t volume_count;
    struct slice deferred_for;    /* DEFERRED_FOR_ANNOTATION */
    struct container *containers; /* including init and ephemeral ones */
    size_t container_count;
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

static bool read_volumes(struct pull *json, struct arena *arena, void *field)
{
    struct pod_reading *reading = field;
    struct pull_items items = {.size = sizeof(struct pod_volume)};
    bool ok = pull_field_array(json, PULL_CASE_EXACT, pod_volume_fields,
                               PULL_FIELD_COUNT(pod_volume_fields), arena, &items);

    reading->volumes = items.items;
    reading->volume_count = items.count;
    return ok;
}

/* ---- containers ---- */

static const struct pull_field mount_fields[] = {
    PULL_FIELD("name", PULL_NAME, container_mount, volume),
    PULL_FIELD("subPath", PULL_NAME, container_mount, sub_path),
    PULL_FIELD("subPathExpr", PULL_NAME, container_mount, sub_path_expr),
};

static bool read_mounts(struct pull *json, struct arena *arena, void *field)
{
    struct container *container = field;
    struct pull_items items = {.size = sizeof(struct container_mount)};
    bool ok = pull_field_array(json, PULL_CASE_EXACT, mount_fields, PULL_FIELD_COUNT(mount_fields),
                               arena, &items);

    container->mounts = items.items;
    container->mount_count = items.count;
    return ok;
}

static const struct pull_field container_security_fields[] = {
    PULL_FIELD("seLinuxOptions", PULL_PRESENCE, container, has_selinux),
};
static const struct pull_field container_fields[] = {
    PULL_READER_OF("volumeMounts", container, mounts, read_mounts, mount_fields),
    PULL_NESTED("securityContext", container_security_fields),
};

/* Adds to the containers that were read before. */
static bool read_containers(struct pull *json, struct arena *arena, void *field)
{
    struct pod_reading *reading = field;
    struct pull_items items = {sizeof(struct container), reading->containers,
                               reading->container_count};
    bool ok = pull_field_array(json, PULL_CASE_EXACT, container_fields,
                               PULL_FIELD_COUNT(container_fields), arena, &items);

    reading->containers = items.items;
    reading->container_count = items.count;
    return ok;
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
    PULL_READER_OF("volumes", pod_reading, pod, read_volumes, pod_volume_fields),
    PULL_READER_OF("initContainers", pod_reading, pod, read_containers, container_fields),
    PULL_READER_OF("containers", pod_reading, pod, read_containers, container_fields),
    PULL_READER_OF("ephemeralContainers", pod_reading, pod, read_containers, container_fields),
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
     .members = pod_condition_fields,
     .count = POD_CONDITION_FIELDS,
     .read = read_pod_conditions},
};

static const struct pull_field pod_annotation_fields[] = {
    PULL_FIELD(DEFER_FS_MOUNT_ANNOTATION, PULL_STRING, pod_reading, mounts.annotation),
    PULL_FIELD(DEFERRED_FOR_ANNOTATION, PULL_STRING, pod_reading, deferred_for),
};

static const struct pull_field pod_meta_fields[] = {
    PULL_FIELD("namespace", PULL_NAME, pod_reading, pod.meta.ns),
    PULL_FIELD("name", PULL_NAME, pod_reading, pod.meta.name),
    PULL_FIELD("uid", PULL_NAME, pod_reading, pod.meta.uid),
    PULL_FIELD("resourceVersion", PULL_NAME, pod_reading, pod.meta.resource_version),
    PULL_FIELD("creationTimestamp", PULL_NAME, pod_reading, pod.created),
    PULL_FIELD("deletionTimestamp", PULL_NAME, pod_reading, pod.meta.deletion_timestamp),
    PULL_READER("labels", pod_reading, pod.labels, labels_read_kept),
    PULL_NESTED("annotations", pod_annotation_fields),
};

const struct pull_field pod_fields[POD_FIELDS] = {
    PULL_NESTED("metadata", pod_meta_fields),
    PULL_NESTED("spec", pod_spec_fields),
    PULL_NESTED("status", pod_status_fields),
};

/* The claim of an ephemeral volume is <pod>-<volume> (KEP-1698). False: no memory. */
static bool name_claims(struct pod_reading *reading, struct arena *arena)
{
    for (size_t i = 0; i < reading->volume_count; i++) {
        struct pod_volume *volume = &reading->volumes[i];
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
    size_t mount_count = 0;

    for (size_t i = 0; i < reading->container_count; i++)
        mount_count += reading->containers[i].mount_count;
    return reading->volume_count > POD_VOLUMES_MAX || mount_count > POD_MOUNTS_MAX ||
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
    mounts->volumes = reading->volumes;
    mounts->volume_count = (uint32_t)reading->volume_count;
    *out = is_known ? mounts : NULL;
    return pod_mark_volumes(mounts, reading->deferred_for, reading->containers,
                            is_known ? reading->container_count : 0, arena);
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
    pod->claims = arena_alloc(arena, reading->volume_count * sizeof *pod->claims);
    if (pod->claims == NULL)
        return pull_too_big;
    for (size_t i = 0; i < reading->volume_count; i++) {
        const struct pod_volume *volume = &reading->volumes[i];
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
    struct pod_reading reading = {.volume_count = 0};

    if (pull_null(json))
        return pull_problem(json, "expected an object");
    if (!pull_fields(json, PULL_CASE_EXACT, pod_fields, POD_FIELDS, arena, &reading))
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
