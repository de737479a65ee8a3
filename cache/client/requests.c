#include <stdio.h>
#include <stdlib.h>

#include "cache/client/api_path.h"
#include "cache/client/requests_internal.h"
#include "cache/json/pull_fields.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { MESSAGE_TIMEOUT_MS = 10000, ANSWER_BYTES_MAX = 4 << 20 };

static bool is_message(const struct ticket *ticket)
{
    return ticket->sent.class == HTTP_MESSAGE;
}

static bool is_about_object(const struct ticket *ticket)
{
    return ticket->object.kind != KIND_OTHER;
}

/* ---- a ticket's life ---- */

static void ticket_free(struct ticket *ticket)
{
    struct requests *requests = ticket->requests;

    ticket_unshare(ticket);
    (void)pthread_cond_destroy(&ticket->done);
    TAILQ_REMOVE(ticket->is_handed_over ? &requests->under_way : &requests->incoming, ticket, link);
    requests->object_count -= is_about_object(ticket);
    requests->message_count -= is_message(ticket);
    requests->objects_in[ticket->sent.share] -= is_about_object(ticket);
    requests->messages_in[ticket->sent.share] -= is_message(ticket);
    buf_wipe(&ticket->answer); /* it may be a Secret */
    free(ticket);
}

/* The ticket can be sent now. False: no caller waits for it. */
static bool on_turn(void *context)
{
    struct ticket *ticket = context;
    struct requests *requests = ticket->requests;

    (void)pthread_mutex_lock(&requests->mutex);
    bool is_wanted = is_message(ticket) || ticket->is_refresh || ticket->waiters != 0;
    ticket->sent_ns = monotonic_ns();
    ticket_unshare(ticket);
    if (is_wanted)
        ticket->state = TICKET_SENT;
    else
        ticket_free(ticket);
    (void)pthread_mutex_unlock(&requests->mutex);
    return is_wanted;
}

static bool on_bytes(void *context, unsigned status, struct slice bytes)
{
    struct ticket *ticket = context;

    if (!is_about_object(ticket)) {
        buf_put(&ticket->answer, bytes);
        return !ticket->answer.failed;
    }
    return (status != 200 && status != 404) || ticket_take(ticket, bytes);
}

/* Passes the answer to a GET of an object to the observer. */
static void observe(struct ticket *ticket, const struct http_result *result)
{
    const struct requests_observer *observer = &ticket->requests->observer;
    struct object_answer answer = {.object = ticket->object,
                                   .body = buf_slice(&ticket->answer),
                                   .status = result->status,
                                   .is_cut = result->is_cut,
                                   .error = result->error,
                                   .sent_ns = ticket->sent_ns,
                                   .is_refresh = ticket->is_refresh};
    struct error err = {0};

    if (observer->answered(observer->context, &answer, &err) < 0)
        ticket->problem = err;
    ticket_return(ticket); /* a caller may wait long for other objects */
}

/* Logs a failure that no caller waits for. */
static void log_failure(const struct ticket *ticket, const struct http_result *result)
{
    char status[16];

    (void)snprintf(status, sizeof status, "%u", result->status);
    log_warn("the API server did not take a request", LOG_STR("method", ticket->sent.method),
             LOG_STR("path", ticket->sent.path), LOG_STR("status", status),
             LOG_STR("error", result->error));
}

static void on_end(void *context, const struct http_result *result)
{
    struct ticket *ticket = context;
    struct requests *requests = ticket->requests;

    if (result->is_cut)
        (void)error_set(&ticket->problem, ERROR_UNAVAILABLE, "%s", result->error);
    if (is_about_object(ticket))
        observe(ticket, result);
    else if (is_message(ticket) && result->status / 100 != 2 &&
             !(ticket->may_exist && result->status == 409))
        log_failure(ticket, result);
    (void)pthread_mutex_lock(&requests->mutex);
    ticket->status = result->is_cut ? 0 : result->status;
    ticket->is_unsent = result->is_unsent;
    ticket->state = TICKET_DONE;
    if (ticket->waiters == 0)
        ticket_free(ticket);
    else
        (void)pthread_cond_broadcast(&ticket->done);
    (void)pthread_mutex_unlock(&requests->mutex);
}

