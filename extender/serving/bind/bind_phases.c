/* The phases of a bind that do not depend on who posts the Binding. */
#include "extender/serving/bind/bind_internal.h"
#include "extender/serving/live/evaluate.h"
#include "extender/serving/live/events.h"
#include "extender/serving/live/expiry.h"
#include "extender/serving/live/requeue.h"
#include "extender/serving/live/seen_locks.h"

enum { BIND_ATTEMPTS_MAX = 3 };

bool bind_is_refusal(const struct error *err)
{
    return err->code == ERROR_INVALID || err->code == ERROR_NOT_FOUND || err->code == ERROR_TOO_BIG;
}

int bind_read_again(const struct binding *binding, int64_t timeout_ms, struct error *err)
{
    struct object_reference references[CONFIRM_MAX] = {binding->call.request->pod};
    size_t count = binding->created == NULL;

    if (binding->deferral.undecided.name.len != 0)
        references[count++] = binding->deferral.undecided;
    if (binding->locks.replaced.len != 0)
        references[count++] = (struct object_reference){KIND_CLAIM, binding->call.request->pod.ns,
                                                        binding->locks.replaced, SLICE("")};
    for (size_t i = 0; i < binding->verdict.cause_count && count < CONFIRM_MAX; i++)
        references[count++] = binding->verdict.causes[i];
    return requests_confirm(binding->call.state->api, references, count, timeout_ms, err);
}

int bind_check_time(const struct binding *binding, struct error *err)
{
    return ms_until(binding->call.deadline_ns) >= SEND_MS_MIN
               ? 0
               : error_set(err, ERROR_TIMEOUT, "the API server is too slow: pod %.*s is not bound",
                           SLICE_ARG(binding->call.request->pod.name));
}

int bind_write_deferral(struct binding *binding, struct error *err)
{
    struct deferral *deferral = &binding->deferral;
    bool is_locked = binding->locks.claim_count != 0;

    binding->version = is_locked ? binding->locks.pod_version : SLICE("");
    if (!deferral_has_any(deferral))
        return 0;
    deferral->is_stale = is_locked && !slice_equal(binding->version, deferral->version);
    if (deferral->is_stale)
        return error_set(err, ERROR_UNAVAILABLE, "pod %.*s has changed",
                         SLICE_ARG(binding->call.request->pod.name));
    binding->version = deferral->version;
    if (bind_check_time(binding, err) < 0)
        return err->code;
    return defer_write(&binding->call, deferral, &binding->version, err);
}

/* Another try of a pod that is created has another UID. */
void bind_doubt_claims(struct binding *binding, bool is_lost)
{
    const struct object_reference *pod = &binding->call.request->pod;
    struct state *state = binding->call.state;

    SCOPED_WRITE_LOCK(&state->lock);
    uint64_t expires_ns = state_reservation_end(state, true);
    const struct reservation *reservation = reservation_find(&state->cluster, &binding->uid);
    bool keeps =
        reservation != NULL && (reservation->claim_count != 0 || reservation->shared_count != 0);
    if (keeps && binding->created == NULL)
        seen_locks_pass(state, pod);
    (is_lost ? reservation_doubt : reservation_admit)(&state->cluster, &binding->uid, expires_ns);
}

void bind_free_claims(struct binding *binding)
{
    const struct object_reference *pod = &binding->call.request->pod;
    struct state *state = binding->call.state;
    bool keeps = claim_locks_keep(&binding->locks);

    claim_locks_release(&binding->locks);
    (void)pthread_rwlock_wrlock(&state->lock);
    if (keeps) /* as after a Binding that may be applied */
        seen_locks_pass(state, pod);
    bool is_undone = reservation_undo(&state->cluster, &binding->uid);
    (void)pthread_rwlock_unlock(&state->lock);
    if (is_undone)
        requeue_changed(state->requeue, pod, state->api);
}

static void add_warning(struct bind_warnings *out, const struct policy *policy, struct slice text)
{
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].policy == policy && slice_equal(out->items[i].text, text))
            return;
    if (out->count < WARNINGS_MAX)
        out->items[out->count++] = (struct warning){.policy = policy, .text = text};
}

