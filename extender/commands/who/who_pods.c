/* Pods that hold a claim, or wait for it. */
#include <stdlib.h>
#include <string.h>

#include "cache/objects/label_selector.h"
#include "config/base/text.h"
#include "extender/commands/who/who_claim.h"
#include "policy/holders.h"

enum { TIME_BYTES_MAX = 64 };

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

static bool is_owner(const struct owner *owner, enum kind kind, struct slice name)
{
    return slice_equal(owner->name, name) && kind_of_any(owner->api_version, owner->kind) == kind;
}

/* Whether the Job is of the CronJob, which makes its name of its own and a number. */
static bool is_of_cron_job(const struct inquiry *inquiry, struct slice ns, struct slice job,
                           struct slice name)
{
    size_t digits = 0;

    while (digits < job.len && job.ptr[job.len - 1 - digits] >= '0' &&
           job.ptr[job.len - 1 - digits] <= '9')
        digits++;
    if (digits != 0 && job.len == name.len + 1 + digits && job.ptr[name.len] == '-' &&
        slice_equal((struct slice){job.ptr, name.len}, name))
        return true;
    const struct workload_answer *known =
        workloads_find(inquiry->workloads, slice_of(kind_text(KIND_JOB)), ns, job);
    return known != NULL && known->state == WORKLOAD_KNOWN &&
           is_owner(&known->details.controller, KIND_CRON_JOB, name);
}

bool who_is_of(const struct inquiry *inquiry, const struct who_pod *pod, enum kind kind,
               struct slice name)
{
    const struct owner *controller = details_controller(&pod->details.owners);

    if (controller == NULL)
        return false;
    if (kind == KIND_CRON_JOB)
        return kind_of_any(controller->api_version, controller->kind) == KIND_JOB &&
               is_of_cron_job(inquiry, name_text(pod->pod->ns), controller->name, name);
    return is_owner(controller, kind, name) || is_owner(&pod->owner, kind, name);
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

bool who_is_out_of_service(const struct inquiry *inquiry, struct slice node, enum node_state state,
                           struct arena *arena)
{
    bool is_ready = state != NODE_NOT_READY && state != NODE_UNREACHABLE;
    struct slice text = inquiry_find_details(inquiry, KIND_NODE, SLICE(""), node);
    struct node_details details;

    if (is_ready || text.ptr == NULL || !node_details_read(text, arena, &details))
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

/* When its deletion was asked for: its grace ends at its deletionTimestamp. False: no memory. */
static bool find_deleted(struct who_pod *pod, struct arena *arena)
{
    int64_t end_ms = time_parse(pod->details.deletion_timestamp);
    struct buf text;

    pod->deleted = SLICE("");
    if (end_ms == 0 || pod->details.grace_seconds < 0 || pod->details.grace_seconds > end_ms / 1000)
        return true;
    buf_init(&text, TIME_BYTES_MAX);
    buf_time(&text, end_ms - pod->details.grace_seconds * 1000, false);
    pod->deleted = arena_copy(arena, buf_slice(&text));
    buf_dispose(&text);
    return pod->deleted.ptr != NULL;
}

bool who_pod_init(struct who_pod *out, const struct inquiry *inquiry, const struct pod *pod,
                  struct arena *arena)
{
    struct slice text;

    if (!who_details(&text, inquiry, KIND_POD, name_text(pod->ns), pod_name(pod), arena))
        return false;
    *out = (struct who_pod){.pod = pod, .details.grace_seconds = -1};
    if (text.ptr != NULL && !pod_details_read(text, arena, &out->details))
        return false;
    out->owner = find_owner(&out->details);
    out->is_owner_known = out->details.owners.count != 0 ||
                          (out->details.created.len != 0 && !inquiry->report.is_of_claimguard);
    out->node_state = who_node_state(inquiry, pod_node(pod), arena);
    out->since = !pod_is_assigned(pod) ? out->details.created : bound_since(&out->details);
    out->is_out_of_service = who_is_out_of_service(inquiry, pod_node(pod), out->node_state, arena);
    return find_deleted(out, arena);
}

bool who_cannot_end(const struct who_pod *pod, int64_t now_ms)
{
    int64_t end_ms = time_parse(pod->details.deletion_timestamp);

    if (!pod->pod->is_terminating)
        return false;
    if (pod->details.finalizers.count != 0)
        return true;
    return pod_holds(pod->pod) && (who_has_lost_node(pod) || (end_ms != 0 && end_ms < now_ms));
}

struct slice who_state(const struct who_pod *pod)
{
    if (pod->pod->is_terminating)
        return SLICE("Terminating");
    if (pod->details.containers.waiting_reason.len != 0)
        return pod->details.containers.waiting_reason;
    return pod->details.phase;
}

struct slice who_message(const struct who_pod *pod)
{
    const struct condition *scheduled =
        details_condition(&pod->details.conditions, SLICE("PodScheduled"));