struct ticket *ticket_new(struct requests *requests, const struct http_request *sent,
                          const struct object_reference *object, size_t max_bytes)
{
    size_t path_bytes = strlen(sent->path) + 1;
    size_t object_bytes = object == NULL ? 0 : object_reference_bytes(object);
    struct ticket *ticket = calloc(1, sizeof *ticket + path_bytes + sent->body.len + object_bytes);

    if (ticket == NULL)
        return NULL;
    ticket->requests = requests;
    ticket->sent = *sent;
    ticket->sent.path = memcpy(ticket->text, sent->path, path_bytes);
    char *body = ticket->text + path_bytes, *rest = body + sent->body.len;
    if (sent->body.len != 0)
        memcpy(body, sent->body.ptr, sent->body.len);
    ticket->sent.body.ptr = body;
    ticket->sent.on_turn = on_turn;
    ticket->sent.on_bytes = on_bytes;
    ticket->sent.on_end = on_end;
    ticket->sent.context = ticket;
    ticket->object.kind = KIND_OTHER;
    if (object != NULL)
        ticket->object = object_reference_copy(object, rest);
    buf_init(&ticket->answer, max_bytes);
    clock_init_cond(&ticket->done);
    return ticket;
}

void ticket_queue(struct ticket *ticket)
{
    struct requests *requests = ticket->requests;

    TAILQ_INSERT_TAIL(&requests->incoming, ticket, link);
    requests->object_count += is_about_object(ticket);
    requests->message_count += is_message(ticket);
    requests->objects_in[ticket->sent.share] += is_about_object(ticket);
    requests->messages_in[ticket->sent.share] += is_message(ticket);
    if (is_about_object(ticket))
        ticket_share(ticket);
}

void ticket_leave(struct ticket *ticket)
{
    bool is_last = --ticket->waiters == 0;

    if (is_last &&
        (ticket->state == TICKET_DONE || (!ticket->is_handed_over && !ticket->is_refresh)))
        ticket_free(ticket); /* else it is freed when it can be sent, or when it ends */
}

/* Only this thread takes tickets from the queue, and frees those that are under way. */
void requests_hand_over(struct requests *requests)
{
    for (;;) {
        struct error err = {0};
        struct http_transfer *transfer;
        (void)pthread_mutex_lock(&requests->mutex);
        struct ticket *ticket = TAILQ_FIRST(&requests->incoming);
        if (ticket != NULL) {
            TAILQ_REMOVE(&requests->incoming, ticket, link);
            TAILQ_INSERT_TAIL(&requests->under_way, ticket, link);
            ticket->is_handed_over = true;
        }
        (void)pthread_mutex_unlock(&requests->mutex);
        if (ticket == NULL)
            return;
        if (http_client_start(requests->client, &ticket->sent, &transfer, &err) < 0) {
            struct http_result result = {
                .is_cut = true, .is_unsent = true, .error = "it cannot be sent"};
            log_warn("nothing can be sent to the API server", LOG_STR("error", err.message));
            on_end(ticket, &result);
        }
    }
}

struct requests *requests_new(struct http_client *client, const struct requests_observer *observer)
{
    struct requests *requests = calloc(1, sizeof *requests);

    if (requests == NULL)
        return NULL;
    requests->client = client;
    requests->observer = *observer;
    TAILQ_INIT(&requests->incoming);
    TAILQ_INIT(&requests->under_way);
    (void)pthread_mutex_init(&requests->mutex, NULL);
    return requests;
}

void requests_free(struct requests *requests)
{
    if (requests == NULL)
        return;
    while (!TAILQ_EMPTY(&requests->incoming))
        ticket_free(TAILQ_FIRST(&requests->incoming));
    while (!TAILQ_EMPTY(&requests->under_way))
        ticket_free(TAILQ_FIRST(&requests->under_way));
    (void)pthread_mutex_destroy(&requests->mutex);
    free(requests);
}

/* ---- callers that wait ---- */

struct timespec ticket_deadline(int64_t timeout_ms)
{
    return monotonic_timespec(monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS);
}

bool ticket_wait(struct ticket *ticket, const struct timespec *deadline)
{
    struct requests *requests = ticket->requests;
    int rc = 0;

    while (ticket->state != TICKET_DONE && !requests->is_interrupted && rc == 0)
        rc = pthread_cond_timedwait(&ticket->done, &requests->mutex, deadline);
    return ticket->state == TICKET_DONE;
}

int ticket_give_up(const struct ticket *ticket, struct error *err)
{
    return ticket->requests->is_interrupted
               ? error_set(err, ERROR_UNAVAILABLE, "claimguard is shutting down")
               : error_set(err, ERROR_TIMEOUT, "the API server does not answer in time");
}

