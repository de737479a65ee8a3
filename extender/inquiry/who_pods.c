/* Pods that hold a claim, or wait for it. */
#include "cache/objects/label_selector.h"
#include "config/base/clock.h"
#include "extender/inquiry/who_internal.h"

enum { BUDGETS_MAX = 10 /* of a holder, in an answer */ };

/* ---- details ---- */

/* A ReplicaSet of a Deployment has its name and the hash of its template. */
static struct owner find_owner(const struct pod_details *details)
{
    const struct owner *controller = details_controller(&details->owners);
    size_t hash = details->template_hash.len;

    if (controller == NULL)
        return (struct owner){.name = {"", 0}};
    struct owner owner = *controller;
    size_t rest = owner.name.len > hash ? owner.name.len - hash - 1 : 0;
    if (slice_equal(owner.kind, SLICE("ReplicaSet")) && hash != 0 && rest != 0 &&
        slice_ends_with(owner.name, details->template_hash) && owner.name.ptr[rest] == '-') {
        owner.kind = SLICE("Deployment");
        owner.name.len = rest;
    }
    return owner;
}

/* Whether its condition Ready is Unknown: its kubelet has not reported for a while. */
static bool is_unreachable(const struct inquiry *inquiry, struct slice node, struct arena *arena)
{
    struct slice text = inquiry_find_details(inquiry, KIND_NODE, SLICE(""), node);
    struct node_details details;

    if (text.ptr == NULL || !node_details_read(text, arena, &details))
        return false;
    const struct condition *ready = details_condition(&details.conditions, SLICE("Ready"));
    return ready != NULL && slice_equal(ready->status, SLICE("Unknown"));
}

enum node_state who_node_state(const struct inquiry *inquiry, struct slice name,
                               struct arena *arena)
{
    const struct node *node = cluster_find_node(&inquiry->cluster, name);

    if (name.len == 0 || inquiry->cluster.counts[KIND_NODE] == 0)
        return NODE_UNKNOWN;
    if (node == NULL || !node->exists)
        return NODE_MISSING;
    if (!node->is_not_ready)
        return NODE_READY;
    return is_unreachable(inquiry, name, arena) ? NODE_UNREACHABLE : NODE_NOT_READY;
}

/* Whether the node, which is not ready, has that taint. */
bool who_is_out_of_service(const struct inquiry *inquiry, struct slice node, struct arena *arena)
{
    struct slice text = inquiry_find_details(inquiry, KIND_NODE, SLICE(""), node);
    struct node_details details;

    if (text.ptr == NULL || !node_details_read(text, arena, &details))
        return false;
    const struct taint *taints = details.taints.items;
    for (size_t i = 0; i < details.taints.count; i++)
        if (slice_equal(taints[i].key, SLICE(OUT_OF_SERVICE_TAINT)))
            return true;
    return false;
}

/* When the pod was bound, as well as it is known. */
static struct slice bound_since(const struct pod_details *details)
{
    const struct condition *scheduled =
        details_condition(&details->conditions, SLICE("PodScheduled"));

    if (scheduled != NULL && slice_equal(scheduled->status, SLICE("True")) &&
        scheduled->changed.len != 0)
        return scheduled->changed;
    return details->started.len != 0 ? details->started : details->created;
}

bool who_pod_init(struct who_pod *out, const struct who_claim *claim, const struct pod *pod)
{
    struct slice text =
        inquiry_find_details(claim->inquiry, KIND_POD, name_text(pod->ns), pod_name(pod));

    *out = (struct who_pod){.pod = pod, .details.grace_seconds = -1};
    if (text.ptr != NULL && !pod_details_read(text, claim->arena, &out->details))
        return false;
    out->owner = find_owner(&out->details);
    out->is_owner_known =
        out->details.owners.count != 0 ||
        (out->details.created.len != 0 && !claim->inquiry->report.is_of_claimguard);
    out->node_state = who_node_state(claim->inquiry, pod_node(pod), claim->arena);
    out->since = !pod_is_assigned(pod) ? out->details.created : bound_since(&out->details);
    out->is_out_of_service =
        (out->node_state == NODE_NOT_READY || out->node_state == NODE_UNREACHABLE) &&
        who_is_out_of_service(claim->inquiry, pod_node(pod), claim->arena);
    return true;
}

/* ---- JSON ---- */

/* Adds a text, unless it is empty. */
static int put_known(json_t *object, const char *key, struct slice text)
{
    return text.len == 0 ? 0 : value_put(object, key, value_text(text));
}

json_t *who_strings(const struct pull_items *items)
{
    const struct slice *texts = items->items;
    json_t *list = json_array();
    int rc = list == NULL ? -1 : 0;

    for (size_t i = 0; i < items->count && rc == 0; i++)
        rc = json_array_append_new(list, value_text(texts[i]));
    return value_whole(list, rc);
}

/* What holders and waiters have in common. */
static json_t *describe(const struct who_pod *pod)
{
    char uid[UID_TEXT_BYTES];
    json_t *object = json_object();
    int rc = value_put(object, "namespace", value_text(name_text(pod->pod->ns))) |
             value_put(object, "name", value_text(pod_name(pod->pod))) |
             put_known(object, "uid", uid_text(&pod->pod->uid, uid)) |
             value_put(object, "priority", json_integer(pod->pod->priority)) |
             put_known(object, "scheduler", pod->details.scheduler) |
             put_known(object, "since", pod->since);

    if (pod->owner.name.len != 0)
        rc |= value_put(object, "owner",
                        json_pack("{s:o,s:o}", "kind", value_text(pod->owner.kind), "name",
                                  value_text(pod->owner.name)));
    return value_whole(object, rc);
}