int bind_collect_warnings(struct bind_warnings *out, const struct verdict *verdict,
                          const struct bind_call *call, struct error *err)
{
    const struct node_filter *filter = NULL;
    struct slice node = call->request->node, reason;

    out->count = 0;
    for (size_t i = 0; i < verdict->warning_count; i++)
        add_warning(out, verdict->warnings[i].policy, verdict->warnings[i].text);
    while ((filter = policy_warn(verdict, filter, node, call->arena, &reason)) != NULL) {
        if (reason.ptr == NULL)
            return error_no_memory(err);
        add_warning(out, filter->policy, reason);
    }
    return 0;
}

void bind_report_warnings(const struct bind_warnings *warnings, const struct bind_call *call)
{
    const struct object_reference *pod = &call->request->pod;

    for (size_t i = 0; i < warnings->count; i++) {
        const struct warning *warning = &warnings->items[i];
        metrics_count_warning(&call->state->metrics, warning->policy);
        events_post(call->state->events, call->state->api, pod, "Warning", "VolumeWarning",
                    warning->text);
    }
}

/* ---- the phases ---- */

/* A look about a pod that was not known asked about no claim of it: one more does. */
static bool was_asked(const struct binding *binding)
{
    return binding->is_refreshed &&
           (binding->has_asked_causes || binding->verdict.cause_count == 0);
}

static enum phase choose_after_take(struct binding *binding, int rc)
{
    bool is_live = binding->call.state->api != NULL;

    if (rc == 0)
        return binding->is_bound || binding->is_dry_run || !is_live ? PHASE_END : PHASE_BIND;
    if (binding->to_confirm != NULL)
        return PHASE_CONFIRM;
    if (was_asked(binding) || binding->has_to_wait || !is_live) /* no look ends the wait */
        return PHASE_END;
    binding->is_refreshed = true;
    binding->has_asked_causes = binding->verdict.cause_count != 0;
    return PHASE_REFRESH;
}

/* A pod that is rejected for good does not need the reservation of its filter call. Under the lock.
 */
static bool give_back(const struct binding *binding)
{
    struct cluster *cluster = &binding->call.state->cluster;
    const struct reservation *reservation = reservation_find(cluster, &binding->uid);

    return binding->is_rejected && !binding->is_dry_run && reservation != NULL &&
           !reservation_outlasts(reservation, binding->verdict.is_by_nodes) &&
           reservation_give_back(cluster, &binding->uid);
}

static enum phase take(struct binding *binding, struct error *err)
{
    const struct object_reference *pod = &binding->call.request->pod;
    struct state *state = binding->call.state;

    expiry_run(state);
    (void)pthread_rwlock_wrlock(&state->lock);
    int rc = bind_take_claims(binding, err);
    enum phase next = choose_after_take(binding, rc);
    bool is_given_back = rc < 0 && next == PHASE_END && give_back(binding);
    (void)pthread_rwlock_unlock(&state->lock);
    if (is_given_back)
        requeue_changed(state->requeue, pod, state->api);
    if (rc == 0)
        *err = (struct error){.code = 0}; /* of a take before this one */
    if (rc == 0 && !binding->is_dry_run)
        /* the scheduler has asked about it; a requeue would change it under its own Binding */
        requeue_forget(state->requeue,
                       &(struct meta){.ns = pod->ns, .name = pod->name, .uid = pod->uid});
    if (rc == 0 && next == PHASE_END && !binding->is_dry_run)
        /* in a snapshot; none if it was bound already */
        bind_report_warnings(&binding->warnings, &binding->call);
    return next;
}

/* A look at the API server. The last one of a bind, after its Binding, has CONFIRM_MS beyond the
 * deadline. A review that ends without a decision is a failure, and with failurePolicy: Ignore, the
 * API server applies its Binding: so a review looks until its deadline, unless it is a denial also
 * without an answer. */
static int64_t patience_ms(const struct binding *binding, bool is_denial)
{
    int64_t left_ms = ms_until(binding->call.deadline_ns);
    bool is_review = binding->waiting.all != NULL;

    return left_ms < CONFIRM_MS || (is_review && !is_denial) ? left_ms : CONFIRM_MS;
}

