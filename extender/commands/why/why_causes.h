/*
 * why_causes: the causes for which a pod waits, in the order in which one should look: what a claim
 * lacks before where its volume can be used, and that before what a node does with it.
 *
 * A new cause is a row here, a finder of that name in one of the files why_*.c, and a row in
 * docs/commands.md; tests/checks/causes-hold also wants a case in tests/commands/why.
 *
 * OF_POD(finder, word, stages): looked for once; OF_CLAIM: for each claim of the pod. Only
 * why_internal.h includes it.
 */
#ifndef EXTENDER_COMMANDS_WHY_WHY_CAUSES_H
#define EXTENDER_COMMANDS_WHY_WHY_CAUSES_H

/* clang-format off */
#define WHY_CAUSES(OF_POD, OF_CLAIM) \
    OF_POD(why_finalizers, "DeletionHeldByFinalizer", WHY_ANY) \
    OF_POD(why_terminating, "PodTerminating", WHY_STARTING | WHY_RUNNING) \
    OF_POD(why_given_up, "NamespaceGivenUp", WHY_WAITING) \
    OF_CLAIM(why_claim_missing, "ClaimMissing", WHY_WAITING) \
    OF_CLAIM(why_claim_of_another, "ClaimOfAnotherPod", WHY_WAITING) \
    OF_CLAIM(why_claim_deleting, "ClaimDeleting", WHY_WAITING | WHY_RUNNING) \
    OF_CLAIM(why_claim_lost, "ClaimLost", WHY_WAITING) \
    OF_POD(why_attributes_class, "VolumeAttributesClass", WHY_WAITING) \
    OF_CLAIM(why_class_missing, "StorageClassMissing", WHY_WAITING) \
    OF_CLAIM(why_claim_unbound, "ClaimUnbound", WHY_WAITING) \
    OF_CLAIM(why_first_consumer, "WaitsForFirstConsumer", WHY_WAITING) \
    OF_CLAIM(why_not_provisioned, "VolumeNotProvisioned", WHY_WAITING) \
    OF_CLAIM(why_volume_missing, "VolumeMissing", WHY_WAITING) \
    OF_CLAIM(why_volume_deleting, "VolumeDeleting", WHY_WAITING | WHY_RUNNING) \
    OF_POD(why_driver_mode, "DriverMode", WHY_WAITING) \
    OF_POD(why_in_use, "ClaimInUse", WHY_WAITING) \
    OF_CLAIM(why_locked, "ClaimLocked", WHY_WAITING) \
    OF_POD(why_apart, "VolumesApart", WHY_WAITING) \
    OF_CLAIM(why_affinity, "VolumeNodeAffinity", WHY_WAITING) \
    OF_CLAIM(why_zone, "VolumeZone", WHY_WAITING) \
    OF_CLAIM(why_topology, "StorageClassTopology", WHY_SCHEDULING) \
    OF_POD(why_elsewhere, "VolumeInUseElsewhere", WHY_SCHEDULING) \
    OF_POD(why_not_registered, "DriverNotRegistered", WHY_WAITING) \
    OF_POD(why_limit, "AttachLimit", WHY_SCHEDULING) \
    OF_POD(why_binding, "VolumeBinding", WHY_SCHEDULING) \
    OF_POD(why_cordoned, "NodeCordoned", WHY_SCHEDULING) \
    OF_POD(why_tainted, "NodeTainted", WHY_SCHEDULING) \
    OF_POD(why_not_wanted, "NodeAffinity", WHY_SCHEDULING) \
    OF_POD(why_rejected, "Rejected", WHY_SCHEDULING) \
    OF_POD(why_no_node, "NoNodeLeft", WHY_SCHEDULING) \
    OF_CLAIM(why_multi_attach, "MultiAttach", WHY_STARTING) \
    OF_CLAIM(why_one_writer, "OneWriter", WHY_STARTING) \
    OF_CLAIM(why_attach_failed, "AttachFailed", WHY_STARTING) \
    OF_CLAIM(why_not_attached, "NotAttached", WHY_STARTING) \
    OF_POD(why_deferral, "DeferralRefused", WHY_WAITING)
/* clang-format on */

#endif
