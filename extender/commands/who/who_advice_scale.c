/* Scaling a controller, or suspending it, so that a pod of it ends and is not created again. */
#include "extender/commands/who/who_advice.h"

enum { DIGITS_MAX = 9, LISTED_CLAIMS_MAX = 10, LIST_BYTES_MAX = 16 * 1024, NAME_BYTES_SHOWN = 253 };

int64_t scaling_ordinal(const struct scaling *scaling)
{
    struct slice name = pod_name(scaling->holder->pod), set = scaling->holder->owner.name;
    size_t begin = set.len + 1;
    int64_t ordinal = 0;

    if (name.len <= begin || name.len > begin + DIGITS_MAX ||
        !slice_equal((struct slice){name.ptr, set.len}, set) || name.ptr[set.len] != '-')
        return -1;
    for (size_t i = begin; i < name.len; i++) {
        if (name.ptr[i] < '0' || name.ptr[i] > '9')
            return -1;
        ordinal = ordinal * 10 + (name.ptr[i] - '0');
    }
    return ordinal;
}

void scaling_command(const struct scaling *scaling, int64_t replicas, struct slice stops)
{
    struct arena *arena = scaling->claim->arena;
    struct slice to = arena_printf(arena, "%lld", (long long)replicas);
    struct slice from = arena_printf(arena, "%lld", (long long)scaling->workload->details.replicas);

    if (to.ptr == NULL || from.ptr == NULL || stops.ptr == NULL)
        scaling->advice->has_failed = true;
    else
        advice_list_row(scaling->advice, ADVICE_SCALE,
                        &(const struct advice_words){
                            .ns = name_text(scaling->holder->pod->ns),
                            .kind = scaling->resource,
                            .name = scaling->holder->owner.name,
                            .count = to,
                            .before = from,
                            .what = stops,
                        });
}

/* ---- what would scale it back ---- */

static void see_workload(const struct scaling *scaling)
{
    advice_list_row(scaling->advice, ADVICE_SEE_WORKLOAD,
                    &(const struct advice_words){.ns = name_text(scaling->holder->pod->ns),
                                                 .kind = scaling->resource,
                                                 .name = scaling->holder->owner.name});
}

bool advice_of_manager(const struct scaling *scaling)
{
    const struct owner *manager = &scaling->workload->details.controller;

    if (!scaling_is_known(scaling) || manager->name.len == 0)
        return false;
    if (owner_is_kind(manager, SLICE("PipelineRun"))) { /* its spec cannot be changed */
        advice_list_add(
            scaling->advice,
            "%.*s %.*s is of PipelineRun %.*s, and ends with it: cancel that, and run it again "
            "with all its workspaces on one node (Tekton's coschedule: pipelineruns), or with one "
            "workspace in each task",
            OWNER_ARG(&scaling->holder->owner), SLICE_ARG(manager->name));
        return true;
    }
    advice_list_add(
        scaling->advice,
        "%.*s %.*s is managed by %.*s %.*s, which undoes what is changed there: change %.*s "
        "%.*s, so that pod %.*s/%.*s ends",
        OWNER_ARG(&scaling->holder->owner), OWNER_ARG(manager), OWNER_ARG(manager),
        POD_ARG(scaling->holder->pod));
    see_workload(scaling);
    advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder->pod);
    return true;
}

struct slice scaling_source(const struct scaling *scaling)
{
    const struct workload_details *details = &scaling->workload->details;
    struct arena *arena = scaling->claim->arena;

    return details->argo.len != 0 ? arena_printf(arena, "Argo CD (%.*s)", SLICE_ARG(details->argo))
           : details->flux.len != 0 ? arena_printf(arena, "Flux (%.*s)", SLICE_ARG(details->flux))
                                    : SLICE("");
}

