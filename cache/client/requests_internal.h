/* requests_internal: what requests.c and requests_confirm.c share. Only they include it. */
#ifndef CACHE_CLIENT_REQUESTS_INTERNAL_H
#define CACHE_CLIENT_REQUESTS_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "cache/client/requests.h"

enum { REQUEST_PATH_BYTES_MAX = 16 * 1024 };

enum ticket_state { TICKET_QUEUED, TICKET_SENT, TICKET_DONE };

/* A request in the queue, or under way. The mutex of requests guards it, with two exceptions:
 * `sent` does not change, and the answer belongs to the driving thread until the ticket is done,
 * then to the waiters. */
struct ticket {
    TAILQ_ENTRY(ticket) link;
    struct requests *requests;
    enum ticket_state state;
    bool is_handed_over; /* to the HTTP client */
    bool may_exist;      /* as in struct request */
    bool is_refresh;     /* it is sent although no caller waits */
    uint64_t sent_ns;    /* it was sent after that */
    unsigned waiters;    /* callers that will read it; the last one frees it when it is done */
    struct http_request sent;
    struct object_reference object; /* that a GET reads; KIND_OTHER: none */
    struct buf answer;
    unsigned status;      /* 0: no complete answer */
    bool is_unsent;       /* it was not applied */
    struct error problem; /* why it failed */
    char text[];          /* path, body, and the object's strings */
};

TAILQ_HEAD(tickets, ticket);

struct requests {
    struct http_client *client;
    struct requests_observer observer;
    pthread_mutex_t mutex;    /* guards all below */
    pthread_cond_t changed;   /* a ticket is done */
    bool is_interrupted;      /* requests_interrupt was called */
    struct tickets incoming;  /* first come, first served */
    struct tickets under_way; /* handed over to the HTTP client */
    size_t object_count, message_count;
};

/* ---- all under the mutex ---- */

/* A new ticket. The strings of `sent` are copied, except method and content type. object: may be
 * NULL. max_bytes: of the answer. NULL: no memory. */
struct ticket *ticket_new(struct requests *requests, const struct http_request *sent,
                          const struct object_reference *object, size_t max_bytes);

/* Appends it to the queue. */
void ticket_queue(struct ticket *ticket);

/* Waits until it is done. False: the deadline has passed, or requests_interrupt was called. */
bool ticket_wait(const struct ticket *ticket, const struct timespec *deadline);

/* A waiter leaves. A ticket without waiters is not sent. */
void ticket_leave(struct ticket *ticket);

/* The deadline of a caller that begins to wait now. */
struct timespec ticket_deadline(int64_t timeout_ms);

/* Fills err: why the caller does not wait longer for a ticket that is not done. */
int ticket_give_up(const struct ticket *ticket, struct error *err);

#endif
