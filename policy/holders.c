#include "policy/holders.h"

#include <stdlib.h>

#include "policy/exclusive.h"

/* ---- one holder ---- */

const char *hold_text(enum hold hold)
{
    static const char *const words[] = {"", "Bound", "Terminating", "Nominated", "Reserved"};

    return words[hold];
}

/* By UID. Where nobody has one (a hand-written snapshot), by the name: it is unique there, and both
 * are in the namespace of their claim. */
static bool is_itself(const struct pod *holder, const struct pod_object *pod)
{
    char uid[UID_TEXT_BYTES];

    if (pod->meta.uid.len != 0)
        return uid_is(&holder->uid, pod->meta.uid);
    return uid_text(&holder->uid, uid).len == 0 && slice_equal(pod_name(holder), pod->meta.name);
}

const struct pod *holder_cached(const struct cluster *cluster, const struct pod_object *pod)
{
    const struct pod *cached = cluster_find_pod(cluster, pod->meta.ns, pod->meta.name);

    return cached != NULL && is_itself(cached, pod) ? cached : NULL;
}

/* A nomination to a node that does not exist, or that takes no pods, is none. */
static bool is_nominated(const struct cluster *cluster, struct slice node)
{
    return node.len != 0 && node_is_usable(cluster_find_node(cluster, node));
}

/* Whether the scheduler tries a nominated holder before the pod, which has the same priority: it is
 * older. kube-scheduler's queue uses the time at which it queued a pod, which only it knows; the
 * time of creation is the nearest to it. The UID decides between pods of one second, so that of two
 * pods exactly one is first. A pod of unknown age is a manifest, and the youngest. */
static bool is_tried_first(const struct pod *holder, const struct pod_object *pod,
                           struct slice pod_created_at)
{
    struct slice created = pod_created(holder);
    char uid[UID_TEXT_BYTES];

    if (created.len != pod_created_at.len)
        return created.len != 0;
    int order = slice_compare(created, pod_created_at);
    if (order == 0)
        order = slice_compare(uid_text(&holder->uid, uid), pod->meta.uid);
    return (order == 0 ? slice_compare(pod_name(holder), pod->meta.name) : order) < 0;
}

/* Two nominated pods never wait for each other: one that is nominated itself waits only for those
 * that are tried before it. */
static bool nomination_holds(const struct cluster *cluster, const struct pod *holder,
                             const struct pod_object *pod)
{
    if (holder->priority < pod->priority || !cluster_nomination_counts(cluster, holder))
        return false;
    if (holder->priority > pod->priority)
        return true;
    const struct pod *cached = holder_cached(cluster, pod);
    struct slice created = cached == NULL ? SLICE("") : pod_created(cached);
    if (pod->created.len == CREATED_BYTES)
        created = pod->created;
    bool is_rival = is_nominated(cluster, pod->nominated_node) ||
                    (cached != NULL && cluster_nomination_counts(cluster, cached));
    return !is_rival || is_tried_first(holder, pod, created);
}

enum hold hold_against(const struct cluster *cluster, const struct pod *holder,
                       const struct pod_object *pod)
{
    if (holder->is_terminal || is_itself(holder, pod))
        return HOLD_NONE;
    if (pod_is_assigned(holder))
        return holder->is_terminating ? HOLD_TERMINATING : HOLD_BOUND;
    return nomination_holds(cluster, holder, pod) ? HOLD_NOMINATED : HOLD_NONE;
}

/* All are in the claim's namespace. */
static int compare_holders(const void *a, const void *b)
{
    const struct pod *const *x = a, *const *y = b;

    return slice_compare(pod_name(*x), pod_name(*y));
}

size_t holders_list(const struct cluster *cluster, const struct claim *claim,
                    const struct pod_object *pod, const struct pod **out, size_t room, size_t *uses)
{
    size_t count = 0, seen = 0;

    for (const struct use *use = use_at(claim->uses); use != NULL && count < room && seen < *uses;
         use = use_at(use->next), seen++)
        if (hold_against(cluster, use_pod(use), pod) != HOLD_NONE)
            out[count++] = use_pod(use);
    if (count != 0)
        qsort((void *)out, count, sizeof *out, compare_holders);
    *uses = seen;
    return count;
}

/* ---- the conflicts of a pod ---- */

bool conflicts_find_claims(const struct cluster *cluster, const struct pod_object *pod,
                           struct arena *arena, struct conflicts *out)
{
    *out = (struct conflicts){.claims = arena_alloc(arena, pod->claim_count * sizeof *out->claims)};
    for (size_t i = 0; out->claims != NULL && i < pod->claim_count; i++)
        out->claims[i] = cluster_find_claim(cluster, pod->meta.ns, pod->claims[i].name);
    return out->claims != NULL;
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

struct slice conflict_holder_name(const struct conflict *conflict)
{
    return conflict->holder == NULL ? name_slice(conflict->reservation->name)
                                    : pod_name(conflict->holder);
}

static int compare_names(const void *a, const void *b)
{
    return slice_compare(conflict_holder_name(a), conflict_holder_name(b));
}

/* With qsort, because thousands of pods that name their node may hold one claim. */
static void sort(struct conflicts *conflicts)
{
    for (size_t i = 0, end; i < conflicts->count; i = end) {
        for (end = i + 1;
             end < conflicts->count && conflicts->items[end].claim == conflicts->items[i].claim;)
            end++;
        qsort(conflicts->items + i, end - i, sizeof *conflicts->items, compare_names);
    }
}

bool conflicts_find(const struct view *view, const struct pod_object *pod, struct arena *arena,
                    struct conflicts *out)
{
    if (out->claims == NULL && !conflicts_find_claims(view->cluster, pod, arena, out))
        return false;
    out->exclusive = arena_alloc(arena, pod->claim_count * sizeof *out->exclusive);
    if (out->exclusive == NULL)
        return false;
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct claim *claim = out->claims[i];
        if (claim == NULL)
            continue;
        out->exclusive[i] = exclusive_is_needed(view, pod, i, claim);
        out->has_exclusive = out->has_exclusive || out->exclusive[i];
        if (!add_holders(view, pod, claim, out->exclusive[i], arena, out))
            return false;
    }
    sort(out);
    return true;
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
