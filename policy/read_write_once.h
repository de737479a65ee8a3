/*
 * read_write_once: the pods of a ReadWriteOnce volume that has to be attached run on one node
 * (kubernetes#103305). Today only the attach/detach controller sees to that, after a pod is bound:
 * the pod sits in ContainerCreating with FailedAttachVolume ("Multi-Attach error"; 1.37: "Waiting
 * for detach"). For each bound claim:
 *
 *   its volume may be on several nodes, or is not
 *     attached, or the claim is ReadWriteOncePod     Skip
 *   no pod holds it                                  Success
 *   a node where a holder runs                       Success
 *   another node                                     Unresolvable, that node
 *
 * The volume's access modes count, as for Kubernetes' IsMultiAttachAllowed; the claim's do not.
 * Holders are pods that are assigned and not finished, and pods that are being bound, on their
 * node. Also the pod itself while its Binding is in doubt: it may still be applied. A pod that has
 * the claim for itself (exclusive.h) is ReadWriteOncePod's business.
 */
#ifndef POLICY_READ_WRITE_ONCE_H
#define POLICY_READ_WRITE_ONCE_H

#include "policy/policy.h"

extern const struct policy read_write_once;

/* Whether the policy is about the claim, number `index` of the pod's. NULL: it does not exist. */
bool read_write_once_judges(const struct view *view, const struct pod_object *pod, size_t index,
                            const struct claim *claim);

#endif
