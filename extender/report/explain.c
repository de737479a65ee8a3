#include "extender/report/explain.h"

#include "cache/cluster/reservation.h"

#include <stdio.h>
#include <stdlib.h>

#include "policy/defer_fs_mount.h"
#include "policy/exclusive.h"
#include "policy/holders.h"

static json_t *text(struct slice s)
{
    return json_stringn(s.ptr == NULL ? "" : s.ptr, s.len);
}

/* Adds value, which may be NULL, to the object: -1 when anything is missing. Steals value. */
static int put_at(json_t *object, struct slice key, json_t *value)
{
    if (object != NULL)
        return json_object_setn_new(object, key.ptr, key.len, value);
    json_decref(value);
    return -1;
}

static int put(json_t *object, const char *key, json_t *value)
{
    return put_at(object, slice_of(key), value);
}

/* Answers the value when rc says that it is whole, else frees it. */
static json_t *whole(json_t *value, int rc)
{
    if (rc == 0)
        return value;
    json_decref(value);
    return NULL;
}

static json_t *identity(const struct pod *pod)
{
    char uid[UID_TEXT_BYTES];
    json_t *object = json_object();
    struct slice node = pod_is_assigned(pod) ? pod_node(pod) : pod_nominated_node(pod);

    return whole(object, put(object, "namespace", text(name_text(pod->ns))) |
                             put(object, "name", text(pod_name(pod))) |
                             put(object, "uid", text(uid_text(&pod->uid, uid))) |
                             put(object, "node", text(node)) |
                             put(object, "priority", json_integer(pod->priority)));
}

static json_t *holder(const struct pod *pod, enum hold hold)
{
    json_t *object = identity(pod);

    return whole(object, put(object, "as", json_string(hold_text(hold))));
}

/* A reservation as a holder: its pod is on no node yet. */
static json_t *explain_reserved(const struct reservation *reservation)
{
    char uid[UID_TEXT_BYTES];
    json_t *object = json_object();

    return whole(object, put(object, "namespace", text(name_slice(reservation->ns))) |
                             put(object, "name", text(name_slice(reservation->name))) |
                             put(object, "uid", text(uid_text(&reservation->uid, uid))) |
                             put(object, "node", text(SLICE(""))) |
                             put(object, "priority", json_integer(reservation->priority)) |
                             put(object, "as", json_string(hold_text(HOLD_RESERVED))));
}

/* The pods that hold the claim against `pod`, by name; *more: how many are left out. */
static json_t *holders(const struct cluster *cluster, const struct claim *claim,
                       const struct pod_object *pod, size_t *more)
{
    json_t *list = json_array();
    size_t count = 0;
    int rc = list == NULL ? -1 : 0;

    for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next))
        count++;
    const struct pod **pods = calloc(count + 1, sizeof *pods);
    if (pods == NULL)
        return whole(list, -1);
    count = 0;
    for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next))
        if (hold_against(cluster, use_pod(use), pod) != HOLD_NONE)
            pods[count++] = use_pod(use);
    qsort((void *)pods, count, sizeof *pods, holder_compare);
    size_t shown = count < HOLDERS_SHOWN_MAX ? count : HOLDERS_SHOWN_MAX;
    *more = count - shown;
    for (size_t i = 0; i < shown && rc == 0; i++)
        rc = json_array_append_new(list, holder(pods[i], hold_against(cluster, pods[i], pod)));
    free((void *)pods);
    const struct reservation *reservation = reservation_against(claim, pod);
    if (reservation != NULL && rc == 0)
        rc = json_array_append_new(list, explain_reserved(reservation));
    return whole(list, rc);
}

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

static json_t *explain_claims(const struct view *view, const struct pod_object *pod)
{
    json_t *list = json_array();
    int rc = list == NULL ? -1 : 0;

    for (size_t i = 0; i < pod->claim_count && rc == 0; i++) {
        const struct claim *claim =
            cluster_find_claim(view->cluster, pod->meta.ns, pod->claims[i].name);
        json_t *object = json_object();
        size_t more = 0;
        rc = put(object, "name", text(pod->claims[i].name)) |
             put(object, "found", json_boolean(claim != NULL)) |
             put(object, "exclusive",
                 json_boolean(claim != NULL && is_exclusive(view, pod, i, claim))) |
             put(object, "heldBy",
                 claim == NULL ? json_array() : holders(view->cluster, claim, pod, &more));
        if (more != 0)
            rc |= put(object, "heldByMore", json_integer((json_int_t)more));
        if (json_array_append_new(list, whole(object, rc)) != 0)
            rc = -1;
    }
    return whole(list, rc);
}

