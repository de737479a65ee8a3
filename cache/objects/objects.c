#include "cache/objects/objects.h"

#include "cache/objects/label_selector.h"
#include "cache/objects/objects_internal.h"

struct owner_reference {
    struct slice kind, name, uid;
    bool is_controller;
};

static const struct pull_field owner_fields[] = {
    PULL_FIELD("kind", PULL_NAME, owner_reference, kind),
    PULL_FIELD("name", PULL_NAME, owner_reference, name),
    PULL_FIELD("uid", PULL_NAME, owner_reference, uid),
    PULL_FIELD("controller", PULL_BOOLEAN, owner_reference, is_controller),
};

/* The Pod that controls the object, as metav1.IsControlledBy. */
static bool read_owners(struct pull *json, struct arena *arena, void *field)
{
    struct pull_items items = {.size = sizeof(struct owner_reference)};

    if (!pull_field_array(json, PULL_CASE_EXACT, owner_fields, PULL_FIELD_COUNT(owner_fields),
                          arena, &items))
        return false;
    const struct owner_reference *owners = items.items;
    for (size_t i = 0; i < items.count; i++)
        if (owners[i].is_controller && slice_equal(owners[i].kind, SLICE("Pod")))
            *(struct pod_owner *)field = (struct pod_owner){owners[i].name, owners[i].uid};
    return true;
}

const struct pull_field meta_fields[META_FIELDS] = {
    PULL_FIELD("namespace", PULL_NAME, meta, ns),
    PULL_FIELD("name", PULL_NAME, meta, name),
    PULL_FIELD("uid", PULL_NAME, meta, uid),
    PULL_FIELD("resourceVersion", PULL_NAME, meta, resource_version),
    PULL_FIELD("deletionTimestamp", PULL_NAME, meta, deletion_timestamp),
    PULL_READER_OF("ownerReferences", meta, owner, read_owners, owner_fields),
};

bool phase_is_terminal(struct slice phase)
{
    return slice_equal(phase, SLICE("Succeeded")) || slice_equal(phase, SLICE("Failed"));
}

/* ---- PersistentVolumeClaim ---- */

static const struct pull_field claim_requests_fields[] = {
    PULL_READER("storage", claim_object, requested, read_quantity),
};
static const struct pull_field claim_resources_fields[] = {
    PULL_NESTED("requests", claim_requests_fields),
};
static const struct pull_field claim_spec_fields[] = {
    PULL_READER("accessModes", claim_object, access_modes, read_access_modes),
    PULL_NESTED("resources", claim_resources_fields),
    PULL_READER("selector", claim_object, selector, selector_read),
    PULL_FIELD("storageClassName", PULL_NAME, claim_object, storage_class),
    PULL_FIELD("volumeAttributesClassName", PULL_NAME, claim_object, volume_attributes_class),
    PULL_FIELD("volumeName", PULL_NAME, claim_object, volume),
    PULL_FIELD("volumeMode", PULL_NAME, claim_object, volume_mode),
};
static const struct pull_field claim_modify_fields[] = {
    PULL_FIELD("targetVolumeAttributesClassName", PULL_NAME, claim_object, target_class),
    PULL_FIELD("status", PULL_NAME, claim_object, modify_status),
};
static const struct pull_field claim_status_fields[] = {
    PULL_FIELD("phase", PULL_NAME, claim_object, phase),
    PULL_FIELD("currentVolumeAttributesClassName", PULL_NAME, claim_object, current_class),
    PULL_NESTED("modifyVolumeStatus", claim_modify_fields),
};
static const struct pull_field claim_annotation_fields[] = {
    PULL_FIELD(CLAIM_HOLDER_ANNOTATION, PULL_STRING, claim_object, holder),
    PULL_FIELD(CLAIM_ADMITTED_ANNOTATION, PULL_NAME, claim_object, admitted),
    PULL_FIELD(CLAIM_LOCKED_AT_ANNOTATION, PULL_NAME, claim_object, locked_at),
};
static const struct pull_field claim_meta_fields[] = {
    PULL_FIELD("namespace", PULL_NAME, claim_object, meta.ns),
    PULL_FIELD("name", PULL_NAME, claim_object, meta.name),
    PULL_FIELD("uid", PULL_NAME, claim_object, meta.uid),
    PULL_FIELD("resourceVersion", PULL_NAME, claim_object, meta.resource_version),
    PULL_FIELD("deletionTimestamp", PULL_NAME, claim_object, meta.deletion_timestamp),
    PULL_READER_OF("ownerReferences", claim_object, meta.owner, read_owners, owner_fields),
    PULL_NESTED("annotations", claim_annotation_fields),
};
static const struct pull_field claim_fields[] = {
    PULL_NESTED("metadata", claim_meta_fields),
    PULL_NESTED("spec", claim_spec_fields),
    PULL_NESTED("status", claim_status_fields),
};

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
static const struct pull_field budget_spec_fields[] = {
    PULL_READER("selector", resource_object, attributes[BUDGET_SELECTOR], selector_read),
};
static const struct pull_field budget_status_fields[] = {
    PULL_FIELD("disruptionsAllowed", PULL_INTEGER, resource_object, number),
    PULL_READER("disruptedPods", resource_object, attributes[BUDGET_DISRUPTED_PODS],
                read_pod_names),
};
static const struct pull_field budget_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_NESTED("spec", budget_spec_fields),
    PULL_NESTED("status", budget_status_fields),
};

