/* What makes a holder give the claim up: that depends on its controller, and on its node. What
 * detaches the volume from a node where no pod holds the claim. */
#include <stdlib.h>

#include "extender/commands/inquiry/rollout.h"
#include "extender/commands/who/who_advice.h"

/* ---- holder and waiter have the same controller ---- */

/* A pod of the same controller that waits for the holder, and is the one that is asked about; NULL:
 * none. */
static const struct who_pod *find_sibling(const struct scaling *scaling)
{
    const struct who_claim *claim = scaling->claim;

    for (size_t i = 0; i < claim->waiter_count; i++)
        if ((claim->asked == NULL || claim->asked == claim->waiters[i].pod) &&
            owner_is_same(&claim->waiters[i].owner, &scaling->holder->owner))
            return &claim->waiters[i];
    return NULL;
}

static size_t count_siblings(const struct scaling *scaling)
{
    const struct who_claim *claim = scaling->claim;
    size_t count = 0;

    for (size_t i = 0; i < claim->holder_count; i++)
        count += owner_is_same(&claim->holders[i].owner, &scaling->holder->owner);
    return count;
}

static const char *access_text(const struct scaling *scaling)
{
    return scaling->claim->access == ACCESS_ONE_POD ? "one pod" : "one node";
}

/* The name of the ReplicaSet of a Deployment's pod; {NULL, 0}: no memory. */
static struct slice replica_set_of(const struct scaling *scaling, const struct who_pod *pod)
{
    return arena_printf(scaling->claim->arena, "%.*s-%.*s", SLICE_ARG(pod->owner.name),
                        SLICE_ARG(pod->details.template_hash));
}

/* Its revision: a number; {"", 0}: not known. */
static struct slice revision_of(const struct scaling *scaling, const struct who_pod *pod)
{
    struct slice name = replica_set_of(scaling, pod);
    const struct workload_answer *set =
        name.ptr == NULL ? NULL
                         : workloads_find(scaling->claim->inquiry->workloads, SLICE("ReplicaSet"),
                                          name_text(pod->pod->ns), name);

    scaling->advice->has_failed = scaling->advice->has_failed || set == NULL;
    if (set == NULL || set->state != WORKLOAD_KNOWN)
        return SLICE("");
    struct slice revision = set->details.revision;
    for (size_t i = 0; i < revision.len; i++)
        if (revision.ptr[i] < (i == 0 ? '1' : '0') || revision.ptr[i] > '9')
            return SLICE("");
    return revision;
}

/* Negative: the holder is of the older ReplicaSet; 0: that is not known. */
static int compare_revisions(const struct scaling *scaling, const struct who_pod *waiter)
{
    struct slice x = revision_of(scaling, scaling->holder), y = revision_of(scaling, waiter);

    if (x.len == 0 || y.len == 0)
        return 0;
    return x.len != y.len ? (x.len < y.len ? -1 : 1) : slice_compare(x, y);
}

/* The holder is of the older ReplicaSet, and its rollout waits for itself. A ReplicaSet makes a pod
 * that is deleted again at once; an old one that has none is not scaled up by the rollout. */
static void advise_old_pod(const struct scaling *scaling, const char *rule)
{
    const struct pod *old = scaling->holder->pod;
    bool is_alone = count_siblings(scaling) == 1;

    advice_list_add(
        scaling->advice,
        "the rollout of Deployment %.*s waits for itself (%s): old pod %.*s/%.*s, which has the "
        "claim, goes only when the new one is ready%s",
        SLICE_ARG(scaling->holder->owner.name), rule, POD_ARG(old),
        is_alone ? ". For this time, end the old pod by its ReplicaSet" : "");
    if (!is_alone)
        return;
    advice_list_row(scaling->advice, ADVICE_END_OLD,
                    &(const struct advice_words){.ns = name_text(old->ns),
                                                 .name = replica_set_of(scaling, scaling->holder)});
    advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder->pod);
}

