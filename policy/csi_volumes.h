/*
 * csi_volumes: a pod runs only on nodes that have the CSI drivers of its volumes: of inline volumes
 * (KEP-596), of claims bound to CSI volumes or to in-tree volumes that a CSI driver serves now, and
 * of unbound claims whose provisioner is known as a CSI driver. The rows of the decision table
 * (docs/policies.md), rows about the pod first:
 *
 *   inline, and the CSIDriver does not list Ephemeral    UnschedulableAndUnresolvable
 *   inline, and there is no CSIDriver                    UnschedulableAndUnresolvable
 *   a claim, and the CSIDriver does not list Persistent  UnschedulableAndUnresolvable
 *   the node's CSINode lists the driver                  Success
 *   the node's CSINode does not                          UnschedulableAndUnresolvable, that node
 *   the node has no CSINode of its own                   as missingCSINode says, that node
 *
 * Where every node that the cache knows passes, no node is checked. So under missingCSINode:
 * Reject, a node that the cache does not know yet, which has no CSINode here, passes a filter call
 * then. It is rejected where it is the only node in question (view.node: a bind, Volcano's call),
 * and where nodes are checked because a known one does not pass.
 *
 * kube-scheduler's NodeVolumeLimits judges drivers that opt in with
 * CSIDriver.spec.preventPodSchedulingIfMissing, if its version does so (the gate
 * VolumeLimitScaling, on since 1.37). This policy judges them as all others, and needs not know the
 * version: filter is called only with nodes that passed there, so both say the same.
 *
 * Not judged: inline volumes of a pod without mounts (pod_object.mounts is NULL: it has too many
 * volumes); a claim whose volume the cache does not know; and drivers beyond CSI_NEEDS_MAX. The
 * cache has the mounts of pending pods with inline CSI volumes, so a bind also judges those.
 */
#ifndef POLICY_CSI_VOLUMES_H
#define POLICY_CSI_VOLUMES_H

#include "policy/policy.h"

enum { CSI_NEEDS_MAX = 32 }; /* nodes have few drivers; more would only cost time under the lock */

extern const struct policy csi_volumes;

/* Whether an inline volume of the pod can never be mounted: its CSIDriver lacks Ephemeral, and the
 * API server lets nobody change that. Only where the policy enforces. *reason: {NULL, 0}: there is
 * no memory for it. */
bool csi_volumes_refuse_inline(const struct view *view, const struct pod_object *pod,
                               struct arena *arena, struct slice *reason);

#endif
