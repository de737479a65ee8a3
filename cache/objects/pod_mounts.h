/*
 * pod_mounts: how a pod mounts its volumes, and which mounts are deferred (DeferFSMount, KEP-2857).
 *
 * Ownership: decoded mounts point into the JSON text; mounts_copy makes one block that owns all.
 * Threads: any.
 */
#ifndef CACHE_OBJECTS_POD_MOUNTS_H
#define CACHE_OBJECTS_POD_MOUNTS_H

#include <stdint.h>

#include "config/base/slice.h"

/* An annotation of pods: the volumes whose mount is deferred, "data,logs"; or the opt-out. */
#define DEFER_FS_MOUNT_ANNOTATION "claimguard.io/defer-fs-mount"
#define DEFER_FS_MOUNT_OPT_OUT    "disabled"

/* Of a pod with more volumes, or a longer annotation, the mounts are not known: claimguard defers
 * nothing of it. What others defer counts: claim_reference.is_deferred. A name of a volume has 63
 * bytes, so this annotation can name all of them. */
enum { POD_VOLUMES_MAX = 1024, DEFER_FS_MOUNT_BYTES_MAX = POD_VOLUMES_MAX * 64 };

/* An annotation of pods: the volumes that claimguard has deferred, and the UIDs of the claims for
 * which it has decided that, "data=UID,logs=UID". Other deferrals are a user's. */
#define DEFERRED_FOR_ANNOTATION "claimguard.io/deferred-for"

enum volume_source {
    VOLUME_SOURCE_OTHER,
    VOLUME_SOURCE_CLAIM,     /* persistentVolumeClaim */
    VOLUME_SOURCE_EPHEMERAL, /* generic ephemeral: claim <pod>-<volume> */
    VOLUME_SOURCE_CSI,       /* inline */
};

/* The field deferFSMount of a volume source. */
enum defer_field { DEFER_FIELD_UNSET, DEFER_FIELD_FALSE, DEFER_FIELD_TRUE };

struct pod_volume {
    struct slice name;
    struct slice claim;           /* in the pod's namespace; of a claim or an ephemeral volume */
    struct slice driver, fs_type; /* of a csi volume */
    struct slice deferred_for;    /* of DEFERRED_FOR_ANNOTATION; empty: it does not name it */
    uint8_t source;               /* enum volume_source */
    uint8_t field;                /* enum defer_field */
    bool is_annotated;            /* the annotation names it */
    bool has_secret;              /* a csi volume with a nodePublishSecretRef */
    bool has_sub_path;            /* a container mounts it with subPath or subPathExpr */
    bool has_selinux;             /* a container that mounts it has seLinuxOptions */
};

struct pod_mounts {
    struct slice runtime_class; /* empty: the cluster's default runtime */
    struct slice fs_group_change_policy;
    struct slice annotation;
    bool has_fs_group;
    bool has_selinux; /* the pod's securityContext has seLinuxOptions */
    uint32_t volume_count;
    struct pod_volume *volumes;
};

static inline bool volume_is_deferred(const struct pod_volume *volume)
{
    return volume->is_annotated || volume->field == DEFER_FIELD_TRUE;
}

/* Whether any of the volumes is deferred; whether any is an inline CSI volume. */
bool mounts_defer(const struct pod_mounts *mounts);
bool mounts_have_inline(const struct pod_mounts *mounts);

/* Whether the annotation opts the pod out. */
bool mounts_opt_out(const struct pod_mounts *mounts);

/* Removes the next name from *rest, the annotation's list. False: there is none. Spaces around
 * names are ignored. */
bool annotation_next(struct slice *rest, struct slice *name);

/* Whether the annotation names the volume. */
bool annotation_names(struct slice annotation, struct slice volume);

/* The size of a copy; and the copy, in memory of that size that is aligned for pointers. */
size_t mounts_bytes(const struct pod_mounts *mounts);
struct pod_mounts *mounts_copy(const struct pod_mounts *mounts, void *memory);

/* Whether `known` sets the field deferFSMount of a volume, and the mounts do not set it for the
 * same volume; and a function that copies these fields. */
bool mounts_miss_field(const struct pod_mounts *mounts, const struct pod_mounts *known);
void mounts_take_fields(struct pod_mounts *mounts, const struct pod_mounts *known);

/* The volume of that name; NULL: none. mounts_find_near tries that index first. */
struct pod_volume *mounts_find(const struct pod_mounts *mounts, struct slice name);
struct pod_volume *mounts_find_near(const struct pod_mounts *mounts, struct slice name,
                                    uint32_t index);

#endif
