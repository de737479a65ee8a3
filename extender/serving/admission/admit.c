#include "extender/serving/admission/admit.h"

#include "config/base/log.h"
#include "config/base/quantity.h"
#include "extender/serving/admission/review.h"
#include "extender/serving/bind/bind.h"
#include "extender/serving/verbs/verbs.h"
#include "policy/policy.h"

/* When an answer is too late, of monotonic_ns. */
static uint64_t deadline_ns(const struct admit_call *call)
{
    int64_t ms = REVIEW_MS_MAX;

    if (call->timeout == NULL || !quantity_duration_ms(&ms, slice_of(call->timeout)) || ms < 1 ||
        ms > REVIEW_MS_MAX)
        ms = REVIEW_MS_MAX;
    ms -= ms / 4 < REVIEW_MARGIN_MS ? ms / 4 : REVIEW_MARGIN_MS;
    return call->started_ns + (uint64_t)ms * NS_PER_MS;
}

/* Errors: ERROR_UNAVAILABLE. */
static int check_synced(const struct state *state, struct error *err)
{
    enum kind missing = state_unsynced(state);

    return missing == KIND_COUNT
               ? 0
               : error_set(err, ERROR_UNAVAILABLE, "the cache is not synced yet: %s",
                           kind_resource(missing));
}

static bool is_own(struct state *state, const struct review *review)
{
    SCOPED_READ_LOCK(&state->lock);
    return slice_equal(review->user_name, state->config->admission.own_user);
}

/* ---- the answer ---- */

static void log_refused(const struct review *review, const struct binding_review *binding,
                        enum admission admission, const char *reason)
{
    static const char *const messages[][ADMISSION_COUNT] = {
        {[ADMISSION_DENIED] = "Binding denied",
         [ADMISSION_FAILED] = "a Binding could not be reviewed",
         [ADMISSION_OBSERVED] = "Binding would be denied"},
        {[ADMISSION_DENIED] = "pod denied",
         [ADMISSION_FAILED] = "a pod could not be reviewed",
         [ADMISSION_OBSERVED] = "pod would be denied"},
    };
    const struct bind_request *request = &binding->request;

    log_warn(messages[binding->created != NULL][admission], LOG_POD(&request->pod),
             LOG_SLICE("node", request->node), LOG_SLICE("user", review->user_name),
             LOG_STR("reason", reason));
}

static void write_allowed(const struct review *review, const struct bind_warnings *warnings,
                          struct buf *out)
{
    struct slice texts[WARNINGS_MAX];

    for (size_t i = 0; i < warnings->count; i++)
        texts[i] = warnings->items[i].text;
    review_write(out, review,
                 &(struct review_answer){
                     .is_allowed = true, .warnings = texts, .warning_count = warnings->count});
}

static void write_denied(const struct review *review, const struct binding_review *binding,
                         const char *message, struct buf *out)
{
    const char *reason = binding->status_reason == NULL ? "Conflict" : binding->status_reason;

    review_write(
        out, review,
        &(struct review_answer){.code = 409, .reason = reason, .message = slice_of(message)});
}

/* What mode Observe makes of a decision: of a denial, a warning for who sent the request. */
static enum admission observe(struct state *state, struct bind_warnings *warnings,
                              enum admission admission, struct error *err)
{
    if (admission != ADMISSION_DENIED)
        return admission;
    SCOPED_READ_LOCK(&state->lock);
    if (state->config->admission.mode != REVIEWS_OBSERVE)
        return admission;
    (void)error_wrap(err, "claimguard would deny this");
    warnings->items[0].text = slice_of(err->message);
    warnings->count = 1;
    return ADMISSION_OBSERVED;
}

/* Writes the answer by the decision, and logs what is not allowed; err says why it is not. Errors:
 * ERROR_UNAVAILABLE: there is no decision. */
static int write_answer(const struct review *review, const struct binding_review *binding,
                        enum admission admission, struct buf *out, enum review_result *result,
                        struct error *err)
{
    static const enum review_result results[ADMISSION_COUNT] = {
        [ADMISSION_ALLOWED] = REVIEW_ALLOWED,
        [ADMISSION_DENIED] = REVIEW_DENIED,
        [ADMISSION_OBSERVED] = REVIEW_OBSERVED};

