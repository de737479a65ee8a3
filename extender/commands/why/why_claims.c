/* Causes: the claims themselves, and what they are bound to. */
#include "cache/cluster/allowance.h"
#include "config/base/text.h"
#include "extender/commands/why/why_internal.h"

/* ---- finalizers ---- */

enum { CLASSES_SHOWN_MAX = 3 };

#define NO_PROVISIONER "kubernetes.io/no-provisioner"

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
            why_help(pod, "finalizer %.*s keeps the %s: it has to be removed by %s",
                     SLICE_ARG(items[i]), what, who_removes(items[i]));
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

bool why_is_of_template(const struct why_pod *pod, const struct why_claim *claim)
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
    else if (why_is_of_template(pod, claim))
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
    struct slice name = name_slice(claim_owner_name(claim->who.claim));
    if (!claim->who.claim->exists || !claim->use->is_ephemeral ||
        (owner.len != 0 && uid_is(&pod->pod->uid, owner)))
        return;
    bool is_earlier = slice_equal(name, pod_name(pod->pod));
    why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
            "claim %.*s/%.*s has the name of the pod's generic ephemeral volume, and %s%.*s%s",
            CLAIM_ARG(claim),
            owner.len == 0 ? "nothing owns it: somebody has made it"
            : is_earlier   ? "an earlier pod "
                           : "pod ",
            SLICE_ARG(name), owner.len == 0 ? "" : " owns it");
    if (is_earlier)
        why_help(pod, claim->who.claim->is_deleting
                          ? "wait: the claim is being deleted, and is then made for this pod"
                          : "wait: the claim is deleted with that pod, and then made for this one");
    else
        why_help(pod, "name the pod or its volume differently: the claim's data is not of this "
                      "pod");
    if (claim->who.claim->is_deleting)
        help_by_finalizers(pod, &claim->who.details.finalizers, "claim");
    pod->is_hopeless = true;
}

/* A holder that its rollout keeps until this pod is ready, which never gets the claim; NULL: none.
 */
static const struct who_pod *find_old(const struct why_pod *pod, const struct why_claim *claim)
{
    for (size_t i = 0; i < claim->who.holder_count; i++) {
        const struct who_pod *holder = &claim->who.holders[i];
        if (holder->pod != pod->pod && !holder->pod->is_terminating &&
            slice_equal(holder->owner.kind, SLICE("Deployment")) &&
            owner_is_same(&holder->owner, &pod->who.owner))
            return holder;
    }
    return NULL;
}

/* What makes the claim again, when it is gone. */
static void help_again(struct why_pod *pod, const struct why_claim *claim)
{
    const struct who_pod *old = find_old(pod, claim);

    if (claim->use->is_ephemeral)
        why_help(pod, "when it is gone, it is made again, empty; a deletion cannot be undone");
    else if (why_is_of_template(pod, claim))
        why_help(
            pod,
            "when it is gone, StatefulSet %.*s makes it again, empty: to make it yourself, for "
            "the volume with the data, scale that down before; a deletion cannot be undone",
            SLICE_ARG(pod->who.owner.name));
    else if (old != NULL)
        why_help(
            pod,
            "a deletion cannot be undone, and Deployment %.*s keeps that pod until this one is "
            "ready: scale it to 0, create the claim again, and scale it back",
            SLICE_ARG(old->owner.name));
    else
        why_help(pod, "when it is gone, create it again; a deletion cannot be undone");
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
    help_again(pod, claim);
}