/* Argo CD and Flux write again what is in their repository. */
static void warn_of_sync(const struct scaling *scaling)
{
    const struct workload_details *details = &scaling->workload->details;

    if (details->argo.len != 0)
        advice_list_warn(scaling->advice, "Argo CD (%.*s) may undo it: pause its sync first",
                         SLICE_ARG(details->argo));
    if (details->flux.len != 0)
        advice_list_warn(scaling->advice, "Flux (%.*s) may undo it: suspend it first",
                         SLICE_ARG(details->flux));
}

void advice_warn_of_manager(const struct scaling *scaling)
{
    struct slice manager = scaling->workload->details.manager;

    if (manager.len != 0)
        advice_list_warn(scaling->advice,
                         "%.*s (app.kubernetes.io/managed-by) may undo it: change it there, too",
                         SLICE_ARG(manager));
}

/* How far the controller can be scaled down, at most to the number, so that it stays there: a
 * HorizontalPodAutoscaler only leaves 0 alone. Negative: not at all. */
static int64_t lasting_replicas(const struct scaling *scaling, int64_t replicas,
                                const struct autoscaler_details **autoscaler, bool *is_known)
{
    const struct owner *owner = &scaling->holder->owner;

    *autoscaler = workloads_autoscaler(scaling->claim->inquiry->workloads,
                                       name_text(scaling->holder->pod->ns), owner->kind,
                                       owner->name, is_known);
    if (*autoscaler == NULL)
        return replicas;
    return (*autoscaler)->least == 0 || (*autoscaler)->controller.name.len != 0 ? -1 : 0;
}

/* What may scale it up again from that number, besides what was found. */
void advice_warn_of_undoing(const struct scaling *scaling, int64_t replicas)
{
    const struct autoscaler_details *autoscaler;
    bool is_known = true;

    if (replicas != 0)
        (void)lasting_replicas(scaling, replicas, &autoscaler, &is_known);
    if (!is_known)
        advice_list_warn(scaling->advice, "if a HorizontalPodAutoscaler scales it, only 0 lasts");
    warn_of_sync(scaling);
}

bool scaling_lasts(const struct scaling *scaling, int64_t replicas)
{
    const struct autoscaler_details *autoscaler;
    bool is_known;

    return scaling->workload->details.controller.name.len == 0 &&
           lasting_replicas(scaling, replicas, &autoscaler, &is_known) == replicas;
}

/* One whose minReplicas is 0 scales up from 0, too, and so may what manages it (KEDA). */
static void advise_autoscaler(const struct scaling *scaling,
                              const struct autoscaler_details *autoscaler)
{
    const struct owner *manager = &autoscaler->controller;
    bool is_managed = manager->name.len != 0;

    advice_list_add(scaling->advice,
                    "HorizontalPodAutoscaler %.*s%s%.*s%s%.*s scales %.*s %.*s, also from 0: %s it "
                    "before you scale that down, or pod %.*s/%.*s comes back",
                    SLICE_ARG(autoscaler->name), is_managed ? " of " : "", SLICE_ARG(manager->kind),
                    is_managed ? " " : "", SLICE_ARG(manager->name),
                    OWNER_ARG(&scaling->holder->owner), is_managed ? "pause" : "delete",
                    POD_ARG(scaling->holder->pod));
    see_workload(scaling);
    advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder->pod);
}

void advice_of_autoscaler(const struct scaling *scaling)
{
    const struct autoscaler_details *autoscaler;
    bool is_known;

    (void)lasting_replicas(scaling, 1, &autoscaler, &is_known);
    if (autoscaler != NULL)
        advice_list_add(scaling->advice,
                        "HorizontalPodAutoscaler %.*s scales it: set its %smaxReplicas to 1 first",
                        SLICE_ARG(autoscaler->name),
                        autoscaler->least > 1 ? "minReplicas and " : "");
}

/* ---- a controller that is not known ---- */

