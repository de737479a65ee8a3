/*
 * What follow asks of the API server beside its lists and watches: single objects, and whatever
 * else is to be sent.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cache/follow_internal.h"
#include "cache/pull_fields.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { FETCH_TIMEOUT_MS = 5000, SEND_TIMEOUT_MS = 10000, ANSWER_BYTES_MAX = 4 << 20 };

enum fetch_state { FETCH_QUEUED, FETCH_SENT, FETCH_DONE };

/* One object that is asked about. */
struct fetch {
    struct fetch *next;
    struct follow *follow;
    struct object_reference reference; /* its strings lie behind the struct */
    enum fetch_state state;
    unsigned waiters; /* callers that will look at the result; the last one frees a done fetch */
    bool has_failed;
    struct buf body;
    char text[];
};

struct request {
    struct request *next;
    struct follow *follow;
    bool is_sent, is_done;
    bool has_waiter; /* who frees it */
    const char *method, *content_type;
    char *path;
    struct slice body;
    int64_t timeout_ms;
    unsigned status;
    struct buf answer;
    char text[]; /* path and body */
};

/* ---- single objects ---- */

static void fetch_free(struct fetch *fetch)
{
    struct follow *follow = fetch->follow;
    struct fetch **link = &follow->fetches;

    while (*link != fetch)
        link = &(*link)->next;
    *link = fetch->next;
    follow->fetch_count--;
    buf_dispose(&fetch->body);
    free(fetch);
}

/* The answer is there: folded in, and whoever waits is told. */
static void fetch_finish(struct fetch *fetch, bool has_failed)
{
    struct follow *follow = fetch->follow;

    (void)pthread_mutex_lock(&follow->mutex);
    fetch->has_failed = has_failed;
    fetch->state = FETCH_DONE;
    if (fetch->waiters == 0)
        fetch_free(fetch);
    (void)pthread_cond_broadcast(&follow->changed);
    (void)pthread_mutex_unlock(&follow->mutex);
}

static bool on_fetched_bytes(void *context, unsigned status, struct slice bytes)
{
    struct fetch *fetch = context;

    if (status == 200)
        buf_put(&fetch->body, bytes);
    return !fetch->body.failed;
}

static void on_fetched(void *context, const struct api_result *result)
{
    struct fetch *fetch = context;
    const struct follow *follow = fetch->follow;
    enum kind kind = fetch->reference.kind;
    struct error err = {0};
    int rc = 0;

    if (result->status == 404 && !result->is_cut)
        fold_absence(&follow->target, &fetch->reference);
    else if (result->status == 200 && !result->is_cut)
        rc = fold_object(&follow->target, kind, buf_slice(&fetch->body),
                         follow->watched[kind].reflector.number, &err);
    else
        rc = error_set(&err, ERROR_UNAVAILABLE, "status %u %s", result->status, result->error);
    if (rc < 0)
        log_warn("the API server could not be asked about an object",
                 LOG_STR("resource", kind_resource(kind)),
                 LOG_SLICE("namespace", fetch->reference.namespace),
                 LOG_SLICE("name", fetch->reference.name), LOG_STR("error", err.message));
    fetch_finish(fetch, rc < 0);
}

static void send_fetch(struct fetch *fetch)
{
    struct error err = {0};
    struct api_call *call;
    struct buf path;

    buf_init(&path, PATH_BYTES_MAX);
    object_path(&path, fetch->reference.kind, fetch->reference.namespace, fetch->reference.name);
    const char *text = buf_text(&path);
    int rc = text == NULL ? ERROR_NO_MEMORY
                          : api_start(fetch->follow->api,
                                      &(struct api_request){.path = text,
                                                            .timeout_ms = FETCH_TIMEOUT_MS,
                                                            .on_bytes = on_fetched_bytes,
                                                            .on_end = on_fetched,
                                                            .context = fetch},
                                      &call, &err);
    buf_dispose(&path);
    if (rc < 0)
        fetch_finish(fetch, true);
}

/* Only this thread moves a fetch on from QUEUED, so that one found stays until it is sent. */
void send_fetches(struct follow *follow)
{
    for (;;) {
        (void)pthread_mutex_lock(&follow->mutex);
        struct fetch *fetch = follow->fetches;
        while (fetch != NULL && fetch->state != FETCH_QUEUED)
            fetch = fetch->next;
        if (fetch != NULL)
            fetch->state = FETCH_SENT;
        (void)pthread_mutex_unlock(&follow->mutex);
        if (fetch == NULL)
            return;
        send_fetch(fetch);
    }
}

/* A fetch that is still to be sent for the object; NULL: too many, or no memory. Under the mutex.
 */
