/* What makes a holder give the claim up: that depends on its controller. */
#include <stdlib.h>

#include "extender/inquiry/who_advice.h"

static bool is_same_owner(const struct owner *a, const struct owner *b)
{
    return slice_equal(a->kind, b->kind) && slice_equal(a->name, b->name);
}

/* ---- holder and waiter have the same controller ---- */

/* A pod of the same controller that waits for the holder; NULL: none. */
static const struct who_pod *find_sibling(const struct scaling *scaling)
{
    const struct who_claim *claim = scaling->claim;

    for (size_t i = 0; i < claim->waiter_count; i++)
        if (is_same_owner(&claim->waiters[i].owner, &scaling->holder->owner))
            return &claim->waiters[i];
    return NULL;
}

static size_t count_siblings(const struct scaling *scaling)
{
    const struct who_claim *claim = scaling->claim;
    size_t count = 0;

    for (size_t i = 0; i < claim->holder_count; i++)
        count += is_same_owner(&claim->holders[i].owner, &scaling->holder->owner);
    return count;
}

static const char *access_text(const struct scaling *scaling)
{
    return scaling->claim->access == ACCESS_ONE_POD ? "one pod" : "one node";
}

/* CG102, and CG103 of a ReadWriteOnce claim. */
static void advise_rollout(const struct scaling *scaling, const struct who_pod *waiter)
{
    const struct pod *old = scaling->holder->pod;
    struct slice ns = name_slice(old->ns), name = scaling->holder->owner.name;

    advice_add(scaling->advice,
               json_sprintf("the rollout of Deployment %.*s waits for itself (%s): new pod "
                            "%.*s/%.*s waits for the claim of old pod %.*s/%.*s, which goes only "
                            "when the new one is ready%s",
                            SLICE_ARG(name),
                            scaling->claim->access == ACCESS_ONE_POD ? "CG102" : "CG103",
                            POD_ARG(waiter->pod), POD_ARG(old),
                            count_siblings(scaling) == 1 ? ". For this time, delete only the old "
                                                           "pod"
                                                         : ""));
    if (count_siblings(scaling) == 1) {
        advice_command(scaling->advice, "kubectl delete pod -n % %", POD_WORDS(old));
        advice_warn(scaling->advice,
                    json_sprintf("it stops that pod; the old ReplicaSet may create another one "
                                 "that takes the claim before pod %.*s/%.*s: then take the next "
                                 "advice",
                                 POD_ARG(waiter->pod)));
        advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder);
    }
    advice_add(scaling->advice, json_string("for good: strategy Recreate stops the old pods before "
                                            "it starts new ones; it ends this rollout, too"));
    advice_command(scaling->advice,
                   "kubectl patch deployment -n % % --type merge -p "
                   "'{\"spec\":{\"strategy\":{\"type\":\"Recreate\",\"rollingUpdate\":null}}}'",
                   (const struct slice[]){ns, name});
    advice_warn(scaling->advice, json_sprintf("from now on, each rollout stops all old pods of "
                                              "Deployment %.*s before a new one starts",
                                              SLICE_ARG(name)));
}

/* CG104: more pods than may use the claim. */
static void advise_fewer(const struct scaling *scaling)
{
    const struct owner *owner = &scaling->holder->owner;
    bool is_for_one_pod = scaling->claim->access == ACCESS_ONE_POD;
    bool is_stateful = owner_is_kind(owner, SLICE("StatefulSet"));

    advice_add(scaling->advice,
               json_sprintf("several pods of %.*s %.*s name this claim, which is for %s at a time "
                            "(CG104): %s",
                            OWNER_ARG(owner), access_text(scaling),
                            is_stateful      ? "give each a claim of its own, by a "
                                               "volumeClaimTemplate"
                            : is_for_one_pod ? "it needs no more than one pod, or claims of their "
                                               "own (a StatefulSet)"
                                             : "they have to run on one node, or need claims of "
                                               "their own (a StatefulSet)"));
    if (is_stateful || !is_for_one_pod || !scaling_is_known(scaling) ||
        scaling->workload->details.replicas < 2)
        return;
    scaling_command(scaling, 1);
    advice_warn(scaling->advice, json_sprintf("it removes pods of %.*s %.*s, first those that wait",
                                              OWNER_ARG(owner)));
}

static void advise_workload(const struct scaling *scaling)
{
    const struct who_pod *holder = scaling->holder, *sibling = find_sibling(scaling);
    bool is_recreate = scaling_is_known(scaling) &&
                       slice_equal(scaling->workload->details.strategy, SLICE("Recreate"));

    if (sibling == NULL)
        advice_to_scale(scaling);
    else if (!owner_is_kind(&holder->owner, SLICE("Deployment")) ||
             slice_equal(sibling->details.template_hash, holder->details.template_hash))
        advise_fewer(scaling);
    else if (is_recreate)
        advice_add(scaling->advice,
                   json_sprintf("Deployment %.*s has the strategy Recreate: it removes old pod "
                                "%.*s/%.*s for new pod %.*s/%.*s",
                                SLICE_ARG(holder->owner.name), POD_ARG(holder->pod),
                                POD_ARG(sibling->pod)));
    else
        advise_rollout(scaling, sibling);
}