static enum phase confirm(struct binding *binding, struct error *err)
{
    const struct kept_reference *next = binding->to_confirm;

    while (next != NULL) {
        struct object_reference references[CONFIRM_MAX];
        size_t count = 0;
        for (; next != NULL && count < CONFIRM_MAX; next = next->next)
            references[count++] = next->reference;
        if (requests_confirm(binding->call.state->api, references, count,
                             patience_ms(binding, false), err) < 0)
            return PHASE_END;
    }
    *(binding->is_of_owners ? &binding->is_owners_confirmed : &binding->is_claims_confirmed) = true;
    return PHASE_TAKE;
}

/* A review ends without the API server's word. That the cache lacks a pod or a claim proves nothing
 * then: the watch may be late, or broken. */
static enum phase end_unasked(const struct binding *binding, struct error *err)
{
    const struct bind_request *request = binding->call.request;

    if (binding->waiting.all != NULL && binding->is_unknown)
        (void)error_set(err, ERROR_UNAVAILABLE,
                        "pod %.*s/%.*s, or its claim, is not known here, and the API server could "
                        "not be asked",
                        SLICE_ARG(request->pod.ns), SLICE_ARG(request->pod.name));
    return PHASE_END;
}

/* The error stays that of the refusal, unless the pod, or its claim, is known from now on, and too
 * big to be judged. */
static enum phase refresh(struct binding *binding, struct error *err)
{
    bool is_undecided = binding->deferral.undecided.name.len != 0;
    bool is_denial = !binding->is_unknown && (is_undecided || bind_is_refusal(err));
    bool is_bind = binding->waiting.all == NULL;
    struct error unknown = {0};
    int rc =
        bind_read_again(binding, is_bind ? CONFIRM_MS : patience_ms(binding, is_denial), &unknown);

    if (rc != ERROR_TOO_BIG || !binding->is_unknown)
        return rc < 0 ? end_unasked(binding, err) : PHASE_TAKE;
    *err = unknown;
    return PHASE_END;
}

enum phase bind_try_again(struct binding *binding)
{
    if (++binding->attempts == BIND_ATTEMPTS_MAX || ms_until(binding->call.deadline_ns) == 0)
        return PHASE_END;
    binding->is_refreshed = binding->has_asked_causes = false;
    binding->is_claims_confirmed = binding->is_owners_confirmed = false;
    return PHASE_REFRESH;
}

bool bind_may_wait(struct binding *binding)
{
    if (binding->waiting.all == NULL || binding->is_waiting)
        return true;
    binding->is_waiting = share_take(&binding->waiting, REVIEWS_WAITING_MAX, REVIEWS_SHARE);
    return binding->is_waiting;
}

int bind_too_many(struct error *err)
{
    return error_set(
        err, ERROR_UNAVAILABLE,
        "over %d reviews wait for the API server, or as many as the namespace may have",
        REVIEWS_WAITING_MAX);
}

void bind_done_waiting(struct binding *binding)
{
    if (binding->is_waiting)
        share_give(&binding->waiting);
    binding->is_waiting = false;
}

void bind_run(struct binding *binding, phase_function *bind, struct error *err)
{
    phase_function *const phases[PHASE_END] = {
        [PHASE_TAKE] = take,
        [PHASE_CONFIRM] = confirm,
        [PHASE_REFRESH] = refresh,
        [PHASE_BIND] = bind,
    };
    enum phase phase = PHASE_TAKE;

    binding->locks.call = &binding->call;
    while (phase != PHASE_END) {
        bool asks = phase == PHASE_CONFIRM || phase == PHASE_REFRESH;
        if (!asks || bind_may_wait(binding)) {
            phase = phases[phase](binding, err);
            continue;
        }
        if (phase == PHASE_CONFIRM)
            (void)bind_too_many(err);
        phase = end_unasked(binding, err);
    }
    if (binding->is_conflict && !binding->is_dry_run)
        atomic_fetch_add(&binding->call.state->metrics.bind_conflicts, 1);
}
