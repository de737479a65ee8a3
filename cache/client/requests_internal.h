/* requests_internal: what requests.c and requests_confirm.c share. Only they include it. */
#ifndef CACHE_CLIENT_REQUESTS_INTERNAL_H
#define CACHE_CLIENT_REQUESTS_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "cache/client/requests.h"
#include "cache/store/uthash_config.h"

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
    UT_hash_handle hh;              /* of requests.askable */
    bool is_askable;
    pthread_cond_t done; /* what its waiters wait for */
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
    bool is_interrupted;      /* requests_interrupt was called */
    struct ticket *askable;   /* GETs of objects that are not sent yet, by path and UID (uthash) */
    struct tickets incoming;  /* first come, first served */
    struct tickets under_way; /* handed over to the HTTP client */
    size_t object_count, message_count;
    uint16_t objects_in[SHARES], messages_in[SHARES];

    /* only for the driving thread: bytes of answers about objects that are not whole yet */
    size_t bytes;
    uint32_t bytes_in[SHARES];
};

/* ---- all under the mutex ---- */

/* Whether so many are too many of those that there may be `most` of: of all shares, or of one. */
static inline bool ticket_is_over(size_t count, size_t of_share, size_t most)
{
    return share_is_over(of_share, count, 1, most, REQUESTS_SHARE);
}

/* A new ticket. The strings of `sent` are copied, except method and content type. object: may be
 * NULL. max_bytes: of the answer. NULL: no memory. */
struct ticket *ticket_new(struct requests *requests, const struct http_request *sent,
                          const struct object_reference *object, size_t max_bytes);

/* Appends it to the queue. */
void ticket_queue(struct ticket *ticket);

/* Other callers find it from now on, or not any more. */
void ticket_share(struct ticket *ticket);
void ticket_unshare(struct ticket *ticket);

/* Adds bytes to the answer about an object. False: such answers take too much memory. On the
 * driving thread, as the next one, which frees it. */
bool ticket_take(struct ticket *ticket, struct slice bytes);
void ticket_return(struct ticket *ticket);

/* Waits until it is done. False: the deadline has passed, or requests_interrupt was called. */
bool ticket_wait(struct ticket *ticket, const struct timespec *deadline);

/* A waiter leaves. A ticket without waiters is not sent. */
void ticket_leave(struct ticket *ticket);

/* The deadline of a caller that begins to wait now. */
struct timespec ticket_deadline(int64_t timeout_ms);

/* Fills err: why the caller does not wait longer for a ticket that is not done. */
int ticket_give_up(const struct ticket *ticket, struct error *err);

#endif
