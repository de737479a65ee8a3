/* GETs of single objects, which callers share. */
#include "cache/client/api_path.h"
#include "cache/client/requests_internal.h"

enum {
    OBJECT_TIMEOUT_MS = 5000
}; /* an answer that is too late for its caller still updates the cache */

/* ---- a GET that another caller may wait for, too ---- */

/* In the ticket's text, the UID follows the path and its NUL: there is no body. */
void ticket_share(struct ticket *ticket)
{
    struct requests *requests = ticket->requests;
    size_t bytes = strlen(ticket->sent.path) + 1 + ticket->object.uid.len;

    HASH_ADD_KEYPTR(hh, requests->askable, ticket->text, bytes, ticket);
    ticket->is_askable = ticket->hh.tbl != NULL; /* else nobody shares it */
}

void ticket_unshare(struct ticket *ticket)
{
    struct requests *requests = ticket->requests;

    if (ticket->is_askable)
        HASH_DEL(requests->askable, ticket);
    ticket->is_askable = false;
}

/* A ticket in the queue that reads the object, whose path that is; NULL: there is none. */
static struct ticket *ticket_find(const struct requests *requests, const char *path,
                                  struct slice uid)
{
    struct ticket *found = NULL;
    struct buf key;

    if (requests->askable == NULL)
        return NULL;
    buf_init(&key, REQUEST_PATH_BYTES_MAX);
    buf_put(&key, (struct slice){path, strlen(path) + 1});
    buf_put(&key, uid);
    if (!key.failed)
        HASH_FIND(hh, requests->askable, key.bytes, key.len, found);
    buf_dispose(&key);
    return found;
}

/* ---- the bytes of answers ---- */

static void count_bytes(struct ticket *ticket, size_t more, size_t fewer)
{
    struct requests *requests = ticket->requests;

    requests->bytes += more - fewer;
    requests->bytes_in[ticket->sent.share] += (uint32_t)(more - fewer);
}

bool ticket_take(struct ticket *ticket, struct slice bytes)
{
    const struct requests *requests = ticket->requests;
    size_t before = ticket->answer.len;

    if (share_is_over(requests->bytes_in[ticket->sent.share], requests->bytes, bytes.len,
                      ANSWERS_BYTES_MAX, REQUESTS_SHARE))
        return false;
    buf_put(&ticket->answer, bytes);
    count_bytes(ticket, ticket->answer.len, before);
    return !ticket->answer.failed;
}

void ticket_return(struct ticket *ticket)
{
    count_bytes(ticket, 0, ticket->answer.len);
    buf_dispose(&ticket->answer);
}

/* ---- asking ---- */

/* Queues a GET of the object, whose path that is. NULL: no memory. Under the mutex. */
static struct ticket *ask(struct requests *requests, const struct object_reference *object,
                          const char *path)
{
    struct ticket *ticket = ticket_new(requests,
                                       &(struct http_request){.path = path,
                                                              .timeout_ms = OBJECT_TIMEOUT_MS,
                                                              .share = share_of(object->ns)},
                                       object, FETCH_BYTES_MAX);

    if (ticket != NULL)
        ticket_queue(ticket);
    return ticket;
}

/* A ticket in the queue that reads the object. is_refresh: of a namespace, there may be any number.
 * NULL: there are too many, or no memory. Under the mutex. */
static struct ticket *find_or_ask(struct requests *requests, const struct object_reference *object,
                                  bool is_refresh, struct error *err)
{
    size_t of_share = is_refresh ? 0 : requests->objects_in[share_of(object->ns)];
    struct buf path;

    buf_init(&path, REQUEST_PATH_BYTES_MAX);
    object_path(&path, object->kind, object->ns, object->name);
    const char *text = buf_text(&path);
    struct ticket *ticket = text == NULL ? NULL : ticket_find(requests, text, object->uid);
    bool is_over =
        ticket == NULL && ticket_is_over(requests->object_count, of_share, OBJECTS_ASKED_MAX);
    if (text != NULL && ticket == NULL && !is_over)
        ticket = ask(requests, object, text);
    buf_dispose(&path);
    if (is_over)
        (void)error_set(err, ERROR_UNAVAILABLE,
                        "over %d objects are being asked about, or as many as the namespace may",
                        OBJECTS_ASKED_MAX);
    else if (ticket == NULL)
        (void)error_no_memory(err);
    return ticket;
}

bool requests_refresh(struct requests *requests, const struct object_reference *object)
{
    struct error err = {0};

    (void)pthread_mutex_lock(&requests->mutex);
    struct ticket *ticket = find_or_ask(requests, object, true, &err);
    if (ticket != NULL)
        ticket->is_refresh = true;
    (void)pthread_mutex_unlock(&requests->mutex);
    return ticket != NULL;
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
        struct ticket *ticket = find_or_ask(requests, &objects[i], false, err);
        rc = ticket == NULL ? err->code : 0;
        if (ticket == NULL)
            continue;
        ticket->waiters++;
        tickets[asked++] = ticket;
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
