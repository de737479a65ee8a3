/* Causes: the claims themselves, and what they are bound to. */
#include "cache/cluster/allowance.h"
#include "extender/commands/why/why_internal.h"
#include "policy/volume.h"

/* ---- finalizers ---- */

/* They go by themselves, when no pod uses the claim, and no claim the volume. */
#define CLAIM_PROTECTION  "kubernetes.io/pvc-protection"
#define VOLUME_PROTECTION "kubernetes.io/pv-protection"

static void help_by_finalizers(struct why_pod *pod, const struct pull_items *finalizers,
                               const char *what)
{
    const struct slice *items = finalizers->items;

    for (size_t i = 0; i < finalizers->count; i++)
        if (!slice_equal(items[i], SLICE(CLAIM_PROTECTION)) &&
            !slice_equal(items[i], SLICE(VOLUME_PROTECTION)))
            why_help(pod, "finalizer %.*s keeps the %s: what has set it has to remove it",
                     SLICE_ARG(items[i]), what);
}

void why_finalizers(struct why_pod *pod)
{
    const struct pull_items *finalizers = &pod->who.details.finalizers;

    if (!pod->pod->is_terminating || finalizers->count == 0)
        return;
    why_add(pod, WHY_BLOCKS, why_pod_reference(pod),
            "pod %.*s/%.*s is being deleted, and finalizers keep it", POD_ARG(pod->pod));
    help_by_finalizers(pod, finalizers, "pod");
}

/* ---- a claim that cannot be used ---- */

/* Whether the pod's StatefulSet makes the claim, from volumeClaimTemplates: TEMPLATE-POD. */
static bool is_of_template(const struct why_pod *pod, const struct why_claim *claim)
{
    struct slice name = claim_name(claim->who.claim), of_pod = pod_name(pod->pod);

    return slice_equal(pod->who.owner.kind, SLICE("StatefulSet")) && name.len > of_pod.len + 1 &&
           slice_ends_with(name, of_pod) && name.ptr[name.len - of_pod.len - 1] == '-';
}

static void help_missing(struct why_pod *pod, const struct why_claim *claim)
{
    if (claim->use->is_ephemeral)
        why_help(
            pod,
            "wait: kube-controller-manager creates the claim of a generic ephemeral volume; if "
            "it does not, the pod's events say why (a quota?)");
    else if (is_of_template(pod, claim))
        why_help(pod,
                 "wait: StatefulSet %.*s creates it from its volumeClaimTemplates; if it does not, "
                 "its events say why",
                 SLICE_ARG(pod->who.owner.name));
    else
        why_help(pod,
                 "create PersistentVolumeClaim %.*s in namespace %.*s, or correct the name in the "
                 "pod's volumes",
                 SLICE_ARG(claim_name(claim->who.claim)),
                 SLICE_ARG(name_text(claim->who.claim->ns)));
}

void why_claim_missing(struct why_pod *pod, const struct why_claim *claim)
{
    struct object_reference reference = why_claim_reference(claim);
    if (claim->who.claim->exists || !why_knows(pod, KIND_CLAIM) ||
        allowance_is_over(&pod->inquiry->cluster, reference.ns))
        return;
    why_add(pod, WHY_BLOCKS, reference, "claim %.*s/%.*s does not exist", CLAIM_ARG(claim));
    help_missing(pod, claim);
}

void why_claim_of_another(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice owner = name_slice(claim_owner_uid(claim->who.claim));
    if (!claim->who.claim->exists || !claim->use->is_ephemeral ||
        (owner.len != 0 && uid_is(&pod->pod->uid, owner)))
        return;
    why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
            "claim %.*s/%.*s has the name of the pod's generic ephemeral volume, and %s",
            CLAIM_ARG(claim),
            owner.len == 0 ? "nothing owns it: somebody has made it" : "another object owns it");
    why_help(pod,
             "%s the pod or its volume differently. The claim's data is not of this pod: see "
             "who uses it",
             owner.len == 0 ? "name"
                            : "wait, if an earlier pod of that name owns it, and it is being "
                              "collected; else name");
    why_command(pod, ADVICE_SEE_CLAIM, &CLAIM_WORDS(claim));
    pod->is_hopeless = true;
}

