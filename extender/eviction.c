#include "extender/eviction.h"

#include "config/base/clock.h"

enum { EVICTION_TEXT_BYTES_MAX = 16 * 1024 };

/* One request about the victim; the text of its body is the caller's. */
static struct follow_answer call(struct follow *follow, const char *method,
                                 const struct object_reference *victim, const char *subresource,
                                 const char *content_type, const struct buf *body,
                                 struct arena *arena)
{
    struct object_call request = {method,       *victim,         subresource,
                                  content_type, buf_slice(body), EVICTION_CALL_MS};
    struct follow_answer answer = {0};
    struct error err = {0};

    if (!body->failed)
        (void)follow_call_object(follow, &request, arena, &answer, &err);
    return answer;
}

/* The pod's condition says who disturbs it. Without one it is evicted all the same. */
static void put_condition(struct follow *follow, const struct object_reference *victim,
                          struct arena *arena)
{
    struct buf body;

    buf_init(&body, EVICTION_TEXT_BYTES_MAX);
    buf_put(&body, SLICE("{\"metadata\":{\"uid\":"));
    buf_json(&body, victim->uid);
    buf_put(&body, SLICE("},\"status\":{\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":"
                         "\"True\",\"reason\":\"PreemptionByScheduler\",\"message\":\"claimguard: "
                         "preempting to accommodate a higher priority pod\","
                         "\"lastTransitionTime\":\""));
    buf_time(&body, now_ms(), false);
    buf_put(&body, SLICE("\"}]}}"));
    (void)call(follow, "PATCH", victim, "/status", "application/strategic-merge-patch+json", &body,
               arena);
    buf_dispose(&body);
}

static struct follow_answer post_eviction(struct follow *follow,
                                          const struct object_reference *victim, bool is_trial,
                                          struct arena *arena)
{
    struct buf body;

    buf_init(&body, EVICTION_TEXT_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{"
                         "\"name\":"));
    buf_json(&body, victim->name);
    buf_put(&body, SLICE(",\"namespace\":"));
    buf_json(&body, victim->namespace);
    buf_put(&body, SLICE("},\"deleteOptions\":{\"preconditions\":{\"uid\":"));
    buf_json(&body, victim->uid);
    buf_put(&body, is_trial ? SLICE("},\"dryRun\":[\"All\"]}}") : SLICE("}}}"));
    struct follow_answer answer =
        call(follow, "POST", victim, "/eviction", "application/json", &body, arena);
    buf_dispose(&body);
    return answer;
}

static struct follow_answer delete_pod(struct follow *follow, const struct object_reference *victim,
                                       struct arena *arena)
{
    struct buf body;

    buf_init(&body, EVICTION_TEXT_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{"
                         "\"uid\":"));
    buf_json(&body, victim->uid);
    buf_put(&body, SLICE("}}"));
    struct follow_answer answer =
        call(follow, "DELETE", victim, "", "application/json", &body, arena);
    buf_dispose(&body);
    return answer;
}

static int judge_answer(const struct object_reference *victim, const struct follow_answer *answer,
                        struct error *err)
{
    unsigned status = answer->status;

    if (status / 100 == 2 || status == 404 || status == 409) /* gone, or another of that name */
        return 0;
    return error_set(err, status == 429 ? ERROR_INVALID : ERROR_UNAVAILABLE,
                     "pod %.*s/%.*s cannot be evicted: %.*s (status %u)",
                     SLICE_ARG(victim->namespace), SLICE_ARG(victim->name),
                     SLICE_ARG(answer->message), status);
}

int eviction_try(struct follow *follow, const struct object_reference *victim, struct arena *arena,
                 struct error *err)
{
    struct follow_answer answer = post_eviction(follow, victim, true, arena);

    return judge_answer(victim, &answer, err);
}

int eviction_do(struct follow *follow, const struct object_reference *victim, bool respects_budgets,
                struct arena *arena, bool *is_evicted, struct error *err)
{
    struct follow_answer answer;

    if (!respects_budgets) { /* nothing refuses it: the condition first, as kube-scheduler does */
        put_condition(follow, victim, arena);
        answer = delete_pod(follow, victim, arena);
    } else { /* the API server writes a condition of its own when it evicts: ours comes after */
        answer = post_eviction(follow, victim, false, arena);
        if (answer.status / 100 == 2)
            put_condition(follow, victim, arena);
    }
    *is_evicted = answer.status / 100 == 2;
    return judge_answer(victim, &answer, err);
}