    if (admission != ADMISSION_ALLOWED)
        log_refused(review, binding, admission, err->message);
    if (admission == ADMISSION_FAILED) {
        err->code = ERROR_UNAVAILABLE;
        return err->code;
    }
    *result = results[admission];
    if (admission == ADMISSION_DENIED)
        write_denied(review, binding, err->message, out);
    else
        write_allowed(review, &binding->warnings, out);
    return 0;
}

/* ---- the review ---- */

static int read_review(const struct admit_call *call, struct scratch *scratch,
                       struct review *review, struct binding_review *binding, struct error *err)
{
    bool is_of_pod = call->path == ADMIT_POD;

    *binding = (struct binding_review){.deadline_ns = deadline_ns(call)};
    if (review_read(review, buf_slice(&scratch->body), &scratch->arena, err) < 0)
        return err->code;
    binding->is_dry_run = review->is_dry_run;
    if (is_of_pod ? review_is_of_pod(review) : review_is_of_binding(review))
        return 0;
    return error_set(err, ERROR_INVALID, "body: expected the CREATE of %s",
                     is_of_pod ? "pods" : "pods/binding or bindings");
}

/* ---- bindings ---- */

static int answer_binding(struct state *state, const struct admit_call *call,
                          struct scratch *scratch, enum review_result *result, struct error *err)
{
    struct binding_review binding;
    struct review review;
    enum admission admission = ADMISSION_ALLOWED;

    if (read_review(call, scratch, &review, &binding, err) < 0 ||
        review_read_binding(&binding.request, &binding.annotation, &review,
                            buf_slice(&scratch->body), &scratch->arena, err) < 0)
        return err->code;
    if (!is_own(state, &review)) {
        if (check_synced(state, err) < 0)
            return err->code;
        admission = bind_admit(state, &binding, &scratch->arena, err);
    }
    admission = observe(state, &binding.warnings, admission, err);
    return write_answer(&review, &binding, admission, &scratch->answer, result, err);
}

/* ---- pods ---- */

static int read_pod(const struct admit_call *call, struct scratch *scratch, struct review *review,
                    struct pod_object *pod, struct binding_review *binding, struct error *err)
{
    if (read_review(call, scratch, review, binding, err) < 0)
        return err->code;
    int rc = review_read_pod(pod, review, buf_slice(&scratch->body), &scratch->arena, err);
    binding->request = (struct bind_request){
        .pod = {KIND_POD, review->ns, pod->meta.name, pod->meta.uid}, .node = pod->node};
    binding->created = pod;
    return rc;
}

/* A pod over a limit: nobody can judge it, so it must not be bound. One that names no node may be
 * stored: its Binding is denied. */
static enum admission decide_too_big(const struct pod_object *pod, struct bind_warnings *warnings,
                                     struct error *err)
{
    bool may_name_node = pod->node.len != 0 || pod->meta.name.len == 0; /* it was not read */

    (void)error_wrap(err, "claimguard cannot judge this pod");
    warnings->items[warnings->count++].text = slice_of(err->message);
    return may_name_node ? ADMISSION_DENIED : ADMISSION_ALLOWED;
}

/* The kubelet runs a static pod, whatever its mirror pod is answered. */
static bool is_judged(const struct review *review, const struct pod_object *pod,
                      struct arena *arena)
{
    bool has_inline = pod->mounts != NULL && mounts_have_inline(pod->mounts);

    return pod->claim_count != 0 || (has_inline && !review_is_of_mirror_pod(review, arena));
}

/* What keeps the pod from running now is a warning. */
static void collect_warnings(const struct verdict *verdict, struct bind_warnings *out)
{
    for (size_t i = 0; i < verdict->reason_count && out->count < WARNINGS_MAX; i++)
        out->items[out->count++].text = verdict->reasons[i];
    for (size_t i = 0; i < verdict->warning_count && out->count < WARNINGS_MAX; i++)
        out->items[out->count++] = verdict->warnings[i];
}

/* Decides about a pod for which a scheduler will choose the node. Under the lock. */
static enum admission decide(const struct view *view, const struct pod_object *created,
                             struct arena *arena, struct bind_warnings *warnings, struct error *err)
{
    struct verdict verdict = {.code = CODE_SKIP};
    struct pod_object pod;
    struct slice reason;

    if (csi_volumes_refuse_inline(view, created, arena, &reason)) {
        (void)error_set(err, ERROR_INVALID, "%.*s", SLICE_ARG(reason));
        return reason.ptr == NULL ? ADMISSION_FAILED : ADMISSION_DENIED;
    }
    if (bind_describe_created(view->cluster, created, arena, &pod))
        policy_prefilter(view, &pod, arena, &verdict);
    else
        verdict_out_of_memory(&verdict);
    if (verdict.code == CODE_ERROR) {
        (void)error_no_memory(err);
        return ADMISSION_FAILED;
    }
    collect_warnings(&verdict, warnings);
    return ADMISSION_ALLOWED;
}

