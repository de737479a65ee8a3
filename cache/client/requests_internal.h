/* What requests.c and requests_confirm.c share. */
#ifndef CACHE_CLIENT_REQUESTS_INTERNAL_H
#define CACHE_CLIENT_REQUESTS_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "cache/client/requests.h"

enum { REQUEST_PATH_BYTES_MAX = 16 * 1024 };

enum ticket_state { TICKET_QUEUED, TICKET_SENT, TICKET_DONE };

/* A request in the queue, or under way. All of it is guarded by the mutex of requests, but for what
 * is sent, which does not change, and the answer, which is the driving thread's until the ticket is
 * done, and then the waiters'. */
struct ticket {
    TAILQ_ENTRY(ticket) link;
    struct requests *requests;
    enum ticket_state state;
    bool is_handed_over; /* to the HTTP client */
    bool is_refresh;     /* it is sent though nobody waits for it */
    uint64_t sent_ns;    /* when its turn came: it is sent after that */
    unsigned waiters;    /* callers that will look at it; the last one frees it, if it is done */
    struct http_request sent;
    struct object_reference object; /* that is asked about; KIND_OTHER: none */
    struct buf answer;
    unsigned status;      /* 0: none, or not all of it */
    bool is_unsent;       /* it cannot have been applied */
    struct error problem; /* why it failed */
    char text[];          /* path, body, and the object's strings */
};

TAILQ_HEAD(tickets, ticket);

struct requests {
    struct http_client *client;
    struct requests_observer observer;
    pthread_mutex_t mutex;    /* guards what follows */
    pthread_cond_t changed;   /* a ticket is done */
    bool is_interrupted;      /* nobody waits any more */
    struct tickets incoming;  /* first come, first served */
    struct tickets under_way; /* handed over to the HTTP client */
    size_t object_count, message_count;
};

/* ---- all under the mutex ---- */

/* One that is to be queued. sent: what it points to is copied, but for method and content type.
 * object: may be NULL. max_bytes: of the answer. NULL: no memory. */
struct ticket *ticket_new(struct requests *requests, const struct http_request *sent,
                          const struct object_reference *object, size_t max_bytes);

/* Puts it into the queue. */
void ticket_queue(struct ticket *ticket);

/* Waits until it is done. False: the time is over, or nobody waits any more. */
bool ticket_wait(const struct ticket *ticket, const struct timespec *deadline);

/* A waiter looks at it no more. One that nobody wants is not sent. */
void ticket_leave(struct ticket *ticket);

/* The deadline of a caller that begins to wait now. */
struct timespec ticket_deadline(int64_t timeout_ms);

/* Why one that is not done is not waited for any longer. */
int ticket_give_up(const struct ticket *ticket, struct error *err);

#endif