/* CG102, and CG103 of a ReadWriteOnce claim. Which pod is old decides which one may be deleted. */
static void advise_rollout(const struct scaling *scaling, const struct who_pod *waiter)
{
    const struct pod *holder = scaling->holder->pod;
    const struct advice_words words = {.ns = name_text(holder->ns),
                                       .kind = SLICE("deployment"),
                                       .name = scaling->holder->owner.name};
    const char *rule = scaling->claim->access == ACCESS_ONE_POD ? "CG102" : "CG103";
    int order = compare_revisions(scaling, waiter);

    if (order < 0)
        advise_old_pod(scaling, rule);
    else if (order > 0)
        advice_list_add(scaling->advice,
                        "wait: pod %.*s/%.*s is of an older revision of Deployment %.*s than pod "
                        "%.*s/%.*s, which has the claim; the rollout removes the older pod (%s)",
                        POD_ARG(waiter->pod), SLICE_ARG(words.name), POD_ARG(holder), rule);
    else {
        advice_list_add(
            scaling->advice,
            "pods %.*s/%.*s and %.*s/%.*s are of two revisions of Deployment %.*s, and need the "
            "same claim (%s). Which of them is old is not known from this input: see it first",
            POD_ARG(holder), POD_ARG(waiter->pod), SLICE_ARG(words.name), rule);
        advice_list_row(scaling->advice, ADVICE_SEE_ROLLOUT, &words);
    }
    if (advice_of_manager(scaling))
        return;
    if (scaling_is_known(scaling) && scaling->workload->details.replicas > 1) {
        advice_list_add(scaling->advice,
                        "for good: 1 replica and the strategy Recreate, or a ReadWriteMany volume");
        return;
    }
    struct slice source = scaling_is_known(scaling) ? scaling_source(scaling) : SLICE("");
    advice_list_add(scaling->advice,
                    "for good: strategy Recreate%s%.*s%s stops the old pods before it starts new "
                    "ones; it ends this rollout, too",
                    source.len == 0 ? "" : ", in what ", SLICE_ARG(source),
                    source.len == 0 ? "" : " syncs,");
    if (!scaling_is_known(scaling) || source.len != 0)
        return;
    advice_list_row(scaling->advice, ADVICE_RECREATE, &words);
    advice_warn_of_manager(scaling);
}

/* What lets the pods of one controller not need the claim at the same time. */
static const char *fewer_text(const struct scaling *scaling)
{
    const struct owner *owner = &scaling->holder->owner;

    if (owner_is_kind(owner, SLICE("Job")))
        return "wait: they run one after another (parallelism: 1 says so); to run at the same "
               "time, "
               "each needs a volume of its own (a generic ephemeral one, which is empty), or all a "
               "ReadWriteMany claim";
    if (owner_is_kind(owner, SLICE("StatefulSet")))
        return "it needs 1 replica, or a new StatefulSet with a volumeClaimTemplate, so that each "
               "has its own claim";
    if (scaling->claim->access == ACCESS_ONE_POD)
        return "it needs no more than one pod, or claims of their own (a StatefulSet)";
    return "it needs all on one node (podAffinity), a ReadWriteMany volume, or 1 replica";
}

/* CG104: more pods than may use the claim. */
static void advise_fewer(const struct scaling *scaling)
{
    const struct owner *owner = &scaling->holder->owner;

    advice_list_add(
        scaling->advice,
        "several pods of %.*s %.*s name this claim, which is for %s at a time (CG104): %s",
        OWNER_ARG(owner), access_text(scaling), fewer_text(scaling));
    if (!workload_scales(owner->kind) || !scaling_is_known(scaling) ||
        scaling->workload->details.replicas < 2)
        return;
    if (!scaling_lasts(scaling, 1)) {
        advice_of_autoscaler(scaling);
        return;
    }
    if (owner_is_kind(owner, SLICE("StatefulSet"))) /* it removes the last ones, also the holder */
        return;
    scaling_command(scaling, 1,
                    arena_printf(scaling->claim->arena, "pods of %.*s %.*s, first those that wait",
                                 OWNER_ARG(owner)));
    advice_list_stay(scaling->advice);
    advice_warn_of_undoing(scaling, 1);
    advice_warn_of_manager(scaling);
}

