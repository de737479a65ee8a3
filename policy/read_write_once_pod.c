#include "policy/read_write_once_pod.h"

#include <stdlib.h>

#include "cache/cluster/reservation.h"
#include "policy/defer_fs_mount.h"
#include "policy/holders.h"
#include "policy/rivals.h"

/* A claim of the pod and one pod that holds it. */
struct conflict {
    const struct claim *claim;
    const struct pod *holder;              /* NULL: it is reserved */
    const struct reservation *reservation; /* NULL: it is held */
    enum hold hold;
    bool is_deferred; /* the holder's runtime mounts it */
    bool is_wanted;   /* this pod's runtime would mount it */
};

struct conflicts {
    struct conflict *items;
    size_t count;
    bool *alone;        /* for each claim: the pod takes it for itself alone */
    bool has_exclusive; /* it does so with any */
};

enum { REASONS_MAX = 8 }; /* a pod with more conflicts than that is told how many more */

static void out_of_memory(struct verdict *out)
{
    static struct slice reason = {"the pod is too big to be judged", 31};

    *out = (struct verdict){.code = CODE_ERROR, .reasons = &reason, .reason_count = 1};
}

/* Adds a reason to a verdict; false when memory ran out, with the verdict set to Error. */
static bool add_reason(struct verdict *out, struct arena *arena, struct slice reason)
{
    struct slice *grown = arena_grow(arena, out->reasons, out->reason_count, sizeof *grown);

    if (grown == NULL || reason.ptr == NULL) {
        out_of_memory(out);
        return false;
    }
    grown[out->reason_count++] = reason;
    out->reasons = grown;
    return true;
}

/* Adds an object to what a rejection rests on, as far as there is room: whoever asks about the
 * first GROUNDS_MAX of them knows enough. Copied: the verdict outlives the lock on the cluster.
 * False: no memory, with the verdict set to Error. */
static bool add_cause(struct verdict *out, struct arena *arena, enum kind kind, struct slice ns,
                      struct slice name, const struct uid *uid)
{
    char text[UID_TEXT_BYTES];
    struct slice uid_slice = uid == NULL ? SLICE("") : uid_text(uid, text);

    if (out->cause_count == GROUNDS_MAX)
        return true;
    struct object_reference *grown =
        arena_grow(arena, out->causes, out->cause_count, sizeof *grown);
    struct object_reference cause = {kind, arena_printf(arena, "%.*s", SLICE_ARG(ns)),
                                     arena_printf(arena, "%.*s", SLICE_ARG(name)),
                                     arena_printf(arena, "%.*s", SLICE_ARG(uid_slice))};
    if (grown == NULL || cause.ns.ptr == NULL || cause.name.ptr == NULL || cause.uid.ptr == NULL) {
        out_of_memory(out);
        return false;
    }
    grown[out->cause_count++] = cause;
    out->causes = grown;
    return true;
}

/* The pod's claims as the cluster has them, in the pod's order; NULL for one that does not exist.
 */
static const struct claim **find_claims(const struct cluster *cluster, const struct pod_object *pod,
                                        struct arena *arena)
{
    const struct claim **claims = arena_alloc(arena, pod->claim_count * sizeof *claims);

    for (size_t i = 0; claims != NULL && i < pod->claim_count; i++)
        claims[i] = cluster_find_claim(cluster, pod->meta.ns, pod->claims[i].name);
    return claims;
}

/* Whether a row applies to one of the pod's claims, and the reason ({NULL, 0} without memory). */
typedef bool complaint(const struct pod_object *pod, const struct claim_reference *reference,
                       const struct claim *claim, struct arena *arena, struct slice *reason);

/* Row "names a claim that does not exist". */
static bool missing(const struct pod_object *pod, const struct claim_reference *reference,
                    const struct claim *claim, struct arena *arena, struct slice *reason)
{
    (void)pod;
    if (claim != NULL)
        return false;
    *reason =
        arena_printf(arena, "persistentvolumeclaim \"%.*s\" not found", SLICE_ARG(reference->name));
    return true;
}

