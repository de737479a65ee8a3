/*
 * Makes one pod terminate, as kube-scheduler's preemption does: through the Eviction API, which
 * respects PodDisruptionBudgets, or by a DELETE. The pod's UID is the precondition. If the pod is
 * still there, it gets a condition DisruptionTarget, reason PreemptionByScheduler.
 */
#include "cache/json/pull_fields.h"
#include "config/base/clock.h"
#include "config/base/scope.h"
#include "extender/serving/preemption/attempt.h"

enum {
    TEXT_BYTES_MAX = 16 * 1024,
    EVICTION_CALL_MS = 5000, /* for each request, at most */
    CONDITION_CALL_MS = 1000 /* the same; a pod is also evicted without a condition */
};

/* Sends one request about the victim, with its timeout at most. Errors: it was not sent, and will
 * not be. */
static int send_request(struct attempt *attempt, struct request request, const struct buf *body,
                        struct request_answer *out, struct error *err)
{
    int64_t left_ms = ms_until(attempt->deadline_ns);

    request.body = buf_slice(body);
    if (left_ms < request.timeout_ms)
        request.timeout_ms = left_ms;
    if (body->failed)
        return error_no_memory(err);
    if (left_ms == 0)
        return error_set(err, ERROR_UNAVAILABLE, "the API server is slow");
    return requests_call(attempt->state->api, &request, &attempt->arena, out, err);
}

/* The pod's condition says why it is disrupted. If this fails, the pod is evicted without it. */
static void put_condition(struct attempt *attempt, const struct object_reference *victim)
{
    struct request_answer ignored = {0};
    struct error unsent = {0};
    SCOPED_BUF(body, TEXT_BYTES_MAX);

    request_begin_patch(&body, victim->uid, SLICE(""));
    buf_put(&body, SLICE("},\"status\":{\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
                         "\"True\",\"reason\":\"PreemptionByScheduler\",\"message\":\"claimguard: "
                         "preempting to accommodate a higher priority pod\","
                         "\"lastTransitionTime\":\""));
    buf_time(&body, now_ms(), false);
    buf_put(&body, SLICE("\"}]}}"));
    (void)send_request(attempt,
                       (struct request){.method = "PATCH",
                                        .object = *victim,
                                        .suffix = "/status",
                                        .content_type = "application/strategic-merge-patch+json",
                                        .timeout_ms = CONDITION_CALL_MS},
                       &body, &ignored, &unsent);
}

static int post_eviction(struct attempt *attempt, const struct object_reference *victim,
                         bool is_trial, struct request_answer *out, struct error *err)
{
    SCOPED_BUF(body, TEXT_BYTES_MAX);

    buf_put(&body, SLICE("{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                         "\"name\":"));
    buf_json(&body, victim->name);
    buf_put(&body, SLICE(",\"namespace\":"));
    buf_json(&body, victim->ns);
    buf_put(&body, SLICE("},\"deleteOptions\":{\"preconditions\":{\"uid\":"));
    buf_json(&body, victim->uid);
    buf_put(&body, is_trial ? SLICE("},\"dryRun\":[\"All\"]}}") : SLICE("}}}"));
    return send_request(attempt,
                        (struct request){.method = "POST",
                                         .object = *victim,
                                         .suffix = "/eviction",
                                         .content_type = "application/json",
                                         .timeout_ms = EVICTION_CALL_MS},
                        &body, out, err);
}

static int delete_pod(struct attempt *attempt, const struct object_reference *victim,
                      struct request_answer *out, struct error *err)
{
    SCOPED_BUF(body, TEXT_BYTES_MAX);

    buf_put(&body, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{"
                         "\"uid\":"));
    buf_json(&body, victim->uid);
    buf_put(&body, SLICE("}}"));
    return send_request(attempt,
                        (struct request){.method = "DELETE",
                                         .object = *victim,
                                         .content_type = "application/json",
                                         .timeout_ms = EVICTION_CALL_MS},
                        &body, out, err);
}

struct cause {
    struct slice reason;
};

/* Sets a bool: whether a budget is among the causes. */
static bool read_causes(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field fields[] = {PULL_FIELD("reason", PULL_STRING, cause, reason)};
    struct pull_items items = {.size = sizeof(struct cause)};

    if (!pull_field_array(json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, &items))
        return false;
    const struct cause *causes = items.items;
    for (size_t i = 0; i < items.count; i++)
        *(bool *)field |= slice_equal(causes[i].reason, SLICE("DisruptionBudget"));
    return true;
}

/* Whether the answer, a metav1.Status, names a budget. Its HTTP status does not show it: an
 * overloaded API server also answers 429, and a missing right 403. */
static bool blames_budget(struct slice answer, struct arena *arena)
{
    static const struct pull_field details[] = {
        {.key = "causes", .type = PULL_READ, .read = read_causes}};
    static const struct pull_field fields[] = {PULL_NESTED("details", details)};
    bool is_budget = false;

    (void)pull_fields_of(answer, fields, PULL_FIELD_COUNT(fields), arena, &is_budget);
    return is_budget;
}

static enum eviction_result read_answer(const struct request_answer *answer, struct arena *arena)
{
    unsigned status = answer->status;

    if (status / 100 == 2)
        return EVICTION_DONE;
    if (status == 404 || status == 409) /* the precondition failed */
        return EVICTION_NEEDLESS;
    if ((status == 429 || status == 403) && blames_budget(answer->body, arena))
        return EVICTION_FORBIDDEN;
    return status == 0 || status >= 500 ? EVICTION_UNKNOWN : EVICTION_REFUSED;
}

/* rc: of the request; its error is in err. */
static enum eviction_result evaluate_answer(struct attempt *attempt,
                                            const struct object_reference *victim, int rc,
                                            const struct request_answer *answer, struct error *err)
{
    enum eviction_result result = rc < 0 ? EVICTION_UNSENT : read_answer(answer, &attempt->arena);
    struct error why = *err;

    if (result == EVICTION_UNSENT)
        (void)error_set(err, ERROR_UNAVAILABLE, "pod %.*s/%.*s cannot be evicted: %s",
                        SLICE_ARG(victim->ns), SLICE_ARG(victim->name), why.message);
    else if (eviction_failed(result))
        (void)error_set(err, result == EVICTION_FORBIDDEN ? ERROR_INVALID : ERROR_UNAVAILABLE,
                        "pod %.*s/%.*s cannot be evicted: %.*s (status %u)", SLICE_ARG(victim->ns),
                        SLICE_ARG(victim->name), SLICE_ARG(answer->message), answer->status);
    return result;
}

enum eviction_result eviction_try(struct attempt *attempt, const struct object_reference *victim,
                                  struct error *err)
{
    struct request_answer answer = {0};
    int rc = post_eviction(attempt, victim, true, &answer, err);

    return evaluate_answer(attempt, victim, rc, &answer, err);
}

enum eviction_result eviction_do(struct attempt *attempt, const struct object_reference *victim,
                                 struct error *err)
{
    struct request_answer answer = {0};
    int rc;

    if (!attempt->respects_budgets) { /* nothing refuses it: the condition first, as kube-scheduler
                                         does */
        put_condition(attempt, victim);
        rc = delete_pod(attempt, victim, &answer, err);
    } else { /* an eviction that succeeds writes its own condition: ours has to come after it */
        rc = post_eviction(attempt, victim, false, &answer, err);
        if (rc == 0 && answer.status / 100 == 2)
            put_condition(attempt, victim);
    }
    return evaluate_answer(attempt, victim, rc, &answer, err);
}