/* CG104 of a DaemonSet, whose pods run on different nodes. */
static void advise_each_node(const struct scaling *scaling)
{
    advice_list_add(scaling->advice,
                    "the pods of %.*s %.*s name one claim, which is for %s at a time (CG104): give "
                    "each a volume of its own (a generic ephemeral volume, hostPath), or all a "
                    "ReadWriteMany claim",
                    OWNER_ARG(&scaling->holder->owner), access_text(scaling));
}

/* A rollout that does not wait for its new pod. False: it does, as far as is known. */
static bool advise_moving(const struct scaling *scaling)
{
    const struct workload_details *details = &scaling->workload->details;
    const struct rollout_spec spec = {.replicas = details->replicas,
                                      .strategy = details->strategy,
                                      .surge = amount_of(details->surge),
                                      .unavailable = amount_of(details->unavailable)};

    if (!scaling_is_known(scaling) || details->replicas < 1 ||
        (!details->is_paused && rollout_adds_first(&spec)))
        return false;
    if (details->is_paused)
        advice_list_add(scaling->advice,
                        "Deployment %.*s is paused: it removes no pod until it is resumed (kubectl "
                        "rollout resume)",
                        SLICE_ARG(scaling->holder->owner.name));
    else
        advice_list_add(scaling->advice,
                        "wait: Deployment %.*s removes the old pod before the new one is ready "
                        "(maxUnavailable)",
                        SLICE_ARG(scaling->holder->owner.name));
    return true;
}

static void advise_workload(const struct scaling *scaling)
{
    const struct who_pod *holder = scaling->holder, *sibling = find_sibling(scaling);
    bool is_recreate = scaling_is_known(scaling) &&
                       slice_equal(scaling->workload->details.strategy, SLICE("Recreate"));

    if (sibling == NULL)
        advice_to_scale(scaling);
    else if (who_has_lost_node(holder) && scaling_is_known(scaling) &&
             scaling->workload->details.replicas < 2)
        return; /* it is there because the node is lost */
    else if (scaling->claim->claim->is_deleting &&
             owner_is_kind(&holder->owner, SLICE("Deployment")))
        return; /* the new pod cannot use it, whatever the rollout does */
    else if (!owner_is_kind(&holder->owner, SLICE("Deployment")) ||
             slice_equal(sibling->details.template_hash, holder->details.template_hash))
        advise_fewer(scaling);
    else if (is_recreate)
        advice_list_add(
            scaling->advice,
            "Deployment %.*s has the strategy Recreate: of pods %.*s/%.*s and %.*s/%.*s, it "
            "removes the old one",
            SLICE_ARG(holder->owner.name), POD_ARG(holder->pod), POD_ARG(sibling->pod));
    else if (!advise_moving(scaling))
        advise_rollout(scaling, sibling);
}

/* ---- any controller ---- */

/* Fills in what is known of the holder's controller. False: it is of another kind, or there is no
 * memory. */
static bool scaling_find(struct scaling *out, struct advice_list *advice,
                         const struct who_claim *claim, const struct who_pod *holder)
{
    const struct owner *owner = &holder->owner;

    *out = (struct scaling){advice, claim, holder,
                            workload_resource(owner->api_version, owner->kind), NULL};
    if (out->resource.len == 0)
        return false;
    out->workload = workloads_find(claim->inquiry->workloads, owner->kind,
                                   name_text(holder->pod->ns), owner->name);
    advice->has_failed = advice->has_failed || out->workload == NULL;
    return out->workload != NULL;
}

static void advise_alone(struct advice_list *advice, const struct who_claim *claim,
                         const struct who_pod *holder)
{
    if (!holder->is_owner_known || holder->details.owners.count != 0) {
        advice_list_add(
            advice,
            "pod %.*s/%.*s finishes, or is deleted. Whether a controller creates it again "
            "is not known from this input: see it first",
            POD_ARG(holder->pod));
        advice_list_row(advice, ADVICE_SEE_OWNERS, &POD_WORDS(holder->pod));
    } else {
        advice_list_add(advice, "pod %.*s/%.*s finishes, or is deleted", POD_ARG(holder->pod));
        advice_list_row(advice, ADVICE_DELETE_POD, &POD_WORDS(holder->pod));
    }
    advice_warn_of_loss(advice, claim, holder->pod);
}

