/*
 * exclusive: which claims are for one pod: those that are ReadWriteOncePod, and those of which a
 * container runtime mounts the volume, unless the entry says Allow (KEP-2857's second risk: two VMs
 * that mount one ext4 destroy it).
 *
 * Pure, as policies are.
 */
#ifndef POLICY_EXCLUSIVE_H
#define POLICY_EXCLUSIVE_H

#include "policy/policy.h"

/* Claims that claimLock: Annotation locks for one pod. A pod with more is rejected. */
enum { LOCKED_CLAIMS_MAX = 64 };

/* Whether the pod needs a claim, the index-th of its own, for itself: no other pod may hold it. */
bool exclusive_is_needed(const struct view *view, const struct pod_object *pod, size_t index,
                         const struct claim *claim);

/* Whether an entry, here or in another replica, makes the claims of that storage class exclusive.
 * One that says Allow here changes nothing: replicas with other entries may defer it alone. */
bool exclusive_by_class(const struct view *view, const struct claim *claim);

/* Whether the claim has one pod at a time because of its lock (claimLock: Annotation), whether or
 * not a pod's runtime would mount it. */
bool exclusive_by_lock(const struct view *view, const struct claim *claim);

/* The same, and other replicas may still let a pod share it without a lock: it must not be deferred
 * yet. */
bool exclusive_is_announced(const struct view *view, const struct claim *claim);

/* Whether the pod's claim of that name, which exists, is to be for the pod alone, because a user
 * has written the deferral, and nothing says so to other replicas, which let pods share it without
 * a lock (claimLock: Annotation). */
bool exclusive_is_unlocked(const struct view *view, const struct pod_object *pod, struct slice name,
                           const struct claim *claim);

/* Whether the pod of that use has a claim for itself because its runtime mounts the volume. */
bool exclusive_is_held(const struct view *view, const struct use *use);

/* Whether that may be true of any use of the claim: if not, its uses need not be checked. An entry
 * Allow does not count here: it is for one runtime class, and another pod may have another. */
static inline bool exclusive_may_be_held(const struct claim *claim)
{
    return claim->deferred != 0;
}

/* Whether pods hold the claim beside one that has it for itself because its runtime mounts it. */
bool exclusive_is_violated(const struct view *view, const struct claim *claim);

/* ---- where that lies on which claimguards agree: the storage classes of exclusive claims ---- */

#define AGREEMENT_NAME "claimguard-agreement" /* of the ConfigMap */

/* Its namespace: that of the kubeconfig's context, or of the service account. Each is empty where
 * there is none, or it is not known. For serve, which reads and writes it, and for doctor, which
 * asks for the rights to it. */
static inline struct slice agreed_namespace(struct slice context, struct slice account)
{
    return context.len != 0 ? context : account.len != 0 ? account : SLICE("claimguard");
}

#endif
