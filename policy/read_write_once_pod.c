/*
 * read_write_once_pod: a claim with access mode ReadWriteOncePod belongs to one pod in the whole
 * cluster (KEP-2485). The rows of the decision table (docs/policies.md), first that applies:
 *
 *   no claim-backed volume                         Skip
 *   a claim that does not exist                    UnschedulableAndUnresolvable
 *   a claim being deleted, or an ephemeral one
 *     that the pod does not own                    UnschedulableAndUnresolvable
 *   no exclusive claim                             Skip
 *   it is pending, and being deleted               UnschedulableAndUnresolvable
 *   more exclusive claims than can be locked       UnschedulableAndUnresolvable
 *   every exclusive claim is free                  Success
 *   a holder that may not be preempted             UnschedulableAndUnresolvable
 *   only terminating holders                       Unschedulable, no victims
 *   only holders of lower priority                 Unschedulable, the others are the victims
 *
 * A reservation (cache/cluster/reservation.h) of equal or higher priority holds, and so does any
 * while its pod is being bound, though it is no victim; one of lower priority is taken over.
 *
 * Follows kube-scheduler's VolumeRestrictions plugin, but counts holders where that keeps a set,
 * and names claim and holder.
 */
#include <stdlib.h>

#include "policy/defer_fs_mount.h"
#include "policy/exclusive.h"
#include "policy/holders.h"

/* ---- rows about single claims ---- */

/* One of the pod's claims. */
struct asked {
    const struct view *view;
    const struct pod_object *pod;
    const struct claim_reference *reference;
    const struct claim *claim;
    struct arena *arena;
};

/* Whether a row applies to the claim, and the reason ({NULL, 0} without memory). */
typedef bool complaint(const struct asked *asked, struct slice *reason);

/* Row "names a claim that does not exist". */
static bool missing(const struct asked *asked, struct slice *reason)
{
    if (asked->claim != NULL)
        return false;
    *reason = arena_printf(asked->arena, "persistentvolumeclaim \"%.*s\" not found",
                           SLICE_ARG(asked->reference->name));
    return true;
}

/* Row "names a claim that is being deleted, or an ephemeral claim that another pod owns". */
static bool unusable(const struct asked *asked, struct slice *reason)
{
    const struct meta *pod = &asked->pod->meta;
    struct slice name = asked->reference->name;

    if (asked->claim == NULL)
        return false; /* another row: it does not exist */
    bool is_owner =
        pod->uid.len != 0 && slice_equal(name_slice(claim_owner_uid(asked->claim)), pod->uid);
    if (asked->claim->is_deleting)
        *reason = arena_printf(asked->arena, "persistentvolumeclaim \"%.*s\" is being deleted",
                               SLICE_ARG(name));
    else if (asked->reference->is_ephemeral && !is_owner)
        *reason = arena_printf(asked->arena,
                               "persistentvolumeclaim \"%.*s\" was not created for pod %.*s/%.*s "
                               "(the pod does not own it)",
                               SLICE_ARG(name), SLICE_ARG(pod->ns), SLICE_ARG(pod->name));
    else
        return false;
    return true;
}

/* Row "its user defers a claim that no other replica would lock". */
static bool unlocked(const struct asked *asked, struct slice *reason)
{
    struct slice name = asked->reference->name;
    struct slice storage_class = name_slice(claim_storage_class(asked->claim));
    bool is_unlocked = exclusive_is_unlocked(asked->view, asked->pod, name, asked->claim);

    if (is_unlocked)
        *reason = arena_printf(
            asked->arena,
            "claim %.*s/%.*s is deferred by the pod's user, and other claimguards (claimLock: "
            "Annotation) do not know that it is for one pod: %s%.*s%suse a ReadWriteOncePod claim",
            SLICE_ARG(asked->pod->meta.ns), SLICE_ARG(name),
            storage_class.len == 0 ? ""
                                   : "add an entry with nonExclusiveClaims: Exclusive for "
                                     "storage class ",
            SLICE_ARG(storage_class), storage_class.len == 0 ? "" : ", or ");
    return is_unlocked;
}

