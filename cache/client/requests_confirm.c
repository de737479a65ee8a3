/* GETs of single objects, which callers share. */
#include "cache/client/api_path.h"
#include "cache/client/requests_internal.h"

enum {
    OBJECT_TIMEOUT_MS = 5000
}; /* an answer that is too late for its caller still updates the cache */

/* A ticket in the queue that reads the object; NULL: there is none. */
static struct ticket *find(const struct tickets *tickets, const struct object_reference *object)
{
    struct ticket *ticket;

    TAILQ_FOREACH (ticket, tickets, link)
        if (ticket->state == TICKET_QUEUED && object_reference_equal(&ticket->object, object))
            return ticket;
    return NULL;
}

static struct ticket *ask(struct requests *requests, const struct object_reference *object)
{
    struct ticket *ticket = NULL;
    struct buf path;

    buf_init(&path, REQUEST_PATH_BYTES_MAX);
    object_path(&path, object->kind, object->ns, object->name);
    const char *text = buf_text(&path);
    if (text != NULL)
        ticket = ticket_new(requests,
                            &(struct http_request){.path = text, .timeout_ms = OBJECT_TIMEOUT_MS},
                            object, FETCH_BYTES_MAX);
    buf_dispose(&path);
    if (ticket != NULL)
        ticket_queue(ticket);
    return ticket;
}

bool requests_refresh(struct requests *requests, const struct object_reference *object)
{
    (void)pthread_mutex_lock(&requests->mutex);
    struct ticket *ticket = ask(requests, object);
    if (ticket != NULL)
        ticket->is_refresh = true;
    (void)pthread_mutex_unlock(&requests->mutex);
    return ticket != NULL;
}

/* A ticket in the queue that reads the object, with the caller as a waiter. NULL: there are too
 * many, or no memory. Under the mutex. */
static struct ticket *find_or_ask(struct requests *requests, const struct object_reference *object,
                                  struct error *err)
{
    struct ticket *ticket = find(&requests->incoming, object);

    if (ticket == NULL)
        ticket = find(&requests->under_way, object);
    if (ticket == NULL && requests->object_count >= OBJECTS_ASKED_MAX) {
        (void)error_set(err, ERROR_UNAVAILABLE, "over %d objects are being asked about",
                        OBJECTS_ASKED_MAX);
        return NULL;
    }
    if (ticket == NULL)
        ticket = ask(requests, object);
    if (ticket == NULL)
        (void)error_no_memory(err);
    else
        ticket->waiters++;
    return ticket;
}

/* Under the mutex. */
static int await(struct ticket *ticket, const struct timespec *deadline, struct error *err)
{
    int rc = 0;

    if (!ticket_wait(ticket, deadline))
        rc = ticket_give_up(ticket, err);
    else if (ticket->problem.code != 0)
        rc = ticket->problem.code == ERROR_TOO_BIG
                 ? error_set(err, ERROR_TOO_BIG, "%s", ticket->problem.message)
                 : error_set(err, ERROR_UNAVAILABLE, "the API server cannot be asked: %s",
                             ticket->problem.message);
    ticket_leave(ticket);
    return rc;
}

int requests_confirm(struct requests *requests, const struct object_reference *objects,
                     size_t count, int64_t timeout_ms, struct error *err)
{
    struct timespec deadline = ticket_deadline(timeout_ms);
    struct ticket *tickets[CONFIRM_MAX];
    size_t asked = 0;
    int rc = 0;

    (void)pthread_mutex_lock(&requests->mutex);
    for (size_t i = 0; i < count && i < CONFIRM_MAX && rc == 0; i++) {
        if (!object_reference_is_possible(&objects[i]))
            continue; /* no object can have this name */
        tickets[asked] = find_or_ask(requests, &objects[i], err);
        if (tickets[asked] == NULL)
            rc = err->code;
        else
            asked++;
    }
    if (asked != 0)
        http_client_wake(requests->client);
    for (size_t i = 0; i < asked; i++) {
        int one = await(tickets[i], &deadline, err);
        rc = one < 0 ? one : rc;
    }
    (void)pthread_mutex_unlock(&requests->mutex);
    return rc;
}
