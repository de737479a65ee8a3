#include "extender/bind/bind.h"

#include "config/base/log.h"
#include "extender/bind/bind_internal.h"
#include "extender/bind/defer_write.h"
#include "extender/live/evaluate.h"
#include "extender/live/expiry.h"
#include "extender/live/requeue.h"

enum { BIND_ATTEMPTS_MAX = 3, BINDING_BYTES_MAX = 16 * 1024 };

/* Each phase of a bind returns the next one. */
enum phase {
    PHASE_TAKE,    /* decide, and take the claims, in the cache */
    PHASE_CONFIRM, /* ask the API server about the claims that the pod shares */
    PHASE_REFRESH, /* ask the API server about the pod, and about the causes of a refusal */
    PHASE_BIND,    /* lock the claims, write what is deferred, post the Binding */
    PHASE_END,     /* the error says whether the bind has failed */
};

/* How an attempt to post the Binding ended. */
enum outcome {
    OUTCOME_BOUND,
    OUTCOME_REFUSED, /* the pod is not bound, and no request is on its way that would bind it */
    OUTCOME_CHANGED, /* the same, because the pod has changed since the decision */
    OUTCOME_UNKNOWN, /* a Binding was sent: it may have been applied, or may still be */
};

/* ---- what the API server has now ---- */

/* Reads the pod and the causes of its refusal from the API server into the cache. */
static int read_again(const struct binding *binding, struct error *err)
{
    struct object_reference references[CONFIRM_MAX] = {bind_request_pod(binding->call.request)};
    size_t count = 1;

    if (binding->deferral.undecided.name.len != 0)
        references[count++] = binding->deferral.undecided;
    for (size_t i = 0; i < binding->verdict.cause_count && count < CONFIRM_MAX; i++)
        references[count++] = binding->verdict.causes[i];
    return requests_confirm(binding->call.state->api, references, count, CONFIRM_MS, err);
}

/* Whether the pod is bound to the requested node, according to the cache. */
static bool is_bound_as_requested(const struct binding *binding)
{
    const struct bind_request *request = binding->call.request;
    struct state *state = binding->call.state;

    (void)pthread_rwlock_rdlock(&state->lock);
    const struct pod *pod =
        cluster_find_pod(&state->cluster, request->pod_namespace, request->pod_name);
    bool is_bound = pod != NULL && uid_is(&pod->uid, request->pod_uid) && pod->node != NULL &&
                    slice_equal(pod_node(pod), request->node);
    (void)pthread_rwlock_unlock(&state->lock);
    return is_bound;
}

/* ---- the Binding ---- */

static int check_time(const struct binding *binding, struct error *err)
{
    return ms_until(binding->call.deadline_ns) >= SEND_MS_MIN
               ? 0
               : error_set(err, ERROR_TIMEOUT, "the API server is too slow: pod %.*s is not bound",
                           SLICE_ARG(binding->call.request->pod_name));
}

