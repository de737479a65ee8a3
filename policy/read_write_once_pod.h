/*
 * read_write_once_pod: a claim with access mode ReadWriteOncePod belongs to one pod in the whole
 * cluster (KEP-2485). The rows of the decision table (docs/policies.md), first that applies:
 *
 *   no claim-backed volume                         Skip
 *   a claim that does not exist                    UnschedulableAndUnresolvable
 *   a claim being deleted, or an ephemeral one
 *     that the pod does not own                    UnschedulableAndUnresolvable
 *   no exclusive claim                             Skip
 *   it is pending, and being deleted               UnschedulableAndUnresolvable
 *   more exclusive claims than can be locked       UnschedulableAndUnresolvable
 *   every exclusive claim is free                  Success
 *   a holder that may not be preempted             UnschedulableAndUnresolvable
 *   only terminating holders                       Unschedulable, no victims
 *   only holders of lower priority                 Unschedulable, the others are the victims
 *
 * A reservation (cache/cluster/reservation.h) of equal or higher priority holds, and so does any
 * while its pod is being bound, though it is no victim; one of lower priority is taken over.
 *
 * Follows kube-scheduler's VolumeRestrictions plugin, but counts holders where that keeps a set,
 * and names claim and holder.
 */
#ifndef POLICY_READ_WRITE_ONCE_POD_H
#define POLICY_READ_WRITE_ONCE_POD_H

#include "policy/policy.h"

/* Claims that claimLock: Annotation locks for one pod. A pod with more is rejected. */
enum { LOCKED_CLAIMS_MAX = 64 };

extern const struct policy read_write_once_pod;

#endif
