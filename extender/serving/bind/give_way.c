/*
 * A pod whose Bindings are let pass again and again, and never applied: another webhook
 * or a policy denies each of them, or a webhook cannot be called (status 500, which may also be the
 * answer to a Binding that is applied later). Each one may be applied until BINDING_DEAD_MS, so its
 * claims are kept until then; and the next one begins that time again. If another pod waits for one
 * of these claims, this is not to last: after GIVES_WAY_AFTER_MS
 * (extender/serving/live/seen_locks.h), the pod is refused, what is kept for it runs out, and for
 * some time the others are not in its way.
 *
 * A pod waits that is pending and has no scheduling gate. Whether it could run is not known here.
 */
#include "extender/serving/bind/bind_internal.h"
#include "extender/serving/live/requeue.h"
#include "extender/serving/live/seen_locks.h"
#include "policy/exclusive.h"
#include "policy/policy.h"

/* The pod's claims. */
struct wanted {
    struct slice ns;
    struct wanted_claim {
        struct slice name;
        /* From every other pod, or from those on other nodes. If not, only a pod that may defer it
         * waits for it. */
        bool is_kept;
    } * claims;
    size_t count;
};

/* Lists those that something else names, too: perhaps a pod. A pod that the cache does not have, or
 * that is bound, wants nothing. Under the lock. Errors: ERROR_NO_MEMORY. */
static int list_wanted(const struct bind_call *call, struct wanted *out, struct error *err)
{
    struct view view = state_view(call->state);
    const struct object_reference *reference = &call->request->pod;
    const struct pod *pod = cluster_find_same_pod(view.cluster, reference);
    struct pod_object object;

    *out = (struct wanted){.ns = reference->ns};
    if (pod == NULL || pod_is_assigned(pod))
        return 0;
    if (!cluster_describe_pod(pod, call->arena, &object))
        return error_no_memory(err);
    out->claims = arena_alloc(call->arena, object.claim_count * sizeof *out->claims);
    if (out->claims == NULL)
        return error_no_memory(err);
    for (size_t i = 0; i < object.claim_count; i++) {
        const struct claim *claim =
            cluster_find_claim(view.cluster, out->ns, object.claims[i].name);
        if (claim == NULL || claim->named < 2)
            continue;
        struct wanted_claim *wanted = &out->claims[out->count++];
        wanted->name = arena_copy(call->arena, claim_name(claim));
        wanted->is_kept = exclusive_is_needed(&view, &object, i, claim) ||
                          (view.config->read_write_once.mode == MODE_ENFORCE &&
                           read_write_once_judges(&view, &object, i, claim));
        if (wanted->name.ptr == NULL)
            return error_no_memory(err);
    }
    return 0;
}

/* Whether the pod may need a claim for itself that others share: its runtime mounts it, because its
 * user has written that, or may because of an entry. */
static bool may_defer(const struct pod *pod, const struct use *use)
{
    return use->is_deferred || (pod_mounts(pod) != NULL && pod_mounts(pod)->runtime_class.len != 0);
}

static bool wants(const struct wanted *wanted, const struct pod *pod)
{
    for (unsigned i = 0; i < pod->use_count; i++)
        for (size_t j = 0; wanted->claims != NULL && j < wanted->count; j++)
            if ((wanted->claims[j].is_kept || may_defer(pod, &pod->uses[i])) &&
                slice_equal(claim_name(claim_at(pod->uses[i].claim)), wanted->claims[j].name))
                return true;
    return false;
}

static bool waits(const struct pod *pod)
{
    return pod->use_count != 0 && !pod_is_assigned(pod) && !pod->is_terminal &&
           !pod->is_terminating && !pod->is_gated;
}

/* Looks for a pod that waits on the walk's next page. False: there was no more page. */
static bool look(const struct bind_call *call, const struct wanted *wanted, struct table_walk *walk,
                 struct slice *waiting)
{
    struct state *state = call->state;

    SCOPED_READ_LOCK(&state->lock);
    bool has_more = table_next_page(&state->cluster.pods, walk);
    for (; has_more && waiting->len == 0 && walk->next < walk->count; walk->next++) {
        const struct pod *pod = (const struct pod *)(const void *)walk->records[walk->next];
        if (waits(pod) && slice_equal(name_text(pod->ns), wanted->ns) &&
            !uid_is(&pod->uid, call->request->pod.uid) && wants(wanted, pod))
            *waiting = arena_copy(call->arena, pod_name(pod));
    }
    return has_more;
}

/* The name of a pod that waits for one of the claims; empty: none does. Each pod is checked, but
 * only for one that has to give way, and a page at a time. */
static struct slice find_waiting(const struct bind_call *call, const struct wanted *wanted)
{
    struct table_walk walk = {.at = 0};
    struct slice waiting = {"", 0};

    while (wanted->count != 0 && waiting.len == 0 && look(call, wanted, &walk, &waiting))
        continue;
    return waiting;
}

/* What only a filter call has reserved is free at once. */
static void give_back(const struct bind_call *call)
{
    const struct object_reference *pod = &call->request->pod;
    struct state *state = call->state;

    (void)pthread_rwlock_wrlock(&state->lock);
    const struct reservation *reservation = reservation_of(&state->cluster, pod);
    bool is_free = reservation != NULL && !reservation_binds(reservation) &&
                   reservation_give_back(&state->cluster, &reservation->uid);
    (void)pthread_rwlock_unlock(&state->lock);
    if (is_free)
        requeue_changed(state->requeue, pod, state->api);
}

int give_way_check(const struct bind_call *call, bool is_dry_run, struct error *err)
{
    const struct object_reference *pod = &call->request->pod;
    struct state *state = call->state;
    struct wanted wanted = {.count = 0};
    int rc = 0;

    if (state->api == NULL)
        return 0;
    (void)pthread_rwlock_rdlock(&state->lock);
    uint64_t left_ms = seen_locks_gives_way_ms(state, pod);
    if (left_ms != 0)
        rc = list_wanted(call, &wanted, err);
    (void)pthread_rwlock_unlock(&state->lock);
    struct slice waiting = rc == 0 ? find_waiting(call, &wanted) : SLICE("");
    if (rc < 0 || waiting.len == 0)
        return rc;
    if (!is_dry_run)
        give_back(call);
    return error_set(err, ERROR_INVALID,
                     "no Binding of pod %.*s/%.*s was applied in %d s: another webhook, or a "
                     "policy, seems to refuse them. Its claims are left to other pods that wait "
                     "for them, such as pod %.*s/%.*s, for %u s",
                     SLICE_ARG(pod->ns), SLICE_ARG(pod->name), GIVES_WAY_AFTER_MS / 1000,
                     SLICE_ARG(pod->ns), SLICE_ARG(waiting), (unsigned)(left_ms / 1000));
}
