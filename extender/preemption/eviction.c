#include "extender/preemption/eviction.h"

#include "cache/json/pull_fields.h"
#include "config/base/clock.h"

enum { EVICTION_TEXT_BYTES_MAX = 16 * 1024 };

/* Sends one request about the victim; `request` says which, and its timeout is a maximum. Disposes
 * of the body. Errors: it was not sent, and will not be. */
static int send_request(const struct eviction *eviction, struct request request, struct buf *body,
                        struct request_answer *out, struct error *err)
{
    int64_t left_ms = ms_until(eviction->deadline_ns);
    int rc;

    request.object = *eviction->victim;
    request.body = buf_slice(body);
    if (left_ms < request.timeout_ms)
        request.timeout_ms = left_ms;
    if (body->failed)
        rc = error_no_memory(err);
    else if (left_ms == 0)
        rc = error_set(err, ERROR_UNAVAILABLE, "the API server is slow");
    else
        rc = requests_call(eviction->requests, &request, eviction->arena, out, err);
    buf_dispose(body);
    return rc;
}

/* The pod's condition says why it is disrupted. If this fails, the pod is evicted without it. */
static void put_condition(const struct eviction *eviction)
{
    struct request_answer ignored = {0};
    struct error unsent = {0};
    struct buf body;

    buf_init(&body, EVICTION_TEXT_BYTES_MAX);
    buf_put(&body, SLICE("{\"metadata\":{\"uid\":"));
    buf_json(&body, eviction->victim->uid);
    buf_put(&body, SLICE("},\"status\":{\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
                         "\"True\",\"reason\":\"PreemptionByScheduler\",\"message\":\"claimguard: "
                         "preempting to accommodate a higher priority pod\","
                         "\"lastTransitionTime\":\""));
    buf_time(&body, now_ms(), false);
    buf_put(&body, SLICE("\"}]}}"));
    (void)send_request(eviction,
                       (struct request){.method = "PATCH",
                                        .suffix = "/status",
                                        .content_type = "application/strategic-merge-patch+json",
                                        .timeout_ms = CONDITION_CALL_MS},
                       &body, &ignored, &unsent);
}

static int post_eviction(const struct eviction *eviction, bool is_trial, struct request_answer *out,
                         struct error *err)
{
    struct buf body;

    buf_init(&body, EVICTION_TEXT_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                         "\"name\":"));
    buf_json(&body, eviction->victim->name);
    buf_put(&body, SLICE(",\"namespace\":"));
    buf_json(&body, eviction->victim->ns);
    buf_put(&body, SLICE("},\"deleteOptions\":{\"preconditions\":{\"uid\":"));
    buf_json(&body, eviction->victim->uid);
    buf_put(&body, is_trial ? SLICE("},\"dryRun\":[\"All\"]}}") : SLICE("}}}"));
    return send_request(eviction,
                        (struct request){.method = "POST",
                                         .suffix = "/eviction",
                                         .content_type = "application/json",
                                         .timeout_ms = EVICTION_CALL_MS},
                        &body, out, err);
}

static int delete_pod(const struct eviction *eviction, struct request_answer *out,
                      struct error *err)
{
    struct buf body;

    buf_init(&body, EVICTION_TEXT_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{"
                         "\"uid\":"));
    buf_json(&body, eviction->victim->uid);
    buf_put(&body, SLICE("}}"));
    return send_request(eviction,
                        (struct request){.method = "DELETE",
                                         .suffix = "",
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
    static const struct pull_field fields[] = {{.key = "reason", .type = PULL_STRING}};
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
    static const struct pull_field fields[] = {
        {.key = "details", .type = PULL_OBJECT, PULL_MEMBERS(details)}};
    bool is_budget = false;
    struct pull json;

    pull_init(&json, answer);
    (void)pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, &is_budget);
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
static enum eviction_result evaluate_answer(const struct eviction *eviction, int rc,
                                            const struct request_answer *answer, struct error *err)
{
    enum eviction_result result = rc < 0 ? EVICTION_UNSENT : read_answer(answer, eviction->arena);
    const struct object_reference *victim = eviction->victim;
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

enum eviction_result eviction_try(const struct eviction *eviction, struct error *err)
{
    struct request_answer answer = {0};
    int rc = post_eviction(eviction, true, &answer, err);

    return evaluate_answer(eviction, rc, &answer, err);
}

enum eviction_result eviction_do(const struct eviction *eviction, bool respects_budgets,
                                 struct error *err)
{
    struct request_answer answer = {0};
    int rc;

    if (!respects_budgets) { /* nothing refuses it: the condition first, as kube-scheduler does */
        put_condition(eviction);
        rc = delete_pod(eviction, &answer, err);
    } else { /* an eviction that succeeds writes its own condition: ours has to come after it */
        rc = post_eviction(eviction, false, &answer, err);
        if (rc == 0 && answer.status / 100 == 2)
            put_condition(eviction);
    }
    return evaluate_answer(eviction, rc, &answer, err);
}
