#include "policy/read_write_once_pod.h"

#include "policy/conflicts.h"
#include "policy/exclusive.h"
#include "policy/rivals.h"

/* Whether a row applies to one of the pod's claims, and the reason ({NULL, 0} without memory). */
typedef bool complaint(const struct view *view, const struct pod_object *pod,
                       const struct claim_reference *reference, const struct claim *claim,
                       struct arena *arena, struct slice *reason);

/* Row "names a claim that does not exist". */
static bool missing(const struct view *view, const struct pod_object *pod,
                    const struct claim_reference *reference, const struct claim *claim,
                    struct arena *arena, struct slice *reason)
{
    (void)view;
    (void)pod;
    if (claim != NULL)
        return false;
    *reason =
        arena_printf(arena, "persistentvolumeclaim \"%.*s\" not found", SLICE_ARG(reference->name));
    return true;
}

/* Row "names a claim that is being deleted, or an ephemeral claim that another pod owns". */
static bool unusable(const struct view *view, const struct pod_object *pod,
                     const struct claim_reference *reference, const struct claim *claim,
                     struct arena *arena, struct slice *reason)
{
    (void)view;
    bool is_owner =
        pod->meta.uid.len != 0 && slice_equal(name_slice(claim_owner_uid(claim)), pod->meta.uid);

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

/* Row "its user defers a claim that no other replica would lock". */
static bool unlocked(const struct view *view, const struct pod_object *pod,
                     const struct claim_reference *reference, const struct claim *claim,
                     struct arena *arena, struct slice *reason)
{
    struct slice storage_class = name_slice(claim_storage_class(claim));
    bool is_unlocked = exclusive_is_unlocked(view, pod, reference->name, claim);

    if (is_unlocked)
        *reason = arena_printf(
            arena,
            "claim %.*s/%.*s is deferred by the pod's user, and other claimguards (claimLock: "
            "Annotation) do not know that it is for one pod: %s%.*s%suse a ReadWriteOncePod claim",
            SLICE_ARG(pod->meta.ns), SLICE_ARG(reference->name),
            storage_class.len == 0 ? ""
                                   : "add an entry with nonExclusiveClaims: Exclusive for "
                                     "storage class ",
            SLICE_ARG(storage_class), storage_class.len == 0 ? "" : ", or ");
    return is_unlocked;
}

/* Applies a row about single claims to all of the pod's claims. True: it applies, out is set; to
 * Error when there is no memory for the reason, and never to "it does not apply". */
static bool complain(const struct view *view, const struct pod_object *pod,
                     const struct claim *const *claims, complaint *row, struct arena *arena,
                     struct verdict *out)
{
    size_t left_out = 0;

    for (size_t i = 0; i < pod->claim_count; i++) {
        struct slice reason;
        if (!row(view, pod, &pod->claims[i], claims[i], arena, &reason))
            continue;
        out->code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
        if (out->reason_count == VERDICT_REASONS_MAX)
            left_out++;
        else if (!verdict_add_reason(out, arena, reason) ||
                 !verdict_add_cause(out, arena, KIND_CLAIM, pod->meta.ns, pod->claims[i].name,
                                    claims[i] == NULL ? NULL : &claims[i]->uid))
            return true;
    }
    return !verdict_add_left_out(out, arena, left_out) || out->reason_count != 0;
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

/* Whether the pod comes before all holders. */
static bool outranks(const struct pod_object *pod, const struct conflicts *conflicts)
{
    bool outranks = !slice_equal(pod->preemption_policy, SLICE("Never"));

    for (size_t i = 0; i < conflicts->count; i++)
        outranks = outranks && conflict_priority(&conflicts->items[i]) < pod->priority;
    return outranks;
}

/* The rows about holders, of which there is at least one. A scheduler asks about each pod of a
 * group by itself, and does not say whether the whole group would fit. */
static void evaluate_conflicts(const struct pod_object *pod, struct conflicts *conflicts,
                               struct arena *arena, struct verdict *out)
{
    bool outranks_all = outranks(pod, conflicts);
    bool may_preempt = outranks_all && !pod->is_grouped;
    char text[UID_TEXT_BYTES];