static struct fetch *fetch_obtain(struct follow *follow, const struct object_reference *reference)
{
    for (struct fetch *fetch = follow->fetches; fetch != NULL; fetch = fetch->next)
        if (fetch->state == FETCH_QUEUED && object_reference_equal(&fetch->reference, reference))
            return fetch;
    struct fetch *fetch = follow->fetch_count < FETCHES_MAX
                              ? calloc(1, sizeof *fetch + object_reference_bytes(reference))
                              : NULL;
    if (fetch == NULL)
        return NULL;
    fetch->follow = follow;
    fetch->reference = object_reference_copy(reference, fetch->text);
    buf_init(&fetch->body, FETCH_BYTES_MAX);
    fetch->next = follow->fetches;
    follow->fetches = fetch;
    follow->fetch_count++;
    return fetch;
}

/* Waits for the fetch. Under the mutex. */
static int await(struct follow *follow, struct fetch *fetch, const struct timespec *deadline,
                 struct error *err)
{
    int rc = 0;

    while (fetch->state != FETCH_DONE && !follow->is_interrupted && rc == 0)
        rc = pthread_cond_timedwait(&follow->changed, &follow->mutex, deadline);
    bool is_done = fetch->state == FETCH_DONE, has_failed = fetch->has_failed;
    if (--fetch->waiters == 0 && is_done)
        fetch_free(fetch);
    if (!is_done && follow->is_interrupted)
        return error_set(err, ERROR_UNAVAILABLE, "claimguard is shutting down");
    if (!is_done) {
        follow->unreachable_until_ns = monotonic_ns() + UNREACHABLE_MS * UINT64_C(1000000);
        return error_set(err, ERROR_TIMEOUT, "the API server does not answer in time");
    }
    return has_failed ? error_set(err, ERROR_UNAVAILABLE, "the API server cannot be asked") : 0;
}

int follow_confirm(struct follow *follow, const struct object_reference *references, size_t count,
                   int64_t timeout_ms, struct error *err)
{
    uint64_t deadline_ns = monotonic_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / UINT64_C(1000000000)),
                                .tv_nsec = (long)(deadline_ns % UINT64_C(1000000000))};
    struct fetch *fetches[CONFIRM_MAX];
    size_t asked = 0;
    int rc = 0;

    (void)pthread_mutex_lock(&follow->mutex);
    if (monotonic_ns() < follow->unreachable_until_ns)
        rc = error_set(err, ERROR_UNAVAILABLE, "the API server does not answer");
    while (rc == 0 && asked < count && asked < CONFIRM_MAX) {
        fetches[asked] = fetch_obtain(follow, &references[asked]);
        if (fetches[asked] == NULL)
            rc = error_no_memory(err);
        else
            fetches[asked++]->waiters++;
    }
    if (asked != 0)
        api_wake(follow->api);
    for (size_t i = 0; i < asked; i++) {
        int one = await(follow, fetches[i], &deadline, err);
        rc = one < 0 ? one : rc;
    }
    (void)pthread_mutex_unlock(&follow->mutex);
    return rc;
}

/* ---- requests ---- */

static void request_free(struct request *request)
{
    struct follow *follow = request->follow;
    struct request **link = &follow->requests;

    while (*link != request)
        link = &(*link)->next;
    *link = request->next;
    follow->request_count--;
    buf_dispose(&request->answer);
    free(request);
}

/* The answer is there, or there is none; whoever waits is told. */
static void request_finish(struct request *request, unsigned status)
{
    struct follow *follow = request->follow;

    (void)pthread_mutex_lock(&follow->mutex);
    request->status = status;
    request->is_done = true;
    if (!request->has_waiter)
        request_free(request);
    (void)pthread_cond_broadcast(&follow->changed);
    (void)pthread_mutex_unlock(&follow->mutex);
}

static bool on_answered_bytes(void *context, unsigned status, struct slice bytes)
{
    struct request *request = context;

    (void)status;
    buf_put(&request->answer, bytes);
    return !request->answer.failed;
}

static void on_answered(void *context, const struct api_result *result)
{
    struct request *request = context;
    char status[16];

    (void)snprintf(status, sizeof status, "%u", result->status);
    if (result->status / 100 != 2 && !request->has_waiter)
        log_warn("the API server did not take a request", LOG_STR("method", request->method),
                 LOG_STR("path", request->path), LOG_STR("status", status),
                 LOG_STR("error", result->error));
    request_finish(request, result->is_cut ? 0 : result->status);
}

