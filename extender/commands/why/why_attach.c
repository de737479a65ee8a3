/* Causes: a pod that has its node, and whose volumes do not come there. */
#include "extender/commands/why/why_internal.h"
#include "policy/volume.h"

/* ---- a pod on its node ---- */

/* The attachment of the claim's volume to the pod's node; NULL: none. */
static const struct who_attachment *find_own(const struct why_pod *pod,
                                             const struct why_claim *claim)
{
    for (size_t i = 0; i < claim->who.attachment_count; i++)
        if (slice_equal(claim->who.attachments[i].node, pod_node(pod->pod)))
            return &claim->who.attachments[i];
    return NULL;
}

/* ---- another node has the volume ---- */

/* Of one of those that wait for the claim: the node that has its volume; empty: none. */
static struct slice find_blocking_node(const struct why_pod *pod, const struct why_claim *claim)
{
    for (size_t i = 0; i < claim->who.waiter_count; i++)
        if (claim->who.waiters[i].pod == pod->pod)
            return claim->who.waiters[i].blocked_by;
    return SLICE("");
}

/* What would free the volume. A pod that has ended is no holder, and its kubelet may be late. */
static void help_by_pods(struct why_pod *pod, const struct why_claim *claim, struct slice node)
{
    for (size_t i = 0; i < claim->who.finished_count; i++)
        if (slice_equal(pod_node(claim->who.finished[i]), node)) {
            why_help(
                pod,
                "pod %.*s/%.*s there has ended: wait until its kubelet has unmounted the volume",
                POD_ARG(claim->who.finished[i]));
            break;
        }
    const struct node *there = cluster_find_node(&pod->inquiry->cluster, node);
    bool is_shared = node_is_usable(there) && claim->who.access == ACCESS_ONE_NODE &&
                     claim->who.holder_count != 0 &&
                     !slice_equal(claim->who.holders[0].owner.name, pod->who.owner.name);
    if (is_shared)
        why_help(pod,
                 "pods of one node can share the volume: if both have to run, put this one on node "
                 "%.*s (nodeSelector, podAffinity)",
                 SLICE_ARG(node));
    why_help_all(pod, who_freed_by(&claim->who, false, pod->texts));
}

void why_multi_attach(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice node = find_blocking_node(pod, claim);
    if (node.len == 0)
        return;
    why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
            "volume %.*s of claim %.*s/%.*s is for one node at a time, and node %.*s has it "
            "(Multi-Attach)",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(node));
    const struct node *record = cluster_find_node(&pod->inquiry->cluster, node);
    if (record == NULL || record->is_not_ready) /* which is what many pods wait for */
        why_root(pod, (struct object_reference){.kind = KIND_NODE, .name = node});
    help_by_pods(pod, claim, node);
}

/* ---- the pod's own node ---- */

/* Volumes of one driver wait for the same. */
static void root_driver(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice driver = claim->volume == NULL ? SLICE("") : volume_driver(claim->volume);

    if (driver.len != 0)
        why_root(pod, (struct object_reference){.kind = KIND_CSI_DRIVER, .name = driver});
}

void why_attach_failed(struct why_pod *pod, const struct why_claim *claim)
{
    const struct who_attachment *own = find_own(pod, claim);
    if (own == NULL || own->attach_error.len == 0)
        return;
    char name[PROVISIONED_NAME_BYTES];
    const struct object_reference reference = {.kind = KIND_VOLUME_ATTACHMENT,
                                               .name = resource_name(own->record, name)};
    why_add(pod, WHY_BLOCKS, reference,
            "volume %.*s of claim %.*s/%.*s cannot be attached to node %.*s: %.*s",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(pod_node(pod->pod)),
            SLICE_ARG(own->attach_error));
    root_driver(pod, claim);
    why_help(pod, "driver %.*s says so, and tries again: its controller's log has more",
             SLICE_ARG(resource_attribute(own->record, VOLUME_ATTACHMENT_DRIVER)));
}

/* Whether the volume needs a VolumeAttachment: those of plug-ins without a CSI driver have none. */
static bool needs_attachment(const struct why_pod *pod, const struct why_claim *claim)
{
    return why_knows(pod, KIND_VOLUME_ATTACHMENT) && claim->volume != NULL &&
           who_is_attachable(&claim->who) && volume_driver(claim->volume).len != 0;
}

void why_not_attached(struct why_pod *pod, const struct why_claim *claim)
{
    const struct who_attachment *own = find_own(pod, claim);
    bool is_elsewhere = find_blocking_node(pod, claim).len != 0;
    if (!needs_attachment(pod, claim) || (own == NULL && is_elsewhere) ||
        (own != NULL && (own->is_attached || own->attach_error.len != 0)))
        return;
    if (own == NULL)
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "volume %.*s of claim %.*s/%.*s has no VolumeAttachment to node %.*s",
                SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(pod_node(pod->pod)));
    else
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "volume %.*s of claim %.*s/%.*s is being attached to node %.*s",
                SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(pod_node(pod->pod)));
    root_driver(pod, claim);
    if (!node_at(pod->pod->node)->exists && why_knows(pod, KIND_NODE))
        why_help(pod,
                 "node %.*s does not exist, so nothing attaches to it: kube-controller-manager "
                 "deletes the pod",
                 SLICE_ARG(pod_node(pod->pod)));
    else if (own == NULL)
        why_help(pod, "wait: kube-controller-manager makes it within seconds");
    else
        why_help(pod, "wait; if it stays so, is the external-attacher of driver %.*s running?",
                 SLICE_ARG(resource_attribute(own->record, VOLUME_ATTACHMENT_DRIVER)));
}