/* Applies a row to all of the pod's claims. True: it applies, out is set; to Error when there is no
 * memory for the reason, and never to "it does not apply". */
static bool complain(const struct view *view, const struct pod_object *pod,
                     const struct claim *const *claims, complaint *row, struct arena *arena,
                     struct verdict *out)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct asked asked = {view, pod, &pod->claims[i], claims[i], arena};
        struct slice reason;
        if (row(&asked, &reason) && verdict_reject(out, arena, reason))
            (void)verdict_add_cause(out, arena, KIND_CLAIM, pod->meta.ns, pod->claims[i].name,
                                    claims[i] == NULL ? NULL : &claims[i]->uid);
    }
    (void)verdict_add_left_out(out, arena);
    return out->code != CODE_SKIP;
}

/* ---- rows about holders ---- */

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

static int64_t priority_of(const struct conflict *conflict)
{
    return conflict->holder == NULL ? conflict->reservation->priority : conflict->holder->priority;
}

/* Whether the pod comes before all holders. */
static bool outranks(const struct pod_object *pod, const struct conflicts *conflicts)
{
    bool outranks = !slice_equal(pod->preemption_policy, SLICE("Never"));

    for (size_t i = 0; i < conflicts->count; i++)
        outranks = outranks && priority_of(&conflicts->items[i]) < pod->priority;
    return outranks;
}

/* Adds a reason for each conflict, VERDICT_REASONS_MAX at most. */
static void put_reasons(const struct conflicts *conflicts, struct arena *arena, struct verdict *out)
{
    for (size_t i = 0; i < conflicts->count; i++)
        if (i < VERDICT_REASONS_MAX)
            (void)verdict_add_reason(out, arena, conflict_describe(&conflicts->items[i], arena));
        else
            out->left_out++;
    (void)verdict_add_left_out(out, arena);
}

/* The rows about holders, of which there is at least one. A scheduler asks about each pod of a
 * group by itself, and does not say whether the whole group would fit. */
static void evaluate_conflicts(const struct pod_object *pod, const struct conflicts *conflicts,
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
        struct slice ns = name_text(conflict->claim->ns), name = conflict_holder_name(conflict);
        const struct uid *uid =
            conflict->holder == NULL ? &conflict->reservation->uid : &conflict->holder->uid;
        if (conflict->holder != NULL || reservation_may_be_asked(conflict->reservation))
            (void)verdict_add_cause(out, arena, KIND_POD, ns, name, uid);
        if (conflict->hold == HOLD_NOMINATED)
            (void)verdict_add_awaited(out, arena,
                                      &(struct object_reference){KIND_NODE, ns, name, SLICE("")});
        if (conflict->holder == NULL && out->reserved_for.len == 0)
            out->reserved_for = arena_copy(arena, uid_text(uid, text));
    }
    put_reasons(conflicts, arena, out);
    if (outranks_all && pod->is_grouped && out->code != CODE_ERROR)
        (void)verdict_add_reason(out, arena,
                                 SLICE("for a pod of a scheduling group, no pod is evicted"));
}

/* ---- rows about the pod ---- */

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

/* The rows about the pod itself, which has exclusive claims: whether one applies. */
static bool is_refused(const struct view *view, const struct pod_object *pod, struct arena *arena,
                       struct verdict *out)
{
    if (is_being_deleted(view->cluster, pod))
        (void)verdict_reject(out, arena,
                             arena_printf(arena, "pod %.*s/%.*s is being deleted",
                                          SLICE_ARG(pod->meta.ns), SLICE_ARG(pod->meta.name)));
    else if (has_too_many(view, pod, out->exclusive))
        (void)verdict_reject(out, arena,
                             arena_printf(arena,
                                          "the pod has over %d exclusive claims, and claimLock: "
                                          "Annotation cannot lock more",
                                          LOCKED_CLAIMS_MAX));
    return out->code != CODE_SKIP;
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
        (void)verdict_reject(out, arena, reason);
        return;
    }
    if (!conflicts_find_claims(view->cluster, pod, arena, &conflicts)) {
        verdict_out_of_memory(out);
        return;
    }
    if (complain(view, pod, conflicts.claims, missing, arena, out) ||
        complain(view, pod, conflicts.claims, unusable, arena, out))
        return;
    if (!conflicts_find(view, pod, arena, &conflicts)) {
        verdict_out_of_memory(out);
        return;
    }
    out->exclusive = conflicts.exclusive;
    if ((conflicts.count == 0 && !conflicts.has_exclusive) || is_refused(view, pod, arena, out) ||
        complain(view, pod, conflicts.claims, unlocked, arena, out))
        return;
    out->code = CODE_SUCCESS;
    if (conflicts.count != 0)
        evaluate_conflicts(pod, &conflicts, arena, out);
}