/* true -> "true"; false -> "". */
static bool read_flag(struct pull *json, struct arena *arena, void *field)
{
    bool is_true = false;

    (void)arena;
    if (!pull_boolean(json, &is_true))
        return false;
    *(struct slice *)field = is_true ? SLICE("true") : SLICE("");
    return true;
}

static const struct pull_field priority_class_fields[] = {
    PULL_NESTED("metadata", meta_fields),
    PULL_FIELD("value", PULL_INTEGER, resource_object, number),
    PULL_READER("globalDefault", resource_object, attributes[PRIORITY_CLASS_DEFAULT], read_flag),
    ATTRIBUTE("preemptionPolicy", PRIORITY_CLASS_PREEMPTION_POLICY),
};

/* ---- all kinds ---- */

static const struct kind_info {
    const char *kind, *group, *api_path, *resource;
    bool is_namespaced;
    const struct pull_field *fields;
    size_t count;
} kinds[KIND_COUNT] = {
#define KIND(kind_, group_, resource_, namespaced_, fields_) \
    { \
        (kind_), (group_), (group_)[0] == '\0' ? "/api/v1" : "/apis/" group_ "/v1", (resource_), \
            (namespaced_), (fields_), sizeof(fields_) / sizeof *(fields_) \
    }
    [KIND_POD] = KIND("Pod", "", "pods", true, pod_fields),
    [KIND_NODE] = KIND("Node", "", "nodes", false, node_fields),
    [KIND_CLAIM] = KIND("PersistentVolumeClaim", "", "persistentvolumeclaims", true, claim_fields),
    [KIND_VOLUME] = KIND("PersistentVolume", "", "persistentvolumes", false, volume_fields),
    [KIND_STORAGE_CLASS] =
        KIND("StorageClass", "storage.k8s.io", "storageclasses", false, storage_class_fields),
    [KIND_CSI_DRIVER] = KIND("CSIDriver", "storage.k8s.io", "csidrivers", false, csi_driver_fields),
    [KIND_CSI_NODE] = KIND("CSINode", "storage.k8s.io", "csinodes", false, csi_node_fields),
    [KIND_VOLUME_ATTRIBUTES_CLASS] =
        KIND("VolumeAttributesClass", "storage.k8s.io", "volumeattributesclasses", false,
             volume_attributes_class_fields),
    [KIND_RUNTIME_CLASS] =
        KIND("RuntimeClass", "node.k8s.io", "runtimeclasses", false, runtime_class_fields),
    [KIND_VOLUME_ATTACHMENT] = KIND("VolumeAttachment", "storage.k8s.io", "volumeattachments",
                                    false, volume_attachment_fields),
    [KIND_POD_DISRUPTION_BUDGET] =
        KIND("PodDisruptionBudget", "policy", "poddisruptionbudgets", true, budget_fields),
    [KIND_PRIORITY_CLASS] =
        KIND("PriorityClass", "scheduling.k8s.io", "priorityclasses", false, priority_class_fields),
#undef KIND
};

