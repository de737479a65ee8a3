/* Causes: claims without a volume. */
#include "extender/inquiry/why_internal.h"

#include "policy/volume_offers.h"

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

static struct slice provisioner_of(const struct why_claim *claim)
{
    return claim->class == NULL ? SLICE("")
                                : resource_attribute(claim->class, STORAGE_CLASS_PROVISIONER);
}

/* What is in the events, which no input has. */
static void help_by_events(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice provisioner = provisioner_of(claim);

    if (slice_equal(provisioner, SLICE("kubernetes.io/no-provisioner"))) {
        why_help(pod, json_sprintf("StorageClass %.*s makes no volumes: create a PersistentVolume "
                                   "of it that fits the claim (size, access modes, node)",
                                   SLICE_ARG(class_name(claim))));
        return;
    }
    why_help(pod, provisioner.len == 0
                      ? json_sprintf("the claim's events say more")
                      : json_sprintf("is the provisioner %.*s running? The claim's events have "
                                     "what it says",
                                     SLICE_ARG(provisioner)));
    why_command(pod, ADVICE_SEE_CLAIM, &CLAIM_WORDS(claim));
}

void why_class_missing(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        const struct object_reference reference = {.kind = KIND_STORAGE_CLASS,
                                                   .name = class_name(claim)};
        if (!is_unbound(claim) || !lacks_class(pod, claim))
            continue;
        why_add(pod, WHY_BLOCKS, &reference,
                json_sprintf("StorageClass %.*s of claim %.*s/%.*s does not exist, so no volume "
                             "is made for the claim",
                             SLICE_ARG(reference.name), CLAIM_ARG(claim)));
        why_help(pod, json_sprintf("create StorageClass %.*s, or a PersistentVolume with that "
                                   "storageClassName; or delete the claim, and create it with a "
                                   "class that exists (a claim's class cannot be changed)",
                                   SLICE_ARG(reference.name)));
    }
}

void why_claim_unbound(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        struct object_reference reference = why_claim_reference(claim);
        if (!is_unbound(claim) || lacks_class(pod, claim) || waits_for_consumer(claim))
            continue;
        if (class_name(claim).len != 0 && claim->class_details.binding_mode.len == 0)
            why_add(pod, WHY_BLOCKS, &reference,
                    json_sprintf("claim %.*s/%.*s is not bound; unless StorageClass %.*s has the "
                                 "volumeBindingMode WaitForFirstConsumer, the volume comes first",
                                 CLAIM_ARG(claim), SLICE_ARG(class_name(claim))));
        else if (class_name(claim).len == 0)
            why_add(
                pod, WHY_BLOCKS, &reference,
                json_sprintf("claim %.*s/%.*s is not bound, and names no StorageClass: it "
                             "waits for a PersistentVolume without a class%s",
                             CLAIM_ARG(claim),
                             claim->who.details.has_no_class ? "" : ", or for a default class"));
        else
            why_add(pod, WHY_BLOCKS, &reference,
                    json_sprintf("claim %.*s/%.*s is not bound, and StorageClass %.*s does not "
                                 "wait for the pod's node: the volume comes first",
                                 CLAIM_ARG(claim), SLICE_ARG(class_name(claim))));
        help_by_events(pod, claim);
    }
}

bool why_has_offer(const struct why_pod *pod, const struct why_claim *claim)
{
    return volume_offers_fit(&pod->inquiry->cluster, claim->who.claim);
}

static bool makes_no_volumes(const struct why_claim *claim)
{
    return slice_equal(provisioner_of(claim), SLICE("kubernetes.io/no-provisioner"));
}

/* A claim whose volume has to be there already, and is chosen with the pod's node. */
static void find_no_volume(struct why_pod *pod, const struct why_claim *claim)
{
    struct object_reference reference = why_claim_reference(claim);
    bool has_offer = why_has_offer(pod, claim);
    bool has_none = !has_offer && why_knows(pod, KIND_VOLUME);

    why_add(pod, has_none ? WHY_BLOCKS : WHY_NARROWS, &reference,
            json_sprintf("claim %.*s/%.*s waits for an Available PersistentVolume of StorageClass "
                         "%.*s, which makes none%s",
                         CLAIM_ARG(claim), SLICE_ARG(class_name(claim)),
                         has_none    ? ", and there is none that fits"
                         : has_offer ? "; there is one that fits, and only the scheduler checks "
                                       "on which nodes it can be used"
                                     : ""));
    help_by_events(pod, claim);
}

void why_first_consumer(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        struct object_reference reference = why_claim_reference(claim);
        if (!is_unbound(claim) || !waits_for_consumer(claim) ||
            claim->who.details.selected_node.len != 0)
            continue;
        if (pod->stage == WHY_SCHEDULING && makes_no_volumes(claim)) {
            find_no_volume(pod, claim);
            continue;
        }
        if (pod->stage == WHY_SCHEDULING) {
            why_add(pod, WHY_NORMAL, &reference,
                    json_sprintf("claim %.*s/%.*s waits for this pod: StorageClass %.*s makes the "
                                 "volume when a node is chosen for the pod",
                                 CLAIM_ARG(claim), SLICE_ARG(class_name(claim))));
            continue;
        }
        why_add(pod, WHY_BLOCKS, &reference,
                json_sprintf("claim %.*s/%.*s waits until a scheduler chooses a node for a pod "
                             "with it (StorageClass %.*s), and this pod has its node without one",
                             CLAIM_ARG(claim), SLICE_ARG(class_name(claim))));
        why_help(pod, json_sprintf("create the pod again without spec.nodeName; a nodeSelector "
                                   "can name the node"));
    }
}

/* As kube-scheduler's VolumeBinding: while the annotation is there, only that node passes. */
static void reject_others(struct why_pod *pod, struct slice node)
{
    for (size_t n = 0; n < pod->node_count; n++)
        pod->nodes[n].is_out = pod->nodes[n].is_out || !slice_equal(pod->nodes[n].name, node);
}

void why_not_provisioned(struct why_pod *pod)
{
    const struct cluster *cluster = &pod->inquiry->cluster;

    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        struct slice node = claim->who.details.selected_node;
        struct object_reference reference = why_claim_reference(claim);
        if (!is_unbound(claim) || !waits_for_consumer(claim) || node.len == 0)
            continue;
        reject_others(pod, node);
        why_add(pod, WHY_BLOCKS, &reference,
                json_sprintf("the scheduler has chosen node %.*s for claim %.*s/%.*s, and its "
                             "volume is not made yet: it takes no other node",
                             SLICE_ARG(node), CLAIM_ARG(claim)));
        if (why_knows(pod, KIND_NODE) && cluster_find_node(cluster, node) == NULL) {
            why_help(pod, json_sprintf("node %.*s does not exist: remove the annotation, so that "
                                       "the scheduler chooses another one",
                                       SLICE_ARG(node)));
            why_command(pod, ADVICE_FORGET_NODE, &CLAIM_WORDS(claim));
        }
        help_by_events(pod, claim);
        why_help(pod, json_sprintf("if the node has no room for the volume, wait: the provisioner "
                                   "removes the annotation volume.kubernetes.io/selected-node, and "
                                   "the scheduler tries another node"));
    }
}
