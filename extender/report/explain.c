#include "extender/report/explain.h"

#include "cache/cluster/reservation.h"
#include "policy/defer_fs_mount.h"
#include "policy/exclusive.h"
#include "policy/holders.h"

/* ---- claims ---- */

/* Whether the claim is for one pod: by its access mode, or because a runtime mounts it. */
static bool is_exclusive(const struct view *view, const struct pod_object *pod, size_t index,
                         const struct claim *claim)
{
    bool is_exclusive = exclusive_is_needed(view, pod, index, claim);
    bool may_be = !is_exclusive && exclusive_may_be_held(claim);

    for (const struct use *use = use_at(claim->uses); use != NULL && may_be && !is_exclusive;
         use = use_at(use->next))
        is_exclusive = exclusive_is_held(view, use);
    return is_exclusive;
}

/* The pods that hold the claim against the pod. False: no memory. */
static bool find_holders(struct explained_claim *out, const struct claim *claim,
                         const struct explained *explained)
{
    size_t uses = 0;

    for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next))
        uses++;
    out->holders = arena_alloc(explained->arena, (uses + 1) * sizeof *out->holders);
    if (out->holders == NULL)
        return false;
    size_t count =
        holders_list(explained->view->cluster, claim, explained->pod, out->holders, uses, &uses);
    out->holder_count = count < HOLDERS_SHOWN_MAX ? count : HOLDERS_SHOWN_MAX;
    out->more = count - out->holder_count;
    return true;
}

static bool explain_claims(struct explained *explained)
{
    const struct pod_object *pod = explained->pod;
    bool ok = true;

    explained->claims =
        arena_alloc(explained->arena, (pod->claim_count + 1) * sizeof *explained->claims);
    if (explained->claims == NULL)
        return false;
    for (size_t i = 0; i < pod->claim_count && ok; i++) {
        struct explained_claim *out = &explained->claims[i];
        const struct claim *claim =
            cluster_find_claim(explained->view->cluster, pod->meta.ns, pod->claims[i].name);
        out->name = pod->claims[i].name;
        out->is_found = claim != NULL;
        if (claim == NULL)
            continue;
        out->is_exclusive = is_exclusive(explained->view, pod, i, claim);
        out->reservation = reservation_against(claim, pod);
        ok = find_holders(out, claim, explained);
    }
    return ok;
}

/* ---- deferred mounts ---- */

static bool explain_volume(struct explained_volume *out, const struct explained *explained,
                           const struct pod_object *pod, const struct pod_volume *volume)
{
    struct decision decision;

    defer_decide(explained->view, pod, volume, &decision);
    *out = (struct explained_volume){.name = decision.volume->name,
                                     .entry = defer_entry_name(decision.entry, explained->arena),
                                     .reason = defer_reason(pod, &decision, explained->arena),
                                     .is_deferred = decision.rule == RULE_NONE};
    return out->entry.ptr != NULL && out->reason.ptr != NULL;
}

static bool explain_volumes(struct explained *explained)
{
    const struct view *view = explained->view;
    struct pod_object *pod = arena_alloc(explained->arena, sizeof *pod);

    if (pod == NULL)
        return false;
    *pod = *explained->pod;
    if (!cluster_complete_pod(view->cluster, pod, explained->arena))
        return false;
    if (pod->mounts == NULL ||
        (view->config->defer_fs_mount.entry_count == 0 && !mounts_defer(pod->mounts)))
        return true;
    size_t count = pod->mounts->volume_count;
    bool ok = true;
    explained->volumes = arena_alloc(explained->arena, (count + 1) * sizeof *explained->volumes);
    explained->volume_count = explained->volumes == NULL ? 0 : count;
    for (size_t i = 0; i < explained->volume_count && ok; i++)
        ok = explain_volume(&explained->volumes[i], explained, pod, &pod->mounts->volumes[i]);
    return ok && explained->volumes != NULL;
}

/* ---- the pod ---- */

bool explain_prefilter(struct explained *out, const struct view *view, const struct pod_object *pod,
                       struct arena *arena)
{
    *out = (struct explained){.view = view, .pod = pod, .arena = arena};
    policy_prefilter(view, pod, arena, &out->verdict);
    out->on_nodes = out->verdict;
    return explain_claims(out) && explain_volumes(out);
}