/* "storage.k8s.io/v1" -> "storage.k8s.io"; "v1" -> "". */
static struct slice group_of(struct slice api_version)
{
    const char *slash = api_version.len == 0 ? NULL : memchr(api_version.ptr, '/', api_version.len);
    return (struct slice){api_version.ptr, slash == NULL ? 0 : (size_t)(slash - api_version.ptr)};
}

enum kind kind_of(struct slice api_version, struct slice kind)
{
    struct slice group = group_of(api_version);

    for (int i = 0; i < KIND_COUNT; i++)
        if (slice_equal(kind, slice_of(kinds[i].kind)) &&
            slice_equal(group, slice_of(kinds[i].group)))
            return (enum kind)i;
    return KIND_OTHER;
}

const char *kind_resource(enum kind kind)
{
    return kind < KIND_COUNT ? kinds[kind].resource : "other";
}

const char *kind_text(enum kind kind)
{
    return kinds[kind].kind;
}

const char *kind_api_path(enum kind kind)
{
    return kinds[kind].api_path;
}

const char *kind_api_version(enum kind kind)
{
    return strchr(kinds[kind].api_path + 1, '/') + 1; /* after "/api/" or "/apis/" */
}

bool kind_is_namespaced(enum kind kind)
{
    return kinds[kind].is_namespaced;
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
    case KIND_CSI_NODE: return csi_node_finish(json, arena, resource);
    case KIND_VOLUME_ATTACHMENT:
        if (resource->meta.deletion_timestamp.len != 0)
            resource->number |= VOLUME_ATTACHMENT_IS_DELETING;
        return true;
    case KIND_VOLUME_ATTRIBUTES_CLASS:
        if (resource->meta.deletion_timestamp.len != 0)
            resource->number |= VOLUME_ATTRIBUTES_CLASS_IS_DELETING;
        return true;
    case KIND_PRIORITY_CLASS:
        return (resource->number >= INT32_MIN && resource->number <= INT32_MAX) ||
               pull_problem(json, "value does not fit 32 bits");
    default: return true;
    }
}

bool object_read(struct pull *json, enum kind kind, struct arena *arena, struct object *out)
{
    *out = (struct object){.kind = kind};
    if (kind == KIND_POD)
        return pod_read(json, arena, &out->pod);
    if (!pull_fields(json, PULL_CASE_EXACT, kinds[kind].fields, kinds[kind].count, arena,
                     &out->meta))
        return false;
    if (out->meta.name.len == 0)
        return pull_problem(json, "an object without metadata.name");
    if (kinds[kind].is_namespaced)
        default_namespace(&out->meta);
    if (kind == KIND_CLAIM) {
        out->claim.is_rwop = (out->claim.access_modes & ACCESS_READ_WRITE_ONCE_POD) != 0;
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

struct pull_table objects_table(enum kind kind)
{
    return (struct pull_table){kinds[kind].fields, kinds[kind].count};
}

static struct slice copy_to(char **at, struct slice text)
{
    struct slice copy = {*at, text.len};

    if (text.len != 0)
        memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return copy;
}

/* As the API server's IsValidPathSegmentName. */
static bool is_path_segment(struct slice name)
{
    return name.len != 0 && !slice_equal(name, SLICE(".")) && !slice_equal(name, SLICE("..")) &&
           memchr(name.ptr, '/', name.len) == NULL && memchr(name.ptr, '%', name.len) == NULL;
}

bool object_reference_is_possible(const struct object_reference *reference)
{
    return is_path_segment(reference->name) &&
           (reference->ns.len == 0 || is_path_segment(reference->ns));
}

struct object_reference object_reference_copy(const struct object_reference *reference, char *text)
{
    struct object_reference copy = {.kind = reference->kind};

    copy.uid = copy_to(&text, reference->uid);
    copy.ns = copy_to(&text, reference->ns);
    copy.name = copy_to(&text, reference->name);
    return copy;
}

bool object_reference_keep(struct kept_reference **list, const struct object_reference *reference,
                           struct arena *arena)
{
    struct kept_reference *kept =
        arena_alloc(arena, sizeof *kept + object_reference_bytes(reference));

    if (kept == NULL)
        return false;
    kept->reference = object_reference_copy(reference, (char *)(kept + 1));
    kept->next = *list;
    *list = kept;
    return true;
}
