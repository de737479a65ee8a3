/*
 * Which evictions violate PodDisruptionBudgets.
 */
#include "cache/cluster/cluster.h"
#include "cache/objects/label_selector.h"

enum {
    COUNTED_PODS_MAX = 4096, /* no preemption evicts as many */
    /* Texts that one answer compares under the lock, which takes 20 ms. A limit is needed because
     * users choose the number and the length of selectors and labels. */
    COMPARED_BYTES_MAX = 8 << 20,
    COMPARISON_BYTES = 64 /* the cost of one comparison besides its texts */
};

/* Whether the budget's status.disruptedPods names the pod: the API server has counted its eviction
 * already. */
static bool has_counted(const struct resource *budget, struct slice pod)
{
    struct slice names = resource_attribute(budget, BUDGET_DISRUPTED_PODS);

    while (names.len != 0) {
        const char *end = memchr(names.ptr, ',', names.len);
        size_t length = end == NULL ? names.len : (size_t)(end - names.ptr);
        if (slice_equal((struct slice){names.ptr, length}, pod))
            return true;
        length += end != NULL;
        names = (struct slice){names.ptr + length, names.len - length};
    }
    return false;
}

/* How evictions are counted. */
struct tally {
    const struct pod *const *pods;
    size_t count;
    bool is_by_api_server; /* count as the API server does; else as kube-scheduler does */
    size_t bytes_left;     /* that may be compared */
    bool is_violation[COUNTED_PODS_MAX];
};

/* Whether the pod's eviction counts against a budget with that selector. */
static bool counts(const struct tally *tally, struct slice selector, const struct pod *pod)
{
    if (tally->is_by_api_server ? pod->is_pending || pod->is_terminating
                                : pod->labels.step == 0 || selector_is_empty(selector))
        return false;
    return selector_matches(selector, name_text(pod->labels), pod_name(pod));
}

/* Marks the pods whose eviction violates the budget. False: it would take too long. */
static bool mark_violations(struct tally *tally, const struct resource *budget)
{
    struct slice selector = resource_attribute(budget, BUDGET_SELECTOR);
    size_t budget_bytes = COMPARISON_BYTES + selector.len;
    int64_t evicted = 0; /* pods that count against the budget */

    budget_bytes += resource_attribute(budget, BUDGET_DISRUPTED_PODS).len;
    for (size_t i = 0; i < tally->count; i++) {
        const struct pod *pod = tally->pods[i];
        if (resource_ns(budget) != name_at(pod->ns))
            continue;
        size_t bytes = budget_bytes + name_text(pod->labels).len + pod_name(pod).len;
        if (bytes > tally->bytes_left)
            return false;
        tally->bytes_left -= bytes;
        if (counts(tally, selector, pod) && !has_counted(budget, pod_name(pod)) &&
            ++evicted > resource_number(budget))
            tally->is_violation[i] = true;
    }
    return true;
}

/* How many of the evictions violate a budget. All, if it would take too long to count. */
static size_t count_violations(const struct cluster *cluster, struct tally *tally)
{
    size_t known = tally->count < COUNTED_PODS_MAX ? tally->count : COUNTED_PODS_MAX;
    size_t violations = tally->count - known; /* the rest counts as violations */
    struct table_walk walk = {.at = 0};

    tally->count = known;
    tally->bytes_left = COMPARED_BYTES_MAX;
    for (const struct resource *budget;
         (budget = cluster_next_resource(cluster, KIND_POD_DISRUPTION_BUDGET, &walk)) != NULL;)
        if (!(tally->is_by_api_server && resource_number(budget) <= 0) &&
            !mark_violations(tally, budget))
            return violations + known;
    for (size_t i = 0; i < known; i++)
        violations += tally->is_violation[i];
    return violations;
}

size_t cluster_count_budget_violations(const struct cluster *cluster, const struct pod *const *pods,
                                       size_t count)
{
    struct tally tally = {.pods = pods, .count = count};

    return count_violations(cluster, &tally);
}

bool cluster_breaks_budgets(const struct cluster *cluster, const struct pod *const *pods,
                            size_t count)
{
    struct tally tally = {.pods = pods, .count = count, .is_by_api_server = true};

    return count_violations(cluster, &tally) != 0;
}