void advice_by_owner(struct advice_list *advice, const struct who_claim *claim,
                     const struct who_pod *holder)
{
    const struct owner *owner = &holder->owner;
    struct scaling scaling = {.advice = advice, .claim = claim, .holder = holder};

    if (owner->name.len == 0) {
        advise_alone(advice, claim, holder);
    } else if (owner_is_kind(owner, SLICE("DaemonSet")) && find_sibling(&scaling) != NULL) {
        advise_each_node(&scaling);
    } else if (scaling_find(&scaling, advice, claim, holder)) {
        advise_workload(&scaling);
    } else if (owner_is_kind(owner, SLICE("Node"))) {
        advice_list_add(advice, "pod %.*s/%.*s is static: remove its manifest on node %.*s",
                        POD_ARG(holder->pod), SLICE_ARG(pod_node(holder->pod)));
    } else if (owner_is_kind(owner, SLICE("DaemonSet"))) {
        advice_list_add(
            advice,
            "pod %.*s/%.*s is of DaemonSet %.*s, which makes it again: keep it off node "
            "%.*s by its template's nodeSelector or nodeAffinity",
            POD_ARG(holder->pod), SLICE_ARG(owner->name), SLICE_ARG(pod_node(holder->pod)));
        advice_warn_of_loss(advice, claim, holder->pod);
    } else {
        advice_list_add(
            advice,
            "pod %.*s/%.*s finishes, or let its controller %.*s %.*s move its work to another pod "
            "(a switch-over) or end it, as its operator provides; a pod that is only deleted may "
            "come back",
            POD_ARG(holder->pod), OWNER_ARG(owner));
        advice_warn_of_loss(advice, claim, holder->pod);
    }
}

/* ---- a terminating holder ---- */

/* Whether its controller still wants as many pods. */
static bool comes_back(const struct scaling *scaling)
{
    const struct workload_details *details = &scaling->workload->details;

    if (scaling->workload->state == WORKLOAD_GONE)
        return false;
    if (!scaling_is_known(scaling))
        return true;
    if (owner_is_kind(&scaling->holder->owner, SLICE("Job")))
        return !details->is_suspended;
    if (!owner_is_kind(&scaling->holder->owner, SLICE("StatefulSet")))
        return details->replicas != 0;
    return scaling_ordinal(scaling) < details->first_ordinal + details->replicas;
}

/* A pod that waits, and is nominated, so that it gets the claim before others; NULL: none. */
static const struct pod *find_nominated(const struct who_claim *claim)
{
    for (size_t i = 0; i < claim->waiter_count; i++)
        if (cluster_nomination_counts(&claim->inquiry->cluster, claim->waiters[i].pod))
            return claim->waiters[i].pod;
    return NULL;
}

void advice_of_return(struct advice_list *advice, const struct who_claim *claim,
                      const struct who_pod *holder)
{
    const struct pod *nominated = find_nominated(claim);
    const struct pod *waiter = claim->asked != NULL       ? claim->asked
                               : claim->waiter_count != 0 ? claim->waiters[0].pod
                                                          : NULL;
    struct scaling scaling;

    if (nominated != NULL && nominated != claim->asked)
        advice_list_add(advice,
                        "then pod %.*s/%.*s, which is nominated to node %.*s, gets the claim, and "
                        "keeps it: ask again then",
                        POD_ARG(nominated), SLICE_ARG(pod_nominated_node(nominated)));
    if (nominated != NULL || waiter == NULL || claim->claim->is_deleting ||
        holder->owner.name.len == 0 || !scaling_find(&scaling, advice, claim, holder) ||
        find_sibling(&scaling) != NULL || !comes_back(&scaling))
        return;
    advice_list_add(
        advice, "%.*s %.*s %s this pod again, which then competes with pod %.*s/%.*s for the claim",
        OWNER_ARG(&holder->owner), scaling_is_known(&scaling) ? "creates" : "may create",
        POD_ARG(waiter));
    advice_to_scale(&scaling);
}

