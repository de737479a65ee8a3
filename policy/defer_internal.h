/* What defer_fs_mount.c, defer_reasons.c and exclusive.c share. */
#ifndef POLICY_DEFER_INTERNAL_H
#define POLICY_DEFER_INTERNAL_H

#include "policy/defer_fs_mount.h"

/* The next entry for the volume behind `from`, or the first; NULL: there is no other. */
const struct defer_entry *defer_next_entry(const struct view *view, const struct defer_entry *from,
                                           const struct pod_volume *volume,
                                           struct slice storage_class, struct slice runtime_class);

/* Empty: the claim is not known, or has none. */
struct slice defer_storage_class(const struct claim *claim);

struct slice defer_fs_type(const struct decision *decision);

/* The pod's fsGroupChangePolicy, or what its absence means. */
struct slice defer_change_policy(const struct pod_mounts *mounts);

#endif
