/* What would free a claim. Each advice is one text. */
#include <stdlib.h>

#include "cache/cluster/reservation.h"
#include "config/base/clock.h"
#include "extender/inquiry/who_internal.h"

/* The texts so far. */
struct advice {
    json_t *list;
    int rc;
};

static void add(struct advice *advice, json_t *text)
{
    advice->rc |= json_array_append_new(advice->list, text);
}

/* The arguments of "%.*s/%.*s" and of "-n %.*s %.*s". */
#define POD_ARG(pod) \
    (int)name_slice((pod)->ns).len, name_slice((pod)->ns).ptr, (int)pod_name(pod).len, \
        pod_name(pod).ptr

/* ---- the controller of a holder ---- */

/* The number at the end of a StatefulSet's pod: scaled to that, it does not create the pod again.
 */
static struct slice ordinal_of(const struct who_pod *holder)
{
    struct slice name = pod_name(holder->pod);
    size_t begin = holder->owner.name.len + 1;

    if (name.len <= begin || name.len > begin + 9)
        return SLICE("0");
    return (struct slice){name.ptr + begin, name.len - begin};
}

/* What `kubectl scale` takes; NULL: the kind cannot be scaled by it. */
static const char *scaled_as(struct slice kind)
{
    static const struct {
        const char *kind, *resource;
    } rows[] = {{"Deployment", "deployment"},
                {"ReplicaSet", "replicaset"},
                {"ReplicationController", "replicationcontroller"},
                {"StatefulSet", "statefulset"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (slice_equal(kind, slice_of(rows[i].kind)))
            return rows[i].resource;
    return NULL;
}

static void advise_scaling(struct advice *advice, const struct who_pod *holder)
{
    const struct owner *owner = &holder->owner;
    bool is_stateful = slice_equal(owner->kind, SLICE("StatefulSet"));
    struct slice ns = name_slice(holder->pod->ns);
    struct slice replicas = is_stateful ? ordinal_of(holder) : SLICE("0");

    add(advice, json_sprintf("kubectl scale -n %.*s %s %.*s --replicas=%.*s (if pod %.*s/%.*s is "
                             "only deleted, %.*s %.*s creates %s)",
                             SLICE_ARG(ns), scaled_as(owner->kind), SLICE_ARG(owner->name),
                             SLICE_ARG(replicas), POD_ARG(holder->pod), SLICE_ARG(owner->kind),
                             SLICE_ARG(owner->name), is_stateful ? "it again" : "another one"));
}

static void advise_by_owner(struct advice *advice, const struct who_pod *holder)
{
    const struct owner *owner = &holder->owner;

    if (owner->name.len == 0)
        add(advice, json_sprintf("pod %.*s/%.*s finishes, or kubectl delete pod -n %.*s %.*s (no "
                                 "controller creates it again)",
                                 POD_ARG(holder->pod), POD_ARG(holder->pod)));
    else if (scaled_as(owner->kind) != NULL)
        advise_scaling(advice, holder);
    else if (slice_equal(owner->kind, SLICE("Job")))
        add(advice, json_sprintf("pod %.*s/%.*s finishes, or kubectl delete job -n %.*s %.*s (if "
                                 "only the pod is deleted, the Job creates another one)",
                                 POD_ARG(holder->pod), SLICE_ARG(name_slice(holder->pod->ns)),
                                 SLICE_ARG(owner->name)));
    else if (slice_equal(owner->kind, SLICE("Node")))
        add(advice, json_sprintf("pod %.*s/%.*s is static: remove its manifest on node %.*s",
                                 POD_ARG(holder->pod), SLICE_ARG(pod_node(holder->pod))));
    else
        add(advice,
            json_sprintf("pod %.*s/%.*s finishes, or its controller %.*s %.*s gives it up "
                         "(if only the pod is deleted, the controller may create it again)",
                         POD_ARG(holder->pod), SLICE_ARG(owner->kind), SLICE_ARG(owner->name)));
}

/* ---- one holder ---- */

static void advise_terminating(struct advice *advice, const struct who_claim *claim,
                               const struct who_pod *holder)
{
    const struct pod_details *details = &holder->details;
    int64_t end_ms = time_parse(details->deletion_timestamp), now_ms = claim->inquiry->now_ms;
    const struct slice *finalizers = details->finalizers.items;

    if (end_ms == 0)
        add(advice, json_sprintf("pod %.*s/%.*s is terminating", POD_ARG(holder->pod)));
    else if (now_ms == 0)
        add(advice, json_sprintf("pod %.*s/%.*s is terminating: its grace ends at %.*s",
                                 POD_ARG(holder->pod), SLICE_ARG(details->deletion_timestamp)));
    else if (end_ms >= now_ms)
        add(advice, json_sprintf("pod %.*s/%.*s is terminating: %lld s of grace left",
                                 POD_ARG(holder->pod), (long long)(end_ms - now_ms) / 1000));
    else
        add(advice, json_sprintf("pod %.*s/%.*s is terminating: its grace ended %lld s ago",
                                 POD_ARG(holder->pod), (long long)(now_ms - end_ms) / 1000));
    for (size_t i = 0; i < details->finalizers.count; i++)
        add(advice,
            json_sprintf("finalizer %.*s keeps pod %.*s/%.*s: what has set it has to remove "
                         "it",
                         SLICE_ARG(finalizers[i]), POD_ARG(holder->pod)));
}

/* A node that does not answer never reports that its pods have ended. */
static void advise_node(struct advice *advice, const struct who_pod *holder)
{
    struct slice node = pod_node(holder->pod);

    if (holder->node_state == NODE_MISSING)
        add(advice, json_sprintf("node %.*s does not exist: kube-controller-manager deletes pod "
                                 "%.*s/%.*s soon",
                                 SLICE_ARG(node), POD_ARG(holder->pod)));
    else if (holder->is_out_of_service)
        add(advice, json_sprintf("node %.*s is out of service: kube-controller-manager deletes pod "
                                 "%.*s/%.*s soon",
                                 SLICE_ARG(node), POD_ARG(holder->pod)));
    else if (holder->node_state == NODE_NOT_READY)
        add(advice,
            json_sprintf("node %.*s is not ready. If its machine is shut down: kubectl taint nodes "
                         "%.*s " OUT_OF_SERVICE_TAINT "=nodeshutdown:NoExecute; or kubectl delete "
                         "pod -n %.*s %.*s --force. Data is at risk if the pod still runs",
                         SLICE_ARG(node), SLICE_ARG(node), POD_ARG(holder->pod)));
}

static void advise_holder(struct advice *advice, const struct who_claim *claim,
                          const struct who_pod *holder)
{
    bool may_end = holder->node_state == NODE_READY || holder->node_state == NODE_UNKNOWN;

    advise_node(advice, holder);
    if (holder->pod->is_terminating)
        advise_terminating(advice, claim, holder);
    else if (may_end || holder->owner.name.len != 0)
        advise_by_owner(advice, holder);
}

/* ---- preemption ---- */

/* Whether a scheduler may preempt the holders for the pod. */
static bool may_preempt(const struct who_claim *claim, const struct pod *pod)
{
    for (size_t i = 0; i < claim->holder_count; i++)
        if (claim->holders[i].pod->priority >= pod->priority)
            return false;
    return !pod->never_preempts && !pod->is_gated && !pod->is_terminating;
}

/* Names the pod of the highest priority that may preempt. */
static void advise_preemption(struct advice *advice, const struct who_claim *claim)
{
    const struct pod *preemptor = NULL;

    for (size_t i = 0; i < claim->waiter_count; i++) {
        const struct pod *pod = claim->waiters[i].pod;
        if (may_preempt(claim, pod) && (preemptor == NULL || pod->priority > preemptor->priority))
            preemptor = pod;
    }
    for (size_t i = 0; preemptor != NULL && i < claim->holder_count; i++)
        if (!claim->holders[i].pod->is_terminating)
            add(advice, json_sprintf("the scheduler may preempt pod %.*s/%.*s (priority %lld) for "
                                     "pod %.*s/%.*s (priority %lld)",
                                     POD_ARG(claim->holders[i].pod),
                                     (long long)claim->holders[i].pod->priority, POD_ARG(preemptor),
                                     (long long)preemptor->priority));
}

/* ---- a claim that no pod holds ---- */

static void advise_attachment(struct advice *advice, const struct who_claim *claim,
                              const struct resource *attachment)
{
    struct slice node = resource_attribute(attachment, VOLUME_ATTACHMENT_NODE);
    struct slice error = resource_attribute(attachment, VOLUME_ATTACHMENT_DETACH_ERROR);

    if (error.len != 0)
        add(advice, json_sprintf("volume %.*s cannot be detached from node %.*s: %.*s",
                                 SLICE_ARG(claim->volume), SLICE_ARG(node), SLICE_ARG(error)));
    else
        add(advice,
            json_sprintf("volume %.*s is only attached, to node %.*s: its detach is pending",
                         SLICE_ARG(claim->volume), SLICE_ARG(node)));
}

static void advise_unheld(struct advice *advice, const struct who_claim *claim)
{
    struct slice uid, name, ns = name_slice(claim->claim->ns);

    if (!claim->claim->exists) {
        add(advice, json_sprintf("the claim does not exist: create it"));
        return;
    }
    const struct reservation *reservation = claim->claim->reservation;
    if (reservation != NULL)
        add(advice, json_sprintf("the claim is reserved for pod %.*s/%.*s, until that is bound, or "
                                 "the reservation ends",
                                 SLICE_ARG(name_slice(reservation->ns)),
                                 SLICE_ARG(name_slice(reservation->name))));
    if (claim->claim->is_deleting)
        add(advice, json_sprintf("the claim is being deleted: no pod can use it any more"));
    for (size_t i = 0; i < claim->attachment_count; i++)
        advise_attachment(advice, claim, claim->attachments[i]);
    if (who_lock(claim, &uid, &name) && who_locker(claim) == NULL)
        add(advice, json_sprintf("the claim is locked for pod %.*s/%.*s, which is not there: "
                                 "claimguard takes the lock over",
                                 SLICE_ARG(ns), SLICE_ARG(name)));
}

json_t *who_freed_by(const struct who_claim *claim, bool names_preemptor)
{
    struct advice advice = {.list = json_array()};

    if (names_preemptor && claim->access == ACCESS_ONE_POD)
        advise_preemption(&advice, claim);
    for (size_t i = 0; i < claim->holder_count && claim->access != ACCESS_ANY; i++)
        advise_holder(&advice, claim, &claim->holders[i]);
    if (claim->holder_count == 0)
        advise_unheld(&advice, claim);
    return value_whole(advice.list, advice.rc | (advice.list == NULL ? -1 : 0));
}
