/* What a drain of a holder's node needs, and whether the pod can be elsewhere then. */
#include "extender/commands/who/who_advice.h"
#include "policy/volume.h"
#include "policy/volume_terms.h"

enum { SCRATCH_BYTES_MAX = 1 << 20, NODES_READ_MAX = 200 /* by one answer about one holder */ };

/* ---- other nodes ---- */

enum elsewhere { ELSEWHERE_UNKNOWN, ELSEWHERE_NONE, ELSEWHERE_SOME };

/* What the holder needs of another node. */
struct wanted {
    const struct who_claim *claim;
    const struct who_pod *holder;
    struct volume_terms terms; /* of the claim's volume */
    struct slice driver;       /* the same */
};

/* By what the cluster has of each node: a few words. */
static bool may_take(const struct wanted *wanted, const struct node *node)
{
    return node->exists && !node->is_not_ready && node != node_at(wanted->holder->pod->node) &&
           !who_is_cordoned(wanted->holder, node) &&
           (wanted->driver.len == 0 || !node->has_csi_node ||
            words_have(name_slice(node->drivers), wanted->driver));
}

/* By its labels and taints. */
static bool takes(const struct wanted *wanted, const struct node *node,
                  const struct node_details *details)
{
    return who_find_taint(wanted->holder, &details->taints) == NULL &&
           who_wants_node(wanted->holder, name_slice(node->name), details->labels) &&
           volume_terms_match(&wanted->terms, node, details->labels);
}

/* Reads the nodes until one takes the pod. */
static enum elsewhere look_elsewhere(const struct wanted *wanted, struct arena *scratch)
{
    const struct inquiry *inquiry = wanted->claim->inquiry;
    struct table_walk walk = {.at = 0};
    const struct node *node;
    size_t read = 0;

    while ((node = cluster_next_node(&inquiry->cluster, &walk)) != NULL) {
        struct node_details details;
        if (!may_take(wanted, node))
            continue;
        struct slice text =
            inquiry_find_details(inquiry, KIND_NODE, SLICE(""), name_slice(node->name));
        if (text.ptr == NULL || read++ == NODES_READ_MAX)
            return ELSEWHERE_UNKNOWN;
        arena_reset(scratch);
        if (!node_details_read(text, scratch, &details))
            return ELSEWHERE_UNKNOWN;
        if (takes(wanted, node, &details))
            return ELSEWHERE_SOME;
    }
    return ELSEWHERE_NONE;
}

/* Whether another node can have the holder, as far as its claim's volume, its labels and its taints
 * say. A pod with a claim that is being deleted, or has lost its volume, is on no node again. */
static enum elsewhere find_elsewhere(const struct who_claim *claim, const struct who_pod *holder)
{
    const struct resource *volume =
        cluster_find_resource(&claim->inquiry->cluster, KIND_VOLUME, claim->volume);
    struct wanted wanted = {.claim = claim, .holder = holder};
    struct arena scratch;

    if (claim->details.deletion_timestamp.len != 0)
        return ELSEWHERE_NONE;
    if (!volume_terms_find(volume, &claim->volume_details, claim->arena, &wanted.terms))
        return ELSEWHERE_UNKNOWN;
    wanted.driver = volume == NULL ? SLICE("") : volume_driver(volume);
    arena_init(&scratch, SCRATCH_BYTES_MAX);
    enum elsewhere result = look_elsewhere(&wanted, &scratch);
    arena_dispose(&scratch);
    return result;
}

/* ---- budgets ---- */

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
        return SLICE("let it allow an eviction (maxUnavailable: 1, without minAvailable)");
    if (is_unready(holder))
        return SLICE("the pod is not ready. Mend it, or set the budget's "
                     "unhealthyPodEvictionPolicy: AlwaysAllow");
    return arena_printf(claim->arena, "its ready pods are %lld of %lld. Mend the others",
                        (long long)details.healthy, (long long)details.expected);
}

/* Whether a pod waits for a claim of one pod, which the one that is evicted would not leave to it:
 * it comes back at once, and is as important. */
static bool is_wanted_by_another(const struct who_claim *claim, const struct who_pod *holder)
{
    bool is_wanted = claim->asked != NULL && claim->asked->priority <= holder->pod->priority;

    for (size_t i = 0; claim->asked == NULL && i < claim->waiter_count; i++)
        is_wanted = is_wanted || claim->waiters[i].pod->priority <= holder->pod->priority;
    return claim->access == ACCESS_ONE_POD && is_wanted;
}

/* The API server lets it evict the pod. */
static void advise_drain(struct advice_list *advice, const struct who_claim *claim,
                         const struct who_pod *holder)
{
    enum elsewhere elsewhere = find_elsewhere(claim, holder);
    struct slice name = pod_node(holder->pod);

    if (elsewhere == ELSEWHERE_NONE)
        advice_list_add(advice, "node %.*s is cordoned: a drain of it evicts the pod, and %s; or:",
                        SLICE_ARG(name),
                        claim->details.deletion_timestamp.len != 0
                            ? "no pod gets the claim again"
                            : "no other node can have it (its volume, labels, taints): add one "
                              "first, or uncordon this one");
    else
        advice_list_add(advice,
                        "node %.*s is cordoned: a drain of it evicts the pod, and %.*s %.*s makes "
                        "it again %s; or:",
                        SLICE_ARG(name), OWNER_ARG(&holder->owner),
                        elsewhere == ELSEWHERE_SOME ? "elsewhere"
                                                    : "where another node can have it");
    advice_warn_of_loss(advice, claim, holder->pod);
}

void advice_of_drain(struct advice_list *advice, const struct who_claim *claim,
                     const struct who_pod *holder)
{
    const struct node *node = node_at(holder->pod->node);
    struct slice name = pod_node(holder->pod);
    char buffer[PROVISIONED_NAME_BYTES];
    struct budgets budgets;

    if (node == NULL || !node->is_unschedulable || !workload_scales(holder->owner.kind) ||
        who_lacks_volume(claim) || is_wanted_by_another(claim, holder))
        return;
    who_find_budgets(&budgets, &claim->inquiry->cluster, holder->pod);
    if (holder->pod->is_pending) /* the API server deletes it whatever its budgets say */
        budgets.count = 0;
    if (budgets.count > 1)
        advice_list_add(advice,
                        "node %.*s is cordoned, and %zu PodDisruptionBudgets select the pod, so "
                        "the API server refuses to evict it. Delete all but one, or narrow their "
                        "selectors; or:",
                        SLICE_ARG(name), budgets.count + budgets.left_out);
    else if (budgets.count == 1 && !allows(claim, holder, budgets.items[0]))
        advice_list_add(advice,
                        "node %.*s is cordoned, and PodDisruptionBudget %.*s stops a drain of it: "
                        "%.*s; or:",
                        SLICE_ARG(name), SLICE_ARG(resource_name(budgets.items[0], buffer)),
                        SLICE_ARG(needs_of(claim, holder, budgets.items[0])));
    else
        advise_drain(advice, claim, holder);
}
