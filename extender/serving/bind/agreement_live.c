#include "extender/serving/bind/agreement.h"

#include <stdio.h>

#include "config/base/log.h"
#include "extender/serving/live/requeue.h"

enum {
    READ_EVERY_MS = 5000,
    ABSENT_EVERY_MS = 10000, /* also less than AGREEMENT_FRESH_MS: somebody may create it */
    RETRY_MS = 1000,
    AGREEMENT_ARENA_BYTES_MAX = 4 << 20,
    PATCH_BYTES_MAX = 64 * 1024,
};

void agreement_start(struct state *state, struct slice ns)
{
    struct agreement *agreement = state->agreement;

    (void)snprintf(agreement->path, sizeof agreement->path,
                   "/api/v1/namespaces/%.*s/configmaps/" AGREEMENT_NAME, SLICE_ARG(ns));
    state->agreed = &agreement->classes;
}

/* Once for each problem in a row. */
static void note_problem(struct agreement *agreement, const char *message,
                         const struct request_answer *answer, const struct error *err)
{
    char problem[sizeof agreement->problem];

    if (err->code != 0)
        (void)snprintf(problem, sizeof problem, "%.255s", err->message);
    else
        (void)snprintf(problem, sizeof problem, "status %u: %.*s", answer->status,
                       SLICE_ARG(answer->message));
    if (strcmp(problem, agreement->problem) == 0)
        return;
    (void)snprintf(agreement->problem, sizeof agreement->problem, "%s", problem);
    log_warn(message, LOG_STR("path", agreement->path), LOG_STR("error", problem));
}

/* At the end of a tick. Once ready, it stays ready: what fails later fails for all replicas, and
 * pods without claims can still be bound. */
static void settle(struct state *state, bool is_good)
{
    struct agreement *agreement = state->agreement;

    SCOPED_WRITE_LOCK(&state->lock);
    bool may_be_absent = state->config->read_write_once_pod.claim_lock == CLAIM_LOCK_LOCAL;
    if (agreement->began_ns != 0 || (agreement->is_absent && may_be_absent))
        atomic_store(&agreement->is_ready, true);
    if (is_good)
        agreement->problem[0] = '\0';
}

/* Takes the ConfigMap of an answer. Whether it is one. */
static bool take(struct state *state, const struct request_answer *answer, uint64_t began_ns)
{
    struct agreement *agreement = state->agreement;
    bool has_changed = false;

    (void)pthread_rwlock_wrlock(&state->lock);
    bool is_taken = agreement_take(agreement, answer->body, began_ns, monotonic_ns(), &has_changed);
    (void)pthread_rwlock_unlock(&state->lock);
    if (has_changed) /* what pods wait for may be another now */
        requeue_all(state->requeue, state->api);
    return is_taken;
}

/* Returns the status; 0: unknown. */
static unsigned ask(struct state *state, const char *method, struct slice body, const char *problem,
                    struct arena *arena)
{
    struct agreement *agreement = state->agreement;
    struct request request = {.method = method,
                              .path = agreement->path,
                              .content_type = body.len == 0 ? NULL : "application/merge-patch+json",
                              .body = body,
                              .timeout_ms = AGREEMENT_REQUEST_MS};
    struct request_answer answer = {.status = 0};
    struct error err = {0};
    uint64_t began_ns = monotonic_ns();

    int rc = requests_call(state->api, &request, arena, &answer, &err);
    if (rc == 0 && answer.status == 200 && !take(state, &answer, began_ns))
        (void)error_set(&err, ERROR_INVALID, "it is no ConfigMap that can be followed");
    if (err.code == 0 && (answer.status == 200 || answer.status == 409))
        return answer.status;
    (void)pthread_rwlock_wrlock(&state->lock);
    if (body.len == 0 && (answer.status == 403 || answer.status == 404))
        agreement_miss(agreement);
    note_problem(agreement, problem, &answer, &err);
    (void)pthread_rwlock_unlock(&state->lock);
    return rc == 0 && err.code == 0 ? answer.status : 0;
}

/* What this claimguard has to write. */
static bool propose(struct state *state, struct buf *patch)
{
    SCOPED_WRITE_LOCK(&state->lock);
    return agreement_propose(state->agreement, state->config, monotonic_ns(), now_ms(), patch);
}

static uint64_t next_ms(const struct agreement *agreement, unsigned status)
{
    bool is_refused = status == 403 || status == 404;

    return agreement->is_absent          ? ABSENT_EVERY_MS
           : status == 200 || is_refused ? READ_EVERY_MS
                                         : RETRY_MS;
}

void agreement_tick(struct state *state)
{
    struct agreement *agreement = state->agreement;
    uint64_t began_ns = monotonic_ns();
    SCOPED_ARENA(arena, AGREEMENT_ARENA_BYTES_MAX);
    SCOPED_BUF(patch, PATCH_BYTES_MAX);

    if (agreement->path[0] == '\0' || began_ns < agreement->next_ns)
        return;
    unsigned status =
        ask(state, "GET", SLICE(""), "what claimguards agree on cannot be read", &arena);
    if (status == 200 && propose(state, &patch)) {
        status = ask(state, "PATCH", buf_slice(&patch),
                     "what claimguards agree on cannot be written", &arena);
        if (status == 200)
            log_info("what claimguards agree on is written", LOG_SLICE("patch", buf_slice(&patch)));
    }
    settle(state, status == 200);
    agreement->next_ns = began_ns + next_ms(agreement, status) * NS_PER_MS;
}

int agreement_permits(const struct state *state, struct error *err)
{
    return state->agreed == NULL
               ? 0
               : agreement_check(state->agreement, state->config->read_write_once_pod.claim_lock,
                                 monotonic_ns(), err);
}

bool agreement_is_ready(const struct state *state)
{
    return atomic_load(&state->agreement->is_ready);
}
