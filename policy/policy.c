#include "policy/policy.h"

#include <stdlib.h>

int policy_mode(const struct policy *policy, const struct config *config)
{
    return policy->mode == NULL ? MODE_ENFORCE : policy->mode(config);
}

/* ---- kinds ---- */

unsigned policy_needed_kinds(const struct config *config)
{
    unsigned kinds = 1U << KIND_POD | 1U << KIND_NODE | 1U << KIND_CLAIM;

    for (size_t i = 0; policies[i] != NULL; i++) {
        if (policy_mode(policies[i], config) == MODE_OFF)
            continue;
        kinds |= policies[i]->reads;
        if (policies[i]->reads_also != NULL)
            kinds |= policies[i]->reads_also(config);
    }
    return kinds;
}

bool policy_needs(const struct config *config, enum kind kind)
{
    return (policy_needed_kinds(config) >> kind & 1) != 0;
}

/* ---- the verdict ---- */

/* Turns the rejection of a policy that only warns into warnings, with Skip. */
static void warn_instead(struct verdict *verdict, struct arena *arena)
{
    struct verdict warned = {
        .code = CODE_SKIP, .warnings = verdict->warnings, .warning_count = verdict->warning_count};

    for (size_t i = 0; i < verdict->reason_count; i++)
        if (!verdict_add_warning(&warned, arena, verdict->reasons[i]))
            break;
    *verdict = warned;
}

/* The verdict of one policy, marked as its own. */
static void ask(const struct policy *policy, const struct view *view, const struct pod_object *pod,
                struct arena *arena, struct verdict *out)
{
    int mode = policy_mode(policy, view->config);

    *out = (struct verdict){.code = CODE_SKIP};
    if (mode == MODE_OFF)
        return;
    policy->prefilter(view, pod, arena, out);
    if (mode == MODE_WARN && code_is_rejection(out->code) && out->code != CODE_ERROR)
        warn_instead(out, arena);
    out->decided_by = policy;
    if (mode == MODE_WARN)
        out->awaited_count = 0; /* the pod does not wait for them */
    for (size_t i = 0; i < out->warning_count; i++)
        out->warnings[i].policy = policy;
    for (struct node_filter *filter = out->nodes; filter != NULL; filter = filter->next) {
        filter->policy = policy;
        filter->warns = mode == MODE_WARN;
    }
}

/* At the end, so that the first policy that rejects a node gives the reason. */
static void append(struct node_filter **list, struct node_filter *nodes)
{
    while (*list != NULL)
        list = &(*list)->next;
    *list = nodes;
}

/* The warnings of policies that were asked before come first. */
static void append_warnings(struct verdict *out, const struct verdict *more, struct arena *arena)
{
    for (size_t i = 0; i < more->warning_count && out->warning_count < WARNINGS_MAX; i++)
        if (verdict_add_warning(out, arena, more->warnings[i].text))
            out->warnings[out->warning_count - 1].policy = more->warnings[i].policy;
}

/* Adds an Unresolvable verdict to one that evictions would help: they do not help any more. */
static void aggravate(struct verdict *out, const struct verdict *more, struct arena *arena)
{
    out->code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    out->victim_count = 0;
    for (size_t i = 0; i < more->reason_count; i++)
        (void)verdict_add_reason(out, arena, more->reasons[i]);
    for (size_t i = 0; i < more->cause_count; i++)
        (void)verdict_keep_cause(out, arena, &more->causes[i]);
}

/* Adds a policy's verdict to that of the policies before it. */
static void merge(struct verdict *out, const struct verdict *verdict, struct arena *arena)
{
    if (verdict->code == CODE_ERROR) {
        *out = *verdict;
        return;
    }
    bool decides = !code_is_rejection(out->code) &&
                   (code_is_rejection(verdict->code) ||
                    (verdict->code == CODE_SUCCESS && out->code == CODE_SKIP));
    struct verdict merged = decides ? *verdict : *out;
    merged.nodes = out->nodes;
    append(&merged.nodes, verdict->nodes);
    merged.warnings = out->warnings;
    merged.warning_count = out->warning_count;
    merged.awaited = out->awaited;
    merged.awaited_count = out->awaited_count;
    append_warnings(&merged, verdict, arena);
    /* what a pod waits for that passes by the policies before, but not on all nodes, stays */
    for (size_t i = 0; i < verdict->awaited_count; i++)
        (void)verdict_add_awaited(&merged, arena, &verdict->awaited[i]);
    if (code_is_rejection(verdict->code) && !decides && merged.code != CODE_ERROR)
        aggravate(&merged, verdict, arena);
    *out = merged;
}

