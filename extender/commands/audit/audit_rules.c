#include "extender/commands/audit/audit_rules.h"

#define STORAGE    "https://kubernetes.io/docs/concepts/storage/"
#define WORKLOADS  "https://kubernetes.io/docs/concepts/workloads/controllers/"
#define DEPLOYMENT WORKLOADS "deployment/#strategy"
#define MODES      STORAGE "persistent-volumes/#access-modes"
#define INLINE     STORAGE "ephemeral-volumes/#csi-ephemeral-volumes"
#define CLASSES    STORAGE "volume-attributes-classes/"

const struct rule audit_rules[RULE_COUNT + 1] = {
    [RULE_BAD_IGNORE] =
        {"CG001", LEVEL_ERROR, "A rule is ignored without a reason, or it is no rule",
         "A comment `# claimguard:ignore CG102 reason`, or an entry of the annotation\n"
         "`claimguard.io/audit-ignore`, has no reason, or no code of a rule. An entry is\n"
         "`CG102: reason`, or `CG102,CG104: reason`; entries are separated by `;` or by a line\n"
         "break.",
         "An entry without a reason ignores nothing: nobody could check later whether it is\n"
         "still right.",
         "Add the reason after the code, or remove the entry.",
         "https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations/"},
    [RULE_SHARED_POD_CLAIM] =
        {"CG101", LEVEL_ERROR, "A ReadWriteOncePod claim is held by two or more pods",
         "Two or more pods of a cluster that are assigned to nodes and not finished name one\n"
         "ReadWriteOncePod claim.",
         "Two schedulers bound pods, or a pod names its node. The second pod waits in\n"
         "ContainerCreating; or, with a driver that does not check, both write to one file\n"
         "system.",
         "Delete one of the pods, or scale its owner down. To prevent it, let one scheduler\n"
         "bind all pods of the claim, or run claimguard with its admission webhooks.",
         MODES},
    [RULE_POD_CLAIM_ROLLOUT] =
        {"CG102", LEVEL_ERROR, "The rollout of a workload with a ReadWriteOncePod claim never ends",
         "A Deployment with the strategy RollingUpdate names a ReadWriteOncePod claim, and its\n"
         "rollout adds a pod before it removes one: maxSurge is at least 1 and maxUnavailable\n"
         "0, after rounding, as by default with one to three replicas. minReplicas of a\n"
         "HorizontalPodAutoscaler counts as replicas. A DaemonSet with maxSurge is the same.\n"
         "With --config, this is a warning for claims that `nonExclusiveClaims: Exclusive`\n"
         "gives to one pod while its mount is deferred.",
         "The new pod cannot get the claim before the old one is removed, and the old one is\n"
         "removed when the new one is Ready. A person has to end it.",
         "Set `spec.strategy: {type: Recreate}` (with `rollingUpdate: null` in a patch of an\n"
         "existing Deployment), or `rollingUpdate: {maxSurge: 0, maxUnavailable: 1}`; or use a\n"
         "StatefulSet, which removes the old pod first.",
         DEPLOYMENT},
    [RULE_NODE_CLAIM_ROLLOUT] =
        {"CG103", LEVEL_WARNING,
         "The rollout of a Deployment with a ReadWriteOnce claim may never end",
         "As CG102, with a ReadWriteOnce claim whose volume is attached to one node. It does\n"
         "not fire if the template names its node or the label kubernetes.io/hostname, also in\n"
         "a required affinity, or requires an affinity to pods on the same node; or if the\n"
         "volume's nodeAffinity names the node. This is a note if it is not known whether the\n"
         "volume is attached: by its driver, or by the CSIDriver of its StorageClass.",
         "A new pod on another node waits in ContainerCreating with the Event\n"
         "FailedAttachVolume (Multi-Attach error; 1.37: Waiting for detach) until the old pod\n"
         "is removed, and that waits for the new one.",
         "Set `spec.strategy: {type: Recreate}` (with `rollingUpdate: null` in a patch of an\n"
         "existing Deployment), or `rollingUpdate: {maxSurge: 0, maxUnavailable: 1}`; or use a\n"
         "StatefulSet, or a claim that several nodes can mount.",
         DEPLOYMENT},
    [RULE_POD_CLAIM_REPLICAS] =
        {"CG104", LEVEL_ERROR, "Several pods of workloads name the same ReadWriteOncePod claim",
         "The template of a workload names a ReadWriteOncePod claim, and the workload has more\n"
         "than one pod: replicas of a Deployment, ReplicaSet or StatefulSet, parallelism of a\n"
         "Job or of a CronJob's Jobs, maxReplicas of a HorizontalPodAutoscaler, or a\n"
         "DaemonSet. For Jobs with completions, this is a warning. It also fires for a second\n"
         "workload that names the claim, unless that has no replicas or is a suspended\n"
         "CronJob; between two Jobs or CronJobs, this is a warning. Claims of\n"
         "volumeClaimTemplates and of generic ephemeral volumes are fine.",
         "One of the pods gets the claim, and all others wait.",
         "Use volumeClaimTemplates of a StatefulSet, or a generic ephemeral volume, so that\n"
         "each pod has a claim; or one replica; or a claim with access mode ReadWriteMany.",
         MODES},
    [RULE_NODE_CLAIM_NODES] =
        {"CG105", LEVEL_ERROR, "Pods on several nodes use one ReadWriteOnce claim",
         "Pods that are not finished and are assigned to different nodes name one\n"
         "ReadWriteOnce claim. This is an error if the volume is attached to one node, and\n"
         "pods that are not being deleted are on two nodes; otherwise a note. For a template,\n"
         "this is a warning: the workload has more than one pod, nothing keeps them on one\n"
         "node (as for CG103), and the volume is attached to one node; or a note, if it is\n"
         "not known whether it is attached. Two workloads that name it are a note.",
         "Only one node has the volume. Pods on others wait in ContainerCreating with\n"
         "FailedAttachVolume (Multi-Attach error; 1.37: Waiting for detach), in an Event that\n"
         "is gone after an hour. Where volumes are not attached (NFS), all pods run, and may\n"
         "overwrite each other's files.",
         "Bring the pods to one node (nodeSelector, or pod affinity with topologyKey\n"
         "kubernetes.io/hostname), or use a claim with access mode ReadWriteMany.",
         MODES},
    [RULE_CRON_JOB_OVERLAP] =
        {"CG106", LEVEL_WARNING, "Jobs of a CronJob may overlap on a ReadWriteOncePod claim",
         "A CronJob that is not suspended has concurrencyPolicy Allow (the default) and names\n"
         "a ReadWriteOncePod claim.",
         "If a Job runs longer than the interval of the schedule, the next pods wait for the\n"
         "claim, and Jobs pile up.",
         "Set `spec.concurrencyPolicy` to `Forbid` or `Replace`.",
         WORKLOADS "cron-jobs/#concurrency-policy"},
    [RULE_NO_CSI_DRIVER] =
        {"CG201", LEVEL_ERROR, "An inline CSI volume names a driver without a CSIDriver object",
         "A pod or a template has a volume of type csi, the input has CSIDrivers of a cluster,\n"
         "and none is of its driver.",
         "Without a CSIDriver object, a driver supports no inline volumes. The pod waits in\n"
         "ContainerCreating, and its Events repeat FailedMount.",
         "Install the driver, or correct its name.", INLINE},
    [RULE_NOT_EPHEMERAL] =
        {"CG202", LEVEL_ERROR,
         "An inline CSI volume names a driver that does not support inline volumes",
         "A pod or a template has a volume of type csi, and its CSIDriver does not have\n"
         "Ephemeral in volumeLifecycleModes.",
         "The kubelet always refuses the mount. volumeLifecycleModes of a CSIDriver cannot be\n"
         "changed.",
         "Use a PersistentVolumeClaim or a generic ephemeral volume with this driver; or\n"
         "another driver.",
         INLINE},
    [RULE_DRIVER_NOT_ON_NODE] =
        {"CG203", LEVEL_WARNING, "A node lacks the CSI driver of a pod's volume",
         "The CSINode of a pod's node does not have the driver; or, for a template or a pod\n"
         "without a node, that of a node which its nodeSelector allows, and which is Ready,\n"
         "schedulable and not tainted. It is not checked if the pod requires a node affinity,\n"
         "or its volume has one.",
         "kube-scheduler places pods on nodes that lack the driver. They wait in\n"
         "ContainerCreating until it is registered there.",
         "Run the driver's DaemonSet on the node; or restrict the pod to nodes that have it;\n"
         "or run claimguard, which rejects such nodes.",
         STORAGE "volumes/#csi"},
    [RULE_CLASS_MISSING] =
        {"CG301", LEVEL_ERROR, "A claim names a VolumeAttributesClass that does not exist",
         "The cluster's VolumeAttributesClasses are in the input, and none has the claim's\n"
         "volumeAttributesClassName. It does not fire for a claim whose volume has the class\n"
         "already, or that may be bound to an available volume.",
         "The volume of an unbound claim is not provisioned. A bound claim keeps its present\n"
         "class.",
         "Create the class, or correct its name.", CLASSES},
    [RULE_CLASS_OTHER_DRIVER] =
        {"CG302", LEVEL_ERROR, "A claim names a VolumeAttributesClass of another driver",
         "driverName of the claim's VolumeAttributesClass is not the CSI driver of its volume,\n"
         "or, for an unbound claim, not the provisioner of its StorageClass.",
         "The volume of an unbound claim is not provisioned. For a bound claim, the parameters\n"
         "are sent to a driver for which they were not written.",
         "Name a class of the volume's driver.", CLASSES},
    [RULE_CLASS_INFEASIBLE] =
        {"CG303", LEVEL_WARNING, "The driver has refused the VolumeAttributesClass of a claim",
         "status.modifyVolumeStatus.status of the claim is Infeasible.",
         "The volume keeps its present attributes, until the claim names another class.",
         "Name a class that the driver supports, or the previous one.", CLASSES},
    [RULE_CLASS_NOT_APPLIED] =
        {"CG304", LEVEL_WARNING, "The VolumeAttributesClass of a claim is not being applied",
         "A bound claim names a VolumeAttributesClass that is not its current one, and its\n"
         "status has no modification.",
         "Nothing will happen, because no external-resizer with support for\n"
         "VolumeAttributesClass runs for the driver; or the claim has only just been changed.",
         "Deploy the driver's external-resizer with modification of volumes enabled.", CLASSES},
    [RULE_CLASS_DELETING] =
        {"CG305", LEVEL_NOTE, "A VolumeAttributesClass is being deleted, and nothing uses it",
         "A VolumeAttributesClass is being deleted, and no claim and no PersistentVolume of\n"
         "the input names it.",
         "The controller that removes the finalizer kubernetes.io/vac-protection does not run,\n"
         "or the class has another finalizer.",
         "Read the finalizers of the class, and find out who should remove them.", CLASSES},
    [RULE_PAST_SCHEDULER] =
        {"CG401", LEVEL_WARNING, "A pod with a ReadWriteOncePod claim is placed without claimguard",
         "A pod or a template names a ReadWriteOncePod claim, and its node (spec.nodeName) or\n"
         "a schedulerName other than default-scheduler, claimguard-scheduler and those of\n"
         "--schedulers. In pods of a cluster, spec.nodeName is not checked: the scheduler sets\n"
         "it.",
         "spec.nodeName bypasses all schedulers. Schedulers that do not call claimguard know\n"
         "only their own cache, and may give one claim to two pods.",
         "Use nodeSelector in place of nodeName; let the scheduler call claimguard, or name it\n"
         "with --schedulers; or deploy the admission webhooks, which check every Binding.",
         "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename"},
    [RULE_NO_MARK] =
        {"CG402", LEVEL_WARNING,
         "A pod whose volumes claimguard checks lacks the mark claimguard.io/claims",
         "A pod that names a claim or an inline CSI volume has the resource\n"
         "claimguard.io/claims in no container, and other pods of the input have it, so the\n"
         "scheduler's managedResources is in use.",
         "With managedResources, kube-scheduler calls claimguard for marked pods only. This\n"
         "one is bound without it.",
         "Create the pod again while the policy that sets the mark is in force, and check that\n"
         "the policy includes its namespace.",
         "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/"
         "#extended-resources"},
    [RULE_COUNT] = {.code = NULL},
};