    out->code = may_preempt ? CODE_UNSCHEDULABLE : CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    if (may_preempt && !put_victims(conflicts, arena, out)) {
        verdict_out_of_memory(out);
        return;
    }
    for (size_t i = 0; i < conflicts->count; i++) {
        const struct conflict *conflict = &conflicts->items[i];
        const struct uid *uid =
            conflict->holder == NULL ? &conflict->reservation->uid : &conflict->holder->uid;
        if ((conflict->holder != NULL || reservation_may_be_asked(conflict->reservation)) &&
            !verdict_add_cause(out, arena, KIND_POD, name_text(conflict->claim->ns),
                               conflict_holder_name(conflict), uid))
            return;
        if (conflict->hold == HOLD_NOMINATED &&
            !verdict_add_awaited(out, arena,
                                 &(struct object_reference){.kind = KIND_NODE,
                                                            .ns = name_text(conflict->claim->ns),
                                                            .name = conflict_holder_name(conflict),
                                                            .uid = SLICE("")}))
            return;
        if (conflict->holder == NULL && out->reserved_for.len == 0)
            out->reserved_for = arena_copy(arena, uid_text(uid, text));
    }
    conflicts_put_reasons(conflicts, arena, out);
    if (outranks_all && pod->is_grouped && out->code != CODE_ERROR)
        (void)verdict_add_reason(out, arena,
                                 SLICE("for a pod of a scheduling group, no pod is evicted"));
}

/* Row "is pending, and being deleted": kube-scheduler skips such a pod, and the API server
 * refuses its Binding, so it reserves nothing and nobody is evicted for it. */
static bool is_being_deleted(const struct cluster *cluster, const struct pod_object *pod)
{
    const struct pod *cached = holder_cached(cluster, pod);

    return (pod->meta.deletion_timestamp.len != 0 && pod->node.len == 0) ||
           (cached != NULL && cached->is_terminating && !pod_is_assigned(cached));
}

/* Row "has over 64 exclusive claims, with claimLock: Annotation". */
static bool has_too_many(const struct view *view, const struct pod_object *pod,
                         const bool *exclusive)
{
    size_t count = 0;

    for (size_t i = 0; i < pod->claim_count; i++)
        count += exclusive[i];
    return count > LOCKED_CLAIMS_MAX &&
           view->config->read_write_once_pod.claim_lock == CLAIM_LOCK_ANNOTATION;
}

static void reject(struct verdict *out, struct arena *arena, struct slice reason)
{
    out->code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    (void)verdict_add_reason(out, arena, reason);
}

/* The rows about the pod itself, which has exclusive claims: whether one applies. */
static bool is_refused(const struct view *view, const struct pod_object *pod, struct arena *arena,
                       struct verdict *out)
{
    if (is_being_deleted(view->cluster, pod)) {
        reject(out, arena,
               arena_printf(arena, "pod %.*s/%.*s is being deleted", SLICE_ARG(pod->meta.ns),
                            SLICE_ARG(pod->meta.name)));
        return true;
    }
    if (has_too_many(view, pod, out->exclusive)) {
        reject(out, arena,
               arena_printf(arena,
                            "the pod has over %d exclusive claims, and claimLock: Annotation "
                            "cannot lock more",
                            LOCKED_CLAIMS_MAX));
        return true;
    }
    return false;
}

static void prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out)
{
    struct conflicts conflicts = {.count = 0};
    struct slice reason;

    *out = (struct verdict){.code = CODE_SKIP};
    if (pod->claim_count == 0)
        return;
    if (policy_has_given_up(view, pod->meta.ns, arena, &reason)) {
        reject(out, arena, reason);
        return;
    }
    const struct claim **claims = conflicts_find_claims(view->cluster, pod, arena);
    if (claims == NULL) {
        verdict_out_of_memory(out);
        return;
    }
    if (complain(view, pod, claims, missing, arena, out) ||
        complain(view, pod, claims, unusable, arena, out))
        return;
    if (!conflicts_find(view, pod, claims, arena, &conflicts)) {
        verdict_out_of_memory(out);
        return;
    }
    out->exclusive = conflicts.exclusive;
    if (conflicts.count == 0 && !conflicts.has_exclusive)
        return;
    struct pod_object completed = *pod;
    if (!cluster_complete_pod(view->cluster, &completed, arena)) {
        verdict_out_of_memory(out);
        return;
    }
    if (is_refused(view, pod, arena, out) ||
        complain(view, &completed, claims, unlocked, arena, out))
        return;
    if (conflicts.count == 0) {
        out->code = CODE_SUCCESS;
        return;
    }
    conflicts_sort(&conflicts);
    evaluate_conflicts(pod, &conflicts, arena, out);
}

/* The pods that hold claims against this one. False: no memory. */
static bool find_rivals(const struct view *view, const struct pod_object *pod, struct arena *arena,
                        struct rivals *out)
{
    struct conflicts conflicts = {.count = 0};
    const struct claim **claims = conflicts_find_claims(view->cluster, pod, arena);

    if (claims == NULL || !conflicts_find(view, pod, claims, arena, &conflicts) ||
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
        candidates[i].offers_rivals_only = false;
        candidates[i].added = NULL; /* of an answer before this one */
        candidates[i].added_count = candidates[i].added_violations = 0;
    }
    if (verdict->code != CODE_UNSCHEDULABLE) /* there is no conflict, or no help */
        return;
    if (!find_rivals(view, pod, arena, &rivals) ||
        !rivals_evaluate(&rivals, view->cluster, pod, arena, candidates, count))
        verdict_out_of_memory(verdict);
}

const struct policy read_write_once_pod = {
    .name = "ReadWriteOncePod",
    .prefilter = prefilter,
    .preempt = preempt,
};