/* Nothing that may destroy something is proposed blindly. */
static void advise_look(const struct scaling *scaling)
{
    const struct owner *owner = &scaling->holder->owner;
    bool is_stateful = owner_is_kind(owner, SLICE("StatefulSet"));

    advice_list_add(scaling->advice,
                    "%.*s %.*s has to be %s, since a pod that is only deleted comes back. How "
                    "many pods that stops%s is not known from this input: see it first",
                    OWNER_ARG(owner), workload_scales(owner->kind) ? "scaled down" : "suspended",
                    is_stateful ? ", and whether it deletes their claims "
                                  "(persistentVolumeClaimRetentionPolicy.whenScaled),"
                                : "");
    see_workload(scaling);
    advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder->pod);
}

/* ---- StatefulSet ---- */

/* No name that the API server takes is longer. */
static size_t shown_len(struct slice name)
{
    return name.len < NAME_BYTES_SHOWN ? name.len : NAME_BYTES_SHOWN;
}

/* The claims of the pods first to last, of which a few are listed. */
static struct slice list_claims(const struct scaling *scaling, int64_t first, int64_t last)
{
    const struct pull_items *items = &scaling->workload->details.claim_templates;
    const struct claim_template *templates = items->items;
    struct slice set = scaling->holder->owner.name;
    struct buf list;
    int listed = 0;

    buf_init(&list, LIST_BYTES_MAX);
    for (int64_t ordinal = first; ordinal <= last && listed <= LISTED_CLAIMS_MAX; ordinal++)
        for (size_t i = 0; i < items->count && listed <= LISTED_CLAIMS_MAX; i++)
            if (++listed > LISTED_CLAIMS_MAX)
                buf_put(&list, SLICE(", ..."));
            else
                buf_printf(&list, "%s%.*s-%.*s-%lld", listed == 1 ? "" : ", ",
                           (int)shown_len(templates[i].name), templates[i].name.ptr,
                           (int)shown_len(set), set.ptr, (long long)ordinal);
    struct slice text =
        list.failed ? (struct slice){NULL, 0} : arena_copy(scaling->claim->arena, buf_slice(&list));
    buf_dispose(&list);
    return text;
}

/* With whenScaled: Delete, it would destroy claims. */
static void advise_retention(const struct scaling *scaling, int64_t first, int64_t last)
{
    struct slice ns = name_text(scaling->holder->pod->ns), name = scaling->holder->owner.name;
    struct slice claims = list_claims(scaling, first, last);

    advice_list_add(
        scaling->advice,
        "first keep the claims: as StatefulSet %.*s has whenScaled: Delete, to scale it "
        "deletes %.*s",
        SLICE_ARG(name), SLICE_ARG(claims));
    scaling->advice->has_failed = scaling->advice->has_failed || claims.ptr == NULL;
    advice_list_row(scaling->advice, ADVICE_KEEP_CLAIMS,
                    &(const struct advice_words){.ns = ns, .name = name});
    warn_of_sync(scaling);
}

/* The pods from `first` on are scaled away. */
static void advise_fewer_ordinals(const struct scaling *scaling, int64_t first, int64_t last,
                                  const struct autoscaler_details *autoscaler)
{
    const struct workload_details *set = &scaling->workload->details;
    struct slice name = scaling->holder->owner.name;
    int64_t rest = first - set->first_ordinal;
    bool destroys =
        slice_equal(set->when_scaled, SLICE("Delete")) && set->claim_templates.count != 0;

    if (destroys)
        advise_retention(scaling, first, last);
    advice_list_add(
        scaling->advice,
        "scale StatefulSet %.*s from %lld to %lld (a pod that is only deleted comes back%s%.*s%s)",
        SLICE_ARG(name), (long long)set->replicas, (long long)rest,
        autoscaler == NULL ? "" : "; HorizontalPodAutoscaler ",
        SLICE_ARG(autoscaler == NULL ? SLICE("") : autoscaler->name),
        autoscaler == NULL ? "" : " lets it stay at 0, and nowhere else");
    scaling_command(
        scaling, rest,
        first == last
            ? arena_printf(scaling->claim->arena, "pod %.*s-%lld", SLICE_ARG(name), (long long)last)
            : arena_printf(scaling->claim->arena, "pods %.*s-%lld to %.*s-%lld", SLICE_ARG(name),
                           (long long)first, SLICE_ARG(name), (long long)last));
    if (destroys)
        advice_list_warn(scaling->advice,
                         "without the command above, it deletes the claims of these pods");
    advice_warn_of_undoing(scaling, rest);
    advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder->pod);
}