/* The pods for which the API server keeps a claim that is being deleted. */
static void help_by_users(struct why_pod *pod, const struct why_claim *claim)
{
    size_t shown = 0;

    for (size_t i = 0; i < claim->who.holder_count && shown < WHY_NAMES_SHOWN_MAX; i++) {
        const struct pod *holder = claim->who.holders[i].pod;
        if (holder == pod->pod)
            continue;
        shown++;
        why_help(pod,
                 "finalizer " CLAIM_PROTECTION
                 " keeps the claim until pod %.*s/%.*s on node %.*s has ended",
                 POD_ARG(holder), SLICE_ARG(pod_node(holder)));
    }
    if (claim->who.holder_count > WHY_NAMES_SHOWN_MAX)
        why_help(pod, "%zu pods hold it", claim->who.holder_count);
}

void why_claim_deleting(struct why_pod *pod, const struct why_claim *claim)
{
    bool is_running = pod->stage == WHY_RUNNING;
    if (!claim->who.claim->exists || !claim->who.claim->is_deleting)
        return;
    why_add(pod, is_running ? WHY_LATER : WHY_BLOCKS, why_claim_reference(claim),
            is_running ? "claim %.*s/%.*s is being deleted: it goes when this pod ends, and no new "
                         "pod can use it"
                       : "claim %.*s/%.*s is being deleted: no new pod can use it",
            CLAIM_ARG(claim));
    help_by_users(pod, claim);
    why_help_all(pod, who_deletion(&claim->who, pod->texts));
    help_by_finalizers(pod, &claim->who.details.finalizers, "claim");
    why_help(pod, claim->use->is_ephemeral || is_of_template(pod, claim)
                      ? "when it is gone, it is made again, empty; a deletion cannot be undone"
                      : "when it is gone, create it again; a deletion cannot be undone");
}

void why_claim_lost(struct why_pod *pod, const struct why_claim *claim)
{
    if (!claim->who.claim->exists || claim_phase(claim->who.claim) != CLAIM_LOST)
        return;
    const struct resource *volume =
        cluster_find_resource(&pod->inquiry->cluster, KIND_VOLUME, claim->who.volume);
    struct slice other = volume == NULL ? SLICE("") : resource_attribute(volume, VOLUME_CLAIM_NAME);
    if (other.len == 0)
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is Lost: its volume %.*s is gone, or is bound to another claim",
                CLAIM_ARG(claim), SLICE_ARG(claim->who.volume));
    else
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is Lost: its volume %.*s is of claim %.*s/%.*s", CLAIM_ARG(claim),
                SLICE_ARG(claim->who.volume),
                SLICE_ARG(resource_attribute(volume, VOLUME_CLAIM_NAMESPACE)), SLICE_ARG(other));
    why_help_all(pod, who_bound_by(&claim->who, pod->texts));
}

/* ---- its volume ---- */

/* The words of what differs between a volume and the claim. */
static const char *misfit_text(enum misfit misfit)
{
    static const char *const texts[] = {[MISFIT_NONE] = "",
                                        [MISFIT_CLASS] = "storageClassName",
                                        [MISFIT_KEPT] = "claimRef",
                                        [MISFIT_SIZE] = "size",
                                        [MISFIT_MODE] = "volumeMode",
                                        [MISFIT_ACCESS] = "access modes",
                                        [MISFIT_ATTRIBUTES_CLASS] = "volumeAttributesClassName",
                                        [MISFIT_SELECTOR] = "labels (the claim has a selector)"};
    return texts[misfit];
}

