#include "extender/commands/audit/audit_rules.h"

#define STORAGE    "https://kubernetes.io/docs/concepts/storage/"
#define WORKLOADS  "https://kubernetes.io/docs/concepts/workloads/controllers/"
#define DEPLOYMENT WORKLOADS "deployment/#strategy"
#define MODES      STORAGE "persistent-volumes/#access-modes"
#define INLINE     STORAGE "ephemeral-volumes/#csi-ephemeral-volumes"
#define CLASSES    STORAGE "volume-attributes-classes/"

const struct rule audit_rules[RULE_COUNT + 1] = {
    [RULE_BAD_IGNORE] =
        {"CG001", LEVEL_WARNING,
         "The annotation claimguard.io/audit-ignore has no reason, or no rule",
         "An object has the annotation `claimguard.io/audit-ignore`, and one of its entries has "
         "no\n"
         "reason, or no code of a rule. An entry is `CG102: reason`, or `CG102,CG104: reason`;\n"
         "entries are separated by `;` or by a line break.",
         "An entry without a reason ignores nothing: nobody could check later whether it is still\n"
         "right.",
         "Add the reason after the code and a colon, or remove the entry.",
         "https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations/"},
    [RULE_SHARED_POD_CLAIM] =
        {"CG101", LEVEL_ERROR, "A ReadWriteOncePod claim is held by two or more pods",
         "Two or more pods that are assigned to nodes and not finished name one claim with access\n"
         "mode ReadWriteOncePod. Only a cluster has such pods.",
         "The claim belongs to one pod in the whole cluster. The second pod waits in\n"
         "ContainerCreating; or, with a driver that does not check, both write to one file "
         "system.\n"
         "It happens if two schedulers bind pods, or if a pod names its node.",
         "Delete one of the pods, or scale its owner down. To prevent it, let one scheduler bind\n"
         "all pods of the claim, or run claimguard with its admission webhooks.",
         MODES},
    [RULE_POD_CLAIM_ROLLOUT] =
        {"CG102", LEVEL_ERROR, "The rollout of a workload with a ReadWriteOncePod claim never ends",
         "A Deployment has the strategy RollingUpdate, its rollout adds a pod before it removes "
         "one\n"
         "(maxSurge at least 1 and maxUnavailable 0, after rounding), and its template names a\n"
         "ReadWriteOncePod claim. With one to three replicas, the defaults give exactly this: of\n"
         "25 %, maxSurge is rounded up to 1, and maxUnavailable is rounded down to 0. minReplicas "
         "of\n"
         "a HorizontalPodAutoscaler counts as replicas. A DaemonSet with maxSurge is the same. "
         "With\n"
         "--config, the level is warning for claims that `nonExclusiveClaims: Exclusive` gives\n"
         "to one pod while its mount is deferred.",
         "The new pod has to be Ready before the old one is removed, and it cannot get the claim\n"
         "before the old one is removed. The rollout waits until progressDeadlineSeconds, and "
         "then\n"
         "for a person.",
         "Set `spec.strategy: {type: Recreate}` (`rollingUpdate: null` beside it in a patch of a\n"
         "Deployment that is there); or `rollingUpdate: {maxSurge: 0, maxUnavailable: 1}`;\n"
         "or use a StatefulSet, which removes the old pod first.",
         DEPLOYMENT},
    [RULE_NODE_CLAIM_ROLLOUT] =
        {"CG103", LEVEL_WARNING,
         "The rollout of a Deployment with a ReadWriteOnce claim may never end",
         "As CG102, with a ReadWriteOnce claim whose volume is attached to one node. It does not\n"
         "fire if the template names its node or the label kubernetes.io/hostname, also in a\n"
         "required affinity, or requires an affinity to pods on the same node. The level is\n"
         "note if the input does not say whether the volume is attached: it lacks the claim's\n"
         "PersistentVolume, StorageClass or CSIDriver.",
         "If the new pod is placed on another node, it waits in ContainerCreating with the Event\n"
         "FailedAttachVolume (Multi-Attach error; 1.37: Waiting for detach) until the old pod is\n"
         "removed, and the old pod is removed when the new one is Ready.",
         "Set `spec.strategy: {type: Recreate}` (`rollingUpdate: null` beside it in a patch of a\n"
         "Deployment that is there); or `rollingUpdate: {maxSurge: 0, maxUnavailable: 1}`;\n"
         "or use a StatefulSet, or a claim that several nodes can mount.",
         DEPLOYMENT},
    [RULE_POD_CLAIM_REPLICAS] =
        {"CG104", LEVEL_ERROR, "Several pods of workloads name the same ReadWriteOncePod claim",
         "The template of a workload names a ReadWriteOncePod claim, and the workload has more\n"
         "than one pod: replicas of a Deployment, ReplicaSet or StatefulSet, parallelism of a Job\n"
         "or of a CronJob's Jobs, maxReplicas of a HorizontalPodAutoscaler, or a DaemonSet. "
         "The\n"
         "level is warning for Jobs with completions, whose pods run one after another. It also\n"
         "fires for a second workload whose template names the claim, unless that has no "
         "replicas,\n"
         "or is a suspended CronJob; between two Jobs or CronJobs, the level is warning. Claims\n"
         "of volumeClaimTemplates and of generic ephemeral volumes are one for each pod, and are\n"
         "fine.",
         "One of the pods gets the claim, and all others wait.",
         "Use volumeClaimTemplates of a StatefulSet, or a generic ephemeral volume, so that each\n"
         "pod has a claim; or one replica; or a claim with access mode ReadWriteMany.",
         MODES},
    [RULE_NODE_CLAIM_NODES] =
        {"CG105", LEVEL_ERROR, "Pods on several nodes use one ReadWriteOnce claim",
         "Pods that are assigned to different nodes and not finished name one claim, and its\n"
         "volume is ReadWriteOnce. The level is error if the volume is attached to one node, and\n"
         "pods that are not being deleted are on two nodes; otherwise it is note. For a template,\n"
         "the level is warning: the workload has more than one pod, nothing keeps them on one "
         "node\n"
         "(as for CG103), and the volume is attached to one node.",
         "Only one node has the volume. The pods on other nodes wait in ContainerCreating with\n"
         "FailedAttachVolume (Multi-Attach error; 1.37: Waiting for detach), which is reported\n"
         "once, in an Event that is gone after an hour.\n"
         "Where volumes are not attached (NFS), all pods run, and nothing keeps one from\n"
         "overwriting what another wrote.",
         "Bring the pods to one node (nodeSelector, or pod affinity with topologyKey\n"
         "kubernetes.io/hostname), or use a claim with access mode ReadWriteMany.",
         MODES},
    [RULE_CRON_JOB_OVERLAP] =
        {"CG106", LEVEL_WARNING, "Jobs of a CronJob may overlap on a ReadWriteOncePod claim",
         "A CronJob that is not suspended has concurrencyPolicy Allow, which is the default, and "
         "its\n"
         "template names a ReadWriteOncePod claim.",
         "If a Job runs longer than the interval of the schedule, the pod of the next one waits\n"
         "for the claim, and Jobs pile up.",
         "Set `spec.concurrencyPolicy` to `Forbid` or `Replace`.",
         WORKLOADS "cron-jobs/#concurrency-policy"},
    [RULE_NO_CSI_DRIVER] =
        {"CG201", LEVEL_ERROR, "An inline CSI volume names a driver without a CSIDriver object",
         "A pod or a template has a volume of type csi, and the cluster has no CSIDriver object "
         "of\n"
         "its driver. It is checked only for a cluster whose CSIDrivers are in the input.",
         "Without a CSIDriver object, a driver supports no inline volumes. The pod waits in\n"
         "ContainerCreating, and its Events repeat FailedMount.",
         "Install the driver, or correct its name.", INLINE},
    [RULE_NOT_EPHEMERAL] =
        {"CG202", LEVEL_ERROR,
         "An inline CSI volume names a driver that does not support inline volumes",
         "A pod or a template has a volume of type csi, and the CSIDriver object of its driver\n"
         "does not have Ephemeral in volumeLifecycleModes.",
         "The kubelet refuses the mount, always: volumeLifecycleModes of a CSIDriver cannot be\n"
         "changed.",
         "Use a PersistentVolumeClaim or a generic ephemeral volume with this driver; or another\n"
         "driver.",
         INLINE},
    [RULE_DRIVER_NOT_ON_NODE] =
        {"CG203", LEVEL_WARNING, "A node lacks the CSI driver of a pod's volume",
         "The CSINode of a pod's node does not have the driver; or, for a template or a pod\n"
         "without a node, that of a node which its nodeSelector allows. Nodes that are not Ready,\n"
         "unschedulable or tainted do not count for the latter. It is not checked if the pod\n"
         "requires a node affinity, or its volume has one.",
         "kube-scheduler places pods on nodes that lack the driver. They wait in "
         "ContainerCreating\n"
         "until the driver is registered there.",
         "Run the driver's DaemonSet on the node; or restrict the pod to nodes that have it; or\n"
         "run claimguard, which rejects such nodes.",
         STORAGE "volumes/#csi"},
    [RULE_CLASS_MISSING] =
        {"CG301", LEVEL_ERROR, "A claim names a VolumeAttributesClass that does not exist",
         "The claim's volumeAttributesClassName is not the name of a VolumeAttributesClass of the\n"
         "cluster. It is checked only for a cluster whose VolumeAttributesClasses are in the\n"
         "input. It does not fire for a claim whose volume has the class already, or that may be\n"
         "bound to an available volume.",
         "The volume of an unbound claim is not provisioned. A bound claim keeps its present "
         "class.",
         "Create the class, or correct its name.", CLASSES},
    [RULE_CLASS_OTHER_DRIVER] =
        {"CG302", LEVEL_ERROR, "A claim names a VolumeAttributesClass of another driver",
         "driverName of the claim's VolumeAttributesClass is not the CSI driver of its volume, "
         "or,\n"
         "for an unbound claim, not the provisioner of its StorageClass.",
         "A volume is not provisioned with such a class. For a bound claim, nothing compares the\n"
         "names: the parameters are sent to a driver for which they were not written.",
         "Name a class of the volume's driver.", CLASSES},
    [RULE_CLASS_INFEASIBLE] =
        {"CG303", LEVEL_WARNING, "The driver has refused the VolumeAttributesClass of a claim",
         "status.modifyVolumeStatus.status of the claim is Infeasible.",
         "The volume keeps its present attributes, until the claim names another class.",
         "Name a class that the driver supports, or the previous one.", CLASSES},
    [RULE_CLASS_NOT_APPLIED] =
        {"CG304", LEVEL_WARNING, "The VolumeAttributesClass of a claim is not being applied",
         "A bound claim names a VolumeAttributesClass that is not its current one, and its status\n"
         "has no modification.",
         "No external-resizer with support for VolumeAttributesClass runs for the driver, so\n"
         "nothing will happen. Directly after a change of the claim, it only has not begun yet.",
         "Deploy the driver's external-resizer with modification of volumes enabled.", CLASSES},
    [RULE_CLASS_DELETING] =
        {"CG305", LEVEL_NOTE, "A VolumeAttributesClass is being deleted, and nothing uses it",
         "A VolumeAttributesClass has a deletionTimestamp, and no claim and no PersistentVolume "
         "of\n"
         "the input names it.",
         "The finalizer kubernetes.io/vac-protection should have been removed by now: its\n"
         "controller does not run, or the class has another finalizer.",
         "Read the finalizers of the class, and find out who should remove them.", CLASSES},
    [RULE_PAST_SCHEDULER] =
        {"CG401", LEVEL_WARNING, "A pod with a ReadWriteOncePod claim is placed without claimguard",
         "A pod or a template names a ReadWriteOncePod claim, and its node (spec.nodeName), or a\n"
         "schedulerName that is neither default-scheduler nor claimguard-scheduler; --schedulers\n"
         "gives the names of the schedulers that call claimguard. A pod of a cluster that has its\n"
         "node may have got it from a scheduler, so spec.nodeName is checked in manifests and in\n"
         "templates only.",
         "spec.nodeName bypasses all schedulers. Two schedulers that do not call claimguard give\n"
         "one claim to two pods, because each knows only its own cache.",
         "Use nodeSelector in place of nodeName; let the scheduler call claimguard, or name it "
         "with\n"
         "--schedulers; or deploy the admission webhooks, which check every Binding.",
         "https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename"},
    [RULE_NO_MARK] =
        {"CG402", LEVEL_WARNING,
         "A pod whose volumes claimguard checks lacks the mark claimguard.io/claims",
         "Some pods of the input have the resource claimguard.io/claims, so the scheduler's\n"
         "managedResources is in use; and another pod, which names a claim or an inline CSI\n"
         "volume, has it in no container.",
         "With managedResources, kube-scheduler calls claimguard for marked pods only. This one "
         "is\n"
         "bound without claimguard.",
         "Create the pod again while the policy that sets the mark is in force, and check that "
         "the\n"
         "policy includes its namespace.",
         "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/"
         "#extended-resources"},
    [RULE_COUNT] = {.code = NULL},
};