void why_claim_lost(struct why_pod *pod, const struct why_claim *claim)
{
    if (!claim->who.claim->exists || claim_phase(claim->who.claim) != CLAIM_LOST)
        return;
    const struct resource *volume =
        cluster_find_resource(&pod->inquiry->cluster, KIND_VOLUME, claim->who.volume);
    struct slice other = volume == NULL ? SLICE("") : resource_attribute(volume, VOLUME_CLAIM_NAME);
    bool is_of_another =
        other.len != 0 && !(slice_equal(other, claim_name(claim->who.claim)) &&
                            slice_equal(resource_attribute(volume, VOLUME_CLAIM_NAMESPACE),
                                        name_text(claim->who.claim->ns)));
    if (other.len == 0)
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is Lost: its volume %.*s is gone%s", CLAIM_ARG(claim),
                SLICE_ARG(claim->who.volume),
                volume == NULL && why_knows(pod, KIND_VOLUME) ? ""
                                                              : ", or is bound to another claim");
    else
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is Lost: its volume %.*s is of claim %.*s/%.*s", CLAIM_ARG(claim),
                SLICE_ARG(claim->who.volume),
                SLICE_ARG(resource_attribute(volume, VOLUME_CLAIM_NAMESPACE)), SLICE_ARG(other));
    if (is_of_another)
        why_help(pod,
                 "delete the claim, and create it again without volumeName, or from a snapshot "
                 "of that volume, which stays with its owner");
    else
        why_help_all(pod, who_bound_by(&claim->who, pod->texts));
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
    return slice_equal(provisioner_of(pod, claim), SLICE(NO_PROVISIONER));
}

static bool has_selector(const struct why_claim *claim)
{
    const struct claim_rare *rare = claim_rare_at(claim->who.claim->rare);

    return rare != NULL && rare->selector != NULL;
}

/* " (gp2, gp3)": StorageClasses that make volumes, the first by name. Empty: none is known. */
static struct slice classes_text(struct why_pod *pod)
{
    struct slice text = SLICE(""), last = SLICE("");

    for (size_t shown = 0; shown < CLASSES_SHOWN_MAX; shown++) {
        struct table_walk walk = {.at = 0};
        struct slice next = SLICE("");
        char buffer[PROVISIONED_NAME_BYTES];
        for (const struct resource *class;
             (class = cluster_next_resource(&pod->inquiry->cluster, KIND_STORAGE_CLASS, &walk)) !=
             NULL;) {
            struct slice name = arena_copy(pod->arena, resource_name(class, buffer));
            if (!slice_equal(resource_attribute(class, STORAGE_CLASS_PROVISIONER),
                             SLICE(NO_PROVISIONER)) &&
                (last.len == 0 || slice_compare(name, last) > 0) &&
                (next.len == 0 || slice_compare(name, next) < 0))
                next = name;
        }
        if (next.len == 0)
            break;
        text = arena_printf(pod->arena, "%.*s%s%.*s", SLICE_ARG(text), shown == 0 ? " (" : ", ",
                            SLICE_ARG(next));
        last = next;
    }
    return text.len == 0 ? text : arena_printf(pod->arena, "%.*s)", SLICE_ARG(text));
}

/* A volume that somebody has to make, or to mend. */
static void help_by_hand(struct why_pod *pod, const struct why_claim *claim)
{
    enum misfit misfit;
    const struct resource *nearest =
        volume_nearest(&pod->inquiry->cluster, claim->who.claim, &misfit);

    if (volume_offers_fit(&pod->inquiry->cluster, claim->who.claim))
        why_help(pod, "wait: one that fits is there, and kube-controller-manager binds it");
    else if (nearest != NULL)
        why_help_misfit(pod, claim, nearest, misfit);
    else
        why_help(pod,
                 "create a PersistentVolume%s%.*s that fits the claim (size, access modes, "
                 "volumeMode%s)",
                 class_name(claim).len == 0 ? " without a class" : " of StorageClass ",
                 SLICE_ARG(class_name(claim)),
                 has_selector(claim) ? ", and the labels of its selector" : "");
}

