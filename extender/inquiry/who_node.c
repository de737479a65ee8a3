/* Nodes that do not answer, and volumes that are attached to a node where no pod uses them. */
#include "extender/inquiry/who_advice.h"

/* Its kubelet does not answer: whether its pods still run, only a person can know. */
static void advise_taint(struct advice *advice, struct slice node)
{
    advice_add(advice,
               json_sprintf("if the machine of node %.*s is shut down, and only then, this taint "
                            "makes kube-controller-manager delete its pods and detach its volumes",
                            SLICE_ARG(node)));
    advice_command(advice, ADVICE_OUT_OF_SERVICE, &(const struct advice_words){.name = node});
}

static void advise_untaint(struct advice *advice, struct slice node)
{
    advice_add(advice, json_sprintf("when the machine of node %.*s runs again, remove the taint: "
                                    "nothing else does, and no pod is placed there before",
                                    SLICE_ARG(node)));
    advice_command(advice, ADVICE_IN_SERVICE, &(const struct advice_words){.name = node});
}

/* Its kubelet answers, and ends pods that are deleted. */
static void advise_not_ready(struct advice *advice, struct slice node)
{
    advice_add(advice, json_sprintf("node %.*s is not ready, and its pods may run on: see what its "
                                    "kubelet says. It ends a pod that is deleted; nothing else "
                                    "knows whether a pod there has ended",
                                    SLICE_ARG(node)));
    advice_command(advice, ADVICE_SEE_NODE, &(const struct advice_words){.name = node});
}

void advice_of_node(struct advice *advice, const struct who_claim *claim,
                    const struct who_pod *holder)
{
    struct slice node = pod_node(holder->pod);

    if (holder->node_state == NODE_MISSING || holder->is_out_of_service) {
        advice_add(advice,
                   json_sprintf("node %.*s %s: kube-controller-manager deletes pod "
                                "%.*s/%.*s soon",
                                SLICE_ARG(node),
                                holder->is_out_of_service ? "is out of service" : "does not exist",
                                POD_ARG(holder->pod)));
        advice_warn_of_loss(advice, claim, holder->pod);
        if (holder->is_out_of_service)
            advise_untaint(advice, node);
    } else if (holder->node_state == NODE_UNREACHABLE) {
        advise_taint(advice, node);
        advice_warn_of_loss(advice, claim, holder->pod);
        advice_add(advice,
                   json_sprintf("if the machine of node %.*s may still run, wait for it, or "
                                "shut it down: nobody else can know that pod %.*s/%.*s "
                                "has ended",
                                SLICE_ARG(node), POD_ARG(holder->pod)));
    } else if (holder->node_state == NODE_NOT_READY) {
        advise_not_ready(advice, node);
    }
}

/* ---- attachments ---- */

static bool has_holder(const struct who_claim *claim, struct slice node)
{
    for (size_t i = 0; i < claim->holder_count; i++)
        if (slice_equal(pod_node(claim->holders[i].pod), node))
            return true;
    return false;
}

/* What happens by itself. */
static const char *outlook_of(enum node_state state, bool is_out_of_service)
{
    if (is_out_of_service)
        return "the node is out of service, so kube-controller-manager detaches it at once";
    if (state == NODE_NOT_READY || state == NODE_UNREACHABLE)
        return "the node is not ready, so kube-controller-manager detaches it by force after 6 "
               "minutes, unless that is disabled (--disable-force-detach-on-timeout)";
    if (state == NODE_MISSING)
        return "the node does not exist, so kube-controller-manager detaches it, if the driver can";
    return "kube-controller-manager detaches it, as a rule within seconds";
}

static void advise_attachment(struct advice *advice, const struct who_claim *claim,
                              const struct resource *attachment)
{
    struct slice node = resource_attribute(attachment, VOLUME_ATTACHMENT_NODE);
    struct slice error = resource_attribute(attachment, VOLUME_ATTACHMENT_DETACH_ERROR);
    struct slice driver = resource_attribute(attachment, VOLUME_ATTACHMENT_DRIVER);
    char text[PROVISIONED_NAME_BYTES];
    enum node_state state = who_node_state(claim->inquiry, node, claim->arena);
    bool is_out = (state == NODE_NOT_READY || state == NODE_UNREACHABLE) &&
                  who_is_out_of_service(claim->inquiry, node, claim->arena);

    if (error.len != 0)
        advice_add(advice,
                   json_sprintf("volume %.*s cannot be detached from node %.*s: %.*s",
                                SLICE_ARG(claim->volume), SLICE_ARG(node), SLICE_ARG(error)));
    else
        advice_add(advice, json_sprintf("volume %.*s is attached to node %.*s, where no pod holds "
                                        "the claim: %s",
                                        SLICE_ARG(claim->volume), SLICE_ARG(node),
                                        outlook_of(state, is_out)));
    if (is_out)
        advise_untaint(advice, node);
    else if (state == NODE_UNREACHABLE)
        advise_taint(advice, node);
    advice_add(advice, json_sprintf("if it stays attached, see why: the controller of driver %.*s "
                                    "(its external-attacher) has to detach it",
                                    SLICE_ARG(driver)));
    struct slice name = resource_name(attachment, text);
    advice_command(advice, ADVICE_SEE_ATTACHMENT, &(const struct advice_words){.name = name});
}

void advice_of_attachments(struct advice *advice, const struct who_claim *claim)
{
    for (size_t i = 0; i < claim->attachment_count; i++) {
        struct slice node = resource_attribute(claim->attachments[i], VOLUME_ATTACHMENT_NODE);
        bool is_attached =
            (resource_number(claim->attachments[i]) & VOLUME_ATTACHMENT_IS_ATTACHED) != 0;
        if (is_attached && !has_holder(claim, node))
            advise_attachment(advice, claim, claim->attachments[i]);
    }
}
