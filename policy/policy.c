#include "policy/policy.h"

#include <stdlib.h>

/* At the end, so that the first policy that rejects a node gives the reason. */
static void append(struct node_filter **list, struct node_filter *nodes)
{
    while (*list != NULL)
        list = &(*list)->next;
    *list = nodes;
}

void policy_prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out, const struct policy **decided_by)
{
    const bool *exclusive = NULL;

    *out = (struct verdict){.code = CODE_SKIP};
    *decided_by = policies[0];
    for (const struct policy *const *policy = policies; *policy != NULL; policy++) {
        struct verdict verdict = {0};
        (*policy)->prefilter(view, pod, arena, &verdict);
        exclusive = verdict.exclusive != NULL ? verdict.exclusive : exclusive;
        if (verdict.nodes != NULL)
            verdict.nodes->policy = *policy;
        if (code_is_rejection(verdict.code) ||
            (verdict.code == CODE_SUCCESS && out->code == CODE_SKIP)) {
            *out = verdict;
            *decided_by = *policy;
        } else if (verdict.code == CODE_SUCCESS) {
            append(&out->nodes, verdict.nodes);
        }
        if (code_is_rejection(verdict.code))
            break;
    }
    out->exclusive = exclusive;
}

static bool passes(const struct node_filter *filter, struct slice node, struct arena *arena,
                   struct slice *reason)
{
    if (filter->test != NULL)
        return filter->test(filter->context, node, arena, reason);
    *reason = filter->reason;
    return filter->count != 0 &&
           bsearch(&node, filter->names, filter->count, sizeof *filter->names, slice_order) != NULL;
}

const struct node_filter *policy_filter(const struct verdict *verdict, struct slice node,
                                        struct arena *arena, struct slice *reason)
{
    for (const struct node_filter *filter = verdict->nodes; filter != NULL; filter = filter->next) {
        *reason = SLICE("");
        if (passes(filter, node, arena, reason))
            continue;
        if (reason->ptr != NULL && reason->len == 0)
            *reason = SLICE("the node is rejected");
        return filter;
    }
    return NULL;
}
