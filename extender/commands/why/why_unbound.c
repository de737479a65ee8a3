/* Causes: a claim that is not bound: what should make its volume, or which volume it waits for. */
#include "config/base/text.h"
#include "extender/commands/why/why_internal.h"

enum { CLASSES_SHOWN_MAX = 3 };

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
                 "take spec.nodeName out of the template of %.*s %.*s, and delete the pod; a "
                 "nodeSelector can name the node",
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

/* What keeps the volume from being made for that node. False: nothing of this. */
static bool help_by_node(struct why_pod *pod, const struct why_claim *claim, struct slice node)
{
    struct slice own, strange;

    if (why_knows(pod, KIND_NODE) && cluster_find_node(&pod->inquiry->cluster, node) == NULL) {
        why_help(pod,
                 "node %.*s does not exist: remove the annotation, so that the scheduler chooses "
                 "another one",
                 SLICE_ARG(node));
        why_command(pod, ADVICE_FORGET_NODE, &CLAIM_WORDS(claim));
        return true;
    }
    strange = find_strange_key(pod, claim, node, &own);
    if (strange.len != 0) {
        why_help(pod,
                 "StorageClass %.*s allows %.*s, which is no topology key of its driver (%.*s), so "
                 "no volume is made: create the class again with that key",
                 SLICE_ARG(class_name(claim)), SLICE_ARG(strange), SLICE_ARG(own));
        return true;
    }
    if (!lacks_driver_there(pod, claim, node))
        return false;
    why_help(pod,
             "driver %.*s is not registered on node %.*s (CSINode), so its provisioner does not "
             "know where to make the volume: get the driver there; or cordon the node, and remove "
             "the annotation, so that the scheduler chooses another one",
             SLICE_ARG(provisioner_of(pod, claim)), SLICE_ARG(node));
    why_command(pod, ADVICE_FORGET_NODE, &CLAIM_WORDS(claim));
    return true;
}

void why_not_provisioned(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice node = claim->who.details.selected_node;

    if (!is_unbound(claim) || !waits_for_consumer(claim) || node.len == 0 || is_refused(pod, claim))
        return;
    reject_others(pod, node);
    why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
            "the scheduler has chosen node %.*s for claim %.*s/%.*s, and its volume is not made "
            "yet: it takes no other node",
            SLICE_ARG(node), CLAIM_ARG(claim));
    root_class(pod, claim);
    if (help_by_node(pod, claim, node))
        return;
    help_unbound(pod, claim);
    if (!lacks_driver(pod, claim))
        why_help(
            pod,
            "if the node has no room for the volume, wait: the provisioner removes the annotation "
            "volume.kubernetes.io/selected-node, and the scheduler tries another node");
}
