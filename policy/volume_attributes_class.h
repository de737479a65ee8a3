/*
 * volume_attributes_class: the VolumeAttributesClass that a claim names can be applied to its
 * volume (KEP-3751). nil and "" are the same: no class. The rows of the decision table
 * (docs/policies.md), for each claim that names a class:
 *
 *   unbound, and a volume of that class is available    Success: it is bound by the names alone
 *   unbound, the class is missing                       UnschedulableAndUnresolvable
 *   unbound, the class is for another driver than
 *     the storage class's provisioner                   UnschedulableAndUnresolvable
 *   bound, with waitForModify, and Pending, InProgress
 *     or Infeasible                                     UnschedulableAndUnresolvable
 *   bound                                               Success, with warnings: the volume keeps
 *                                                       working with the attributes that it has
 *
 * Follows external-provisioner (a missing class is tried again for ever, another driver is an
 * error), external-resizer (a missing target is Pending; it does not compare drivers), and
 * kube-controller-manager's FindMatchingVolume, which compares the names of claim and volume.
 */
#ifndef POLICY_VOLUME_ATTRIBUTES_CLASS_H
#define POLICY_VOLUME_ATTRIBUTES_CLASS_H

#include "policy/policy.h"

extern const struct policy volume_attributes_class;

#endif