const char *who_node_state_text(enum node_state state)
{
    static const char *const texts[] = {
        [NODE_UNKNOWN] = "Unknown",    [NODE_READY] = "Ready",
        [NODE_NOT_READY] = "NotReady", [NODE_UNREACHABLE] = "Unreachable",
        [NODE_MISSING] = "Missing",
    };
    return texts[state];
}

struct slice who_state(const struct who_pod *pod)
{
    if (pod->pod->is_terminating)
        return SLICE("Terminating");
    if (pod->details.containers.waiting_reason.len != 0)
        return pod->details.containers.waiting_reason;
    return pod->details.phase;
}

/* The first budgets by name that a pod counts for. */
struct budgets {
    const struct resource *items[BUDGETS_MAX + 1]; /* the last one is for one that is put in */
    size_t count, left_out;
};

static int compare_budgets(const struct resource *a, const struct resource *b)
{
    char x[PROVISIONED_NAME_BYTES], y[PROVISIONED_NAME_BYTES];

    return slice_compare(resource_name(a, x), resource_name(b, y));
}

static void add_budget(struct budgets *budgets, const struct resource *budget)
{
    size_t at = budgets->count++;

    for (; at > 0 && compare_budgets(budgets->items[at - 1], budget) > 0; at--)
        budgets->items[at] = budgets->items[at - 1];
    budgets->items[at] = budget;
    if (budgets->count > BUDGETS_MAX) {
        budgets->count--;
        budgets->left_out++;
    }
}

/* There may be many holders, and many budgets: each holder has a few. */
static int put_budgets(json_t *object, const struct who_claim *claim, const struct pod *pod)
{
    const struct cluster *cluster = &claim->inquiry->cluster;
    json_t *list = json_array();
    struct table_walk walk = {.at = 0};
    struct budgets budgets = {.count = 0};
    char name[PROVISIONED_NAME_BYTES];
    int rc = list == NULL ? -1 : 0;

    for (const struct resource *budget;
         (budget = cluster_next_resource(cluster, KIND_POD_DISRUPTION_BUDGET, &walk)) != NULL;)
        if (resource_ns(budget) == name_at(pod->ns) &&
            selector_matches(resource_attribute(budget, BUDGET_SELECTOR), name_text(pod->labels),
                             pod_name(pod)))
            add_budget(&budgets, budget);
    for (size_t i = 0; i < budgets.count && rc == 0; i++)
        rc = json_array_append_new(
            list, json_pack("{s:o,s:I}", "name", value_text(resource_name(budgets.items[i], name)),
                            "disruptionsAllowed", (json_int_t)resource_number(budgets.items[i])));
    rc |= value_put(object, "budgets", value_whole(list, rc));
    if (budgets.left_out != 0)
        rc |= value_put(object, "budgetsLeftOut", json_integer((json_int_t)budgets.left_out));
    return rc;
}

/* When the grace of a terminating pod ends, and how it was given. */
static int put_grace(json_t *object, const struct who_claim *claim, const struct who_pod *holder)
{
    const struct pod_details *details = &holder->details;
    int64_t end_ms = time_parse(details->deletion_timestamp);
    int rc = end_ms == 0 ? 0 : put_known(object, "graceEnds", details->deletion_timestamp);

    if (details->grace_seconds >= 0)
        rc |= value_put(object, "graceSeconds", json_integer(details->grace_seconds));
    if (claim->inquiry->now_ms != 0 && end_ms != 0)
        rc |= value_put(object, "graceSecondsLeft",
                        json_integer((end_ms - claim->inquiry->now_ms) / 1000));
    return rc;
}

json_t *who_holder(const struct who_claim *claim, const struct who_pod *holder)
{
    json_t *object = describe(holder);
    int rc = value_put(object, "node", value_text(pod_node(holder->pod))) |
             value_put(object, "nodeState", json_string(who_node_state_text(holder->node_state))) |
             value_put(object, "as",
                       json_string(holder->pod->is_terminating ? "Terminating" : "Bound")) |
             put_known(object, "state", who_state(holder)) |
             value_put(object, "finalizers", who_strings(&holder->details.finalizers)) |
             put_budgets(object, claim, holder->pod);

    if (holder->pod->is_terminating)
        rc |= put_grace(object, claim, holder);
    return value_whole(object, rc);
}

json_t *who_waiter(const struct who_pod *waiter)
{
    const struct condition *scheduled =
        details_condition(&waiter->details.conditions, SLICE("PodScheduled"));
    static const char *const waits[] = {
        [WAITS_OTHER] = "Other", [WAITS_HOLDER] = "Holder",   [WAITS_DETACH] = "Detach",
        [WAITS_CLAIM] = "Claim", [WAITS_BINDING] = "Binding", [WAITS_RESERVATION] = "Reservation",
        [WAITS_LOCK] = "Lock",
    };
    json_t *object = describe(waiter);
    int rc = put_known(object, "nominatedNode", pod_nominated_node(waiter->pod)) |
             value_put(object, "gated", json_boolean(waiter->pod->is_gated)) |
             value_put(object, "waitsFor", json_string(waits[waiter->waits_for])) |
             put_known(object, "node", pod_node(waiter->pod));

    if (pod_is_assigned(waiter->pod))
        rc |= put_known(object, "state", who_state(waiter));
    if (scheduled != NULL && !slice_equal(scheduled->status, SLICE("True")))
        rc |= put_known(object, "message", scheduled->message);
    return value_whole(object, rc);
}