static json_t *explain_reasons(const struct verdict *verdict)
{
    json_t *list = json_array();
    int rc = list == NULL ? -1 : 0;

    for (size_t i = 0; i < verdict->reason_count && rc == 0; i++)
        rc = json_array_append_new(list, text(verdict->reasons[i]));
    return whole(list, rc);
}

static json_t *explain_warnings(const struct verdict *verdict)
{
    json_t *list = json_array();
    int rc = list == NULL ? -1 : 0;

    for (size_t i = 0; i < verdict->warning_count && rc == 0; i++)
        rc = json_array_append_new(list, text(verdict->warnings[i].text));
    return whole(list, rc);
}

/* Adds {"code", "reasons"} to the object. */
static int put_verdict(json_t *object, const struct verdict *verdict)
{
    return put(object, "code", json_string(code_text(verdict->code))) |
           put(object, "reasons", explain_reasons(verdict));
}

/* The decision about each volume of the pod; empty where no entry and no pod defers anything. */
static json_t *explain_deferral(const struct view *view, const struct pod_object *asked,
                                struct arena *arena)
{
    struct pod_object completed = *asked;
    const struct pod_object *pod = &completed;
    json_t *list = json_array();
    bool has_memory = cluster_complete_pod(view->cluster, &completed, arena);
    bool is_in_use = pod->mounts != NULL &&
                     (view->config->defer_fs_mount.entry_count != 0 || mounts_defer(pod->mounts));
    int rc = list == NULL || !has_memory ? -1 : 0;

    for (uint32_t i = 0; is_in_use && i < pod->mounts->volume_count && rc == 0; i++) {
        struct decision decision;
        json_t *object = json_object();
        defer_decide(view, pod, &pod->mounts->volumes[i], &decision);
        struct slice entry = defer_entry_name(decision.entry, arena);
        struct slice reason = defer_reason(pod, &decision, arena);
        rc = entry.ptr == NULL || reason.ptr == NULL ? -1 : 0;
        rc |= put(object, "volume", text(decision.volume->name)) |
              put(object, "defer", json_boolean(decision.rule == RULE_NONE)) |
              put(object, "entry", text(entry)) | put(object, "reason", text(reason));
        if (json_array_append_new(list, whole(object, rc)) != 0)
            rc = -1;
    }
    return whole(list, rc);
}

json_t *explain_prefilter(const struct view *view, const struct pod_object *pod,
                          struct arena *arena)
{
    const struct policy *decided_by;
    struct verdict verdict;
    json_t *object = json_object();

    policy_prefilter(view, pod, arena, &verdict, &decided_by);
    return whole(object, put_verdict(object, &verdict) |
                             put(object, "warnings", explain_warnings(&verdict)) |
                             put(object, "claims", explain_claims(view, pod)) |
                             put(object, "deferFSMount", explain_deferral(view, pod, arena)));
}

/* What policies that only warn say of the node. */
static json_t *explain_node_warnings(const struct verdict *verdict, struct slice node,
                                     struct arena *arena)
{
    json_t *list = json_array();
    struct slice reason;
    int rc = list == NULL ? -1 : 0;

    for (const struct node_filter *filter = NULL;
         rc == 0 && (filter = policy_warn(verdict, filter, node, arena, &reason)) != NULL;)
        rc = reason.ptr == NULL ? -1 : json_array_append_new(list, text(reason));
    return whole(list, rc);
}

/* What is said of the nodes. Codes and reasons that are the same on many are the same values, not
 * copies: there may be 5,000 nodes. */
struct node_texts {
    json_t *code, *reasons; /* of a node that is not rejected for itself */
    json_t *unresolvable;   /* the code of one that is */
};

static int append_node(json_t *list, const struct node_texts *texts, struct slice name,
                       struct slice rejection, json_t *warnings)
{
    json_t *object = json_object(), *reasons = json_incref(texts->reasons);
    int rc = put(object, "name", text(name));