/* A claim without a class, if no volume is nearly its own. Whether that is all that helps. */
static bool help_by_default(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice classes = classes_text(pod);
    enum misfit misfit;

    if (class_name(claim).len != 0 ||
        volume_nearest(&pod->inquiry->cluster, claim->who.claim, &misfit) != NULL)
        return false;
    if (!claim->who.details.has_no_class) {
        why_help(pod,
                 "make a StorageClass%.*s the default, which the claim then gets "
                 "(storageclass.kubernetes.io/is-default-class), or create the claim again with a "
                 "class",
                 SLICE_ARG(classes));
        return classes.len != 0;
    }
    why_help(pod,
             "storageClassName \"\" excludes the default class: to get that, create the claim "
             "again without it%.*s",
             SLICE_ARG(why_maker(pod, claim)));
    return false;
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

/* The CSIDriver with the name that is nearest to a provisioner's, which has none; empty: none. */
static struct slice find_like(struct why_pod *pod, struct slice provisioner)
{
    const struct cluster *cluster = &pod->inquiry->cluster;
    struct nearest nearest = {.typed =
                                  arena_printf(pod->arena, "%.*s", SLICE_ARG(provisioner)).ptr};
    struct table_walk walk = {.at = 0};
    char buffer[PROVISIONED_NAME_BYTES];

    if (nearest.typed == NULL ||
        cluster_find_resource(cluster, KIND_CSI_DRIVER, provisioner) != NULL ||
        cluster_count_driver_nodes(cluster, provisioner) != 0)
        return SLICE("");
    for (const struct resource *driver;
         (driver = cluster_next_resource(cluster, KIND_CSI_DRIVER, &walk)) != NULL;)
        nearest_offer_copy(&nearest, resource_name(driver, buffer));
    return arena_copy(pod->arena, slice_of(nearest.word == NULL ? "" : nearest.word));
}

/* Who does not make the volume; and what is in the events, which no input has. */
static void help_by_provisioner(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice provisioner = provisioner_of(pod, claim), like = find_like(pod, provisioner);

    if (has_selector(claim) && provisioner.len != 0)
        why_help(pod,
                 "a provisioner makes no volume for a claim with a selector: create the claim "
                 "again without it%.*s, or a PersistentVolume with its labels",
                 SLICE_ARG(why_maker(pod, claim)));
    else if (lacks_driver(pod, claim))
        why_help(pod,
                 "install the CSI driver %.*s: it has replaced the provisioner of the class, and "
                 "has no CSIDriver here",
                 SLICE_ARG(provisioner));
    else if (like.len != 0)
        why_help(pod,
                 "provisioner %.*s has no CSIDriver here, and %.*s has: create the StorageClass "
                 "again with that one",
                 SLICE_ARG(provisioner), SLICE_ARG(like));
    else {
        if (provisioner.len == 0)
            why_help(pod, "the claim's events say more");
        else
            why_help(pod, "is the provisioner %.*s running? The claim's events have what it says",
                     SLICE_ARG(provisioner));
        why_command(pod, ADVICE_SEE_CLAIM, &CLAIM_WORDS(claim));
    }
}

/* What would bind the claim. */
static void help_unbound(struct why_pod *pod, const struct why_claim *claim)
{
    bool is_made = !makes_no_volumes(pod, claim) &&
                   (provisioner_of(pod, claim).len != 0 || class_name(claim).len != 0);

    if (is_made) {
        help_by_provisioner(pod, claim);
        return;
    }
    if (why_help_earlier(pod, claim) || !help_by_default(pod, claim))
        help_by_hand(pod, claim);
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
    enum misfit misfit; /* of a volume that was made by hand: its class needs no object */
    bool is_static = volume_nearest(&pod->inquiry->cluster, claim->who.claim, &misfit) != NULL;
    why_add(pod, WHY_BLOCKS, reference,
            "StorageClass %.*s of claim %.*s/%.*s does not exist, so %s", SLICE_ARG(reference.name),
            CLAIM_ARG(claim),
            is_static ? "the claim waits for an Available PersistentVolume of that class"
                      : "no volume is made for the claim");
    if (why_help_earlier(pod, claim) || is_static) {
        help_by_hand(pod, claim);
        return;
    }
    struct slice classes = classes_text(pod), maker = why_maker(pod, claim);
    why_help(
        pod,
        "create StorageClass %.*s, or a PersistentVolume with that storageClassName; or delete the "
        "claim, whose class cannot be changed, and create it with one that exists%.*s%.*s",
        SLICE_ARG(reference.name), SLICE_ARG(classes), SLICE_ARG(maker));
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
    else if (makes_no_volumes(pod, claim))
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is not bound, and waits for an Available PersistentVolume of "
                "StorageClass %.*s, which makes none",
                CLAIM_ARG(claim), SLICE_ARG(class_name(claim)));
    else
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is not bound, and StorageClass %.*s does not wait for the pod's "
                "node: the volume comes first",
                CLAIM_ARG(claim), SLICE_ARG(class_name(claim)));
    root_class(pod, claim);
    help_unbound(pod, claim);
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
        help_unbound(pod, claim);
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
    const struct owner *owner = &pod->who.owner;
    if (scheduler.len != 0 && !slice_equal(scheduler, SLICE("default-scheduler")))
        why_help(pod,
                 "if scheduler %.*s chose the node: it does not bind volumes (VolumeBinding); let "
                 "another one place the pod",
                 SLICE_ARG(scheduler));
    else if (owner->name.len != 0)
        why_help(pod,
                 "take spec.nodeName out of the template of %.*s %.*s; a nodeSelector can name the "
                 "node",
                 SLICE_ARG(owner->kind), SLICE_ARG(owner->name));
    else
        why_help(pod, "create the pod again without spec.nodeName; a nodeSelector can name the "
                      "node");
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

