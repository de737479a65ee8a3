/* Causes: a claim that is not bound: what it waits for. */
#include "extender/commands/why/why_internal.h"

static bool is_unbound(const struct why_claim *claim)
{
    const struct claim *record = claim->who.claim;

    return record->exists && !record->is_deleting && claim_phase(record) != CLAIM_LOST &&
           claim_phase(record) != CLAIM_BOUND && !claim->is_bound;
}

static struct slice class_name(const struct why_claim *claim)
{
    return name_slice(claim_storage_class(claim->who.claim));
}

/* What would bind the claim. */
static void help_unbound(struct why_pod *pod, const struct why_claim *claim)
{
    why_help_all(pod, who_bound_by(&claim->who, pod->texts));
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
    if (!is_unbound(claim) || !who_lacks_class(&claim->who))
        return;
    enum misfit misfit; /* of a volume that was made by hand: its class needs no object */
    bool is_static = volume_nearest(&pod->inquiry->cluster, claim->who.claim, &misfit) != NULL;
    why_add(pod, WHY_BLOCKS, reference,
            "StorageClass %.*s of claim %.*s/%.*s does not exist, so %s", SLICE_ARG(reference.name),
            CLAIM_ARG(claim),
            is_static ? "the claim waits for an Available PersistentVolume of that class"
                      : "no volume is made for the claim");
    help_unbound(pod, claim);
}

void why_claim_unbound(struct why_pod *pod, const struct why_claim *claim)
{
    if (!is_unbound(claim) || who_lacks_class(&claim->who) || who_waits_for_consumer(&claim->who))
        return;
    if (class_name(claim).len != 0 && claim->who.class_details.binding_mode.len == 0)
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is not bound; unless StorageClass %.*s has the volumeBindingMode "
                "WaitForFirstConsumer, the volume comes first",
                CLAIM_ARG(claim), SLICE_ARG(class_name(claim)));
    else if (class_name(claim).len == 0)
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is not bound, and names no StorageClass: it waits for a "
                "PersistentVolume without a class%s",
                CLAIM_ARG(claim),
                claim_has_no_class(&claim->who.details) ? "" : ", or for a default class");
    else if (who_makes_no_volumes(&claim->who))
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
    if (!is_unbound(claim) || !who_waits_for_consumer(&claim->who) ||
        claim->who.details.selected_node.len != 0)
        return;
    if (pod->stage == WHY_SCHEDULING && who_makes_no_volumes(&claim->who)) {
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
    help_unbound(pod, claim);
}

/* As kube-scheduler's VolumeBinding: while the annotation is there, only that node passes. */
static void reject_others(struct why_pod *pod, struct slice node)
{
    for (size_t n = 0; n < pod->node_count; n++)
        if (pod->nodes[n].out_by == NULL && !slice_equal(pod->nodes[n].name, node))
            pod->nodes[n].out_by = pod->word;
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

void why_not_provisioned(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice node = claim->who.details.selected_node;

    if (!is_unbound(claim) || !who_waits_for_consumer(&claim->who) || node.len == 0 ||
        is_refused(pod, claim))
        return;
    reject_others(pod, node);
    why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
            "the scheduler has chosen node %.*s for claim %.*s/%.*s, and its volume is not made "
            "yet: it takes no other node",
            SLICE_ARG(node), CLAIM_ARG(claim));
    root_class(pod, claim);
    help_unbound(pod, claim);
}