/* A volume that is there, and that the claim names, and is not bound to. */
static void help_named(struct why_pod *pod, const struct why_claim *claim,
                       const struct resource *volume)
{
    struct slice ns = resource_attribute(volume, VOLUME_CLAIM_NAMESPACE);
    struct slice name = resource_attribute(volume, VOLUME_CLAIM_NAME);
    enum misfit misfit = volume_misfit(volume, claim->who.claim, true);
    bool is_same = slice_equal(name, claim_name(claim->who.claim));

    if (name.len != 0 && ns.len == 0 && is_same)
        why_help(pod, "the volume's claimRef has no namespace: set it to %.*s",
                 SLICE_ARG(name_text(claim->who.claim->ns)));
    else if (name.len != 0 && !(is_same && slice_equal(ns, name_text(claim->who.claim->ns))))
        why_help(pod,
                 "claim %.*s/%.*s has that volume: name another one in a new claim (a claim's "
                 "volumeName cannot be changed)",
                 SLICE_ARG(ns), SLICE_ARG(name));
    else if (misfit != MISFIT_NONE)
        why_help(pod,
                 "they are never bound, since they differ in %s%s: create the claim again, so that "
                 "it fits the volume",
                 misfit_text(misfit),
                 misfit == MISFIT_SIZE     ? " (the volume has less)"
                 : misfit == MISFIT_ACCESS ? " (the volume lacks one)"
                                           : "");
    else
        why_help(pod, "wait, if it is Available; else name another volume in a new claim");
}

void why_volume_missing(struct why_pod *pod, const struct why_claim *claim)
{
    const struct cluster *cluster = &pod->inquiry->cluster;
    const struct claim *record = claim->who.claim;
    if (!record->exists || claim_phase(record) == CLAIM_LOST || !claim->is_bound ||
        claim->volume != NULL || !why_knows(pod, KIND_VOLUME))
        return;
    const struct resource *other = cluster_find_resource(cluster, KIND_VOLUME, claim->who.volume);
    if (other == NULL)
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "volume %.*s of claim %.*s/%.*s does not exist", SLICE_ARG(claim->who.volume),
                CLAIM_ARG(claim));
    else
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "claim %.*s/%.*s names volume %.*s, which is not bound to it%s", CLAIM_ARG(claim),
                SLICE_ARG(claim->who.volume),
                claim->who.is_of_earlier ? ": its claimRef.uid is that of an earlier claim" : "");
    if (claim->who.is_of_earlier) {
        why_help_all(pod, who_bound_by(&claim->who, pod->texts));
        return;
    }
    if (other != NULL)
        help_named(pod, claim, other);
    else if (claim_phase(record) == CLAIM_BOUND)
        why_help(pod,
                 "the claim was bound, and nothing makes the volume again: create a "
                 "PersistentVolume of that name for its disk, with the claim's claimRef; a new "
                 "claim is empty");
    else
        why_help(pod, "wait, if a provisioner makes it; else create the PersistentVolume, or a new "
                      "claim");
}

void why_volume_deleting(struct why_pod *pod, const struct why_claim *claim)
{
    bool is_late = pod->stage != WHY_RUNNING && who_is_attachable(&claim->who);
    if (claim->volume_details->deletion_timestamp.len == 0)
        return;
    why_add(pod, is_late && pod->stage == WHY_STARTING ? WHY_BLOCKS : WHY_LATER,
            why_volume_reference(claim),
            "volume %.*s of claim %.*s/%.*s is being deleted: it goes when the claim does%s",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim),
            is_late ? ", and is attached to no node any more" : "");
    why_help_all(pod, who_deletion(&claim->who, pod->texts));
    why_help(pod,
             "delete the claim, and create the PersistentVolume for its storage, and the claim "
             "again: a deletion cannot be undone");
}

/* ---- a claim that is not bound ---- */

