#include "policy/rivals.h"

#include <stdlib.h>

bool rivals_init(struct rivals *rivals, size_t room, struct arena *arena)
{
    *rivals = (struct rivals){.items = arena_alloc(arena, room * sizeof *rivals->items),
                              .going = arena_alloc(arena, room * sizeof *rivals->going),
                              .texts = arena_alloc(arena, room * sizeof *rivals->texts)};
    return rivals->items != NULL && rivals->going != NULL && rivals->texts != NULL;
}

void rivals_add(struct rivals *rivals, const struct pod *pod, enum hold hold)
{
    size_t at = rivals->count;

    if (pod == NULL) {
        rivals->is_reserved = true;
        return;
    }
    rivals->items[rivals->count++] =
        (struct rival){.pod = pod, .hold = hold, .uid = uid_text(&pod->uid, rivals->texts[at])};
}

static int compare_rivals(const void *a, const void *b)
{
    const struct rival *x = a, *y = b;
    int order = slice_compare(x->uid, y->uid);

    return order != 0 ? order : slice_compare(pod_name(x->pod), pod_name(y->pod));
}

/* One of each: a pod may hold several claims. */
static void unite_rivals(struct rivals *rivals)
{
    size_t count = 0;

    if (rivals->count != 0)
        qsort(rivals->items, rivals->count, sizeof *rivals->items, compare_rivals);
    for (size_t i = 0; i < rivals->count; i++)
        if (count == 0 || rivals->items[i].pod != rivals->items[count - 1].pod)
            rivals->items[count++] = rivals->items[i];
    rivals->count = count;
}

/* Where the rivals with that UID begin, if there are any. */
static size_t find_uid(const struct rivals *rivals, struct slice uid)
{
    size_t low = 0, high = rivals->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(rivals->items[middle].uid, uid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Marks the rivals that the candidate offers. It may offer very many pods. A pod without UID is
 * none of them: nobody knows who it is. */
static void mark_offered(struct rivals *rivals, struct candidate *candidate)
{
    candidate->offers_rivals_only = true;
    for (size_t i = 0; i < candidate->offered_count; i++) {
        struct slice uid = candidate->offered[i];
        size_t at = uid.len == 0 ? rivals->count : find_uid(rivals, uid);
        if (at == rivals->count || !slice_equal(rivals->items[at].uid, uid))
            candidate->offers_rivals_only = false;
        for (; at < rivals->count && slice_equal(rivals->items[at].uid, uid) &&
               rivals->items[at].offered_by != candidate;
             at++)
            rivals->items[at].offered_by = candidate;
    }
}

/*
 * Whether the rival is out of the way once the candidate's victims are gone: it is offered, or can
 * be added to them, or is terminating on that node, so that the scheduler waits for it anyway. One
 * on another node cannot be a victim: the scheduler refuses the whole answer.
 */
static bool can_go(const struct rival *rival, const struct pod_object *pod,
                   const struct candidate *candidate)
{
    return rival->offered_by == candidate || (slice_equal(pod_node(rival->pod), candidate->node) &&
                                              rival->pod->priority < pod->priority);
}

/* False: no memory. */
static bool add_victims(const struct rivals *rivals, struct arena *arena,
                        struct candidate *candidate)
{
    for (size_t i = 0; i < rivals->count; i++) {
        const struct rival *rival = &rivals->items[i];
        if (rival->offered_by == candidate || rival->hold == HOLD_TERMINATING)
            continue;
        const struct pod **grown = arena_grow(arena, (void *)candidate->added,
                                              candidate->added_count, sizeof *candidate->added);
        if (grown == NULL)
            return false;
        grown[candidate->added_count++] = rival->pod;
        candidate->added = grown;
    }
    return true;
}

/* How many budgets more than the offered victims break is broken by those that were added. Of those
 * offered, only holders are known here: the scheduler has counted all of them. */
static size_t count_added_violations(const struct cluster *cluster, const struct rivals *rivals,
                                     const struct candidate *candidate)
{
    size_t count = 0;

    if (candidate->added_count == 0)
        return 0;
    for (size_t i = 0; i < rivals->count; i++)
        if (rivals->items[i].offered_by == candidate)
            rivals->going[count++] = rivals->items[i].pod;
    size_t before = cluster_count_budget_violations(cluster, rivals->going, count);
    for (size_t i = 0; i < candidate->added_count; i++)
        rivals->going[count++] = candidate->added[i];
    return cluster_count_budget_violations(cluster, rivals->going, count) - before;
}

/* False: no memory. */
static bool evaluate_candidate(const struct cluster *cluster, const struct pod_object *pod,
                               struct rivals *rivals, struct arena *arena,
                               struct candidate *candidate)
{
    mark_offered(rivals, candidate);
    candidate->keeps_node = !rivals->is_reserved;
    for (size_t i = 0; i < rivals->count && candidate->keeps_node; i++)
        candidate->keeps_node = can_go(&rivals->items[i], pod, candidate);
    if (!candidate->keeps_node)
        return true;
    if (!add_victims(rivals, arena, candidate))
        return false;
    candidate->added_violations = count_added_violations(cluster, rivals, candidate);
    return true;
}

bool rivals_evaluate(struct rivals *rivals, const struct cluster *cluster,
                     const struct pod_object *pod, struct arena *arena,
                     struct candidate *candidates, size_t count)
{
    bool has_memory = true;

    unite_rivals(rivals);
    for (size_t i = 0; i < count && has_memory; i++)
        has_memory = evaluate_candidate(cluster, pod, rivals, arena, &candidates[i]);
    return has_memory;
}
