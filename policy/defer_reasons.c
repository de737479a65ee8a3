#include "policy/defer_internal.h"

static struct slice say_access_mode(const struct decision *decision, struct arena *arena)
{
    if (decision->node_mount != NULL)
        return arena_printf(arena,
                            "rule 10, accessMode: the node also mounts claim \"%.*s\" for volume "
                            "\"%.*s\", which is not deferred",
                            SLICE_ARG(decision->volume->claim),
                            SLICE_ARG(decision->node_mount->name));
    return arena_printf(arena,
                        "rule 10, accessMode: claim \"%.*s\" is not ReadWriteOncePod, and the "
                        "entry's nonExclusiveClaims is Refuse",
                        SLICE_ARG(decision->volume->claim));
}

static struct slice say_entry(const struct pod_object *pod, const struct decision *decision,
                              struct arena *arena)
{
    struct slice runtime_class = pod->mounts->runtime_class;

    if (runtime_class.len == 0)
        return arena_printf(arena, "rule 2, entry: the pod has no runtimeClassName");
    if (decision->volume->source == VOLUME_SOURCE_CSI)
        return arena_printf(arena,
                            "rule 2, entry: none is for CSI driver \"%.*s\" and runtime class "
                            "\"%.*s\"",
                            SLICE_ARG(decision->volume->driver), SLICE_ARG(runtime_class));
    if (decision->claim == NULL)
        return arena_printf(arena, "rule 2, entry: persistentvolumeclaim \"%.*s\" not found",
                            SLICE_ARG(decision->volume->claim));
    return arena_printf(
        arena, "rule 2, entry: none is for storage class \"%.*s\" and runtime class \"%.*s\"",
        SLICE_ARG(defer_storage_class(decision->claim)), SLICE_ARG(runtime_class));
}

static struct slice say_csi(const struct decision *decision, struct arena *arena)
{
    if (decision->is_undecided)
        return arena_printf(arena,
                            "rule 4, csi: claim \"%.*s\" is not bound to a volume that is known: "
                            "decided again when it is",
                            SLICE_ARG(decision->volume->claim));
    char name[PROVISIONED_NAME_BYTES];
    return arena_printf(arena, "rule 4, csi: volume \"%.*s\" has no csi source",
                        SLICE_ARG(resource_name(decision->persistent, name)));
}

static struct slice say_fs_group(const struct pod_object *pod, const struct decision *decision,
                                 struct arena *arena)
{
    if (!decision->entry->supports_fs_group)
        return arena_printf(arena,
                            "rule 5, fsGroup: the pod sets it, and the entry does not support it");
    return arena_printf(arena,
                        "rule 5, fsGroup: the entry's fsGroupChangePolicies do not have the "
                        "pod's, %.*s",
                        SLICE_ARG(defer_change_policy(pod->mounts)));
}

static struct slice say_set(const struct decision *decision, struct arena *arena)
{
    return arena_printf(arena, decision->entry != NULL
                                   ? "deferred already"
                                   : "deferred already, and no entry is for it (any more)");
}

struct slice defer_reason(const struct pod_object *pod, const struct decision *decision,
                          struct arena *arena)
{
    switch (decision->rule) {
    case RULE_NONE:
        return decision->is_set ? say_set(decision, arena)
                                : arena_printf(arena, "the entry supports all that the pod needs");
    case RULE_SOURCE:
        return arena_printf(arena, "rule 1, source: it is no persistentVolumeClaim, ephemeral or "
                                   "csi volume");
    case RULE_ENTRY: return say_entry(pod, decision, arena);
    case RULE_VOLUME_MODE: return arena_printf(arena, "rule 3, volumeMode: it is Block");
    case RULE_CSI: return say_csi(decision, arena);
    case RULE_FS_GROUP: return say_fs_group(pod, decision, arena);
    case RULE_SUB_PATH:
        return arena_printf(arena, "rule 6, subPath: a container mounts it with subPath or "
                                   "subPathExpr, and the entry does not support it");
    case RULE_SELINUX:
        return arena_printf(arena, "rule 7, seLinuxOptions: the pod or a container that mounts it "
                                   "sets them, and the entry does not support it");
    case RULE_FS_TYPE:
        return arena_printf(arena, "rule 8, fsType: the entry's fsTypes do not have \"%.*s\"",
                            SLICE_ARG(defer_fs_type(decision)));
    case RULE_SECRET:
        return arena_printf(arena, "rule 9, nodePublishSecret: the volume needs one, which would "
                                   "be written to the node's disk in clear text");
    case RULE_ACCESS_MODE: return say_access_mode(decision, arena);
    case RULE_OPTED_OUT:
        return arena_printf(arena, "the pod opts out: " DEFER_FS_MOUNT_ANNOTATION
                                   " is " DEFER_FS_MOUNT_OPT_OUT);
    case RULE_SET_TO_FALSE: return arena_printf(arena, "the pod says deferFSMount: false");
    case RULE_IS_DISABLED: return arena_printf(arena, "deferFSMount.apply is Disabled");
    }
    return (struct slice){NULL, 0};
}

struct slice defer_entry_name(const struct defer_entry *entry, struct arena *arena)
{
    if (entry == NULL)
        return SLICE("");
    return arena_printf(arena, "%.*s%.*s/%.*s", SLICE_ARG(entry->storage_class),
                        SLICE_ARG(entry->csi_driver), SLICE_ARG(entry->runtime_class));
}