/* Of all its pods that hold the claim: one command ends them all. */
static int64_t lowest_ordinal(const struct scaling *scaling)
{
    int64_t lowest = scaling_ordinal(scaling);

    for (size_t i = 0; i < scaling->claim->holder_count; i++) {
        struct scaling other = *scaling;
        other.holder = &scaling->claim->holders[i];
        bool is_same = owner_is_same(&other.holder->owner, &scaling->holder->owner);
        int64_t ordinal = is_same ? scaling_ordinal(&other) : -1;
        lowest = ordinal >= scaling->workload->details.first_ordinal && ordinal < lowest ? ordinal
                                                                                         : lowest;
    }
    return lowest;
}

static void advise_stateful(const struct scaling *scaling)
{
    const struct workload_details *set = &scaling->workload->details;
    const struct autoscaler_details *autoscaler;
    int64_t ordinal = lowest_ordinal(scaling), last = set->first_ordinal + set->replicas - 1;
    bool is_known;

    if (ordinal < set->first_ordinal || ordinal > last) {
        advice_list_add(scaling->advice,
                        "StatefulSet %.*s is scaled to %lld: it removes pod %.*s/%.*s",
                        SLICE_ARG(scaling->holder->owner.name), (long long)set->replicas,
                        POD_ARG(scaling->holder->pod));
        advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder->pod);
        return;
    }
    int64_t rest = lasting_replicas(scaling, ordinal - set->first_ordinal, &autoscaler, &is_known);
    if (rest < 0)
        advise_autoscaler(scaling, autoscaler);
    else
        advise_fewer_ordinals(scaling, set->first_ordinal + rest, last, autoscaler);
}

/* ---- Deployment, ReplicaSet, ReplicationController ---- */

static void advise_stateless(const struct scaling *scaling)
{
    const struct owner *owner = &scaling->holder->owner;
    const struct autoscaler_details *autoscaler;
    int64_t replicas = scaling->workload->details.replicas;
    bool is_known;

    if (replicas == 0) {
        advice_list_add(scaling->advice, "%.*s %.*s is scaled to 0: it removes pod %.*s/%.*s",
                        OWNER_ARG(owner), POD_ARG(scaling->holder->pod));
        advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder->pod);
        return;
    }
    if (lasting_replicas(scaling, 0, &autoscaler, &is_known) < 0) {
        advise_autoscaler(scaling, autoscaler);
        return;
    }
    advice_list_add(scaling->advice,
                    "scale %.*s %.*s from %lld to 0 (a pod that is only deleted comes back)",
                    OWNER_ARG(owner), (long long)replicas);
    scaling_command(scaling, 0,
                    arena_printf(scaling->claim->arena, "all pods of %.*s %.*s (%lld)",
                                 OWNER_ARG(owner), (long long)replicas));
    warn_of_sync(scaling);
    advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder->pod);
}

/* ---- Job ---- */

/* Whether a pod that waits, the one that is asked about if there is one, is of a later run of the
 * holder's CronJob. */
static bool is_for_next_run(const struct scaling *scaling, struct slice cron_job)
{
    const struct who_claim *claim = scaling->claim;

    for (size_t i = 0; i < claim->waiter_count; i++)
        if ((claim->asked == NULL || claim->asked == claim->waiters[i].pod) &&
            !owner_is_same(&claim->waiters[i].owner, &scaling->holder->owner) &&
            who_is_of(claim->inquiry, &claim->waiters[i], KIND_CRON_JOB, cron_job))
            return true;
    return false;
}

