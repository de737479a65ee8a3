/* What a drain of a holder's node needs. */
#include "extender/commands/who/who_advice.h"

/* The budget's details; false: they are not known. */
static bool read_budget(const struct who_claim *claim, const struct resource *budget,
                        struct budget_details *out)
{
    char name[PROVISIONED_NAME_BYTES];
    struct slice text =
        inquiry_find_details(claim->inquiry, KIND_POD_DISRUPTION_BUDGET,
                             name_slice(resource_ns(budget)), resource_name(budget, name));

    return text.ptr != NULL && budget_details_read(text, claim->arena, out);
}

static bool is_unready(const struct who_pod *pod)
{
    const struct condition *ready = details_condition(&pod->details.conditions, SLICE("Ready"));

    return ready != NULL && !slice_equal(ready->status, SLICE("True"));
}

/* Whether the API server evicts the pod: also one that is not ready, if that takes none of the pods
 * that have to be ready (unhealthyPodEvictionPolicy). */
static bool allows(const struct who_claim *claim, const struct who_pod *holder,
                   const struct resource *budget)
{
    struct budget_details details;

    if (resource_number(budget) != 0)
        return true;
    return is_unready(holder) && read_budget(claim, budget, &details) &&
           (slice_equal(details.of_unhealthy, SLICE("AlwaysAllow")) ||
            (details.needed > 0 && details.healthy >= details.needed));
}

/* What the budget needs, which does not allow it. */
static struct slice needs_of(const struct who_claim *claim, const struct who_pod *holder,
                             const struct resource *budget)
{
    struct budget_details details;

    if (!read_budget(claim, budget, &details) || details.healthy >= details.expected)
        return SLICE("let it allow an eviction (maxUnavailable: 1)");
    if (is_unready(holder))
        return SLICE("the pod is not ready. Mend it, or set the budget's "
                     "unhealthyPodEvictionPolicy: AlwaysAllow");
    return arena_printf(claim->arena, "its ready pods are %lld of %lld. Mend the others",
                        (long long)details.healthy, (long long)details.expected);
}

void advice_of_drain(struct advice_list *advice, const struct who_claim *claim,
                     const struct who_pod *holder)
{
    const struct node *node = node_at(holder->pod->node);
    struct slice name = pod_node(holder->pod);
    char buffer[PROVISIONED_NAME_BYTES];
    struct budgets budgets;

    if (node == NULL || !node->is_unschedulable || !workload_scales(holder->owner.kind))
        return;
    who_find_budgets(&budgets, &claim->inquiry->cluster, holder->pod);
    if (budgets.count > 1)
        advice_list_add(advice,
                        "node %.*s is cordoned, and %zu PodDisruptionBudgets select the pod, so "
                        "the API server refuses to evict it. Leave one of them; or:",
                        SLICE_ARG(name), budgets.count + budgets.left_out);
    else if (budgets.count == 1 && !allows(claim, holder, budgets.items[0]))
        advice_list_add(advice,
                        "node %.*s is cordoned, and PodDisruptionBudget %.*s stops a drain of it: "
                        "%.*s; or:",
                        SLICE_ARG(name), SLICE_ARG(resource_name(budgets.items[0], buffer)),
                        SLICE_ARG(needs_of(claim, holder, budgets.items[0])));
    else
        advice_list_add(advice,
                        "node %.*s is cordoned: a drain of it evicts the pod, and %.*s %.*s makes "
                        "it again elsewhere; or:",
                        SLICE_ARG(name), OWNER_ARG(&holder->owner));
}