/* ---- any controller ---- */

/* Fills in what is known of the controller. False: it cannot be scaled, or there is no memory. */
static bool find_workload(struct scaling *out, struct advice *advice, const struct who_claim *claim,
                          const struct who_pod *holder)
{
    const struct owner *owner = &holder->owner;

    *out = (struct scaling){advice, claim, holder, workload_resource(owner->kind), NULL};
    if (out->resource == NULL)
        return false;
    out->workload = workloads_find(claim->inquiry->workloads, owner->kind,
                                   name_slice(holder->pod->ns), owner->name);
    advice->rc |= out->workload == NULL ? -1 : 0;
    return out->workload != NULL;
}

static void advise_alone(struct advice *advice, const struct who_claim *claim,
                         const struct who_pod *holder)
{
    if (!holder->is_owner_known) {
        advice_add(advice, json_sprintf("pod %.*s/%.*s finishes, or is deleted. Whether a "
                                        "controller creates it again is not known from this "
                                        "input: see it first",
                                        POD_ARG(holder->pod)));
        advice_command(advice, "kubectl get pod -n % % -o jsonpath='{.metadata.ownerReferences}'",
                       POD_WORDS(holder->pod));
    } else {
        advice_add(advice,
                   json_sprintf("pod %.*s/%.*s finishes, or is deleted", POD_ARG(holder->pod)));
        advice_command(advice, "kubectl delete pod -n % %", POD_WORDS(holder->pod));
        advice_warn(advice, json_string("no controller creates the pod again"));
    }
    advice_warn_of_loss(advice, claim, holder);
}

static void advise_job(struct advice *advice, const struct who_claim *claim,
                       const struct who_pod *holder)
{
    const struct slice words[] = {name_slice(holder->pod->ns), holder->owner.name};

    advice_add(advice,
               json_sprintf("pod %.*s/%.*s finishes, or Job %.*s is deleted (for a pod that "
                            "is only deleted, it creates another one)",
                            POD_ARG(holder->pod), SLICE_ARG(holder->owner.name)));
    advice_command(advice, "kubectl delete job -n % %", words);
    advice_warn(advice, json_string("it stops all pods of the Job, and nothing runs it again"));
    advice_warn_of_loss(advice, claim, holder);
}

void advice_by_owner(struct advice *advice, const struct who_claim *claim,
                     const struct who_pod *holder)
{
    const struct owner *owner = &holder->owner;
    struct scaling scaling;

    if (owner->name.len == 0) {
        advise_alone(advice, claim, holder);
    } else if (find_workload(&scaling, advice, claim, holder)) {
        advise_workload(&scaling);
    } else if (owner_is_kind(owner, SLICE("Job"))) {
        advise_job(advice, claim, holder);
    } else if (owner_is_kind(owner, SLICE("Node"))) {
        advice_add(advice, json_sprintf("pod %.*s/%.*s is static: remove its manifest on node %.*s",
                                        POD_ARG(holder->pod), SLICE_ARG(pod_node(holder->pod))));
    } else {
        advice_add(advice,
                   json_sprintf("pod %.*s/%.*s finishes, or its controller %.*s %.*s gives it up "
                                "(for a pod that is only deleted, it may create another one)",
                                POD_ARG(holder->pod), OWNER_ARG(owner)));
        advice_warn_of_loss(advice, claim, holder);
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
    if (!owner_is_kind(&scaling->holder->owner, SLICE("StatefulSet")))
        return details->replicas != 0;
    return scaling_ordinal(scaling) < details->first_ordinal + details->replicas;
}

void advice_of_return(struct advice *advice, const struct who_claim *claim,
                      const struct who_pod *holder)
{
    const struct who_pod *waiter = claim->waiter_count == 0 ? NULL : &claim->waiters[0];
    struct scaling scaling;

    if (waiter == NULL || claim->claim->is_deleting || holder->owner.name.len == 0 ||
        !find_workload(&scaling, advice, claim, holder) || find_sibling(&scaling) != NULL ||
        !comes_back(&scaling))
        return;
    advice_add(advice, json_sprintf("%.*s %.*s %s this pod again, which then competes with pod "
                                    "%.*s/%.*s for the claim",
                                    OWNER_ARG(&holder->owner),
                                    scaling_is_known(&scaling) ? "creates" : "may create",
                                    POD_ARG(waiter->pod)));
    advice_to_scale(&scaling);
}