static bool is_unbound(const struct why_claim *claim)
{
    const struct claim *record = claim->who.claim;

    return record->exists && !record->is_deleting && claim_phase(record) != CLAIM_LOST &&
           claim_phase(record) != CLAIM_BOUND && !claim->is_bound;
}

static bool lacks_class(const struct why_pod *pod, const struct why_claim *claim)
{
    return claim_storage_class(claim->who.claim) != NULL && claim->class == NULL &&
           why_knows(pod, KIND_STORAGE_CLASS);
}

/* Whether the claim's volume is made only when a pod with it has a node. */
static bool waits_for_consumer(const struct why_claim *claim)
{
    return slice_equal(claim->class_details.binding_mode, SLICE("WaitForFirstConsumer"));
}

static struct slice class_name(const struct why_claim *claim)
{
    return name_slice(claim_storage_class(claim->who.claim));
}

/* A CSI driver instead of the in-tree plug-in that it has replaced. */
static struct slice provisioner_of(const struct why_pod *pod, const struct why_claim *claim)
{
    return claim->class == NULL
               ? SLICE("")
               : volume_provisioner(&pod->inquiry->cluster, claim->who.claim, NULL);
}

static bool makes_no_volumes(const struct why_pod *pod, const struct why_claim *claim)
{
    return slice_equal(provisioner_of(pod, claim), SLICE("kubernetes.io/no-provisioner"));
}

static bool has_selector(const struct why_claim *claim)
{
    const struct claim_rare *rare = claim_rare_at(claim->who.claim->rare);

    return rare != NULL && rare->selector != NULL;
}

/* What volume somebody has to make. */
static void help_by_hand(struct why_pod *pod, const struct why_claim *claim)
{
    enum misfit misfit = volume_nearest_misfit(&pod->inquiry->cluster, claim->who.claim);

    if (misfit > MISFIT_KEPT)
        why_help(pod,
                 "an Available PersistentVolume nearly fits, but for its %s: change it or the "
                 "claim, or create a volume that fits",
                 misfit_text(misfit));
    else
        why_help(pod,
                 "create a PersistentVolume%s%.*s that fits the claim (size, access modes, "
                 "volumeMode%s)",
                 class_name(claim).len == 0 ? " without a class" : " of StorageClass ",
                 SLICE_ARG(class_name(claim)),
                 has_selector(claim) ? ", and the labels of its selector" : "");
}

/* Whether the driver that makes the claim's volume is not there at all. */
static bool lacks_driver(const struct why_pod *pod, const struct why_claim *claim)
{
    struct slice plugin = SLICE("");
    struct slice driver = claim->class == NULL ? SLICE("")
                                               : volume_provisioner(&pod->inquiry->cluster,
                                                                    claim->who.claim, &plugin);

    return plugin.len != 0 && why_knows(pod, KIND_CSI_DRIVER) &&
           cluster_find_resource(&pod->inquiry->cluster, KIND_CSI_DRIVER, driver) == NULL;
}

/* Who does not make the volume; and what is in the events, which no input has. */
static void help_by_events(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice provisioner = provisioner_of(pod, claim);

    if (provisioner.len == 0 && class_name(claim).len == 0 &&
        volume_nearest_misfit(&pod->inquiry->cluster, claim->who.claim) <= MISFIT_KEPT) {
        if (claim->who.details.has_no_class)
            why_help(pod, "storageClassName \"\" excludes the default class: create the claim "
                          "again without it, to get that");
        else
            why_help(pod, "make a StorageClass the default, which the claim then gets "
                          "(storageclass.kubernetes.io/is-default-class), or create the claim "
                          "again with a class");
    }
    if (makes_no_volumes(pod, claim) || (provisioner.len == 0 && class_name(claim).len == 0)) {
        help_by_hand(pod, claim);
        return;
    }
    if (has_selector(claim) && provisioner.len != 0)
        why_help(pod, "a provisioner makes no volume for a claim with a selector: create the claim "
                      "again without it, or a PersistentVolume with its labels");
    else if (lacks_driver(pod, claim))
        why_help(pod,
                 "install the CSI driver %.*s: it has replaced the provisioner of the class, and "
                 "has no CSIDriver here",
                 SLICE_ARG(provisioner));
    else if (provisioner.len == 0)
        why_help(pod, "the claim's events say more");
    else
        why_help(pod, "is the provisioner %.*s running? The claim's events have what it says",
                 SLICE_ARG(provisioner));
    why_command(pod, ADVICE_SEE_CLAIM, &CLAIM_WORDS(claim));
}