/* Whether the claim cannot be provisioned anywhere, as an earlier cause says. */
static bool is_refused(const struct why_pod *pod, const struct why_claim *claim)
{
    for (size_t i = 0; i < pod->cause_count; i++)
        if (strcmp(pod->causes[i].word, "VolumeAttributesClass") == 0 &&
            pod->causes[i].effect == WHY_BLOCKS &&
            slice_equal(pod->causes[i].object.name, claim_name(claim->who.claim)))
            return true;
    return false;
}

/* The first key of the class's allowedTopologies that the driver does not have on the node, which
 * has keys of its own; empty: none. */
static struct slice find_strange_key(struct why_pod *pod, const struct why_claim *claim,
                                     struct slice node, struct slice *own)
{
    struct slice text = inquiry_find_details(pod->inquiry, KIND_CSI_NODE, SLICE(""), node);
    const struct topology *topology = claim->class_details.topologies.items;
    struct csi_node_details details;

    if (claim->class_details.topologies.count == 0 || topology->labels.count == 0 ||
        text.ptr == NULL || !csi_node_details_read(text, pod->arena, &details))
        return SLICE("");
    const struct topology_label *labels = topology->labels.items;
    const struct driver_limit *drivers = details.drivers.items;
    for (size_t i = 0; i < details.drivers.count; i++) {
        const struct pull_items *keys = &drivers[i].topology_keys;
        if (!slice_equal(drivers[i].name, provisioner_of(pod, claim)) || keys->count == 0)
            continue;
        *own = *(const struct slice *)keys->items;
        for (size_t j = 0; j < topology->labels.count; j++)
            if (!slice_is_among(labels[j].key, keys->items, keys->count))
                return labels[j].key;
    }
    return SLICE("");
}

void why_not_provisioned(struct why_pod *pod, const struct why_claim *claim)
{
    const struct cluster *cluster = &pod->inquiry->cluster;

    struct slice node = claim->who.details.selected_node, own;
    if (!is_unbound(claim) || !waits_for_consumer(claim) || node.len == 0 || is_refused(pod, claim))
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
    struct slice strange = find_strange_key(pod, claim, node, &own);
    if (strange.len != 0) {
        why_help(pod,
                 "StorageClass %.*s allows %.*s, which is no topology key of its driver (%.*s), so "
                 "no volume is made: create the class again with that key",
                 SLICE_ARG(class_name(claim)), SLICE_ARG(strange), SLICE_ARG(own));
        return;
    }
    if (lacks_driver_there(pod, claim, node)) {
        why_help(
            pod,
            "driver %.*s is not registered on node %.*s (CSINode), so its provisioner does not "
            "know where to make the volume: get the driver there; or cordon the node, and remove "
            "the annotation, so that the scheduler chooses another one",
            SLICE_ARG(provisioner_of(pod, claim)), SLICE_ARG(node));
        why_command(pod, ADVICE_FORGET_NODE, &CLAIM_WORDS(claim));
        return;
    }
    help_unbound(pod, claim);
    if (!lacks_driver(pod, claim))
        why_help(
            pod,
            "if the node has no room for the volume, wait: the provisioner removes the annotation "
            "volume.kubernetes.io/selected-node, and the scheduler tries another node");
}
