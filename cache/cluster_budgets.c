/*
 * What evictions do to PodDisruptionBudgets.
 */
#include "cache/cluster.h"
#include "cache/selector.h"

enum { COUNTED_PODS_MAX = 4096 }; /* no attempt evicts as many */

/* Whether the budget's status names the pod among those whose eviction the API server has taken out
 * of it already. */
static bool has_counted(const struct resource *budget, struct slice pod)
{
    struct slice names = name_slice(budget->attributes[BUDGET_DISRUPTED_PODS]);

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

/* Marks the pods whose eviction the budget does not allow any more. */
static void mark_violations(const struct resource *budget, const struct pod *const *pods,
                            size_t count, bool *is_violation)
{
    struct slice selector = name_slice(budget->attributes[BUDGET_SELECTOR]);
    int64_t evictions = 0; /* that count against it */

    for (size_t i = 0; i < count; i++)
        if (budget->key.namespace == pods[i]->namespace &&
            selector_matches(selector, name_slice(pods[i]->labels)) &&
            !has_counted(budget, pod_name(pods[i])) && ++evictions > budget->number)
            is_violation[i] = true;
}

size_t cluster_count_budget_violations(const struct cluster *cluster, const struct pod *const *pods,
                                       size_t count)
{
    bool is_violation[COUNTED_PODS_MAX] = {false};
    size_t looked_at = count < COUNTED_PODS_MAX ? count : COUNTED_PODS_MAX;
    size_t violations = count - looked_at; /* of the others nothing is known */

    struct table_walk walk = {.at = 0};
    for (const struct resource *budget;
         (budget = cluster_next_resource(cluster, KIND_POD_DISRUPTION_BUDGET, &walk)) != NULL;)
        mark_violations(budget, pods, looked_at, is_violation);
    for (size_t i = 0; i < looked_at; i++)
        violations += is_violation[i];
    return violations;
}