    return scheduled == NULL || slice_equal(scheduled->status, SLICE("True")) ? SLICE("")
                                                                              : scheduled->message;
}

/* ---- for programs and people ---- */

void who_put_pod(struct fields *out, const struct who_pod *pod)
{
    char uid[UID_TEXT_BYTES];

    fields_text(out, "namespace", name_text(pod->pod->ns));
    fields_text(out, "name", pod_name(pod->pod));
    fields_text_if(out, "uid", uid_text(&pod->pod->uid, uid));
    fields_number(out, "priority", pod->pod->priority);
    fields_text_if(out, "scheduler", pod->details.scheduler);
    fields_text_if(out, "since", pod->since);
    if (pod->owner.name.len == 0)
        return;
    fields_open(out, "owner", '{');
    fields_text(out, "kind", pod->owner.kind);
    fields_text(out, "name", pod->owner.name);
    fields_close(out);
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

void who_put_owner(struct block *block, const struct who_pod *pod)
{
    if (pod->owner.name.len == 0)
        return;
    block_put_if(block, ", of ", pod->owner.kind);
    block_put_if(block, " ", pod->owner.name);
}

/* ---- taints ---- */

/* An operator that is not known tolerates. */
static bool tolerates(const struct toleration *toleration, const struct taint *taint)
{
    if (toleration->effect.len != 0 && !slice_equal(toleration->effect, taint->effect))
        return false;
    if (toleration->key.len != 0 && !slice_equal(toleration->key, taint->key))
        return false;
    bool is_equal =
        toleration->operator.len == 0 || slice_equal(toleration->operator, SLICE("Equal"));
    return !is_equal || slice_equal(toleration->value, taint->value);
}

bool who_tolerates(const struct who_pod *pod, const struct taint *taint)
{
    const struct pull_items *tolerations = &pod->details.tolerations;

    for (size_t i = 0; i < tolerations->count; i++)
        if (tolerates((const struct toleration *)tolerations->items + i, taint))
            return true;
    return false;
}

const struct taint *who_find_taint(const struct who_pod *pod, const struct pull_items *items)
{
    const struct taint *taints = items->items;

    for (size_t i = 0; i < items->count; i++)
        if ((slice_equal(taints[i].effect, SLICE("NoSchedule")) ||
             slice_equal(taints[i].effect, SLICE("NoExecute"))) &&
            !who_tolerates(pod, &taints[i]))
            return &taints[i];
    return NULL;
}

bool who_is_cordoned(const struct who_pod *pod, const struct node *node)
{
    const struct taint cordon = {SLICE("node.kubernetes.io/unschedulable"), SLICE(""),
                                 SLICE("NoSchedule")};

    return node->is_unschedulable && !who_tolerates(pod, &cordon);
}

static bool has_labels(struct slice wanted, struct slice labels)
{
    (void)slice_cut(&wanted, '\n'); /* the mark of a label set */
    while (wanted.len != 0) {
        struct slice line = slice_cut(&wanted, '\n'), value;
        struct slice key = slice_cut(&line, ' ');
        if (!labels_find(labels, key, &value) || !slice_equal(value, line))
            return false;
    }
    return true;
}

bool who_wants_node(const struct who_pod *pod, struct slice node, struct slice labels)
{
    const struct pod_details *details = &pod->details;

    return has_labels(details->node_selector, labels) &&
           (details->node_terms.count == 0 || node_terms_match(&details->node_terms, node, labels));
}

/* ---- its volumes ---- */

bool who_is_of_template(const struct who_pod *pod, const struct claim *claim)
{
    struct slice name = claim_name(claim), of_pod = pod_name(pod->pod);

    return owner_is_kind(&pod->owner, SLICE("StatefulSet")) && name.len > of_pod.len + 1 &&
           slice_ends_with(name, of_pod) && name.ptr[name.len - of_pod.len - 1] == '-';
}

/* The kubelet mounts all volumes before it makes the pod's sandbox, and that before it pulls images
 * and starts containers. A kubelet before 1.29 has no such condition. */
static bool has_mounted(const struct pod_details *details)
{
    const struct condition *ready =
        details_condition(&details->conditions, SLICE("PodReadyToStartContainers"));
    struct slice reason = details->containers.waiting_reason;

    if (ready != NULL)
        return slice_equal(ready->status, SLICE("True"));
    return details->containers.has_started ||
           (reason.len != 0 && !slice_equal(reason, SLICE("ContainerCreating")) &&
            !slice_equal(reason, SLICE("PodInitializing")));
}

/* Whether a pod that ran needs a new sandbox, and its volumes again, as after its node has started
 * again. */
static bool has_lost_sandbox(const struct who_pod *pod)
{
    const struct condition *ready =
        details_condition(&pod->details.conditions, SLICE("PodReadyToStartContainers"));

    return ready != NULL && !slice_equal(ready->status, SLICE("True")) && !pod->pod->is_terminating;
}

bool who_waits_for_mounts(const struct who_pod *pod)
{
    return pod->pod->is_pending ? !has_mounted(&pod->details) : has_lost_sandbox(pod);
}

/* ---- budgets ---- */

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
void who_find_budgets(struct budgets *out, const struct cluster *cluster, const struct pod *pod)
{
    struct table_walk walk = {.at = 0};

    *out = (struct budgets){.count = 0};
    for (const struct resource *budget;
         (budget = cluster_next_resource(cluster, KIND_POD_DISRUPTION_BUDGET, &walk)) != NULL;)
        if (resource_ns(budget) == name_at(pod->ns) &&
            selector_matches(resource_attribute(budget, BUDGET_SELECTOR), name_text(pod->labels),
                             pod_name(pod)))
            add_budget(out, budget);
}

/* ---- what pods that do not have the claim wait for ---- */

/* The node of a pod that has the volume, and is on another one than this pod; empty: none. */
static struct slice find_user_elsewhere(const struct who_claim *claim, const struct pod *pod)
{
    for (size_t i = 0; i < claim->holder_count; i++) {
        const struct who_pod *holder = &claim->holders[i];
        bool has_volume = !holder->pod->is_pending || has_mounted(&holder->details);
        if (has_volume && node_at(holder->pod->node) != node_at(pod->node))
            return pod_node(holder->pod);
    }
    return SLICE("");
}

/* The node that has the volume, where it is for one node at a time, and the pod's node waits for it
 * (Multi-Attach; 1.37 says "Waiting for detach"); empty: none. As in kube-controller-manager, a
 * node that is only to get the volume does not have it. Where the volume has no attachments, it is
 * where a pod has mounted it. */
static struct slice find_blocking_node(const struct who_claim *claim, const struct who_pod *pod)
{
    bool is_for_one_node = claim->access == ACCESS_ONE_NODE || claim->access == ACCESS_ONE_POD;
    struct slice other = SLICE("");

    if (!is_for_one_node || pod->pod->is_terminating || !who_waits_for_mounts(pod) ||
        !who_is_attachable(claim))
        return SLICE("");
    for (size_t i = 0; i < claim->attachment_count; i++) {
        const struct who_attachment *attachment = &claim->attachments[i];
        if (attachment->is_attached && slice_equal(attachment->node, pod_node(pod->pod)))
            return SLICE("");
        if (attachment->is_attached && other.len == 0)
            other = attachment->node;
    }
    return claim->attachment_count != 0 ? other : find_user_elsewhere(claim, pod->pod);
}

static void move_blocked(struct who_claim *claim)
{
    size_t count = claim->holder_count, kept = 0, moved = 0;

    for (size_t i = 0; i < count; i++)
        claim->holders[i].blocked_by = find_blocking_node(claim, &claim->holders[i]);
    for (size_t i = 0; i < count; i++)
        if (claim->holders[i].blocked_by.len != 0) {
            claim->holders[i].waits_for = WAITS_DETACH;
            claim->waiters[claim->waiter_count + moved++] = claim->holders[i];
        } else {
            claim->holders[kept++] = claim->holders[i];
        }
    claim->holder_count = kept;
    claim->waiter_count += moved;
}

/* ---- pods without a node ---- */

/* Whether the scheduler says so of the claim: "claim NS/NAME (ReadWriteOnce) is in use ...". */
static bool is_named_in_message(const struct who_claim *claim, struct slice message)
{
    struct slice text =
        arena_printf(claim->arena, "claim %.*s/%.*s ", CLAIM_NAME_ARG(claim->claim));

    return text.len != 0 && message.len != 0 &&
           memmem(message.ptr, message.len, text.ptr, text.len) != NULL;
}

/* Whether the scheduler says that a claim of the pod is not bound, or has no volume to be bound to.
 */
static bool is_unbound_in_message(struct slice message)
{
    return slice_has(message, SLICE("unbound immediate PersistentVolumeClaims")) ||
           slice_has(message, SLICE("find available persistent volumes to bind")) ||
           slice_has(message, SLICE("did not have enough free storage")) ||
           slice_has(message, SLICE("binding volumes:"));
}

/* Whether the scheduler says that the volume of a claim cannot be used on nodes, and this claim's
 * volume says where it can. */
static bool is_place_in_message(const struct who_claim *claim, struct slice message)
{
    const struct volume_details *volume = &claim->volume_details;

    return (volume->terms.count != 0 || slice_has(volume->labels, SLICE("/zone "))) &&
           (slice_has(message, SLICE("volume node affinity conflict")) ||
            slice_has(message, SLICE("PersistentVolume's node affinity")) ||
            slice_has(message, SLICE("no available volume zone")));
}

/* Whether a verdict on the pod names a holder of the claim, or another that has it. False: no
 * memory. */
static bool find_conflict(const struct who_claim *claim, const struct pod *pod, enum waits_for *out)
{
    const struct view view = {.cluster = &claim->inquiry->cluster, .config = claim->config};
    struct conflicts conflicts = {.count = 0};
    struct pod_object object;

    if (!cluster_describe_pod(pod, claim->arena, &object) ||
        !conflicts_find(&view, &object, claim->arena, &conflicts))
        return false;
    for (size_t i = 0; i < conflicts.count && *out != WAITS_HOLDER; i++)
        if (conflicts.items[i].claim == claim->claim)
            *out = conflicts.items[i].holder == NULL ? WAITS_RESERVATION : WAITS_HOLDER;
    return true;
}

/* What a pod whose claim is there waits for. False: no memory. */
static bool find_other(const struct who_claim *claim, const struct who_pod *waiter,
                       struct slice message, enum waits_for *out)
{
    struct slice uid, name;

    if (!find_conflict(claim, waiter->pod, out))
        return false;
    if (*out != WAITS_OTHER)
        return true;
    if (claim->access == ACCESS_ONE_POD && claim->assigned_count == 0 &&
        who_lock(claim, &uid, &name) && !uid_is(&waiter->pod->uid, uid))
        *out = WAITS_LOCK;
    else if (claim->assigned_count != 0 && claim->access != ACCESS_ANY &&
             is_named_in_message(claim, message))
        *out = WAITS_HOLDER;
    else if (is_place_in_message(claim, message))
        *out = WAITS_PLACE;
    return true;
}

/* Whether the claim's volume is gone, and the scheduler says nothing else. */
static bool is_lost_for(const struct who_claim *claim, struct slice message)
{
    return claim_phase(claim->claim) == CLAIM_LOST ||
           (who_lacks_volume(claim) &&
            (message.len == 0 || slice_has(message, SLICE("non-existent pv"))));
}

static bool find_wait(const struct who_claim *claim, struct who_pod *waiter)
{
    const struct claim *record = claim->claim;
    struct slice message = who_message(waiter);

    if (waiter->waits_for == WAITS_DETACH)
        return true;
    waiter->waits_for = WAITS_OTHER;
    if (!record->exists || record->is_deleting || is_lost_for(claim, message))
        waiter->waits_for = WAITS_CLAIM;
    else if (waiter->pod->is_gated)
        return true;
    else if (claim_phase(record) == CLAIM_PENDING &&
             (is_unbound_in_message(message) || claim->details.selected_node.len != 0))
        waiter->waits_for = WAITS_BINDING;
    else
        return find_other(claim, waiter, message, &waiter->waits_for);
    return true;
}

bool who_find_waits(struct who_claim *claim)
{
    claim->assigned_count = claim->holder_count;
    move_blocked(claim);
    for (size_t i = 0; i < claim->waiter_count; i++) {
        if (claim->asked != NULL && claim->asked != claim->waiters[i].pod)
            continue;
        if (!find_wait(claim, &claim->waiters[i]))
            return false;
        claim->is_waited_for = claim->is_waited_for || claim->waiters[i].waits_for > WAITS_PLACE;
    }
    return true;
}