static void put_binding(struct buf *body, const struct bind_request *request, struct slice version)
{
    buf_put(body, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":"));
    buf_json(body, request->pod_name);
    buf_put(body, SLICE(",\"namespace\":"));
    buf_json(body, request->pod_namespace);
    buf_put(body, SLICE(",\"uid\":"));
    buf_json(body, request->pod_uid);
    if (version.len != 0) {
        buf_put(body, SLICE(",\"resourceVersion\":"));
        buf_json(body, version);
    }
    buf_put(body, SLICE("},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":"));
    buf_json(body, request->node);
    buf_put(body, SLICE("}}"));
}

static int post_binding(const struct binding *binding, struct request_answer *answer,
                        struct error *err)
{
    const struct bind_call *call = &binding->call;
    struct buf body;

    if (check_time(binding, err) < 0)
        return err->code;
    buf_init(&body, BINDING_BYTES_MAX);
    put_binding(&body, call->request, binding->version);
    struct request request = {.method = "POST",
                              .object = bind_request_pod(call->request),
                              .suffix = "/binding",
                              .content_type = "application/json",
                              .body = buf_slice(&body),
                              .timeout_ms = ms_until(call->deadline_ns)};
    int rc = body.failed ? error_no_memory(err)
                         : requests_call(call->state->api, &request, call->arena, answer, err);
    buf_dispose(&body);
    return rc;
}

/*
 * Writes what is deferred, before the Binding. The Binding's precondition is the version that this
 * write has made: anyone who changes the pod in between may have removed what was written. With
 * locks, which rest on the pod's version, the write's own precondition is the version that was read
 * for the locks.
 */
static int write_deferral(struct binding *binding, struct error *err)
{
    struct deferral *deferral = &binding->deferral;
    bool is_locked = binding->locks.claim_count != 0;

    binding->version = is_locked ? binding->locks.pod_version : SLICE("");
    if (deferral->volume_count == 0)
        return 0;
    deferral->is_stale = is_locked && !slice_equal(binding->version, deferral->version);
    if (deferral->is_stale)
        return error_set(err, ERROR_UNAVAILABLE, "pod %.*s has changed",
                         SLICE_ARG(binding->call.request->pod_name));
    binding->version = deferral->version;
    if (check_time(binding, err) < 0)
        return err->code;
    return defer_write(&binding->call, deferral, &binding->version, err);
}

/*
 * The outcome of a Binding that was not answered with 201.
 *
 * No answer proves that the pod is not bound. A Binding must not be sent twice, and
 * cache/client/http_client repeats GETs only, but a proxy may repeat any request. Then the answer
 * is that to the second Binding (409, or 403 or 429 from a proxy), and the first may have been
 * applied. So the pod itself is read. The outcome is unknown if the pod cannot be read, or if the
 * answer does not refuse the Binding: after a time-out or a 5xx it may still be applied, and a 200
 * does not come from an API server.
 */
static enum outcome find_outcome(struct binding *binding, const struct request_answer *answer,
                                 struct error *err)
{
    struct slice pod_name = binding->call.request->pod_name;
    struct error unknown = {0};
    bool is_read = read_again(binding, &unknown) == 0;

    if (is_bound_as_requested(binding)) { /* also if only the watch, or another bind, has seen it */
        binding->is_ours = answer->status / 100 != 4;
        return OUTCOME_BOUND;
    }
    if (!is_read || answer->status / 100 != 4) {
        (void)error_set(err, ERROR_UNAVAILABLE,
                        "it is unknown whether pod %.*s is bound: its Binding was answered with "
                        "status %u%s%s",
                        SLICE_ARG(pod_name), answer->status, is_read ? "" : "; ", unknown.message);
        return OUTCOME_UNKNOWN;
    }
    (void)error_set(err, ERROR_INVALID, "%.*s (status %u)", SLICE_ARG(answer->message),
                    answer->status);
    return answer->status == 409 && binding->version.len != 0 ? OUTCOME_CHANGED : OUTCOME_REFUSED;
}

static enum outcome attempt(struct binding *binding, struct error *err)
{
    struct request_answer answer = {0};

    int rc = claim_locks_take(&binding->locks, err);
    if (rc == ERROR_INVALID)
        atomic_fetch_add(&binding->call.state->metrics.bind_conflicts, 1);
    if (rc == 0 && binding->locks.is_bound)
        return OUTCOME_BOUND;
    if (rc == 0)
        rc = write_deferral(binding, err);
    if (rc == 0)
        rc = post_binding(binding, &answer, err);
    if (rc < 0) /* no Binding was sent */
        return binding->deferral.is_stale ? OUTCOME_CHANGED : OUTCOME_REFUSED;
    binding->is_ours = answer.status == 201;
    return binding->is_ours ? OUTCOME_BOUND : find_outcome(binding, &answer, err);
}

/* ---- what follows from the outcome ---- */

/* The pod holds its claims now, before the watch reports it. */
static void keep_claims(const struct binding *binding)
{
    const struct bind_request *request = binding->call.request;
    struct state *state = binding->call.state;
    struct error err = {0};

    (void)pthread_rwlock_wrlock(&state->lock);
    struct pod *pod = cluster_find_pod(&state->cluster, request->pod_namespace, request->pod_name);
    if (pod != NULL && uid_is(&pod->uid, request->pod_uid)) {
        deferral_remember(state, pod, &binding->deferral);
        if (pod->node == NULL &&
            cluster_learn_bound(&state->cluster, pod, request->node, monotonic_ns(), &err) < 0)
            log_error("out of memory while recording a bound pod; the watch will restore it",
                      LOG_STR("error", err.message)); /* until then its reservation holds */
    } else {
        reservation_release(&state->cluster, &binding->uid); /* the pod is deleted already */
    }
    (void)pthread_rwlock_unlock(&state->lock);
}

/* The pod is not bound: its claims are free, and the pods that wait for them are requeued. */
static void free_claims(struct binding *binding)
{
    struct object_reference pod = bind_request_pod(binding->call.request);
    struct state *state = binding->call.state;

    claim_locks_release(&binding->locks);
    (void)pthread_rwlock_wrlock(&state->lock);
    bool is_undone = reservation_undo(&state->cluster, &binding->uid);
    (void)pthread_rwlock_unlock(&state->lock);
    if (is_undone)
        requeue_changed(state->requeue, &pod, state->api);
}

/* The Binding may still be applied, so the claims stay reserved. */
static void doubt_claims(const struct binding *binding)
{
    struct state *state = binding->call.state;

    (void)pthread_rwlock_wrlock(&state->lock);
    reservation_doubt(&state->cluster, &binding->uid, state_reservation_end(state, true));
    (void)pthread_rwlock_unlock(&state->lock);
}

/* ---- the phases ---- */

static enum phase choose_after_take(struct binding *binding, int rc)
{
    bool is_live = binding->call.state->api != NULL;

    if (rc == 0)
        return binding->is_bound || !is_live ? PHASE_END : PHASE_BIND;
    if (binding->shared != NULL)
        return PHASE_CONFIRM;
    if (binding->is_refreshed || !is_live)
        return PHASE_END;
    binding->is_refreshed = true;
    return PHASE_REFRESH;
}

/* A pod that is rejected for good does not need the reservation of its filter call. Under the lock.
 */
static bool give_back(const struct binding *binding)
{
    struct cluster *cluster = &binding->call.state->cluster;
    const struct reservation *reservation = reservation_find(cluster, &binding->uid);

    return binding->is_rejected && reservation != NULL &&
           !reservation_outlasts(reservation, binding->verdict.is_by_nodes) &&
           reservation_give_back(cluster, &binding->uid);
}

static enum phase take(struct binding *binding, struct error *err)
{
    struct object_reference pod = bind_request_pod(binding->call.request);
    struct state *state = binding->call.state;

    expiry_run(state);
    (void)pthread_rwlock_wrlock(&state->lock);
    int rc = bind_take_claims(binding, err);
    enum phase next = choose_after_take(binding, rc);
    bool is_given_back = rc < 0 && next == PHASE_END && give_back(binding);
    (void)pthread_rwlock_unlock(&state->lock);
    if (is_given_back)
        requeue_changed(state->requeue, &pod, state->api);
    if (rc == 0)
        *err = (struct error){.code = 0}; /* of a take before this one */
    if (rc == 0 && next == PHASE_END)     /* in a snapshot; none if it was bound already */
        bind_warnings_report(&binding->warnings, &binding->call);
    return next;
}

static enum phase confirm(struct binding *binding, struct error *err)
{
    const struct kept_reference *shared = binding->shared;

    while (shared != NULL) {
        struct object_reference references[CONFIRM_MAX];
        size_t count = 0;
        for (; shared != NULL && count < CONFIRM_MAX; shared = shared->next)
            references[count++] = shared->reference;
        int64_t left_ms = ms_until(binding->call.deadline_ns);
        if (requests_confirm(binding->call.state->api, references, count,
                             left_ms < CONFIRM_MS ? left_ms : CONFIRM_MS, err) < 0)
            return PHASE_END;
    }
    binding->is_shared_confirmed = true;
    return PHASE_TAKE;
}

/* The error stays that of the refusal. */
static enum phase refresh(struct binding *binding, struct error *err)
{
    struct error unknown = {0};

    (void)err;
    return read_again(binding, &unknown) < 0 ? PHASE_END : PHASE_TAKE;
}

static enum phase try_again(struct binding *binding)
{
    if (++binding->attempts == BIND_ATTEMPTS_MAX || ms_until(binding->call.deadline_ns) == 0)
        return PHASE_END;
    binding->is_refreshed = false;
    binding->is_shared_confirmed = false;
    return PHASE_REFRESH;
}

static enum phase bind_live(struct binding *binding, struct error *err)
{
    enum outcome outcome = attempt(binding, err);

    switch (outcome) {
    case OUTCOME_BOUND:
        *err = (struct error){.code = 0}; /* of what was repeated on the way */
        keep_claims(binding);
        deferral_report(&binding->deferral, &binding->call);
        if (binding->is_ours)
            bind_warnings_report(&binding->warnings, &binding->call);
        break;
    case OUTCOME_UNKNOWN: doubt_claims(binding); break;
    default: free_claims(binding); break;
    }
    return outcome == OUTCOME_CHANGED ? try_again(binding) : PHASE_END;
}

int bind_pod(struct state *state, const struct bind_request *request, struct arena *arena,
             struct error *err)
{
    static enum phase (*const phases[PHASE_END])(struct binding *, struct error *) = {
        [PHASE_TAKE] = take,
        [PHASE_CONFIRM] = confirm,
        [PHASE_REFRESH] = refresh,
        [PHASE_BIND] = bind_live,
    };
    struct binding binding = {
        .call = {.state = state,
                 .request = request,
                 .arena = arena,
                 .deadline_ns = monotonic_ns() + (BIND_MS - CONFIRM_MS) * NS_PER_MS}};
    enum phase phase = PHASE_TAKE;

    binding.locks.call = &binding.call;
    while (phase != PHASE_END)
        phase = phases[phase](&binding, err);
    if (binding.is_conflict)
        atomic_fetch_add(&state->metrics.bind_conflicts, 1);
    return err->code;
}
