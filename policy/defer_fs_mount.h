/*
 * defer_fs_mount: for each volume of a pod, whether its file system is mounted by the pod's
 * container runtime instead of the node (KEP-2857): the scheduler component that the KEP's user
 * stories describe, configured with triples of storage class (or CSI driver), runtime class and
 * post-mount configuration.
 *
 * A volume is deferred if and only if all rules hold; the first that does not is the reason:
 *
 *   1 source             it is a persistentVolumeClaim, ephemeral or csi volume
 *   2 entry              runtime class, and storage class or driver, are those of an entry
 *   3 volumeMode         Filesystem
 *   4 csi                the claim is bound to a volume with a csi source
 *   5 fsGroup            the entry supports it, and the pod's fsGroupChangePolicy
 *   6 subPath            the entry supports it, if any container mounts it so
 *   7 seLinuxOptions     the entry supports it, if the pod or a container that mounts it has them
 *   8 fsType             is in the entry's list, if it has one
 *   9 secret             the node gets none: it would be written to the node's disk in clear text
 *  10 accessMode         ReadWriteOncePod, or the entry's nonExclusiveClaims says otherwise
 *
 * Of a claim that the pod has in two volumes, both are deferred or none: else node and VM would
 * mount it at once. That counts as the tenth rule.
 *
 * What the pod says itself comes between 1 and 2: a deferral that is there stays, unless claimguard
 * has written it for another claim, with another UID; and an opt-out, or deferFSMount: false, is
 * kept. Several entries may match; the first of which all rules hold
 * wins.
 *
 * What that means for pods that share the claim: exclusive.h.
 */
#ifndef POLICY_DEFER_FS_MOUNT_H
#define POLICY_DEFER_FS_MOUNT_H

#include "policy/policy.h"

enum defer_rule {
    RULE_NONE, /* it is deferred */
    RULE_SOURCE,
    RULE_ENTRY,
    RULE_VOLUME_MODE,
    RULE_CSI,
    RULE_FS_GROUP,
    RULE_SUB_PATH,
    RULE_SELINUX,
    RULE_FS_TYPE,
    RULE_SECRET,
    RULE_ACCESS_MODE,
    RULE_COUNT,
    RULE_OPTED_OUT = RULE_COUNT, /* no rule: the pod, or the operator, said so */
    RULE_SET_TO_FALSE,
    RULE_IS_DISABLED,
};

struct decision {
    const struct pod_volume *volume;
    const struct claim *claim;         /* NULL: not known, or an inline volume */
    const struct defer_entry *entry;   /* that matches; NULL: none does */
    const struct resource *persistent; /* the volume that the claim is bound to, or NULL */
    const struct pod_volume
        *node_mount;      /* of the same claim, and not deferred; NULL: there is none */
    enum defer_rule rule; /* why not; RULE_NONE: it is deferred */
    bool is_set;       /* it was deferred before: there is nothing to write, and nothing to undo */
    bool is_of_former; /* claimguard deferred it for an earlier claim of that name, and decides
                          again: if it is not deferred now, that is taken back */
    bool is_undecided; /* the claim is not bound yet: it is decided again when it is */
};

/* The next entry for the volume behind `from`, or the first; NULL: there is no other. */
const struct defer_entry *defer_next_entry(const struct view *view, const struct defer_entry *from,
                                           const struct pod_volume *volume,
                                           struct slice storage_class, struct slice runtime_class);

/* Decides about a volume of a pod whose mounts are known. */
void defer_decide(const struct view *view, const struct pod_object *pod,
                  const struct pod_volume *volume, struct decision *out);

/* Whether a claim's mount may be deferred: only then its volume is read. For a mount that is
 * deferred already, only its entry counts. */
bool defer_reads_volumes(const struct config *config);

/* Whether a claim of the pod may be deferred, whatever its storage class is. */
bool defer_may_match(const struct view *view, const struct pod_object *pod);

/* Why, in words that name the rule: "rule 6, subPath: ..."; {NULL, 0} without memory. */
struct slice defer_reason(const struct pod_object *pod, const struct decision *decision,
                          struct arena *arena);

/* "fast-storage/microvm": the entry's storage class or driver, and runtime class; empty for none;
 * {NULL, 0} without memory. */
struct slice defer_entry_name(const struct defer_entry *entry, struct arena *arena);

/* Whether the volume's claim, which does not exist, is needed to decide. */
bool defer_needs_claim(const struct view *view, const struct pod_object *pod,
                       const struct pod_volume *volume);

/* Whether the volume is deferred by an entry that is gone: its pod is to be restarted before the
 * CSI plugin is downgraded (KEP-2857, stories 5 and 6). */
bool defer_is_orphan(const struct view *view, const struct pod *pod,
                     const struct pod_volume *volume);

#endif