static void wake_waiters(struct tickets *tickets)
{
    struct ticket *ticket;

    TAILQ_FOREACH (ticket, tickets, link)
        (void)pthread_cond_broadcast(&ticket->done);
}

void requests_interrupt(struct requests *requests)
{
    if (requests == NULL)
        return;
    (void)pthread_mutex_lock(&requests->mutex);
    requests->is_interrupted = true;
    wake_waiters(&requests->incoming);
    wake_waiters(&requests->under_way);
    (void)pthread_mutex_unlock(&requests->mutex);
}

bool requests_are_silent(struct requests *requests)
{
    return http_client_unanswered_ms(requests->client) >= UNANSWERED_MS;
}

/* ---- requests_send and requests_call ---- */

static unsigned share_of_request(const struct request *request)
{
    return share_of(request->path == NULL ? request->object.ns : request->ns);
}

/* A ticket for the request. NULL: no memory. */
static struct ticket *ticket_for(struct requests *requests, const struct request *request,
                                 enum http_class class, int64_t timeout_ms)
{
    struct ticket *ticket = NULL;
    struct buf path;

    buf_init(&path, REQUEST_PATH_BYTES_MAX);
    request_path(&path, request);
    const char *text = buf_text(&path);
    if (text != NULL)
        ticket = ticket_new(requests,
                            &(struct http_request){.method = request->method,
                                                   .path = text,
                                                   .body = request->body,
                                                   .content_type = request->content_type,
                                                   .timeout_ms = timeout_ms,
                                                   .class = class,
                                                   .share = share_of_request(request)},
                            NULL, ANSWER_BYTES_MAX);
    buf_dispose(&path);
    return ticket;
}

bool requests_send(struct requests *requests, const struct request *request)
{
    (void)pthread_mutex_lock(&requests->mutex);
    size_t of_share = requests->messages_in[share_of_request(request)];
    struct ticket *ticket = ticket_is_over(requests->message_count, of_share, MESSAGES_MAX)
                                ? NULL
                                : ticket_for(requests, request, HTTP_MESSAGE, MESSAGE_TIMEOUT_MS);
    if (ticket != NULL) {
        ticket->may_exist = request->may_exist;
        ticket_queue(ticket);
    }
    (void)pthread_mutex_unlock(&requests->mutex);
    if (ticket != NULL)
        http_client_wake(requests->client);
    return ticket != NULL;
}

void requests_wake(struct requests *requests)
{
    http_client_wake(requests->client);
}

struct slice request_status_message(struct slice answer, struct arena *arena)
{
    static const struct pull_field fields[] = {{.key = "message", .type = PULL_STRING}};
    struct slice message = {"", 0};

    /* fields before a problem are valid: the answer may be only a beginning */
    (void)pull_fields_of(answer, fields, PULL_FIELD_COUNT(fields), arena, &message);
    return message;
}

/* The answer, in the caller's arena. */
static void copy_answer(const struct ticket *ticket, struct arena *arena,
                        struct request_answer *out)
{
    struct slice copy = arena_copy(arena, buf_slice(&ticket->answer));

    if (copy.ptr == NULL)
        return; /* the answer is not complete */
    *out = (struct request_answer){ticket->status, copy, request_status_message(copy, arena)};
}

int requests_call(struct requests *requests, const struct request *request, struct arena *arena,
                  struct request_answer *out, struct error *err)
{
    struct timespec deadline = ticket_deadline(request->timeout_ms);
    enum http_class class = strcmp(request->method, "GET") == 0 ? HTTP_READ : HTTP_WRITE;
    struct ticket *ticket = ticket_for(requests, request, class, request->timeout_ms);
    int rc = 0;

    *out = (struct request_answer){.status = 0};
    if (ticket == NULL)
        return error_no_memory(err);
    ticket->waiters = 1;
    (void)pthread_mutex_lock(&requests->mutex);
    ticket_queue(ticket);
    http_client_wake(requests->client);
    if (!ticket_wait(ticket, &deadline)) {
        if (ticket->state == TICKET_QUEUED)
            rc = ticket_give_up(ticket, err);
    } else if (ticket->is_unsent) {
        rc = error_set(err, ERROR_UNAVAILABLE, "%s", ticket->problem.message);
    } else {
        (void)pthread_mutex_unlock(&requests->mutex);
        copy_answer(ticket, arena, out); /* a ticket that is done belongs to its waiter */
        (void)pthread_mutex_lock(&requests->mutex);
    }
    ticket_leave(ticket);
    (void)pthread_mutex_unlock(&requests->mutex);
    return rc;
}