/* Row "names a claim that is being deleted, or an ephemeral claim that another pod owns". */
static bool unusable(const struct pod_object *pod, const struct claim_reference *reference,
                     const struct claim *claim, struct arena *arena, struct slice *reason)
{
    bool is_owner =
        pod->meta.uid.len != 0 && slice_equal(name_slice(claim->owner_uid), pod->meta.uid);

    if (claim->is_deleting)
        *reason = arena_printf(arena, "persistentvolumeclaim \"%.*s\" is being deleted",
                               SLICE_ARG(reference->name));
    else if (reference->is_ephemeral && !is_owner)
        *reason = arena_printf(arena,
                               "persistentvolumeclaim \"%.*s\" was not created for pod %.*s/%.*s "
                               "(the pod does not own it)",
                               SLICE_ARG(reference->name), SLICE_ARG(pod->meta.ns),
                               SLICE_ARG(pod->meta.name));
    else
        return false;
    return true;
}

/* Applies a row about single claims to all of the pod's claims. True: it applies, out is set; to
 * Error when there is no memory for the reason, and never to "it does not apply". */
static bool complain(const struct pod_object *pod, const struct claim *const *claims,
                     complaint *row, struct arena *arena, struct verdict *out)
{
    for (size_t i = 0; i < pod->claim_count && out->reason_count < REASONS_MAX; i++) {
        struct slice reason;
        if (!row(pod, &pod->claims[i], claims[i], arena, &reason))
            continue;
        out->code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
        if (!add_reason(out, arena, reason) ||
            !add_cause(out, arena, KIND_CLAIM, pod->meta.ns, pod->claims[i].name,
                       claims[i] == NULL ? NULL : &claims[i]->uid))
            return true;
    }
    return out->reason_count != 0;
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

/* The pod for which the claim is reserved, unless it is one of those that hold it (nominated). */
static bool add_reserved(const struct claim *claim, const struct reservation *reservation,
                         bool is_wanted, struct arena *arena, struct conflicts *out)
{
    if (reservation == NULL)
        return true;
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].claim == claim && out->items[i].holder != NULL &&
            memcmp(&out->items[i].holder->uid, &reservation->uid, sizeof reservation->uid) == 0)
            return true;
    return add_conflict(out, arena,
                        (struct conflict){.claim = claim,
                                          .reservation = reservation,
                                          .hold = HOLD_RESERVED,
                                          .is_wanted = is_wanted});
}

/* Those that hold the claim against the pod: all of them if it takes it alone, else those that have
 * it alone. */
static bool add_holders(const struct view *view, const struct pod_object *pod,
                        const struct claim *claim, bool needs_exclusive, struct arena *arena,
                        struct conflicts *out)
{
    bool may_be_deferred = defer_may_be_exclusive(view, claim);
    bool is_wanted = needs_exclusive && !claim->is_rwop;

    for (const struct use *use = claim->uses; use != NULL && (needs_exclusive || may_be_deferred);
         use = use->next) {
        bool is_deferred = !claim->is_rwop && may_be_deferred && defer_has_exclusive(view, use);
        enum hold hold = needs_exclusive || is_deferred
                             ? hold_against(view->cluster, use_pod(use), pod)
                             : HOLD_NONE;
        if (hold != HOLD_NONE && !add_conflict(out, arena,
                                               (struct conflict){.claim = claim,
                                                                 .holder = use_pod(use),
                                                                 .hold = hold,
                                                                 .is_deferred = is_deferred,
                                                                 .is_wanted = is_wanted}))
            return false;
    }
    return add_reserved(claim, reservation_against(claim, pod), is_wanted, arena, out) &&
           (!needs_exclusive || add_reserved(claim, reservation_sharing(view->cluster, claim, pod),
                                             is_wanted, arena, out));
}

/* Every pair of a claim and one that has it in the pod's way. False: no memory. */
static bool find_conflicts(const struct view *view, const struct pod_object *pod,
                           const struct claim *const *claims, struct arena *arena,
                           struct conflicts *out)
{
    struct pod_object completed = *pod;

    out->alone = arena_alloc(arena, pod->claim_count * sizeof *out->alone);
    if (out->alone == NULL || !cluster_complete_pod(view->cluster, &completed, arena))
        return false;
    for (size_t i = 0; i < pod->claim_count; i++) {
        if (claims[i] == NULL)
            continue;
        out->alone[i] = claims[i]->is_rwop || defer_needs_exclusive(view, &completed, i, claims[i]);
        out->has_exclusive = out->has_exclusive || out->alone[i];
        if (!add_holders(view, pod, claims[i], out->alone[i], arena, out))
            return false;
    }
    return true;
}