static void advise_cron_job(const struct scaling *scaling)
{
    struct slice name = scaling->workload->details.controller.name;

    advice_list_add(scaling->advice, "first suspend CronJob %.*s, so that it creates no other Job",
                    SLICE_ARG(name));
    advice_list_row(
        scaling->advice, ADVICE_SUSPEND_CRON_JOB,
        &(const struct advice_words){.ns = name_text(scaling->holder->pod->ns), .name = name});
}

/* Suspends a Job, and the CronJob that it is of. */
static void advise_suspension(const struct scaling *scaling)
{
    const struct workload_details *job = &scaling->workload->details;
    struct slice ns = name_text(scaling->holder->pod->ns), name = scaling->holder->owner.name;
    bool is_of_cron_job = owner_is_kind(&job->controller, SLICE("CronJob"));
    bool are_runs = is_of_cron_job && is_for_next_run(scaling, job->controller.name);

    if (job->is_suspended) {
        advice_list_add(scaling->advice, "Job %.*s is suspended: it removes pod %.*s/%.*s",
                        SLICE_ARG(name), POD_ARG(scaling->holder->pod));
        advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder->pod);
        return;
    }
    if (is_of_cron_job && !are_runs)
        advise_cron_job(scaling);
    else if (!is_of_cron_job && advice_of_manager(scaling))
        return;
    advice_list_add(scaling->advice,
                    "%sJob %.*s%s finishes, or suspend it (a pod that is only deleted comes "
                    "back)",
                    are_runs         ? "wait until "
                    : is_of_cron_job ? "then "
                                     : "",
                    SLICE_ARG(name), are_runs ? ", the earlier run," : "");
    advice_list_row(scaling->advice, ADVICE_SUSPEND_JOB,
                    &(const struct advice_words){.ns = ns, .name = name});
    warn_of_sync(scaling);
    advice_warn_of_loss(scaling->advice, scaling->claim, scaling->holder->pod);
    if (are_runs)
        advice_list_add(scaling->advice,
                        "for good: concurrencyPolicy: Forbid in CronJob %.*s, whose runs overlap",
                        SLICE_ARG(job->controller.name));
}

/* ---- any of them ---- */

/* Its Deployment may have been deleted without its ReplicaSet, which then creates pods as before.
 */
static void advise_orphans(const struct scaling *scaling)
{
    const struct owner *owner = &scaling->holder->owner;
    struct slice set = arena_printf(scaling->claim->arena, "%.*s-%.*s", SLICE_ARG(owner->name),
                                    SLICE_ARG(scaling->holder->details.template_hash));

    advice_list_add(
        scaling->advice,
        "%.*s %.*s does not exist any more: if its ReplicaSet does, that has to be scaled "
        "down; else kube-controller-manager deletes pod %.*s/%.*s",
        OWNER_ARG(owner), POD_ARG(scaling->holder->pod));
    scaling->advice->has_failed = scaling->advice->has_failed || set.ptr == NULL;
    advice_list_row(scaling->advice, ADVICE_SEE_WORKLOAD,
                    &(const struct advice_words){.ns = name_text(scaling->holder->pod->ns),
                                                 .kind = SLICE("replicaset"),
                                                 .name = set});
}

void advice_to_scale(const struct scaling *scaling)
{
    const struct owner *owner = &scaling->holder->owner;

    if (scaling->workload->state == WORKLOAD_GONE &&
        scaling->holder->details.template_hash.len != 0)
        advise_orphans(scaling);
    else if (scaling->workload->state == WORKLOAD_GONE)
        advice_list_add(
            scaling->advice,
            "%.*s %.*s does not exist any more: kube-controller-manager deletes pod %.*s/%.*s",
            OWNER_ARG(owner), POD_ARG(scaling->holder->pod));
    else if (!scaling_is_known(scaling))
        advise_look(scaling);
    else if (owner_is_kind(owner, SLICE("Job")))
        advise_suspension(scaling);
    else if (advice_of_manager(scaling))
        return;
    else if (owner_is_kind(owner, SLICE("StatefulSet")))
        advise_stateful(scaling);
    else
        advise_stateless(scaling);
}