void policy_prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out)
{
    const bool *exclusive = NULL;
    struct pod_object completed = *pod;

    *out = (struct verdict){.code = CODE_SKIP, .decided_by = policies[0]};
    if (!cluster_complete_pod(view->cluster, &completed, arena)) {
        verdict_out_of_memory(out);
        return;
    }
    for (size_t i = 0; policies[i] != NULL; i++) {
        struct verdict verdict;
        if (code_is_rejection(out->code) && out->code != CODE_UNSCHEDULABLE)
            break;
        ask(policies[i], view, &completed, arena, &verdict);
        exclusive = verdict.exclusive != NULL ? verdict.exclusive : exclusive;
        merge(out, &verdict, arena);
    }
    out->exclusive = exclusive;
}

/* ---- nodes ---- */

/* By the filter's list. */
static void check_list(const struct node_filter *filter, const struct slice *nodes, size_t count,
                       struct slice *reasons)
{
    for (size_t i = 0; i < count; i++) {
        bool is_listed = filter->count != 0 && bsearch(&nodes[i], filter->names, filter->count,
                                                       sizeof *filter->names, slice_order) != NULL;
        reasons[i] = is_listed ? SLICE("") : filter->reason;
        if (!is_listed && filter->reason.ptr != NULL && filter->reason.len == 0)
            reasons[i] = SLICE("the node is rejected");
    }
}

/* Why the pod does not pass on each node, by one filter; empty: it passes. */
static void check(const struct node_filter *filter, const struct slice *nodes, size_t count,
                  struct arena *arena, struct slice *reasons)
{
    if (filter->check != NULL)
        filter->check(filter->context, nodes, count, arena, reasons);
    else
        check_list(filter, nodes, count, reasons);
}

static bool is_passed(struct slice reason)
{
    return reason.ptr != NULL && reason.len == 0;
}

static bool passes(const struct node_filter *filter, struct slice node, struct arena *arena,
                   struct slice *reason)
{
    check(filter, &node, 1, arena, reason);
    return is_passed(*reason);
}

/* The first filter from `filter` on that warns, or that does not, and that rejects the node. */
static const struct node_filter *find(const struct node_filter *filter, bool warns,
                                      struct slice node, struct arena *arena, struct slice *reason)
{
    while (filter != NULL && (filter->warns != warns || passes(filter, node, arena, reason)))
        filter = filter->next;
    return filter;
}

const struct node_filter *policy_filter(const struct verdict *verdict, struct slice node,
                                        struct arena *arena, struct slice *reason)
{
    return find(verdict->nodes, false, node, arena, reason);
}

enum verdict_code policy_node_code(const struct verdict *verdict, struct slice node,
                                   struct arena *arena)
{
    const struct node_filter *filter = verdict->nodes;
    struct slice reason;

    while (filter != NULL && !filter->is_resolvable) /* of most verdicts, none is */
        filter = filter->next;
    if (filter != NULL)
        filter = policy_filter(verdict, node, arena, &reason);
    return filter != NULL && filter->is_resolvable ? CODE_UNSCHEDULABLE
                                                   : CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
}

bool policy_passes_somewhere(const struct view *view, const struct verdict *verdict,
                             struct arena *arena)
{
    struct table_walk walk = {.at = 0};
    struct slice reason;

    if (!policy_filters_nodes(verdict))
        return true;
    for (const struct node *node; (node = cluster_next_node(view->cluster, &walk)) != NULL;)
        if (node->exists && policy_filter(verdict, name_slice(node->name), arena, &reason) == NULL)
            return true;
    return false;
}