static struct slice holder_name(const struct conflict *conflict)
{
    return conflict->holder == NULL ? name_slice(conflict->reservation->name)
                                    : pod_name(conflict->holder);
}

static int64_t holder_priority(const struct conflict *conflict)
{
    return conflict->holder == NULL ? conflict->reservation->priority : conflict->holder->priority;
}

static int compare_holders(const void *a, const void *b)
{
    return slice_compare(holder_name(a), holder_name(b));
}

/* By claim in the pod's order, then by the holder's name: reasons must read the same at any time.
 * Pods that name their node may hold one claim by the thousands. */
static void sort_conflicts(struct conflicts *conflicts)
{
    for (size_t i = 0, end; i < conflicts->count; i = end) {
        for (end = i + 1;
             end < conflicts->count && conflicts->items[end].claim == conflicts->items[i].claim;)
            end++;
        qsort(conflicts->items + i, end - i, sizeof *conflicts->items, compare_holders);
    }
}

/* Why a claim that is not ReadWriteOncePod is for one pod all the same. */
static const char *why_exclusive(const struct conflict *conflict)
{
    if (conflict->is_deferred)
        return ", whose container runtime mounts it (deferFSMount)";
    return conflict->is_wanted ? ", and this pod's container runtime would mount it (deferFSMount)"
                               : "";
}

static struct slice describe(const struct conflict *conflict, struct arena *arena)
{
    const struct pod *holder = conflict->holder;
    struct slice ns = name_slice(conflict->claim->ns); /* the holder's, too */

    if (holder == NULL)
        return arena_printf(arena, "claim %.*s/%.*s is reserved for pod %.*s/%.*s%s", SLICE_ARG(ns),
                            SLICE_ARG(claim_name(conflict->claim)), SLICE_ARG(ns),
                            SLICE_ARG(holder_name(conflict)), why_exclusive(conflict));
    struct slice node =
        conflict->hold == HOLD_NOMINATED ? pod_nominated_node(holder) : pod_node(holder);
    const char *how = conflict->hold == HOLD_NOMINATED     ? ", nominated to"
                      : conflict->hold == HOLD_TERMINATING ? ", terminating on"
                                                           : " on";
    return arena_printf(arena, "claim %.*s/%.*s is in use by pod %.*s/%.*s%s %.*s%s", SLICE_ARG(ns),
                        SLICE_ARG(claim_name(conflict->claim)), SLICE_ARG(ns),
                        SLICE_ARG(pod_name(holder)), how, SLICE_ARG(node), why_exclusive(conflict));
}

static void put_reasons(const struct conflicts *conflicts, struct arena *arena, struct verdict *out)
{
    for (size_t i = 0; i < conflicts->count && i < REASONS_MAX; i++)
        if (!add_reason(out, arena, describe(&conflicts->items[i], arena)))
            return;
    if (conflicts->count > REASONS_MAX)
        (void)add_reason(out, arena,
                         arena_printf(arena, "and %zu more", conflicts->count - REASONS_MAX));
}

/* Adds the pod to a set of pods. False: no memory. */
static bool add_pod(const struct pod ***pods, size_t *count, const struct pod *pod,
                    struct arena *arena)
{
    for (size_t i = 0; i < *count; i++)
        if ((*pods)[i] == pod)
            return true;
    const struct pod **grown = arena_grow(arena, (void *)*pods, *count, sizeof *grown);
    if (grown == NULL)
        return false;
    grown[(*count)++] = pod;
    *pods = grown;
    return true;
}

static bool put_victims(const struct conflicts *conflicts, struct arena *arena, struct verdict *out)
{
    for (size_t i = 0; i < conflicts->count && out->victim_count < VERDICT_VICTIMS_MAX; i++)
        if (conflicts->items[i].hold != HOLD_TERMINATING &&
            conflicts->items[i].hold != HOLD_RESERVED &&
            !add_pod(&out->victims, &out->victim_count, conflicts->items[i].holder, arena))
            return false;
    return true;
}

/* The rows about holders, of which there is at least one. */
static void evaluate_conflicts(const struct pod_object *pod, struct conflicts *conflicts,
                               struct arena *arena, struct verdict *out)
{
    bool may_preempt = !slice_equal(pod->preemption_policy, SLICE("Never"));
    char text[UID_TEXT_BYTES];

