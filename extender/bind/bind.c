#include "extender/bind/bind.h"

#include "config/base/log.h"
#include "extender/bind/bind_internal.h"
#include "extender/bind/give_way.h"
#include "extender/live/evaluate.h"

enum { BINDING_BYTES_MAX = 16 * 1024 };

/* How an attempt to post the Binding ended. */
enum outcome {
    OUTCOME_BOUND,
    OUTCOME_REFUSED, /* the pod is not bound, and no request is on its way that would bind it */
    OUTCOME_CHANGED, /* the same, because the pod has changed since the decision */
    OUTCOME_UNKNOWN, /* a Binding was sent: it may have been applied, or may still be */
};

/* ---- what the API server has now ---- */

/* Whether the pod is bound to the requested node, according to the cache. */
static bool is_bound_as_requested(const struct binding *binding)
{
    const struct bind_request *request = binding->call.request;
    struct state *state = binding->call.state;

    (void)pthread_rwlock_rdlock(&state->lock);
    const struct pod *pod =
        cluster_find_pod(&state->cluster, request->pod_namespace, request->pod_name);
    bool is_bound = pod != NULL && uid_is(&pod->uid, request->pod_uid) && pod_is_assigned(pod) &&
                    slice_equal(pod_node(pod), request->node);
    (void)pthread_rwlock_unlock(&state->lock);
    return is_bound;
}

/* ---- the Binding ---- */

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

    if (bind_check_time(binding, err) < 0)
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

/* Whether what was read of the pod is not stored. */
static bool is_given_up(const struct binding *binding)
{
    struct state *state = binding->call.state;

    (void)pthread_rwlock_rdlock(&state->lock);
    bool is_so = allowance_is_over(&state->cluster, binding->call.request->pod_namespace);
    (void)pthread_rwlock_unlock(&state->lock);
    return is_so;
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
    bool is_read = bind_read_again(binding, CONFIRM_MS, &unknown) == 0 && !is_given_up(binding);

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
        rc = bind_write_deferral(binding, err);
    if (rc == 0)
        rc = post_binding(binding, &answer, err);
    if (rc < 0) /* no Binding was sent */
        return bind_is_stale(binding) ? OUTCOME_CHANGED : OUTCOME_REFUSED;
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
        if (!pod_is_assigned(pod) &&
            cluster_learn_bound(&state->cluster, pod, request->node, monotonic_ns(), &err) < 0)
            log_error("out of memory while recording a bound pod; the watch will restore it",
                      LOG_STR("error", err.message)); /* until then its reservation holds */
    } else if (!allowance_is_over(&state->cluster, request->pod_namespace)) {
        reservation_release(&state->cluster, &binding->uid); /* the pod is deleted already */
    }
    (void)pthread_rwlock_unlock(&state->lock);
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
    case OUTCOME_UNKNOWN: bind_doubt_claims(binding, true); break;
    default: bind_free_claims(binding); break;
    }
    return outcome == OUTCOME_CHANGED ? bind_try_again(binding) : PHASE_END;
}

int bind_pod(struct state *state, const struct bind_request *request, struct arena *arena,
             struct error *err)
{
    struct binding binding = {
        .call = {.state = state,
                 .request = request,
                 .arena = arena,
                 .deadline_ns = monotonic_ns() + (BIND_MS - CONFIRM_MS) * NS_PER_MS}};

    if (give_way_check(&binding.call, false, err) == 0)
        bind_run(&binding, bind_live, err);
    return err->code;
}
