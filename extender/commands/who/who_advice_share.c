/* A volume that is for one node at a time, and pods that could run there together. */
#include "extender/commands/who/who_advice.h"

/* The pod that waits for the volume on another node than the one that has it: the one that is asked
 * about, or the first; NULL: none. */
static const struct who_pod *find_remote(const struct who_claim *claim)
{
    for (size_t i = 0; i < claim->waiter_count; i++)
        if ((claim->asked == NULL || claim->asked == claim->waiters[i].pod) &&
            claim->waiters[i].waits_for == WAITS_DETACH)
            return &claim->waiters[i];
    return NULL;
}

/* Whether the pod and the holder, which continue, can both have the volume on its node. A Job ends,
 * and a pod without a controller may be forgotten. */
static bool can_share(const struct who_claim *claim, const struct who_pod *pod,
                      const struct node *node)
{
    const struct who_pod *holder = claim->holders;

    return claim->holder_count != 0 && claim->access == ACCESS_ONE_NODE && !claim->is_apart &&
           node != NULL && node->exists && !node->is_not_ready && !holder->pod->is_terminating &&
           holder->owner.name.len != 0 && !owner_is_kind(&holder->owner, SLICE("Job")) &&
           !owner_is_same(&holder->owner, &pod->owner);
}

/* Where the node of a pod is said: in the template of its controller. {NULL, 0}: no memory. */
static struct slice placing_text(const struct who_claim *claim, const struct who_pod *pod)
{
    struct arena *arena = claim->arena;
    const struct owner *owner = &pod->owner;

    if (owner->name.len == 0)
        return arena_printf(arena, "put pod %.*s", SLICE_ARG(pod_name(pod->pod)));
    if (!owner_is_kind(owner, SLICE("Job")))
        return arena_printf(arena, "have %.*s %.*s place its pods", OWNER_ARG(owner));
    const struct workload_answer *job = workloads_find(claim->inquiry->workloads, owner->kind,
                                                       name_text(pod->pod->ns), owner->name);
    if (job == NULL)
        return (struct slice){NULL, 0};
    const struct owner *maker = &job->details.controller;
    return job->state == WORKLOAD_KNOWN && maker->name.len != 0
               ? arena_printf(arena, "delete Job %.*s, and have %.*s %.*s place its pods",
                              SLICE_ARG(owner->name), OWNER_ARG(maker))
               : arena_printf(arena, "create Job %.*s again, with its pods",
                              SLICE_ARG(owner->name));
}

/* ", and a toleration of its taint KEY", if the pod needs one. */
static struct slice toleration_text(const struct who_claim *claim, const struct who_pod *pod,
                                    struct slice node)
{
    struct slice text = inquiry_find_details(claim->inquiry, KIND_NODE, SLICE(""), node);
    struct node_details details;
    const struct taint *taint = text.ptr != NULL && node_details_read(text, claim->arena, &details)
                                    ? who_find_taint(pod, &details.taints)
                                    : NULL;

    return taint == NULL || slice_equal(taint->key, SLICE("node.kubernetes.io/unschedulable"))
               ? SLICE("")
               : arena_printf(claim->arena, ", and a toleration of its taint %.*s",
                              SLICE_ARG(taint->key));
}

/* The holder's node is cordoned: a drain may bring the holder to the pod's node. {NULL, 0}: no
 * memory. */
static struct slice uncordoning_text(const struct who_claim *claim, const struct who_pod *pod)
{
    const struct owner *owner = &claim->holders[0].owner;

    return workload_scales(owner->kind)
               ? arena_printf(claim->arena,
                              "before node %.*s, which is cordoned, is drained, have %.*s %.*s "
                              "place its pods on node %.*s (podAffinity to pod %.*s); or uncordon "
                              "it, and ",
                              SLICE_ARG(pod->blocked_by), OWNER_ARG(owner),
                              SLICE_ARG(pod_node(pod->pod)), SLICE_ARG(pod_name(pod->pod)))
               : arena_printf(claim->arena, "uncordon node %.*s, and ", SLICE_ARG(pod->blocked_by));
}

bool advice_of_sharing(struct advice_list *advice, const struct who_claim *claim)
{
    const struct who_pod *pod = find_remote(claim);
    const struct node *node =
        pod == NULL ? NULL : cluster_find_node(&claim->inquiry->cluster, pod->blocked_by);

    if (!can_share(claim, pod, node))
        return false;
    struct slice placing = placing_text(claim, pod), name = pod->blocked_by;
    struct slice more = toleration_text(claim, pod, name);
    struct slice first = node->is_unschedulable ? uncordoning_text(claim, pod) : SLICE("");
    advice->has_failed = advice->has_failed || placing.ptr == NULL || first.ptr == NULL;
    advice_list_add(
        advice,
        "pods of one node can share the volume: %.*s%.*s on node %.*s, where pod %.*s/%.*s has "
        "it (nodeSelector, or podAffinity to that pod%.*s); or use a ReadWriteMany volume",
        SLICE_ARG(first), SLICE_ARG(placing), SLICE_ARG(name), POD_ARG(claim->holders[0].pod),
        SLICE_ARG(more));
    return true;
}
