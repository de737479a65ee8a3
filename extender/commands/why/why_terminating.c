/* Causes: the pod is being deleted, and does not go. */
#include "extender/commands/why/why_internal.h"

/* The claim that goes with the pod; NULL: none. */
static const struct who_claim *find_ephemeral(const struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++)
        if (pod->claims[i].use->is_ephemeral)
            return &pod->claims[i].who;
    return NULL;
}

/* ", so StatefulSet db makes no new one": its pods have names, of which there is one at a time. */
static struct slice put_off(const struct why_pod *pod)
{
    const struct owner *owner = &pod->who.owner;

    return slice_equal(owner->kind, SLICE("StatefulSet"))
               ? arena_printf(pod->arena, "; StatefulSet %.*s makes no new one before",
                              SLICE_ARG(owner->name))
               : SLICE("");
}

/* Finalizers of a pod that could end are a cause of their own. */
void why_terminating(struct why_pod *pod)
{
    enum node_state state = pod->who.node_state;
    bool is_lost = who_has_lost_node(&pod->who), is_of_node = is_lost || state == NODE_NOT_READY;
    int64_t now_ms = pod->inquiry->now_ms;
    const struct slice node = pod_node(pod->pod);

    if (!pod->pod->is_terminating || (!is_lost && pod->who.details.finalizers.count != 0))
        return;
    bool is_in_time = now_ms != 0 && !who_cannot_end(&pod->who, now_ms);
    struct slice after = put_off(pod);
    why_add(pod, is_in_time ? WHY_NORMAL : WHY_BLOCKS, why_pod_reference(pod),
            "pod %.*s/%.*s is being deleted, and %s on node %.*s%s%.*s", POD_ARG(pod->pod),
            is_lost ? "nobody knows whether it has ended" : "has not ended", SLICE_ARG(node),
            why_node_state(state), SLICE_ARG(after));
    if (is_of_node)
        why_root(pod, (struct object_reference){.kind = KIND_NODE, .name = node});
    why_help_all(pod, who_ended_by(&pod->who, find_ephemeral(pod), now_ms, pod->texts));
}