static bool explain_nodes(struct explained *explained, const struct explained_nodes *nodes)
{
    struct verdict *on_nodes = &explained->on_nodes;
    size_t count = nodes->are_listed || on_nodes->nodes != NULL ? nodes->count : 0;

    explained->nodes = nodes->names;
    explained->node_count = count;
    explained->rejections =
        arena_alloc(explained->arena, (count + 1) * sizeof *explained->rejections);
    if (explained->rejections == NULL)
        return false;
    if (policy_filters_nodes(&explained->verdict) &&
        policy_filter_nodes(on_nodes, nodes->names, count, explained->arena,
                            explained->rejections) == 0)
        for (size_t i = 0; i < count; i++)
            explained->rejections[i] = SLICE("");
    return on_nodes->code != CODE_ERROR || explained->verdict.code == CODE_ERROR;
}

bool explain_pod(struct explained *out, const struct view *view, const struct pod_object *pod,
                 const struct explained_nodes *nodes, struct arena *arena)
{
    return explain_prefilter(out, view, pod, arena) && explain_nodes(out, nodes);
}

bool explained_is_schedulable(const struct explained *explained)
{
    return !code_is_rejection(explained->on_nodes.code);
}

enum verdict_code explained_code(const struct explained *explained, size_t node)
{
    enum verdict_code code = explained->verdict.code;

    if (explained->rejections[node].len != 0)
        return policy_node_code(&explained->verdict, explained->nodes[node], explained->arena);
    return code == CODE_SKIP ? CODE_SUCCESS : code;
}

/* ---- as fields: pods and claims ---- */

static void put_identity(struct fields *out, const struct pod *pod)
{
    char uid[UID_TEXT_BYTES];

    fields_text(out, "namespace", name_text(pod->ns));
    fields_text(out, "name", pod_name(pod));
    fields_text(out, "uid", uid_text(&pod->uid, uid));
    fields_text(out, "node", pod_is_assigned(pod) ? pod_node(pod) : pod_nominated_node(pod));
    fields_number(out, "priority", pod->priority);
}

/* As a holder: its pod is on no node yet. */
static void put_reservation(struct fields *out, const struct reservation *reservation)
{
    char uid[UID_TEXT_BYTES];

    fields_open(out, NULL, '{');
    fields_text(out, "namespace", name_slice(reservation->ns));
    fields_text(out, "name", name_slice(reservation->name));
    fields_text(out, "uid", uid_text(&reservation->uid, uid));
    fields_text(out, "node", SLICE(""));
    fields_number(out, "priority", reservation->priority);
    fields_text(out, "as", slice_of(hold_text(HOLD_RESERVED)));
    fields_close(out);
}

static void put_claim(struct fields *out, const struct explained *explained,
                      const struct explained_claim *claim)
{
    const struct cluster *cluster = explained->view->cluster;

    fields_open(out, NULL, '{');
    fields_text(out, "name", claim->name);
    fields_flag(out, "found", claim->is_found);
    fields_flag(out, "exclusive", claim->is_exclusive);
    fields_open(out, "heldBy", '[');
    for (size_t i = 0; i < claim->holder_count; i++) {
        enum hold hold = hold_against(cluster, claim->holders[i], explained->pod);
        fields_open(out, NULL, '{');
        put_identity(out, claim->holders[i]);
        fields_text(out, "as", slice_of(hold_text(hold)));
        fields_close(out);
    }
    if (claim->reservation != NULL)
        put_reservation(out, claim->reservation);
    fields_close(out);
    if (claim->more != 0)
        fields_number(out, "heldByMore", (int64_t)claim->more);
    fields_close(out);
}

static void put_claims(struct fields *out, const struct explained *explained)
{
    fields_open(out, "claims", '[');
    for (size_t i = 0; i < explained->pod->claim_count; i++)
        put_claim(out, explained, &explained->claims[i]);
    fields_close(out);
}

