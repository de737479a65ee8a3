/*
 * What is asked of the API server beside lists and watches: a queue, from any thread to follow's,
 * and the way back.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cache/json/pull_fields.h"
#include "cache/watch/informer_internal.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { MESSAGE_TIMEOUT_MS = 10000, ANSWER_BYTES_MAX = 4 << 20 };

static bool is_message(const struct request *request)
{
    return request->sent.class == API_MESSAGE;
}

static bool is_about_object(const struct request *request)
{
    return request->object.kind != KIND_OTHER;
}

/* ---- a request's life ---- */

static void request_free(struct request *request)
{
    struct follow *follow = request->follow;

    TAILQ_REMOVE(request->is_handed_over ? &follow->under_way : &follow->incoming, request, link);
    follow->object_count -= is_about_object(request);
    follow->message_count -= is_message(request);
    buf_dispose(&request->answer);
    free(request);
}

/* Its turn has come. False: nobody wants it any more. */
static bool on_turn(void *context)
{
    struct request *request = context;
    struct follow *follow = request->follow;

    (void)pthread_mutex_lock(&follow->mutex);
    bool is_wanted = is_message(request) || request->is_own || request->waiters != 0;
    request->asked_ns = monotonic_ns();
    if (is_wanted)
        request->state = REQUEST_SENT;
    else
        request_free(request);
    (void)pthread_mutex_unlock(&follow->mutex);
    return is_wanted;
}

static bool on_bytes(void *context, unsigned status, struct slice bytes)
{
    struct request *request = context;

    if (status == 200 || status == 404 || !is_about_object(request))
        buf_put(&request->answer, bytes);
    return !request->answer.failed;
}

/* Nobody else will look at how it ended. */
static void tell_failed(const struct request *request, const struct api_result *result)
{
    char status[16];

    (void)snprintf(status, sizeof status, "%u", result->status);
    log_warn("the API server did not take a request", LOG_STR("method", request->sent.method),
             LOG_STR("path", request->sent.path), LOG_STR("status", status),
             LOG_STR("error", result->error));
}

static void on_end(void *context, const struct api_result *result)
{
    struct request *request = context;
    struct follow *follow = request->follow;

    if (result->is_cut)
        (void)error_set(&request->problem, ERROR_UNAVAILABLE, "%s", result->error);
    if (is_about_object(request))
        take_object(request, result);
    else if (is_message(request) && result->status / 100 != 2)
        tell_failed(request, result);
    (void)pthread_mutex_lock(&follow->mutex);
    request->status = result->is_cut ? 0 : result->status;
    request->is_unsent = result->is_unsent;
    request->state = REQUEST_DONE;
    if (request->waiters == 0)
        request_free(request);
    (void)pthread_cond_broadcast(&follow->changed);
    (void)pthread_mutex_unlock(&follow->mutex);
}

struct request *request_new(struct follow *follow, const struct api_request *sent,
                            const struct object_reference *object, size_t max_bytes)
{
    size_t path_bytes = strlen(sent->path) + 1;
    size_t object_bytes = object == NULL ? 0 : object_reference_bytes(object);
    struct request *request =
        calloc(1, sizeof *request + path_bytes + sent->body.len + object_bytes);

    if (request == NULL)
        return NULL;
    request->follow = follow;
    request->sent = *sent;
    request->sent.path = memcpy(request->text, sent->path, path_bytes);
    char *body = request->text + path_bytes, *rest = body + sent->body.len;
    if (sent->body.len != 0)
        memcpy(body, sent->body.ptr, sent->body.len);
    request->sent.body.ptr = body;
    request->sent.on_turn = on_turn;
    request->sent.on_bytes = on_bytes;
    request->sent.on_end = on_end;
    request->sent.context = request;
    request->object.kind = KIND_OTHER;
    if (object != NULL)
        request->object = object_reference_copy(object, rest);
    buf_init(&request->answer, max_bytes);
    return request;
}

void request_queue(struct request *request)
{
    struct follow *follow = request->follow;

    TAILQ_INSERT_TAIL(&follow->incoming, request, link);
    follow->object_count += is_about_object(request);
    follow->message_count += is_message(request);
}

void request_leave(struct request *request)
{
    bool is_last = --request->waiters == 0;

    if (is_last &&
        (request->state == REQUEST_DONE || (!request->is_handed_over && !request->is_own)))
        request_free(request); /* else it is freed when its turn comes, or when it is over */
}

/* Only this thread takes requests from the queue, and frees those that are under way. */
void hand_over(struct follow *follow)
{
    for (;;) {
        struct error err = {0};
        struct api_call *call;
        (void)pthread_mutex_lock(&follow->mutex);
        struct request *request = TAILQ_FIRST(&follow->incoming);
        if (request != NULL) {
            TAILQ_REMOVE(&follow->incoming, request, link);
            TAILQ_INSERT_TAIL(&follow->under_way, request, link);
            request->is_handed_over = true;
        }
        (void)pthread_mutex_unlock(&follow->mutex);
        if (request == NULL)
            return;
        if (api_start(follow->api, &request->sent, &call, &err) < 0) {
            struct api_result result = {
                .is_cut = true, .is_unsent = true, .error = "it cannot be sent"};
            log_warn("nothing can be sent to the API server", LOG_STR("error", err.message));
            on_end(request, &result);
        }
    }
}

