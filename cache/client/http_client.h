/*
 * http_client: HTTP requests to the API server, many at a time on one thread (libcurl's multi
 * interface). HTTP/1.1 with TLS, kept connections, and the credentials of a kubeconfig.
 *
 * Only a GET is ever sent twice. libcurl by itself sends any request again when a kept connection
 * dies before the answer's first byte, and a 409 to the second says nothing about the first: so a
 * second sending is refused, and the call ends without a status.
 *
 * Calls of one class are sent in the order in which they were started, so many at once and no more;
 * the others wait for their turn, and so do all while the credentials are being fetched.
 *
 * A dead peer is found by TCP (keep-alive and TCP_USER_TIMEOUT: 20 s), a silent one by the caller,
 * who knows how long silence may last, and cancels. Redirects are not followed.
 *
 *     void done(void *context, const struct http_result *result);
 *     struct http_request request = {.path = "/api/v1/pods", .on_end = done, .context = context};
 *     struct http_transfer *transfer;
 *     if (http_client_start(client, &request, &transfer, err) < 0)
 *         return error_wrap(err, "list pods");
 *     http_client_poll(client, 1000); // again and again, until done was called
 *
 * Threads: one calls everything; http_client_wake and http_client_unanswered_ms may be called by
 * any.
 */
#ifndef CACHE_CLIENT_HTTP_CLIENT_H
#define CACHE_CLIENT_HTTP_CLIENT_H

#include <stdint.h>

#include "cache/client/kubeconfig.h"

enum {
    HTTP_CONNECT_MS_MAX = 5000,
    HTTP_DEAD_PEER_MS = 20000,
    HTTP_ERROR_BYTES = 256,
    HTTP_CALLS_AT_ONCE_MAX = 32,   /* reads, and as many writes; each on a connection of its own */
    HTTP_MESSAGES_AT_ONCE_MAX = 8, /* beside those */

    /* A write goes over no connection that was idle for longer. Servers and load balancers close
     * idle connections, after ten seconds at the least; a write that is on its way just then is in
     * doubt, which blocks its claims for a minute. A handshake costs milliseconds. */
    HTTP_WRITE_IDLE_S_MAX = 5,
};

/* What calls take turns with one another. Those of one class wait for none of another: webhooks may
 * make writes slow, and a scheduling cycle waits for a read. */
enum http_class {
    HTTP_READ,    /* somebody waits for the answer */
    HTTP_WRITE,   /* the same */
    HTTP_MESSAGE, /* nobody waits for it */
    HTTP_WATCH,   /* lists and watches: a few, which last; they wait for nobody */
    HTTP_CLASS_COUNT,
};

struct http_client;
struct http_transfer;
struct api_stats;

/* How a call ended. */
struct http_result {
    unsigned status;              /* HTTP; 0: there was no answer */
    bool is_cut;                  /* the answer is not whole */
    bool is_unsent;               /* nothing of the request has left: it cannot have been applied */
    int64_t retry_after_ms;       /* as the server asks; 0: it does not */
    char error[HTTP_ERROR_BYTES]; /* why there is no (whole) answer */
};

struct http_request {
    const char *method; /* NULL: GET. Copied, like the other two. */
    const char *path;   /* with the query */
    struct slice body;  /* empty: none */
    const char *content_type;
    int64_t timeout_ms; /* for all of the call, from http_client_start on; 0: none */
    enum http_class class;

    /* The call's turn has come. False: nobody wants it any more, and it is gone when this returns.
     * May be NULL. */
    bool (*on_turn)(void *context);
    /* A piece of the answer's body; may be NULL. False: the call is cut off. */
    bool (*on_bytes)(void *context, unsigned status, struct slice bytes);
    /* The call is over, and gone when this returns. Not called after http_client_cancel. */
    void (*on_end)(void *context, const struct http_result *result);
    void *context;
};

/* Ownership: http_client_free, which cancels what runs. The kubeconfig has to stay. */
int http_client_new(struct http_client **out, const struct kubeconfig *kubeconfig,
                    struct error *err);
void http_client_free(struct http_client *client);

/* From now on, each call that was sent is counted when it ends. */
void http_client_observe(struct http_client *client, struct api_stats *stats);

/* Starts a call, which http_client_poll moves on. Errors: no memory; nothing is called back then.
 */
int http_client_start(struct http_client *client, const struct http_request *request,
                      struct http_transfer **out, struct error *err);

/* Ends a call: on_end is not called. Not from within a function that a call calls back. */
void http_client_cancel(struct http_client *client, struct http_transfer *call);

/* Moves calls on, waiting for at most timeout_ms until something happens. */
void http_client_poll(struct http_client *client, int timeout_ms);

/* Ends an http_client_poll. */
void http_client_wake(struct http_client *client);

/* For how long a call has been without an answer (but for watches) while no other had one either;
 * 0: none waits. */
int64_t http_client_unanswered_ms(const struct http_client *client);

/* Once for the process, before threads; and at its end. */
int http_client_global_init(struct error *err);
void http_client_global_cleanup(void);

#endif
