#include "extender/admission/admit_internal.h"

#include "config/base/log.h"
#include "config/base/quantity.h"
#include "extender/verbs/verbs.h"

uint64_t admit_deadline_ns(const struct admit_call *call)
{
    int64_t ms = REVIEW_MS_MAX;

    if (call->timeout == NULL || !quantity_duration_ms(&ms, slice_of(call->timeout)) || ms < 1 ||
        ms > REVIEW_MS_MAX)
        ms = REVIEW_MS_MAX;
    ms -= ms / 4 < REVIEW_MARGIN_MS ? ms / 4 : REVIEW_MARGIN_MS;
    return call->started_ns + (uint64_t)ms * NS_PER_MS;
}

int admit_check_synced(const struct state *state, struct error *err)
{
    enum kind missing = state_unsynced(state);

    return missing == KIND_COUNT
               ? 0
               : error_set(err, ERROR_UNAVAILABLE, "the cache is not synced yet: %s",
                           kind_resource(missing));
}

static bool is_own(struct state *state, const struct review *review)
{
    (void)pthread_rwlock_rdlock(&state->lock);
    bool is_own = slice_equal(review->user_name, state->config->admission.own_user);
    (void)pthread_rwlock_unlock(&state->lock);
    return is_own;
}

/* ---- the answer ---- */

static void log_refused(const struct review *review, const struct binding_review *binding,
                        enum admission admission, const char *reason)
{
    static const char *const messages[][ADMISSION_COUNT] = {
        {[ADMISSION_DENIED] = "Binding denied",
         [ADMISSION_FAILED] = "a Binding could not be reviewed"},
        {[ADMISSION_DENIED] = "pod denied", [ADMISSION_FAILED] = "a pod could not be reviewed"},
    };
    const struct bind_request *request = &binding->request;

    log_warn(messages[binding->created != NULL][admission],
             LOG_SLICE("namespace", request->pod_namespace), LOG_SLICE("pod", request->pod_name),
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

int admit_write(const struct review *review, const struct binding_review *binding,
                enum admission admission, struct buf *out, enum review_result *result,
                struct error *err)
{
    if (admission != ADMISSION_ALLOWED)
        log_refused(review, binding, admission, err->message);
    if (admission == ADMISSION_FAILED) {
        err->code = ERROR_UNAVAILABLE;
        return err->code;
    }
    *result = admission == ADMISSION_ALLOWED ? REVIEW_ALLOWED : REVIEW_DENIED;
    if (admission == ADMISSION_ALLOWED)
        write_allowed(review, &binding->warnings, out);
    else
        write_denied(review, binding, err->message, out);
    return 0;
}

/* ---- bindings ---- */

static int read_binding(const struct admit_call *call, struct scratch *scratch,
                        struct review *review, struct binding_review *binding, struct error *err)
{
    struct slice body = buf_slice(&scratch->body);

    *binding = (struct binding_review){.deadline_ns = admit_deadline_ns(call)};
    if (review_read(review, body, &scratch->arena, err) < 0)
        return err->code;
    if (!review_is_of_binding(review))
        return error_set(err, ERROR_INVALID,
                         "body: expected the CREATE of pods/binding or bindings");
    binding->is_dry_run = review->is_dry_run;
    return review_read_binding(&binding->request, &binding->annotation, review, body,
                               &scratch->arena, err);
}

static int answer_binding(struct state *state, const struct admit_call *call,
                          struct scratch *scratch, enum review_result *result, struct error *err)
{
    struct binding_review binding;
    struct review review;
    enum admission admission = ADMISSION_ALLOWED;

    if (read_binding(call, scratch, &review, &binding, err) < 0)
        return err->code;
    if (!is_own(state, &review)) {
        if (admit_check_synced(state, err) < 0)
            return err->code;
        admission = bind_admit(state, &binding, &scratch->arena, err);
    }
    return admit_write(&review, &binding, admission, &scratch->answer, result, err);
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

unsigned admit_answer(struct state *state, const struct admit_call *call, struct scratch *scratch)
{
    static answer_function *const functions[ADMIT_COUNT] = {answer_binding, admit_pod};
    enum review_result result = REVIEW_FAILED;
    struct error err = {0};
    unsigned status = 200;
    uint64_t started = monotonic_ns();
    struct watched *watched = watchdog_begin(&state->watchdog, admit_text(call->path));

    int rc = functions[call->path](state, call, scratch, &result, &err);
    /* a denial that is late does no harm; of what was allowed, the claims stay reserved */
    if (rc == 0 && result == REVIEW_ALLOWED && monotonic_ns() > admit_deadline_ns(call))
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