    for (size_t i = 0; i < conflicts->count; i++)
        may_preempt = may_preempt && holder_priority(&conflicts->items[i]) < pod->priority;
    out->code = may_preempt ? CODE_UNSCHEDULABLE : CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    if (may_preempt && !put_victims(conflicts, arena, out)) {
        out_of_memory(out);
        return;
    }
    for (size_t i = 0; i < conflicts->count; i++) {
        const struct conflict *conflict = &conflicts->items[i];
        const struct uid *uid =
            conflict->holder == NULL ? &conflict->reservation->uid : &conflict->holder->uid;
        if (!add_cause(out, arena, KIND_POD, name_slice(conflict->claim->ns), holder_name(conflict),
                       uid))
            return;
        if (conflict->holder == NULL && out->reserved_for.len == 0)
            out->reserved_for = arena_printf(arena, "%.*s", SLICE_ARG(uid_text(uid, text)));
    }
    put_reasons(conflicts, arena, out);
}

/* Row "is pending, and being deleted": kube-scheduler passes over such a pod, and the API server
 * refuses its Binding, so it reserves nothing and nobody is evicted for it. */
static bool is_being_deleted(const struct cluster *cluster, const struct pod_object *pod)
{
    const struct pod *cached = holder_cached(cluster, pod);

    return (pod->meta.deletion_timestamp.len != 0 && pod->node.len == 0) ||
           (cached != NULL && cached->is_terminating && cached->node == NULL);
}

static void prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out)
{
    struct conflicts conflicts = {.count = 0};

    *out = (struct verdict){.code = CODE_SKIP};
    if (pod->claim_count == 0)
        return;
    const struct claim **claims = find_claims(view->cluster, pod, arena);
    if (claims == NULL) {
        out_of_memory(out);
        return;
    }
    if (complain(pod, claims, missing, arena, out) || complain(pod, claims, unusable, arena, out))
        return;
    if (!find_conflicts(view, pod, claims, arena, &conflicts)) {
        out_of_memory(out);
        return;
    }
    out->alone = conflicts.alone;
    if (conflicts.count == 0 && !conflicts.has_exclusive)
        return;
    if (is_being_deleted(view->cluster, pod)) {
        out->code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
        (void)add_reason(out, arena,
                         arena_printf(arena, "pod %.*s/%.*s is being deleted",
                                      SLICE_ARG(pod->meta.ns), SLICE_ARG(pod->meta.name)));
        return;
    }
    if (conflicts.count == 0) {
        out->code = CODE_SUCCESS;
        return;
    }
    sort_conflicts(&conflicts);
    evaluate_conflicts(pod, &conflicts, arena, out);
}

/* Those that hold claims against the pod, who are the same on every node. False: no memory. */
static bool find_rivals(const struct view *view, const struct pod_object *pod, struct arena *arena,
                        struct rivals *out)
{
    struct conflicts conflicts = {.count = 0};
    const struct claim **claims = find_claims(view->cluster, pod, arena);

    if (claims == NULL || !find_conflicts(view, pod, claims, arena, &conflicts) ||
        !rivals_init(out, conflicts.count, arena))
        return false;
    for (size_t i = 0; i < conflicts.count; i++)
        rivals_add(out, conflicts.items[i].holder, conflicts.items[i].hold);
    return true;
}

static void preempt(const struct view *view, const struct pod_object *pod, struct verdict *verdict,
                    struct arena *arena, struct candidate *candidates, size_t count)
{
    struct rivals rivals;

    for (size_t i = 0; i < count; i++) {
        candidates[i].keeps_node = !code_is_rejection(verdict->code);
        candidates[i].added = NULL; /* of an answer before this one */
        candidates[i].added_count = candidates[i].added_violations = 0;
    }
    if (verdict->code != CODE_UNSCHEDULABLE) /* there is no conflict, or no help */
        return;
    if (!find_rivals(view, pod, arena, &rivals) ||
        !rivals_evaluate(&rivals, view->cluster, pod, arena, candidates, count))
        out_of_memory(verdict);
}

const struct policy read_write_once_pod = {
    .name = "ReadWriteOncePod",
    .prefilter = prefilter,
    .preempt = preempt,
};
