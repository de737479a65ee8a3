#include "extender/eviction.h"

#include "config/base/clock.h"

enum { EVICTION_TEXT_BYTES_MAX = 16 * 1024 };

/* Requests about one pod. */
struct eviction {
    struct follow *follow;
    const struct object_reference *victim;
    uint64_t deadline_ns;
    struct arena *arena;
};

static int64_t left_ms(const struct eviction *eviction)
{
    uint64_t now_ns = monotonic_ns();

    return now_ns >= eviction->deadline_ns ? 0
                                           : (int64_t)((eviction->deadline_ns - now_ns) / 1000000);
}

/* One request; the text of its body is the caller's. */
static struct follow_answer call(const struct eviction *eviction, const char *method,
                                 const char *subresource, const char *content_type,
                                 const struct buf *body, int64_t most_ms)
{
    int64_t timeout_ms = left_ms(eviction) < most_ms ? left_ms(eviction) : most_ms;
    struct object_call request = {method,       *eviction->victim, subresource,
                                  content_type, buf_slice(body),   timeout_ms};
    struct follow_answer answer = {0};
    struct error err = {0};

    if (!body->failed && request.timeout_ms > 0)
        (void)follow_call_object(eviction->follow, &request, eviction->arena, &answer, &err);
    return answer;
}

/* The pod's condition says who disturbs it. Without one it is evicted all the same. */
static void put_condition(const struct eviction *eviction)
{
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
    (void)call(eviction, "PATCH", "/status", "application/strategic-merge-patch+json", &body,
               CONDITION_CALL_MS);
    buf_dispose(&body);
}

static struct follow_answer post_eviction(const struct eviction *eviction, bool is_trial)
{
    struct buf body;

    buf_init(&body, EVICTION_TEXT_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                         "\"name\":"));
    buf_json(&body, eviction->victim->name);
    buf_put(&body, SLICE(",\"namespace\":"));
    buf_json(&body, eviction->victim->namespace);
    buf_put(&body, SLICE("},\"deleteOptions\":{\"preconditions\":{\"uid\":"));
    buf_json(&body, eviction->victim->uid);
    buf_put(&body, is_trial ? SLICE("},\"dryRun\":[\"All\"]}}") : SLICE("}}}"));
    struct follow_answer answer =
        call(eviction, "POST", "/eviction", "application/json", &body, EVICTION_CALL_MS);
    buf_dispose(&body);
    return answer;
}

static struct follow_answer delete_pod(const struct eviction *eviction)
{
    struct buf body;

    buf_init(&body, EVICTION_TEXT_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{"
                         "\"uid\":"));
    buf_json(&body, eviction->victim->uid);
    buf_put(&body, SLICE("}}"));
    struct follow_answer answer =
        call(eviction, "DELETE", "", "application/json", &body, EVICTION_CALL_MS);
    buf_dispose(&body);
    return answer;
}

static int judge_answer(const struct object_reference *victim, const struct follow_answer *answer,
                        struct error *err)
{
    unsigned status = answer->status;
    bool is_unknown = status == 0 || status >= 500;

    if (status / 100 == 2 || status == 404 || status == 409) /* gone, or another of that name */
        return 0;
    return error_set(err,
                     status == 429 ? ERROR_INVALID
                     : is_unknown  ? ERROR_TIMEOUT
                                   : ERROR_UNAVAILABLE,
                     "pod %.*s/%.*s cannot be evicted: %.*s (status %u)",
                     SLICE_ARG(victim->namespace), SLICE_ARG(victim->name),
                     SLICE_ARG(answer->message), status);
}

/* An error where the time is over. */
static int check_time(const struct eviction *eviction, struct error *err)
{
    return left_ms(eviction) == 0 ? error_set(err, ERROR_UNAVAILABLE,
                                              "pod %.*s/%.*s cannot be evicted: the API "
                                              "server is slow",
                                              SLICE_ARG(eviction->victim->namespace),
                                              SLICE_ARG(eviction->victim->name))
                                  : 0;
}

int eviction_try(struct follow *follow, const struct object_reference *victim, uint64_t deadline_ns,
                 struct arena *arena, struct error *err)
{
    const struct eviction eviction = {follow, victim, deadline_ns, arena};

    if (check_time(&eviction, err) < 0)
        return err->code;
    struct follow_answer answer = post_eviction(&eviction, true);
    return judge_answer(victim, &answer, err);
}

int eviction_do(struct follow *follow, const struct object_reference *victim, bool respects_budgets,
                uint64_t deadline_ns, struct arena *arena, bool *is_evicted, struct error *err)
{
    const struct eviction eviction = {follow, victim, deadline_ns, arena};
    struct follow_answer answer;

    *is_evicted = false;
    if (check_time(&eviction, err) < 0)
        return err->code;
    if (!respects_budgets) { /* nothing refuses it: the condition first, as kube-scheduler does */
        put_condition(&eviction);
        answer = delete_pod(&eviction);
    } else { /* the API server writes a condition of its own when it evicts: ours comes after */
        answer = post_eviction(&eviction, false);
        if (answer.status / 100 == 2)
            put_condition(&eviction);
    }
    *is_evicted = answer.status / 100 == 2;
    return judge_answer(victim, &answer, err);
}