/* Claims of one class wait for the same. */
static void root_class(struct why_pod *pod, const struct why_claim *claim)
{
    if (class_name(claim).len != 0)
        why_root(pod,
                 (struct object_reference){.kind = KIND_STORAGE_CLASS, .name = class_name(claim)});
}

void why_class_missing(struct why_pod *pod, const struct why_claim *claim)
{
    const struct object_reference reference = {.kind = KIND_STORAGE_CLASS,
                                               .name = class_name(claim)};
    if (!is_unbound(claim) || !lacks_class(pod, claim))
        return;
    why_add(
        pod, WHY_BLOCKS, reference,
        "StorageClass %.*s of claim %.*s/%.*s does not exist, so no volume is made for the claim",
        SLICE_ARG(reference.name), CLAIM_ARG(claim));
    if (volume_nearest_misfit(&pod->inquiry->cluster, claim->who.claim) > MISFIT_CLASS)
        help_by_hand(pod, claim); /* a class of volumes that are made by hand needs no object */
    why_help(
        pod,
        "create StorageClass %.*s, or a PersistentVolume with that storageClassName; or delete the "
        "claim, and create it with a class that exists (a claim's class cannot be changed)",
        SLICE_ARG(reference.name));
}

void why_claim_unbound(struct why_pod *pod, const struct why_claim *claim)
{
    if (!is_unbound(claim) || lacks_class(pod, claim) || waits_for_consumer(claim))
        return;
    if (class_name(claim).len != 0 && claim->class_details.binding_mode.len == 0)
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is not bound; unless StorageClass %.*s has the volumeBindingMode "
                "WaitForFirstConsumer, the volume comes first",
                CLAIM_ARG(claim), SLICE_ARG(class_name(claim)));
    else if (class_name(claim).len == 0)
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is not bound, and names no StorageClass: it waits for a "
                "PersistentVolume without a class%s",
                CLAIM_ARG(claim),
                claim->who.details.has_no_class ? "" : ", or for a default class");
    else
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is not bound, and StorageClass %.*s does not wait for the pod's "
                "node: the volume comes first",
                CLAIM_ARG(claim), SLICE_ARG(class_name(claim)));
    root_class(pod, claim);
    help_by_events(pod, claim);
}

/* A claim whose volume has to be there already, and is chosen with the pod's node. */
static void find_no_volume(struct why_pod *pod, const struct why_claim *claim)
{
    bool has_offer = volume_offers_fit(&pod->inquiry->cluster, claim->who.claim);
    bool has_none = !has_offer && why_knows(pod, KIND_VOLUME);

    why_add(pod,
            has_none    ? WHY_BLOCKS
            : has_offer ? WHY_NORMAL
                        : WHY_NARROWS,
            why_claim_reference(claim),
            "claim %.*s/%.*s waits for an Available PersistentVolume of StorageClass %.*s, which "
            "makes none%s",
            CLAIM_ARG(claim), SLICE_ARG(class_name(claim)),
            has_none    ? ", and there is none that fits"
            : has_offer ? "; there is one that fits"
                        : "");
    root_class(pod, claim);
    if (!has_offer)
        help_by_events(pod, claim);
}