/* Whether the denial is only that the pod is created once more. Its creator, such as kubectl,
 * expects the API server's own answer then. */
static bool is_there_already(struct state *state, const struct pod_object *created,
                             struct error *err)
{
    SCOPED_READ_LOCK(&state->lock);
    const struct pod *pod = cluster_find_pod(&state->cluster, created->meta.ns, created->meta.name);
    bool is_there = pod != NULL && !uid_is(&pod->uid, created->meta.uid);
    if (is_there)
        (void)error_set(err, ERROR_INVALID, "pods \"%.*s\" already exists",
                        SLICE_ARG(created->meta.name));
    return is_there;
}

/* Decides about a pod that is to be judged. */
static enum admission decide_pod(struct state *state, struct binding_review *binding,
                                 struct arena *arena, struct error *err)
{
    const struct pod_object *pod = binding->created;

    if (pod->node.len != 0)
        return bind_admit(state, binding, arena, err);
    SCOPED_READ_LOCK(&state->lock);
    struct view view = state_view(state);
    return decide(&view, pod, arena, &binding->warnings, err);
}

static int answer_pod(struct state *state, const struct admit_call *call, struct scratch *scratch,
                      enum review_result *result, struct error *err)
{
    struct binding_review binding = {.created = NULL};
    struct review review;
    struct pod_object pod = {.claims = NULL};
    enum admission admission = ADMISSION_ALLOWED;

    int rc = read_pod(call, scratch, &review, &pod, &binding, err);
    if (rc < 0 && rc != ERROR_TOO_BIG)
        return rc;
    if (rc < 0) {
        admission = decide_too_big(&pod, &binding.warnings, err);
    } else if (is_judged(&review, &pod, &scratch->arena)) {
        if (check_synced(state, err) < 0)
            return err->code;
        admission = decide_pod(state, &binding, &scratch->arena, err);
    }
    admission = observe(state, &binding.warnings, admission, err);
    if (admission == ADMISSION_DENIED && is_there_already(state, &pod, err))
        binding.status_reason = "AlreadyExists";
    return write_answer(&review, &binding, admission, &scratch->answer, result, err);
}

/* ---- a call ---- */

static unsigned answer_failure(struct scratch *scratch, const struct error *err,
                               enum review_result *result)
{
    bool is_invalid = err->code == ERROR_INVALID;

    *result = is_invalid ? REVIEW_INVALID : REVIEW_FAILED;
    buf_reset(&scratch->answer, SCRATCH_KEEP_BYTES);
    verb_write_failure(&scratch->answer, err->message);
    return is_invalid ? 400 : 500;
}

/* Writes the answer. Errors: ERROR_INVALID: the body is wrong; others: no decision could be made.
 */
typedef int answer_function(struct state *state, const struct admit_call *call,
                            struct scratch *scratch, enum review_result *result, struct error *err);

unsigned admit_answer(struct state *state, const struct admit_call *call, struct scratch *scratch)
{
    static answer_function *const functions[ADMIT_COUNT] = {answer_binding, answer_pod};
    enum review_result result = REVIEW_FAILED;
    struct error err = {0};
    unsigned status = 200;
    uint64_t started = monotonic_ns();
    struct watched *watched = watchdog_begin(&state->watchdog, admit_paths[call->path]);

    int rc = functions[call->path](state, call, scratch, &result, &err);
    /* a denial that is late does no harm; of what was allowed, the claims stay reserved */
    if (rc == 0 && result == REVIEW_ALLOWED && monotonic_ns() > deadline_ns(call))
        rc = error_set(&err, ERROR_UNAVAILABLE, "the review took too long");
    if (scratch->share.was_refused || (rc == 0 && scratch->answer.failed))
        rc = error_set(&err, ERROR_UNAVAILABLE, "other requests take too much memory");
    if (rc < 0)
        status = answer_failure(scratch, &err, &result);
    scratch->result = scratch->answer.failed ? SLICE("{\"error\":\"out of memory\"}")
                                             : buf_slice(&scratch->answer);
    metrics_count_review(&state->metrics, call->path, result, monotonic_ns() - started);
    watchdog_end(watched);
    return status;
}