/* ---- nodes ---- */

/* Its kubelet does not answer: whether its pods still run, only a person can know. */
static void advise_taint(struct advice_list *advice, struct slice node)
{
    advice_list_add(advice,
                    "make sure that the machine of node %.*s is off; only then, this taint deletes "
                    "its pods and detaches their volumes",
                    SLICE_ARG(node));
    advice_list_row(advice, ADVICE_OUT_OF_SERVICE, &(const struct advice_words){.name = node});
}

static void advise_untaint(struct advice_list *advice, struct slice node)
{
    advice_list_add(advice,
                    "when the machine of node %.*s runs again, remove the taint: nothing else does",
                    SLICE_ARG(node));
    advice_list_row(advice, ADVICE_IN_SERVICE, &(const struct advice_words){.name = node});
}

/* Its kubelet answers, and ends pods that are deleted. */
static void advise_not_ready(struct advice_list *advice, struct slice node)
{
    advice_list_add(
        advice,
        "node %.*s is not ready, and its pods may run on: see what its kubelet says. It "
        "ends a pod that is deleted; nothing else knows whether a pod there has ended",
        SLICE_ARG(node));
    advice_list_row(advice, ADVICE_SEE_NODE, &(const struct advice_words){.name = node});
}

void advice_of_node(struct advice_list *advice, const struct who_claim *claim,
                    const struct who_pod *holder)
{
    struct slice node = pod_node(holder->pod);

    if (holder->node_state == NODE_MISSING || holder->is_out_of_service) {
        advice_list_add(advice, "node %.*s %s: kube-controller-manager deletes pod %.*s/%.*s soon",
                        SLICE_ARG(node),
                        holder->is_out_of_service ? "is out of service" : "does not exist",
                        POD_ARG(holder->pod));
        if (holder->is_out_of_service)
            advise_untaint(advice, node);
    } else if (holder->node_state == NODE_UNREACHABLE) {
        advise_taint(advice, node);
        advice_warn_of_loss(advice, claim, holder->pod);
    } else if (holder->node_state == NODE_NOT_READY) {
        advise_not_ready(advice, node);
    }
}

/* ---- attachments ---- */

static bool has_holder(const struct who_claim *claim, struct slice node)
{
    for (size_t i = 0; i < claim->holder_count; i++)
        if (slice_equal(pod_node(claim->holders[i].pod), node))
            return true;
    return false;
}

/* What happens by itself. */
static const char *outlook_of(const struct who_attachment *attachment)
{
    enum node_state state = attachment->node_state;

    if (attachment->is_out_of_service)
        return "the node is out of service, so kube-controller-manager detaches it at once";
    if (state == NODE_NOT_READY || state == NODE_UNREACHABLE)
        return "the node is not ready, so kube-controller-manager detaches it by force after 6 "
               "minutes, unless that is disabled (--disable-force-detach-on-timeout)";
    if (state == NODE_MISSING)
        return "the node does not exist, so kube-controller-manager detaches it, after 6 minutes "
               "at most: wait";
    return "kube-controller-manager detaches it, as a rule within seconds";
}

/* The first pod that has ended there; NULL: none. */
static const struct pod *find_ended(const struct who_claim *claim, struct slice node)
{
    for (size_t i = 0; i < claim->finished_count; i++)
        if (slice_equal(pod_node(claim->finished[i]), node))
            return claim->finished[i];
    return NULL;
}

