#include "extender/live/nominee.h"

/* Whether one of the verdict's filters is for the node, and says that it is worth a nomination. */
static bool is_nominee(const struct verdict *verdict, struct slice node)
{
    for (const struct node_filter *filter = verdict->nodes; filter != NULL; filter = filter->next)
        for (size_t i = 0; filter->nominates && !filter->warns && i < filter->count; i++)
            if (slice_equal(filter->names[i], node))
                return true;
    return false;
}

/* A nominated pod holds its exclusive claims against others. */
static bool has_exclusive(const struct pod_object *pod, const struct verdict *verdict)
{
    for (size_t i = 0; verdict->exclusive != NULL && i < pod->claim_count; i++)
        if (verdict->exclusive[i])
            return true;
    return false;
}

struct slice nominee_choose(const struct view *view, const struct pod_object *pod,
                            const struct verdict *verdict, struct arena *arena)
{
    const struct pod *cached = cluster_find_pod(view->cluster, pod->meta.ns, pod->meta.name);
    struct slice reason;

    if (verdict->code != CODE_SUCCESS || pod->meta.uid.len == 0 || pod->nominated_node.len != 0 ||
        cached == NULL || !uid_is(&cached->uid, pod->meta.uid) || pod_is_nominated(cached) ||
        cached->is_terminating || has_exclusive(pod, verdict))
        return SLICE("");
    for (const struct node_filter *filter = verdict->nodes; filter != NULL; filter = filter->next)
        for (size_t i = 0; filter->nominates && !filter->warns && i < filter->count; i++)
            if (node_is_usable(cluster_find_node(view->cluster, filter->names[i])) &&
                policy_filter(verdict, filter->names[i], arena, &reason) == NULL)
                return filter->names[i];
    return SLICE("");
}

enum nominee_reason nominee_reason(const struct view *view, const struct pod *pod,
                                   struct slice node, struct arena *arena)
{
    const struct policy *decided_by;
    struct pod_object object;
    struct verdict verdict;
    struct slice reason;

    if (!node_is_usable(cluster_find_node(view->cluster, node)))
        return REASON_GONE;
    if (!cluster_describe_pod(pod, arena, &object))
        return REASON_UNKNOWN;
    policy_prefilter(view, &object, arena, &verdict, &decided_by);
    if (verdict.code == CODE_ERROR)
        return REASON_UNKNOWN;
    if (verdict.code != CODE_SUCCESS || !is_nominee(&verdict, node))
        return REASON_GONE;
    if (policy_filter(&verdict, node, arena, &reason) == NULL)
        return REASON_HOLDS;
    return reason.ptr == NULL ? REASON_UNKNOWN : REASON_GONE;
}
