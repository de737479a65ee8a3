/*
 * api: HTTP requests to the API server, many at a time on one thread (libcurl's multi interface).
 * HTTP/1.1 with TLS, kept connections, and the credentials of a kubeconfig.
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
 *     void done(void *context, const struct api_result *result);
 *     struct api_request request = {.path = "/api/v1/pods", .on_end = done, .context = context};
 *     struct api_call *call;
 *     if (api_start(api, &request, &call, err) < 0)
 *         return error_wrap(err, "list pods");
 *     api_poll(api, 1000); // again and again, until done was called
 *
 * Threads: one calls everything; api_wake and api_unanswered_ms may be called by any.
 */
#ifndef CACHE_CLIENT_HTTP_CLIENT_H
#define CACHE_CLIENT_HTTP_CLIENT_H

#include <stdint.h>

#include "cache/client/kubeconfig.h"

enum {
    API_CONNECT_MS_MAX = 5000,
    API_DEAD_PEER_MS = 20000,
    API_ERROR_BYTES = 256,
    API_CALLS_AT_ONCE_MAX = 32,   /* reads, and as many writes; each on a connection of its own */
    API_MESSAGES_AT_ONCE_MAX = 8, /* beside those */

    /* A write goes over no connection that was idle for longer. Servers and load balancers close
     * idle connections, after ten seconds at the least; a write that is on its way just then is in
     * doubt, which blocks its claims for a minute. A handshake costs milliseconds. */
    API_WRITE_IDLE_S_MAX = 5,
};

/* What calls take turns with one another. Those of one class wait for none of another: webhooks may
 * make writes slow, and a scheduling cycle waits for a read. */
enum api_class {
    API_READ,    /* somebody waits for the answer */
    API_WRITE,   /* the same */
    API_MESSAGE, /* nobody waits for it */
    API_WATCH,   /* lists and watches: a few, which last; they wait for nobody */
    API_CLASS_COUNT,
};

struct api;
struct api_call;
struct api_stats;

/* How a call ended. */
struct api_result {
    unsigned status;             /* HTTP; 0: there was no answer */
    bool is_cut;                 /* the answer is not whole */
    bool is_unsent;              /* nothing of the request has left: it cannot have been applied */
    int64_t retry_after_ms;      /* as the server asks; 0: it does not */
    char error[API_ERROR_BYTES]; /* why there is no (whole) answer */
};

struct api_request {
    const char *method; /* NULL: GET. Copied, like the other two. */
    const char *path;   /* with the query */
    struct slice body;  /* empty: none */
    const char *content_type;
    int64_t timeout_ms; /* for all of the call, from api_start on; 0: none */
    enum api_class class;

    /* The call's turn has come. False: nobody wants it any more, and it is gone when this returns.
     * May be NULL. */
    bool (*on_turn)(void *context);
    /* A piece of the answer's body; may be NULL. False: the call is cut off. */
    bool (*on_bytes)(void *context, unsigned status, struct slice bytes);
    /* The call is over, and gone when this returns. Not called after api_cancel. */
    void (*on_end)(void *context, const struct api_result *result);
    void *context;
};

/* Ownership: api_free, which cancels what runs. The kubeconfig has to stay. */
int api_new(struct api **out, const struct kubeconfig *kubeconfig, struct error *err);
void api_free(struct api *api);

/* From now on, each call that was sent is counted when it ends. */
void api_observe(struct api *api, struct api_stats *stats);

/* Starts a call, which api_poll moves on. Errors: no memory; nothing is called back then. */
int api_start(struct api *api, const struct api_request *request, struct api_call **out,
              struct error *err);

/* Ends a call: on_end is not called. Not from within a function that a call calls back. */
void api_cancel(struct api *api, struct api_call *call);

/* Moves calls on, waiting for at most timeout_ms until something happens. */
void api_poll(struct api *api, int timeout_ms);

/* Ends an api_poll. */
void api_wake(struct api *api);

/* For how long a call has been without an answer (but for watches) while no other had one either;
 * 0: none waits. */
int64_t api_unanswered_ms(const struct api *api);

/* Once for the process, before threads; and at its end. */
int api_global_init(struct error *err);
void api_global_cleanup(void);

#endif