static void put_volumes(struct fields *out, const struct explained *explained)
{
    fields_open(out, "deferFSMount", '[');
    for (size_t i = 0; i < explained->volume_count; i++) {
        const struct explained_volume *volume = &explained->volumes[i];
        fields_open(out, NULL, '{');
        fields_text(out, "volume", volume->name);
        fields_flag(out, "defer", volume->is_deferred);
        fields_text(out, "entry", volume->entry);
        fields_text(out, "reason", volume->reason);
        fields_close(out);
    }
    fields_close(out);
}

/* ---- as fields: verdicts ---- */

/* rejection: one more reason; empty: none. */
static void put_code(struct fields *out, const struct verdict *verdict, enum verdict_code code,
                     struct slice rejection)
{
    fields_text(out, "code", slice_of(code_text(code)));
    fields_open(out, "reasons", '[');
    for (size_t i = 0; i < verdict->reason_count; i++)
        fields_text(out, NULL, verdict->reasons[i]);
    fields_text_if(out, NULL, rejection);
    fields_close(out);
}

static void put_warnings(struct fields *out, const struct explained *explained)
{
    const struct verdict *verdict = &explained->verdict;

    fields_open(out, "warnings", '[');
    for (size_t i = 0; i < verdict->warning_count; i++)
        fields_text(out, NULL, verdict->warnings[i].text);
    for (size_t i = 0; i < explained->assumption_count; i++)
        fields_text(out, NULL, explained->assumptions[i]);
    fields_close(out);
}

/* What policies that only warn say of the node; nothing, if they say nothing. */
static void put_node_warnings(struct fields *out, const struct explained *explained,
                              struct slice node)
{
    const struct node_filter *filter = NULL;
    struct slice reason;
    bool has_any = false;

    while ((filter = policy_warn(&explained->verdict, filter, node, explained->arena, &reason)) !=
           NULL) {
        if (!has_any)
            fields_open(out, "warnings", '[');
        has_any = true;
        fields_text(out, NULL, reason);
        out->has_failed = out->has_failed || reason.ptr == NULL;
    }
    if (has_any)
        fields_close(out);
}

static void put_nodes(struct fields *out, const struct explained *explained)
{
    fields_open(out, "nodes", '[');
    for (size_t i = 0; i < explained->node_count; i++) {
        fields_open(out, NULL, '{');
        fields_text(out, "name", explained->nodes[i]);
        put_code(out, &explained->verdict, explained_code(explained, i), explained->rejections[i]);
        put_node_warnings(out, explained, explained->nodes[i]);
        fields_close(out);
    }
    fields_close(out);
}

static void put_preemption(struct fields *out, const struct verdict *verdict)
{
    fields_open(out, "preemption", '{');
    fields_flag(out, "helps", verdict->victim_count != 0);
    fields_open(out, "victims", '[');
    for (size_t i = 0; i < verdict->victim_count; i++) {
        fields_open(out, NULL, '{');
        put_identity(out, verdict->victims[i]);
        fields_close(out);
    }
    fields_close_several(out, 2);
}

static void put_decision(struct fields *out, const struct explained *explained)
{
    fields_flag(out, "schedulable", explained_is_schedulable(explained));
    fields_open(out, "preFilter", '{');
    put_code(out, &explained->verdict, explained->verdict.code, SLICE(""));
    fields_close(out);
    put_warnings(out, explained);
}

/* ---- whole answers ---- */

void explained_put_prefilter(struct fields *out, const struct explained *explained)
{
    fields_open(out, NULL, '{');
    put_code(out, &explained->verdict, explained->verdict.code, SLICE(""));
    put_warnings(out, explained);
    put_claims(out, explained);
    put_volumes(out, explained);
    fields_close(out);
}

void explained_put(struct fields *out, const struct explained *explained)
{
    fields_open(out, NULL, '{');
    fields_open(out, "pod", '{');
    fields_text(out, "namespace", explained->pod->meta.ns);
    fields_text(out, "name", explained->pod->meta.name);
    fields_close(out);
    put_decision(out, explained);
    put_nodes(out, explained);
    put_claims(out, explained);
    put_preemption(out, &explained->on_nodes);
    put_volumes(out, explained);
    fields_close(out);
}

void explained_put_verdict(struct fields *out, const struct explained *explained)
{
    put_decision(out, explained);
    put_preemption(out, &explained->on_nodes);
}