/* Nobody has asked the driver to detach it yet: kube-controller-manager waits for the kubelet. */
static void advise_mounted(struct advice_list *advice, const struct who_claim *claim,
                           const struct who_attachment *attachment)
{
    const struct pod *ended = find_ended(claim, attachment->node);

    advice_list_add(
        advice, "volume %.*s is attached to node %.*s, where no pod holds the claim%s%.*s%s: %s",
        SLICE_ARG(claim->volume), SLICE_ARG(attachment->node), ended == NULL ? "" : " any more (",
        SLICE_ARG(ended == NULL ? SLICE("") : pod_name(ended)), ended == NULL ? "" : " has ended)",
        outlook_of(attachment));
    advice_list_add(
        advice, "if it stays attached: while the node's status.volumesInUse has it, its kubelet "
                "has not unmounted it, and the kubelet's log says why");
}

static void see_attachment(struct advice_list *advice, const struct who_attachment *attachment)
{
    char text[PROVISIONED_NAME_BYTES];

    advice_list_row(advice, ADVICE_SEE_ATTACHMENT,
                    &(const struct advice_words){.name = resource_name(attachment->record, text)});
}

/* The driver has tried to detach the volume, and cannot. */
static void advise_stuck(struct advice_list *advice, const struct who_claim *claim,
                         const struct who_attachment *attachment)
{
    struct slice node = attachment->node, error = attachment->detach_error;
    struct slice driver = resource_attribute(attachment->record, VOLUME_ATTACHMENT_DRIVER);

    if (attachment->node_state == NODE_MISSING) {
        advice_list_add(advice,
                        "volume %.*s cannot be detached from node %.*s, which does not exist any "
                        "more: %.*s",
                        SLICE_ARG(claim->volume), SLICE_ARG(node), SLICE_ARG(error));
        advice_list_add(
            advice,
            "if the node's machine is still there, delete it, or detach the disk there. "
            "If it is gone, no retry helps: the log of the controller of driver %.*s "
            "says why it does not take that as detached, which a newer version may",
            SLICE_ARG(driver));
        see_attachment(advice, attachment);
        advice_list_add(advice, "only when the storage says that no machine has the disk, remove "
                                "the VolumeAttachment's finalizer");
        return;
    }
    advice_list_add(advice,
                    "volume %.*s cannot be detached from node %.*s; driver %.*s tries again, and "
                    "what the storage says has to be mended there: %.*s",
                    SLICE_ARG(claim->volume), SLICE_ARG(node), SLICE_ARG(driver), SLICE_ARG(error));
    if (attachment->is_out_of_service || attachment->node_state == NODE_UNREACHABLE)
        advice_list_add(advice,
                        "see whether the storage still attaches it to the machine of node %.*s, "
                        "and stop that machine at its provider (all its pods end; if it is "
                        "deleted, so does what is on its local disks)%s",
                        SLICE_ARG(node),
                        attachment->is_out_of_service
                            ? "; leave the node's taint until the volume is detached"
                            : "");
}

static void advise_attachment(struct advice_list *advice, const struct who_claim *claim,
                              const struct who_attachment *attachment)
{
    struct slice node = attachment->node;

    if (attachment->detach_error.len != 0) {
        advise_stuck(advice, claim, attachment);
        return;
    }
    if (!attachment->is_detaching && attachment->node_state == NODE_READY) {
        advise_mounted(advice, claim, attachment);
        return;
    }
    advice_list_add(advice,
                    "volume %.*s is attached to node %.*s, where no pod holds the claim: %s",
                    SLICE_ARG(claim->volume), SLICE_ARG(node), outlook_of(attachment));
    if (!attachment->is_out_of_service && attachment->node_state == NODE_UNREACHABLE)
        advise_taint(advice, node);
    advice_list_add(advice,
                    "if it stays attached, see why: the controller of driver %.*s (its "
                    "external-attacher) has to detach it",
                    SLICE_ARG(resource_attribute(attachment->record, VOLUME_ATTACHMENT_DRIVER)));
    see_attachment(advice, attachment);
    if (attachment->is_out_of_service)
        advise_untaint(advice, node);
}

void advice_of_attachments(struct advice_list *advice, const struct who_claim *claim)
{
    for (size_t i = 0; i < claim->attachment_count; i++)
        if (claim->attachments[i].is_attached && !has_holder(claim, claim->attachments[i].node))
            advise_attachment(advice, claim, &claim->attachments[i]);
}
