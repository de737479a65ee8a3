#include "extender/serving/bind/bind.h"

#include "config/base/log.h"
#include "extender/serving/bind/bind_internal.h"
#include "extender/serving/live/evaluate.h"

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
    const struct object_reference *requested = &binding->call.request->pod;
    struct state *state = binding->call.state;

    SCOPED_READ_LOCK(&state->lock);
    const struct pod *pod = cluster_find_same_pod(&state->cluster, requested);
    return pod != NULL && pod_is_assigned(pod) &&
           slice_equal(pod_node(pod), binding->call.request->node);
}

/* ---- the Binding ---- */

static void put_binding(struct buf *body, const struct bind_request *request, struct slice version)
{
    buf_put(body, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":"));
    buf_json(body, request->pod.name);
    buf_put(body, SLICE(",\"namespace\":"));
    buf_json(body, request->pod.ns);
    buf_put(body, SLICE(",\"uid\":"));
    buf_json(body, request->pod.uid);
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
    SCOPED_BUF(body, BINDING_BYTES_MAX);

    if (bind_check_time(binding, err) < 0)
        return err->code;
    put_binding(&body, call->request, binding->version);
    struct request request = {.method = "POST",
                              .object = call->request->pod,
                              .suffix = "/binding",
                              .content_type = "application/json",
                              .body = buf_slice(&body),
                              .timeout_ms = ms_until(call->deadline_ns)};
    return body.failed ? error_no_memory(err)
                       : requests_call(call->state->api, &request, call->arena, answer, err);
}

/* Whether what was read of the pod is not stored. */
static bool is_given_up(const struct binding *binding)
{
    struct state *state = binding->call.state;

    SCOPED_READ_LOCK(&state->lock);
    return allowance_is_over(&state->cluster, binding->call.request->pod.ns);
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
    struct slice pod_name = binding->call.request->pod.name;
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
    const struct object_reference *requested = &request->pod;
    struct state *state = binding->call.state;
    struct error err = {0};

    SCOPED_WRITE_LOCK(&state->lock);
    struct pod *pod = cluster_find_same_pod(&state->cluster, requested);
    if (pod != NULL) {
        deferral_remember(state, pod, &binding->deferral);
        if (!pod_is_assigned(pod) &&
            cluster_learn_bound(&state->cluster, pod, request->node, monotonic_ns(), &err) < 0)
            log_error("out of memory while recording a bound pod; the watch will restore it",
                      LOG_STR("error", err.message)); /* until then its reservation holds */
    } else if (!allowance_is_over(&state->cluster, request->pod.ns)) {
        reservation_release(&state->cluster, &binding->uid); /* the pod is deleted already */
    }
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
            bind_report_warnings(&binding->warnings, &binding->call);
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

/* ---- a Binding that another client posts ---- */

/* A Binding without UID is for the pod that has the name when it is applied, which may be another
 * than the one that is judged now. The old path (bindings) has none: API servers remove it there. A
 * dry run is not applied. */
static int check_uid(const struct binding_review *review, struct error *err)
{
    const struct bind_request *request = &review->request;

    return request->pod.uid.len != 0 || review->is_dry_run
               ? 0
               : error_set(err, ERROR_INVALID,
                           "the Binding of pod %.*s/%.*s has no UID, so it might bind a later pod "
                           "of that name: set its metadata.uid to the pod's UID, and post it to "
                           "pods/%.*s/binding (bindings drops the UID)",
                           SLICE_ARG(request->pod.ns), SLICE_ARG(request->pod.name),
                           SLICE_ARG(request->pod.name));
}

/* Behind what was written for the deferral: the pod has another version then, and perhaps another
 * annotation than the client has seen. */
static int check_annotation(const struct binding *binding, struct error *err)
{
    const struct deferral *deferral = &binding->deferral;
    bool is_written =
        deferral_has_any(deferral) && !slice_equal(binding->version, deferral->version);
    bool is_the_pods = deferral->has_mounts
                           ? slice_equal(binding->annotation, deferral->annotation)
                           : slice_equal(binding->annotation, SLICE(DEFER_FS_MOUNT_OPT_OUT));

    return binding->annotation.ptr == NULL || (is_the_pods && !is_written)
               ? 0
               : error_set(err, ERROR_INVALID,
                           "the Binding of pod %.*s sets the annotation " DEFER_FS_MOUNT_ANNOTATION
                           " to another value than the pod has: leave it out",
                           SLICE_ARG(binding->call.request->pod.name));
}

/* Locks the claims, and writes what is deferred. */
static int prepare(struct binding *binding, struct error *err)
{
    bool asks = binding->locks.claim_count != 0 || deferral_has_any(&binding->deferral);

    if (asks && !bind_may_wait(binding))
        return bind_too_many(err);
    int rc = claim_locks_take(&binding->locks, err);
    if (rc < 0 || binding->locks.is_bound)
        return rc;
    rc = binding->created == NULL ? bind_write_deferral(binding, err)
                                  : defer_check(&binding->call, &binding->deferral, err);
    return rc < 0 ? rc : check_annotation(binding, err);
}

static enum phase admit(struct binding *binding, struct error *err)
{
    int rc = prepare(binding, err);

    if (rc < 0 && bind_is_refusal(err))
        bind_free_claims(binding);
    else
        bind_doubt_claims(binding, false); /* perhaps there is no other decision in time */
    return rc < 0 && bind_is_stale(binding) ? bind_try_again(binding) : PHASE_END;
}

static void report(struct binding *binding, struct binding_review *review)
{
    bool is_reported = binding->call.state->api == NULL; /* by the take, in a snapshot */

    review->warnings = binding->warnings;
    if (review->is_dry_run || binding->is_bound || is_reported)
        return;
    deferral_report(&binding->deferral, &binding->call);
    bind_report_warnings(&binding->warnings, &binding->call);
}

enum admission bind_admit(struct state *state, struct binding_review *review, struct arena *arena,
                          struct error *err)
{
    atomic_uint *of_namespace = &state->reviews_waiting_in[share_of(review->request.pod.ns)];
    struct binding binding = {.call = {.state = state,
                                       .request = &review->request,
                                       .arena = arena,
                                       .deadline_ns = review->deadline_ns},
                              .created = review->created,
                              .annotation = review->annotation,
                              .is_dry_run = review->is_dry_run,
                              .waiting = {&state->metrics.reviews_waiting, of_namespace}};

    /* a dry run is answered from the cache: anyone who may create pods may ask for thousands */
    binding.is_refreshed = binding.has_asked_causes = binding.is_claims_confirmed =
        binding.is_owners_confirmed = review->is_dry_run;
    binding.locks.is_review = true;
    binding.locks.is_creation = review->created != NULL;
    if (check_uid(review, err) == 0 && give_way_check(&binding.call, review->is_dry_run, err) == 0)
        bind_run(&binding, admit, err);
    if (err->code == 0 && review->is_dry_run && review->created != NULL && bind_may_wait(&binding))
        (void)defer_check(&binding.call, &binding.deferral, err);
    bind_done_waiting(&binding);
    if (err->code == 0) {
        report(&binding, review);
        return ADMISSION_ALLOWED;
    }
    /* a claim that is not bound to a volume: of pods in general, that may pass; of a Binding, not
     */
    bool is_undecided = binding.deferral.undecided.name.len != 0;
    return binding.verdict.code != CODE_ERROR && (bind_is_refusal(err) || is_undecided)
               ? ADMISSION_DENIED
               : ADMISSION_FAILED;
}