const struct node_filter *policy_warn(const struct verdict *verdict,
                                      const struct node_filter *after, struct slice node,
                                      struct arena *arena, struct slice *reason)
{
    return find(after == NULL ? verdict->nodes : after->next, true, node, arena, reason);
}

bool policy_filters_nodes(const struct verdict *verdict)
{
    const struct node_filter *filter = verdict->nodes;

    if (code_is_rejection(verdict->code) && verdict->code != CODE_UNSCHEDULABLE)
        return false;
    while (filter != NULL && filter->warns)
        filter = filter->next;
    return filter != NULL;
}

/* The pod passes on none of these nodes. */
static void reject(struct verdict *verdict, const struct slice *nodes, size_t count,
                   struct arena *arena)
{
    struct slice reason = {NULL, 0};
    const struct node_filter *filter = policy_filter(verdict, nodes[0], arena, &reason);
    enum verdict_code code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;

    for (size_t i = 0; i < count && code != CODE_UNSCHEDULABLE; i++)
        code = policy_node_code(verdict, nodes[i], arena);

    if (filter != NULL && !code_is_rejection(verdict->code))
        verdict->decided_by = filter->policy;
    verdict->code = code;
    verdict->is_by_nodes = true;
    verdict->victim_count = 0;
    (void)verdict_add_reason(verdict, arena, reason);
}

enum { CHECKED_AT_ONCE = 128 };

/* The filter's reasons, for the nodes that have passed those before. */
static void add_reasons(const struct node_filter *filter, const struct slice *names, size_t count,
                        struct arena *arena, struct slice *reasons)
{
    struct slice more[CHECKED_AT_ONCE];

    for (size_t i = 0, n; i < count; i += n) {
        n = count - i < CHECKED_AT_ONCE ? count - i : CHECKED_AT_ONCE;
        check(filter, names + i, n, arena, more);
        for (size_t j = 0; j < n; j++)
            reasons[i + j] = is_passed(reasons[i + j]) ? more[j] : reasons[i + j];
    }
}

size_t policy_filter_nodes(struct verdict *verdict, const struct slice *names, size_t count,
                           struct arena *arena, struct slice *reasons)
{
    bool has_memory = true;
    size_t rejected = 0;

    for (size_t i = 0; i < count; i++)
        reasons[i] = SLICE("");
    for (const struct node_filter *filter = verdict->nodes; filter != NULL; filter = filter->next)
        if (!filter->warns)
            add_reasons(filter, names, count, arena, reasons);
    for (size_t i = 0; i < count; i++) {
        has_memory = has_memory && reasons[i].ptr != NULL;
        rejected += reasons[i].len != 0;
    }
    if (!has_memory) {
        verdict_out_of_memory(verdict);
        return 0;
    }
    if (rejected != 0 && rejected == count)
        reject(verdict, names, count, arena);
    else if (verdict->code == CODE_UNSCHEDULABLE)
        return 0;
    return rejected;
}

bool policy_has_given_up(const struct view *view, struct slice ns, struct arena *arena,
                         struct slice *reason)
{
    bool is_so = allowance_is_over(view->cluster, ns);

    if (is_so)
        *reason = arena_printf(
            arena,
            "the pods, claims and PodDisruptionBudgets of namespace %.*s take too much memory, so "
            "claimguard does not keep them: they have too many long names, labels or volumes",
            SLICE_ARG(ns));
    return is_so;
}

/* ---- preemption ---- */

void policy_preempt(const struct view *view, const struct pod_object *pod, struct verdict *verdict,
                    struct arena *arena, struct candidate *candidates, size_t count)
{
    struct pod_object completed = *pod;
    struct slice reason;

    if (!cluster_complete_pod(view->cluster, &completed, arena)) {
        verdict_out_of_memory(verdict);
        return;
    }
    for (const struct policy *const *policy = policies; *policy != NULL; policy++)
        if ((*policy)->preempt != NULL)
            (*policy)->preempt(view, &completed, verdict, arena, candidates, count);
    for (size_t i = 0; i < count; i++)
        if (candidates[i].keeps_node &&
            policy_filter(verdict, candidates[i].node, arena, &reason) != NULL)
            candidates[i].keeps_node = false;
}