void requests_dispose(struct follow *follow)
{
    while (!TAILQ_EMPTY(&follow->incoming))
        request_free(TAILQ_FIRST(&follow->incoming));
    while (!TAILQ_EMPTY(&follow->under_way))
        request_free(TAILQ_FIRST(&follow->under_way));
}

/* ---- those who wait ---- */

struct timespec deadline_in(int64_t timeout_ms)
{
    return monotonic_timespec(monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS);
}

bool request_wait(const struct request *request, const struct timespec *deadline)
{
    struct follow *follow = request->follow;
    int rc = 0;

    while (request->state != REQUEST_DONE && !follow->is_interrupted && rc == 0)
        rc = pthread_cond_timedwait(&follow->changed, &follow->mutex, deadline);
    return request->state == REQUEST_DONE;
}

int request_give_up(const struct request *request, struct error *err)
{
    return request->follow->is_interrupted
               ? error_set(err, ERROR_UNAVAILABLE, "claimguard is shutting down")
               : error_set(err, ERROR_TIMEOUT, "the API server does not answer in time");
}

void follow_interrupt(struct follow *follow)
{
    if (follow == NULL)
        return;
    (void)pthread_mutex_lock(&follow->mutex);
    follow->is_interrupted = true;
    (void)pthread_cond_broadcast(&follow->changed);
    (void)pthread_mutex_unlock(&follow->mutex);
}

bool follow_is_silent(struct follow *follow)
{
    return api_unanswered_ms(follow->api) >= UNANSWERED_MS;
}

/* ---- follow_send and follow_call ---- */

bool follow_send(struct follow *follow, const char *method, const char *path,
                 const char *content_type, struct slice body)
{
    struct api_request sent = {.method = method,
                               .path = path,
                               .body = body,
                               .content_type = content_type,
                               .timeout_ms = MESSAGE_TIMEOUT_MS,
                               .class = API_MESSAGE};

    (void)pthread_mutex_lock(&follow->mutex);
    struct request *request = follow->message_count < MESSAGES_MAX
                                  ? request_new(follow, &sent, NULL, ANSWER_BYTES_MAX)
                                  : NULL;
    if (request != NULL)
        request_queue(request);
    (void)pthread_mutex_unlock(&follow->mutex);
    if (request != NULL)
        api_wake(follow->api);
    return request != NULL;
}

struct slice status_message(struct slice answer, struct arena *arena)
{
    static const struct pull_field fields[] = {{.key = "message", .type = PULL_STRING}};
    struct slice message = {"", 0};
    struct pull json;

    pull_init(&json, answer);
    /* what was read before a problem is whole: the answer may be a part of one */
    (void)pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, &message);
    return message;
}

/* The answer, in the caller's arena. */
static void copy_answer(const struct request *request, struct arena *arena,
                        struct follow_answer *out)
{
    char *copy = arena_alloc(arena, request->answer.len + 1);

    if (copy == NULL)
        return; /* what it says is unknown */
    if (request->answer.len != 0)
        memcpy(copy, request->answer.bytes, request->answer.len);
    out->status = request->status;
    out->body = (struct slice){copy, request->answer.len};
    out->message = status_message(out->body, arena);
}

/* NOLINTNEXTLINE(readability-function-size): nine things, each another one */
int follow_call(struct follow *follow, const char *method, const char *path,
                const char *content_type, struct slice body, int64_t timeout_ms,
                struct arena *arena, struct follow_answer *out, struct error *err)
{
    struct timespec deadline = deadline_in(timeout_ms);
    enum api_class class = strcmp(method, "GET") == 0 ? API_READ : API_WRITE;
    struct api_request sent = {method, path, body, content_type, timeout_ms, .class = class};
    struct request *request = request_new(follow, &sent, NULL, ANSWER_BYTES_MAX);
    int rc = 0;

    *out = (struct follow_answer){.status = 0};
    if (request == NULL)
        return error_no_memory(err);
    request->waiters = 1;
    (void)pthread_mutex_lock(&follow->mutex);
    request_queue(request);
    api_wake(follow->api);
    if (!request_wait(request, &deadline)) {
        if (request->state == REQUEST_QUEUED)
            rc = request_give_up(request, err);
    } else if (request->is_unsent) {
        rc = error_set(err, ERROR_UNAVAILABLE, "%s", request->problem.message);
    } else {
        (void)pthread_mutex_unlock(&follow->mutex);
        copy_answer(request, arena, out); /* it is nobody else's now */
        (void)pthread_mutex_lock(&follow->mutex);
    }
    request_leave(request);
    (void)pthread_mutex_unlock(&follow->mutex);
    return rc;
}
