/* Nodes that do not answer, and volumes that are attached to a node where no pod uses them. */
#include "extender/inquiry/who_advice.h"

/* The taint, and that nobody but a person removes it. */
static void advise_taint(struct advice *advice, struct slice node)
{
    advice_add(advice,
               json_sprintf("if the machine of node %.*s is shut down, and only then, this taint "
                            "makes kube-controller-manager delete its pods and detach its volumes",
                            SLICE_ARG(node)));
    advice_command(advice, "kubectl taint nodes % " OUT_OF_SERVICE_TAINT "=nodeshutdown:NoExecute",
                   &node);
    advice_warn(advice, json_sprintf("it evicts every pod on node %.*s, not only this one; data is "
                                     "damaged if a pod there still runs",
                                     SLICE_ARG(node)));
}

static void advise_untaint(struct advice *advice, struct slice node)
{
    advice_add(advice, json_sprintf("when the machine of node %.*s runs again, remove the taint: "
                                    "nothing else does, and no pod is placed there before",
                                    SLICE_ARG(node)));
    advice_command(advice, "kubectl taint nodes % " OUT_OF_SERVICE_TAINT "=nodeshutdown:NoExecute-",
                   &node);
}

static void advise_force(struct advice *advice, const struct who_claim *claim,
                         const struct who_pod *holder)
{
    advice_add(advice, json_sprintf("or give up only pod %.*s/%.*s, whose end its node cannot "
                                    "report",
                                    POD_ARG(holder->pod)));
    advice_command(advice, "kubectl delete pod -n % % --force", POD_WORDS(holder->pod));
    advice_warn(advice, json_string("data is damaged if the pod still runs; its volumes stay "
                                    "attached for about 6 minutes"));
    advice_warn_of_loss(advice, claim, holder);
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
        advice_warn_of_loss(advice, claim, holder);
        if (holder->is_out_of_service)
            advise_untaint(advice, node);
    } else if (holder->node_state == NODE_NOT_READY) {
        advise_taint(advice, node);
        advice_warn_of_loss(advice, claim, holder);
        advise_untaint(advice, node);
        advise_force(advice, claim, holder);
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
    if (state == NODE_NOT_READY)
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
    enum node_state state = who_node_state(claim->inquiry, node);
    bool is_out =
        state == NODE_NOT_READY && who_is_out_of_service(claim->inquiry, node, claim->arena);

    if (error.len != 0)
        advice_add(advice,
                   json_sprintf("volume %.*s cannot be detached from node %.*s: %.*s",
                                SLICE_ARG(claim->volume), SLICE_ARG(node), SLICE_ARG(error)));
    else
        advice_add(advice, json_sprintf("volume %.*s is attached to node %.*s, where no pod holds "
                                        "the claim: %s",
                                        SLICE_ARG(claim->volume), SLICE_ARG(node),
                                        outlook_of(state, is_out)));
    if (state == NODE_NOT_READY && !is_out) {
        advise_taint(advice, node);
        advise_untaint(advice, node);
    } else if (is_out) {
        advise_untaint(advice, node);
    }
    advice_add(advice, json_sprintf("if it stays attached, see why: the controller of driver %.*s "
                                    "(its external-attacher) has to detach it",
                                    SLICE_ARG(driver)));
    struct slice name = resource_name(attachment, text);
    advice_command(advice, "kubectl describe volumeattachment %", &name);
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