/* ---- preemption: the candidate nodes on which all pods that hold the claims go ---- */

/* A pod that holds claims against the pod: the same on each candidate. */
struct rival {
    const struct pod *pod;
    enum hold hold;
    struct slice uid;                   /* as text: so the scheduler names its victims */
    const struct candidate *offered_by; /* the last candidate that offers it */
};

struct rivals {
    struct rival *items; /* by UID */
    size_t count;
    bool is_reserved;         /* a claim is being bound: nothing on any node helps */
    const struct pod **going; /* has room for all of them */
};

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

/* False: no memory. */
static bool find_rivals(const struct view *view, const struct pod_object *pod, struct arena *arena,
                        struct rivals *out)
{
    struct conflicts conflicts = {.count = 0};

    if (!conflicts_find(view, pod, arena, &conflicts))
        return false;
    *out = (struct rivals){.items = arena_alloc(arena, conflicts.count * sizeof *out->items),
                           .going = arena_alloc(arena, conflicts.count * sizeof *out->going)};
    char(*texts)[UID_TEXT_BYTES] = arena_alloc(arena, conflicts.count * sizeof *texts);
    if (out->items == NULL || out->going == NULL || texts == NULL)
        return false;
    for (size_t i = 0; i < conflicts.count; i++) {
        const struct pod *holder = conflicts.items[i].holder;
        out->is_reserved = out->is_reserved || holder == NULL;
        if (holder != NULL)
            out->items[out->count++] = (struct rival){.pod = holder,
                                                      .hold = conflicts.items[i].hold,
                                                      .uid = uid_text(&holder->uid, texts[i])};
    }
    unite_rivals(out);
    return true;
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

static void preempt(const struct view *view, const struct pod_object *pod, struct verdict *verdict,
                    struct arena *arena, struct candidate *candidates, size_t count)
{
    struct rivals rivals;
    bool has_memory = true;

    for (size_t i = 0; i < count; i++) {
        candidates[i].keeps_node = !code_is_rejection(verdict->code);
        candidates[i].offers_rivals_only = false;
        candidates[i].added = NULL; /* of an answer before this one */
        candidates[i].added_count = candidates[i].added_violations = 0;
    }
    if (verdict->code != CODE_UNSCHEDULABLE) /* there is no conflict, or no help */
        return;
    has_memory = find_rivals(view, pod, arena, &rivals);
    for (size_t i = 0; i < count && has_memory; i++)
        has_memory = evaluate_candidate(view->cluster, pod, &rivals, arena, &candidates[i]);
    if (!has_memory)
        verdict_out_of_memory(verdict);
}

/* Violations of budgets: for preempt, and own preemptions. Volumes: to decide about deferrals. */
static unsigned reads_also(const struct config *config)
{
    return (config->read_write_once_pod.preemption == SWITCH_ENABLED
                ? 1U << KIND_POD_DISRUPTION_BUDGET
                : 0) |
           (defer_reads_volumes(config) ? 1U << KIND_VOLUME : 0);
}

const struct policy read_write_once_pod = {
    .name = "ReadWriteOncePod",
    .reads_also = reads_also,
    .prefilter = prefilter,
    .preempt = preempt,
};