void why_first_consumer(struct why_pod *pod, const struct why_claim *claim)
{
    if (!is_unbound(claim) || !waits_for_consumer(claim) ||
        claim->who.details.selected_node.len != 0)
        return;
    if (pod->stage == WHY_SCHEDULING && makes_no_volumes(pod, claim)) {
        find_no_volume(pod, claim);
        return;
    }
    if (pod->stage == WHY_SCHEDULING) {
        why_add(pod, WHY_NORMAL, why_claim_reference(claim),
                "claim %.*s/%.*s waits for this pod: StorageClass %.*s makes the volume when a "
                "node is chosen for the pod",
                CLAIM_ARG(claim), SLICE_ARG(class_name(claim)));
        return;
    }
    why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
            "claim %.*s/%.*s waits until a scheduler chooses a node for a pod with it "
            "(StorageClass %.*s), and this pod has its node without one",
            CLAIM_ARG(claim), SLICE_ARG(class_name(claim)));
    struct slice scheduler = pod->who.details.scheduler;
    if (scheduler.len != 0 && !slice_equal(scheduler, SLICE("default-scheduler")))
        why_help(pod,
                 "if scheduler %.*s chose the node: it does not bind volumes (VolumeBinding); let "
                 "another one place the pod",
                 SLICE_ARG(scheduler));
    why_help(pod, "create the pod again without spec.nodeName; a nodeSelector can name the node");
}

/* As kube-scheduler's VolumeBinding: while the annotation is there, only that node passes. */
static void reject_others(struct why_pod *pod, struct slice node)
{
    for (size_t n = 0; n < pod->node_count; n++)
        if (pod->nodes[n].out_by == NULL && !slice_equal(pod->nodes[n].name, node))
            pod->nodes[n].out_by = pod->word;
}

/* Whether the CSINode of a node lacks the driver of the claim's class, which has a CSIDriver. */
static bool lacks_driver_there(const struct why_pod *pod, const struct why_claim *claim,
                               struct slice node)
{
    const struct cluster *cluster = &pod->inquiry->cluster;
    const struct node *record = cluster_find_node(cluster, node);
    struct slice driver = provisioner_of(pod, claim);

    return record != NULL && why_knows(pod, KIND_CSI_NODE) &&
           cluster_find_resource(cluster, KIND_CSI_DRIVER, driver) != NULL &&
           (record->csi_node == NULL || !words_have(name_slice(record->csi_node->drivers), driver));
}

void why_not_provisioned(struct why_pod *pod, const struct why_claim *claim)
{
    const struct cluster *cluster = &pod->inquiry->cluster;

    struct slice node = claim->who.details.selected_node;
    if (!is_unbound(claim) || !waits_for_consumer(claim) || node.len == 0)
        return;
    reject_others(pod, node);
    why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
            "the scheduler has chosen node %.*s for claim %.*s/%.*s, and its volume is not made "
            "yet: it takes no other node",
            SLICE_ARG(node), CLAIM_ARG(claim));
    root_class(pod, claim);
    if (why_knows(pod, KIND_NODE) && cluster_find_node(cluster, node) == NULL) {
        why_help(pod,
                 "node %.*s does not exist: remove the annotation, so that the scheduler chooses "
                 "another one",
                 SLICE_ARG(node));
        why_command(pod, ADVICE_FORGET_NODE, &CLAIM_WORDS(claim));
        return;
    }
    if (lacks_driver_there(pod, claim, node)) {
        why_help(
            pod,
            "driver %.*s is not registered on node %.*s (CSINode), so its provisioner does not "
            "know where to make the volume: get the driver there, or remove the annotation, "
            "so that the scheduler chooses another node",
            SLICE_ARG(provisioner_of(pod, claim)), SLICE_ARG(node));
        why_command(pod, ADVICE_FORGET_NODE, &CLAIM_WORDS(claim));
        return;
    }
    help_by_events(pod, claim);
    why_help(pod,
             "if the node has no room for the volume, wait: the provisioner removes the annotation "
             "volume.kubernetes.io/selected-node, and the scheduler tries another node");
}