static void send_request(struct request *request)
{
    struct api_call *call;
    struct error err = {0};
    struct api_request sent = {.method = request->method,
                               .path = request->path,
                               .body = request->body,
                               .content_type = request->content_type,
                               .timeout_ms = request->timeout_ms,
                               .on_bytes = on_answered_bytes,
                               .on_end = on_answered,
                               .context = request};

    if (api_start(request->follow->api, &sent, &call, &err) == 0)
        return;
    log_warn("nothing can be sent to the API server", LOG_STR("error", err.message));
    request_finish(request, 0);
}

/* Only this thread sends requests. */
void send_requests(struct follow *follow)
{
    for (;;) {
        (void)pthread_mutex_lock(&follow->mutex);
        struct request *request = follow->requests;
        while (request != NULL && request->is_sent)
            request = request->next;
        if (request != NULL)
            request->is_sent = true;
        (void)pthread_mutex_unlock(&follow->mutex);
        if (request == NULL)
            return;
        send_request(request);
    }
}

static struct request *request_new(struct follow *follow, const char *method, const char *path,
                                   const char *content_type, struct slice body, int64_t timeout_ms)
{
    size_t path_bytes = strlen(path) + 1;
    struct request *request = calloc(1, sizeof *request + path_bytes + body.len);

    if (request == NULL)
        return NULL;
    request->follow = follow;
    request->method = method;
    request->content_type = content_type;
    request->timeout_ms = timeout_ms;
    request->path = memcpy(request->text, path, path_bytes);
    request->body = (struct slice){request->text + path_bytes, body.len};
    if (body.len != 0)
        memcpy(request->text + path_bytes, body.ptr, body.len);
    buf_init(&request->answer, ANSWER_BYTES_MAX);
    return request;
}

/* Hands it to follow's thread. Under the mutex. */
static void enqueue(struct follow *follow, struct request *request)
{
    request->next = follow->requests;
    follow->requests = request;
    follow->request_count++;
}

void follow_send(struct follow *follow, const char *method, const char *path,
                 const char *content_type, struct slice body)
{
    struct request *request =
        request_new(follow, method, path, content_type, body, SEND_TIMEOUT_MS);

    if (request == NULL)
        return;
    (void)pthread_mutex_lock(&follow->mutex);
    bool is_full = follow->request_count >= REQUESTS_MAX;
    if (!is_full)
        enqueue(follow, request);
    (void)pthread_mutex_unlock(&follow->mutex);
    if (is_full)
        free(request);
    else
        api_wake(follow->api);
}

/* metav1.Status */
static struct slice message_of(struct slice answer, struct arena *arena)
{
    static const struct pull_field fields[] = {{.key = "message", .type = PULL_STRING}};
    struct slice message = {"", 0};
    struct pull json;

    pull_init(&json, answer);
    if (!pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, &message))
        return SLICE("");
    return message;
}

static struct slice copy_body(const struct buf *answer, struct arena *arena)
{
    char *copy = arena_alloc(arena, answer->len + 1);

    if (copy != NULL && answer->len != 0)
        memcpy(copy, answer->bytes, answer->len);
    return (struct slice){copy, copy == NULL ? 0 : answer->len};
}

/* NOLINTNEXTLINE(readability-function-size): nine things, each another one */
int follow_call(struct follow *follow, const char *method, const char *path,
                const char *content_type, struct slice body, int64_t timeout_ms,
                struct arena *arena, struct follow_answer *out, struct error *err)
{
    struct request *request = request_new(follow, method, path, content_type, body, timeout_ms);

    if (request == NULL)
        return error_no_memory(err);
    request->has_waiter = true;
    (void)pthread_mutex_lock(&follow->mutex);
    enqueue(follow, request);
    api_wake(follow->api);
    while (!request->is_done && !follow->is_interrupted) /* the call has a time-out of its own */
        (void)pthread_cond_wait(&follow->changed, &follow->mutex);
    bool is_done = request->is_done;
    request->has_waiter = is_done; /* else the last one who has it frees it */
    (void)pthread_mutex_unlock(&follow->mutex);
    *out = (struct follow_answer){.status = 0};
    if (!is_done)
        return 0;
    out->status = request->status;
    out->body = copy_body(&request->answer, arena);
    if (out->body.ptr == NULL)
        out->status = 0; /* no memory: what it says is unknown */
    else
        out->message = message_of(out->body, arena);
    (void)pthread_mutex_lock(&follow->mutex);
    request_free(request);
    (void)pthread_mutex_unlock(&follow->mutex);
    return 0;
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

void asks_dispose(struct follow *follow)
{
    while (follow->fetches != NULL)
        fetch_free(follow->fetches);
    while (follow->requests != NULL)
        request_free(follow->requests);
}
