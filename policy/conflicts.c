#include "policy/conflicts.h"

#include <stdlib.h>

#include "policy/exclusive.h"

const struct claim **conflicts_find_claims(const struct cluster *cluster,
                                           const struct pod_object *pod, struct arena *arena)
{
    const struct claim **claims = arena_alloc(arena, pod->claim_count * sizeof *claims);

    for (size_t i = 0; claims != NULL && i < pod->claim_count; i++)
        claims[i] = cluster_find_claim(cluster, pod->meta.ns, pod->claims[i].name);
    return claims;
}

/* False: no memory. */
static bool add_conflict(struct conflicts *conflicts, struct arena *arena, struct conflict conflict)
{
    struct conflict *grown = arena_grow(arena, conflicts->items, conflicts->count, sizeof *grown);

    if (grown == NULL)
        return false;
    grown[conflicts->count++] = conflict;
    conflicts->items = grown;
    return true;
}

/* Adds the pod for which the claim is reserved, unless it is a holder already (nominated). like:
 * the claim, and why it is exclusive. */
static bool add_reserved(const struct conflict *like, const struct reservation *reservation,
                         struct arena *arena, struct conflicts *out)
{
    struct conflict conflict = *like;

    if (reservation == NULL)
        return true;
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].claim == like->claim && out->items[i].holder != NULL &&
            memcmp(&out->items[i].holder->uid, &reservation->uid, sizeof reservation->uid) == 0)
            return true;
    conflict.reservation = reservation;
    conflict.hold = HOLD_RESERVED;
    return add_conflict(out, arena, conflict);
}

/* Adds the pods that hold the claim against this one: all of them if this one needs the claim for
 * itself, else those that have it for themselves. */
static bool add_holders(const struct view *view, const struct pod_object *pod,
                        const struct claim *claim, bool needs_exclusive, struct arena *arena,
                        struct conflicts *out)
{
    bool may_be_deferred = exclusive_may_be_held(claim);
    bool is_locked = needs_exclusive && !claim->is_rwop && exclusive_by_lock(view, claim);
    struct conflict conflict = {.claim = claim,
                                .is_wanted = needs_exclusive && !claim->is_rwop && !is_locked,
                                .is_locked = is_locked};

    for (const struct use *use = use_at(claim->uses);
         use != NULL && (needs_exclusive || may_be_deferred); use = use_at(use->next)) {
        conflict.holder = use_pod(use);
        conflict.is_deferred = !claim->is_rwop && may_be_deferred && exclusive_is_held(view, use);
        conflict.hold = needs_exclusive || conflict.is_deferred
                            ? hold_against(view->cluster, use_pod(use), pod)
                            : HOLD_NONE;
        if (conflict.hold != HOLD_NONE && !add_conflict(out, arena, conflict))
            return false;
    }
    conflict.holder = NULL;
    conflict.is_deferred = false;
    return add_reserved(&conflict, reservation_against(claim, pod), arena, out) &&
           (!needs_exclusive ||
            add_reserved(&conflict, reservation_sharing(view->cluster, claim, pod), arena, out));
}

bool conflicts_find(const struct view *view, const struct pod_object *pod,
                    const struct claim *const *claims, struct arena *arena, struct conflicts *out)
{
    struct pod_object completed = *pod;

    out->exclusive = arena_alloc(arena, pod->claim_count * sizeof *out->exclusive);
    if (out->exclusive == NULL || !cluster_complete_pod(view->cluster, &completed, arena))
        return false;
    for (size_t i = 0; i < pod->claim_count; i++) {
        if (claims[i] == NULL)
            continue;
        out->exclusive[i] =
            claims[i]->is_rwop || exclusive_is_needed(view, &completed, i, claims[i]);
        out->has_exclusive = out->has_exclusive || out->exclusive[i];
        if (!add_holders(view, pod, claims[i], out->exclusive[i], arena, out))
            return false;
    }
    return true;
}

struct slice conflict_holder_name(const struct conflict *conflict)
{
    return conflict->holder == NULL ? name_slice(conflict->reservation->name)
                                    : pod_name(conflict->holder);
}

int64_t conflict_priority(const struct conflict *conflict)
{
    return conflict->holder == NULL ? conflict->reservation->priority : conflict->holder->priority;
}

static int compare_names(const void *a, const void *b)
{
    return slice_compare(conflict_holder_name(a), conflict_holder_name(b));
}

/* With qsort, because thousands of pods that name their node may hold one claim. */
void conflicts_sort(struct conflicts *conflicts)
{
    for (size_t i = 0, end; i < conflicts->count; i = end) {
        for (end = i + 1;
             end < conflicts->count && conflicts->items[end].claim == conflicts->items[i].claim;)
            end++;
        qsort(conflicts->items + i, end - i, sizeof *conflicts->items, compare_names);
    }
}

/* Why a claim is exclusive though it is not ReadWriteOncePod. */
static const char *why_exclusive(const struct conflict *conflict)
{
    if (conflict->is_deferred)
        return ", whose container runtime mounts it (deferFSMount)";
    if (conflict->is_locked)
        return ", and with claimLock: Annotation it is for one pod (its class has an Exclusive "
               "entry)";
    return conflict->is_wanted ? ", and this pod's container runtime would mount it (deferFSMount)"
                               : "";
}

struct slice conflict_describe(const struct conflict *conflict, struct arena *arena)
{
    const struct pod *holder = conflict->holder;
    struct slice ns = name_text(conflict->claim->ns); /* also the holder's */

    if (holder == NULL)
        return arena_printf(arena, "claim %.*s/%.*s is reserved for pod %.*s/%.*s%s", SLICE_ARG(ns),
                            SLICE_ARG(claim_name(conflict->claim)), SLICE_ARG(ns),
                            SLICE_ARG(conflict_holder_name(conflict)), why_exclusive(conflict));
    struct slice node =
        conflict->hold == HOLD_NOMINATED ? pod_nominated_node(holder) : pod_node(holder);
    const char *how = conflict->hold == HOLD_NOMINATED     ? ", nominated to"
                      : conflict->hold == HOLD_TERMINATING ? ", terminating on"
                                                           : " on";
    return arena_printf(arena, "claim %.*s/%.*s is in use by pod %.*s/%.*s%s %.*s%s", SLICE_ARG(ns),
                        SLICE_ARG(claim_name(conflict->claim)), SLICE_ARG(ns),
                        SLICE_ARG(pod_name(holder)), how, SLICE_ARG(node), why_exclusive(conflict));
}

void conflicts_put_reasons(const struct conflicts *conflicts, struct arena *arena,
                           struct verdict *out)
{
    for (size_t i = 0; i < conflicts->count && i < VERDICT_REASONS_MAX; i++)
        if (!verdict_add_reason(out, arena, conflict_describe(&conflicts->items[i], arena)))
            return;
    if (conflicts->count > VERDICT_REASONS_MAX)
        (void)verdict_add_left_out(out, arena, conflicts->count - VERDICT_REASONS_MAX);
}
