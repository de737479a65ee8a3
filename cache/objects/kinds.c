#include "cache/objects/kinds.h"

/* The paths of API groups. */
#define CORE         "/api/v1"
#define APPS         "/apis/apps/v1"
#define BATCH        "/apis/batch/v1"
#define STORAGE      "/apis/storage.k8s.io/v1"
#define REGISTRATION "/apis/admissionregistration.k8s.io/v1"

enum scope { GLOBAL, NAMESPACED };

static const struct names {
    const char *kind, *plural, *resource, *api_path;
    enum scope scope;
} kinds[KIND_NAMED_COUNT] = {
    [KIND_POD] = {"Pod", "Pods", "pods", CORE, NAMESPACED},
    [KIND_NODE] = {"Node", "Nodes", "nodes", CORE, GLOBAL},
    [KIND_CLAIM] = {"PersistentVolumeClaim", "PersistentVolumeClaims", "persistentvolumeclaims",
                    CORE, NAMESPACED},
    [KIND_VOLUME] = {"PersistentVolume", "PersistentVolumes", "persistentvolumes", CORE, GLOBAL},
    [KIND_STORAGE_CLASS] = {"StorageClass", "StorageClasses", "storageclasses", STORAGE, GLOBAL},
    [KIND_CSI_DRIVER] = {"CSIDriver", "CSIDrivers", "csidrivers", STORAGE, GLOBAL},
    [KIND_CSI_NODE] = {"CSINode", "CSINodes", "csinodes", STORAGE, GLOBAL},
    [KIND_VOLUME_ATTRIBUTES_CLASS] = {"VolumeAttributesClass", "VolumeAttributesClasses",
                                      "volumeattributesclasses", STORAGE, GLOBAL},
    [KIND_POD_DISRUPTION_BUDGET] = {"PodDisruptionBudget", "PodDisruptionBudgets",
                                    "poddisruptionbudgets", "/apis/policy/v1", NAMESPACED},
    [KIND_PRIORITY_CLASS] = {"PriorityClass", "PriorityClasses", "priorityclasses",
                             "/apis/scheduling.k8s.io/v1", GLOBAL},
    [KIND_RUNTIME_CLASS] = {"RuntimeClass", "RuntimeClasses", "runtimeclasses",
                            "/apis/node.k8s.io/v1", GLOBAL},
    [KIND_VOLUME_ATTACHMENT] = {"VolumeAttachment", "VolumeAttachments", "volumeattachments",
                                STORAGE, GLOBAL},
    [KIND_STORAGE_CAPACITY] = {"CSIStorageCapacity", "CSIStorageCapacities", "csistoragecapacities",
                               STORAGE, NAMESPACED},
    [KIND_OTHER] = {"", "", "other", "", GLOBAL},
    [KIND_DEPLOYMENT] = {"Deployment", "Deployments", "deployments", APPS, NAMESPACED},
    [KIND_STATEFUL_SET] = {"StatefulSet", "StatefulSets", "statefulsets", APPS, NAMESPACED},
    [KIND_DAEMON_SET] = {"DaemonSet", "DaemonSets", "daemonsets", APPS, NAMESPACED},
    [KIND_REPLICA_SET] = {"ReplicaSet", "ReplicaSets", "replicasets", APPS, NAMESPACED},
    [KIND_REPLICATION_CONTROLLER] = {"ReplicationController", "ReplicationControllers",
                                     "replicationcontrollers", CORE, NAMESPACED},
    [KIND_JOB] = {"Job", "Jobs", "jobs", BATCH, NAMESPACED},
    [KIND_CRON_JOB] = {"CronJob", "CronJobs", "cronjobs", BATCH, NAMESPACED},
    [KIND_AUTOSCALER] = {"HorizontalPodAutoscaler", "HorizontalPodAutoscalers",
                         "horizontalpodautoscalers", "/apis/autoscaling/v2", NAMESPACED},
    [KIND_SERVICE] = {"Service", "Services", "services", CORE, NAMESPACED},
    [KIND_ENDPOINT_SLICE] = {"EndpointSlice", "EndpointSlices", "endpointslices",
                             "/apis/discovery.k8s.io/v1", NAMESPACED},
    [KIND_WEBHOOKS] = {"ValidatingWebhookConfiguration", "ValidatingWebhookConfigurations",
                       "validatingwebhookconfigurations", REGISTRATION, GLOBAL},
    [KIND_MARKER] = {"MutatingAdmissionPolicy", "MutatingAdmissionPolicies",
                     "mutatingadmissionpolicies", REGISTRATION, GLOBAL},
    [KIND_MARKER_BINDING] = {"MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBindings",
                             "mutatingadmissionpolicybindings", REGISTRATION, GLOBAL},
    [KIND_CLOSER_BINDING] = {"ValidatingAdmissionPolicyBinding",
                             "ValidatingAdmissionPolicyBindings",
                             "validatingadmissionpolicybindings", REGISTRATION, GLOBAL},
    [KIND_LIMIT_RANGE] = {"LimitRange", "LimitRanges", "limitranges", CORE, NAMESPACED},
    [KIND_CONFIG_MAP] = {"ConfigMap", "ConfigMaps", "configmaps", CORE, NAMESPACED},
    [KIND_EVENT] = {"Event", "Events", "events", CORE, NAMESPACED},
};

_Static_assert(KIND_NAMED_COUNT <= sizeof(unsigned) * 8, "a bit for each kind");

struct slice api_group_of(struct slice api_version)
{
    const char *slash = api_version.len == 0 ? NULL : memchr(api_version.ptr, '/', api_version.len);
    return (struct slice){api_version.ptr, slash == NULL ? 0 : (size_t)(slash - api_version.ptr)};
}

/* The first of `count` kinds that has these names; KIND_OTHER: none. */
static enum kind find(int count, struct slice api_version, struct slice kind)
{
    struct slice group = api_group_of(api_version);

    for (int i = 0; i < count; i++)
        if (i != KIND_OTHER && slice_equal(kind, slice_of(kinds[i].kind)) &&
            slice_equal(group, api_group_of(slice_of(kind_api_version((enum kind)i)))))
            return (enum kind)i;
    return KIND_OTHER;
}

enum kind kind_of(struct slice api_version, struct slice kind)
{
    return find(KIND_COUNT, api_version, kind);
}

enum kind kind_of_any(struct slice api_version, struct slice kind)
{
    return find(KIND_NAMED_COUNT, api_version, kind);
}

const char *kind_resource(enum kind kind)
{
    return kinds[kind].resource;
}

const char *kind_text(enum kind kind)
{
    return kinds[kind].kind;
}

const char *kind_plural(enum kind kind)
{
    return kinds[kind].plural;
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
    return kinds[kind].scope == NAMESPACED;
}

/* ---- references ---- */

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

bool object_reference_copy_in(struct object_reference *out,
                              const struct object_reference *reference, struct arena *arena)
{
    char *text = arena_alloc(arena, object_reference_bytes(reference));

    if (text != NULL)
        *out = object_reference_copy(reference, text);
    return text != NULL;
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
