/* Causes: a pod that has a node, and whose volumes do not come there. */
#include "extender/inquiry/why_internal.h"
#include "policy/bound_volume.h"

static struct slice node_of(const struct resource *attachment)
{
    return resource_attribute(attachment, VOLUME_ATTACHMENT_NODE);
}

static bool is_attached(const struct resource *attachment)
{
    return (resource_number(attachment) & VOLUME_ATTACHMENT_IS_ATTACHED) != 0;
}

/* The attachment of the claim's volume to the pod's node; NULL: none. */
static const struct resource *find_own(const struct why_pod *pod, const struct why_claim *claim)
{
    for (size_t i = 0; i < claim->who.attachment_count; i++)
        if (slice_equal(node_of(claim->who.attachments[i]), pod_node(pod->pod)))
            return claim->who.attachments[i];
    return NULL;
}

/* ---- another node has the volume ---- */

/* The node that has it: by an attachment that is confirmed, as in kube-controller-manager; else
 * where a pod holds it. Empty: none. */
static struct slice find_other_node(const struct why_pod *pod, const struct why_claim *claim)
{
    for (size_t i = 0; i < claim->who.attachment_count; i++) {
        struct slice node = node_of(claim->who.attachments[i]);
        if (!slice_equal(node, pod_node(pod->pod)) && is_attached(claim->who.attachments[i]))
            return node;
    }
    for (size_t i = 0; i < claim->who.holder_count; i++) {
        struct slice node = pod_node(claim->who.holders[i].pod);
        if (!slice_equal(node, pod_node(pod->pod)))
            return node;
    }
    return SLICE("");
}

/* What would free the volume. A pod that has ended is no holder, and its kubelet may be late. */
static void help_by_pods(struct why_pod *pod, const struct why_claim *claim, struct slice node)
{
    for (size_t i = 0; i < claim->who.finished_count; i++)
        if (slice_equal(pod_node(claim->who.finished[i]), node)) {
            why_help(pod, json_sprintf("pod %.*s/%.*s there has ended: wait until its kubelet has "
                                       "unmounted the volume",
                                       WHY_POD_ARG(claim->who.finished[i])));
            break;
        }
    why_help_all(pod, who_freed_by(&claim->who, false));
}

/* Whether the volume is attached to nodes. Of a driver that may not be in the input, only an
 * attachment shows that. */
static bool is_attachable(const struct why_pod *pod, const struct why_claim *claim)
{
    const struct cluster *cluster = &pod->inquiry->cluster;

    if (claim->volume == NULL || !who_attaches(cluster, claim->volume))
        return false;
    struct slice driver = bound_volume_driver(claim->volume);
    return driver.len == 0 || why_knows(pod, KIND_CSI_DRIVER) || claim->who.attachment_count != 0;
}

static bool is_for_one_node(const struct why_pod *pod, const struct why_claim *claim)
{
    return (claim->who.access == ACCESS_ONE_NODE || claim->who.access == ACCESS_ONE_POD) &&
           is_attachable(pod, claim);
}

void why_multi_attach(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        struct object_reference reference = why_volume_reference(claim);
        const struct resource *own = find_own(pod, claim);
        struct slice node = find_other_node(pod, claim);
        if (!is_for_one_node(pod, claim) || node.len == 0 || (own != NULL && is_attached(own)))
            continue;
        why_add(pod, WHY_BLOCKS, &reference,
                json_sprintf("volume %.*s of claim %.*s/%.*s is for one node at a time, and node "
                             "%.*s has it (Multi-Attach)",
                             SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(node)));
        help_by_pods(pod, claim, node);
    }
}

/* ---- the pod's own node ---- */

void why_attach_failed(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        const struct resource *own = find_own(pod, claim);
        if (own == NULL || resource_attribute(own, VOLUME_ATTACHMENT_ATTACH_ERROR).len == 0)
            continue;
        char name[PROVISIONED_NAME_BYTES];
        const struct object_reference reference = {.kind = KIND_VOLUME_ATTACHMENT,
                                                   .name = resource_name(own, name)};
        why_add(pod, WHY_BLOCKS, &reference,
                json_sprintf("volume %.*s of claim %.*s/%.*s cannot be attached to node %.*s: %.*s",
                             SLICE_ARG(claim->who.volume), CLAIM_ARG(claim),
                             SLICE_ARG(pod_node(pod->pod)),
                             SLICE_ARG(resource_attribute(own, VOLUME_ATTACHMENT_ATTACH_ERROR))));
        why_help(pod, json_sprintf("driver %.*s says so, and tries again: its controller's log has "
                                   "more",
                                   SLICE_ARG(resource_attribute(own, VOLUME_ATTACHMENT_DRIVER))));
    }
}

/* Whether the volume needs a VolumeAttachment: those of plug-ins without a CSI driver have none. */
static bool needs_attachment(const struct why_pod *pod, const struct why_claim *claim)
{
    return why_knows(pod, KIND_VOLUME_ATTACHMENT) && is_attachable(pod, claim) &&
           bound_volume_driver(claim->volume).len != 0;
}

void why_not_attached(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        const struct resource *own = find_own(pod, claim);
        bool is_elsewhere = is_for_one_node(pod, claim) && find_other_node(pod, claim).len != 0;
        struct object_reference reference = why_volume_reference(claim);
        if (!needs_attachment(pod, claim) || (own == NULL && is_elsewhere) ||
            (own != NULL && (is_attached(own) ||
                             resource_attribute(own, VOLUME_ATTACHMENT_ATTACH_ERROR).len != 0)))
            continue;
        if (own == NULL)
            why_add(pod, WHY_BLOCKS, &reference,
                    json_sprintf("volume %.*s of claim %.*s/%.*s has no VolumeAttachment to node "
                                 "%.*s",
                                 SLICE_ARG(claim->who.volume), CLAIM_ARG(claim),
                                 SLICE_ARG(pod_node(pod->pod))));
        else
            why_add(pod, WHY_BLOCKS, &reference,
                    json_sprintf("volume %.*s of claim %.*s/%.*s is being attached to node %.*s",
                                 SLICE_ARG(claim->who.volume), CLAIM_ARG(claim),
                                 SLICE_ARG(pod_node(pod->pod))));
        why_help(pod,
                 !node_at(pod->pod->node)->exists && why_knows(pod, KIND_NODE)
                     ? json_sprintf("node %.*s does not exist, so nothing attaches to it: "
                                    "kube-controller-manager deletes the pod",
                                    SLICE_ARG(pod_node(pod->pod)))
                 : own == NULL
                     ? json_sprintf("wait: kube-controller-manager makes it within seconds")
                     : json_sprintf("wait; if it stays so, is the external-attacher of driver "
                                    "%.*s running?",
                                    SLICE_ARG(resource_attribute(own, VOLUME_ATTACHMENT_DRIVER))));
    }
}