    if (rejection.len != 0) {
        json_decref(reasons);
        reasons = json_copy(texts->reasons);
        rc |= json_array_append_new(reasons, text(rejection));
    }
    rc |= put(object, "code", json_incref(rejection.len != 0 ? texts->unresolvable : texts->code));
    rc |= put(object, "reasons", reasons);
    if (json_array_size(warnings) != 0 || warnings == NULL)
        rc |= put(object, "warnings", warnings);
    else
        json_decref(warnings);
    return json_array_append_new(list, whole(object, rc)) | rc;
}

/* The nodes. *on_nodes: in: the verdict on the pod; out: the same, with what follows from nodes. */
static json_t *explain_nodes(struct verdict *on_nodes, const struct explained_nodes *nodes,
                             struct arena *arena)
{
    const struct verdict verdict = *on_nodes;
    enum verdict_code code = verdict.code == CODE_SKIP ? CODE_SUCCESS : verdict.code;
    const struct policy *decided_by;
    struct node_texts texts = {json_string(code_text(code)), explain_reasons(&verdict),
                               json_string(code_text(CODE_UNSCHEDULABLE_AND_UNRESOLVABLE))};
    json_t *list = json_array();

    size_t count = nodes->are_listed || verdict.nodes != NULL ? nodes->count : 0, rejected = 0;
    struct slice *reasons = arena_alloc(arena, (count + 1) * sizeof *reasons);
    bool has_memory = list != NULL && texts.code != NULL && texts.reasons != NULL &&
                      texts.unresolvable != NULL && reasons != NULL;
    if (has_memory && policy_filters_nodes(&verdict))
        rejected = policy_filter_nodes(on_nodes, nodes->names, count, arena, reasons, &decided_by);
    int rc = has_memory && (on_nodes->code != CODE_ERROR || verdict.code == CODE_ERROR) ? 0 : -1;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = append_node(list, &texts, nodes->names[i], rejected == 0 ? SLICE("") : reasons[i],
                         explain_node_warnings(&verdict, nodes->names[i], arena));
    json_decref(texts.code);
    json_decref(texts.reasons);
    json_decref(texts.unresolvable);
    return whole(list, rc);
}

static json_t *explain_preemption(const struct verdict *verdict)
{
    json_t *object = json_object(), *victims = json_array();
    int rc = victims == NULL ? -1 : 0;

    for (size_t i = 0; i < verdict->victim_count && rc == 0; i++)
        rc = json_array_append_new(victims, identity(verdict->victims[i]));
    rc |= put(object, "helps", json_boolean(verdict->victim_count != 0));
    return whole(object, rc | put(object, "victims", victims));
}

json_t *explain_pod(const struct view *view, const struct pod_object *pod,
                    const struct explained_nodes *nodes, struct arena *arena)
{
    const struct policy *decided_by;
    struct verdict verdict;
    json_t *object = json_object(), *name = json_object(), *prefilter = json_object();

    policy_prefilter(view, pod, arena, &verdict, &decided_by);
    struct verdict on_nodes = verdict;
    json_t *list = explain_nodes(&on_nodes, nodes, arena);
    int rc = put(name, "namespace", text(pod->meta.ns)) | put(name, "name", text(pod->meta.name));
    rc |= put(object, "pod", name);
    rc |= put(object, "schedulable", json_boolean(!code_is_rejection(on_nodes.code)));
    rc |= put_verdict(prefilter, &verdict);
    rc |= put(object, "preFilter", prefilter);
    rc |= put(object, "warnings", explain_warnings(&verdict));
    rc |= put(object, "nodes", list);
    rc |= put(object, "claims", explain_claims(view, pod));
    rc |= put(object, "preemption", explain_preemption(&on_nodes));
    return whole(object, rc | put(object, "deferFSMount", explain_deferral(view, pod, arena)));
}

/* ---- writing ---- */

static int put_chunk(const char *chunk, size_t size, void *out)
{
    buf_put(out, (struct slice){chunk, size});
    return 0;
}

int explain_write(json_t *value, size_t flags, struct buf *out, struct error *err)
{
    int rc = value == NULL ? -1 : json_dump_callback(value, put_chunk, out, flags);

    json_decref(value);
    return rc == 0 ? 0 : error_no_memory(err);
}
