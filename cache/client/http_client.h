/*
 * http_client: HTTP requests to the API server, many at a time on one thread (libcurl's multi
 * interface). HTTP/1.1 with TLS, kept connections, and the credentials of a kubeconfig.
 *
 * Only a GET may be sent twice. libcurl would repeat any request if a kept connection dies before
 * the first byte of the answer. For a write, the answer to the second request (409) would say
 * nothing about the first, so a second sending is prevented, and the call ends without a status.
 *
 * Calls of one class are sent a limited number at a time: next is one of the share (shares.h) that
 * has the fewest under way; of these, the one that was started first. All calls wait while the
 * credentials are fetched.
 *
 * TCP finds a dead peer (keep-alive and TCP_USER_TIMEOUT: 20 s). A silent peer is found by the
 * caller, which knows how long silence may last, and cancels the call. Redirects are not followed.
 *
 *     void done(void *context, const struct http_result *result);
 *     struct http_request request = {.path = "/api/v1/pods", .on_end = done, .context = context};
 *     struct http_transfer *transfer;
 *     if (http_client_start(client, &request, &transfer, err) < 0)
 *         return error_wrap(err, "list pods");
 *     http_client_poll(client, 1000); // repeatedly, until done was called
 *
 * Threads: one; http_client_wake and http_client_unanswered_ms may be called by any thread.
 */
#ifndef CACHE_CLIENT_HTTP_CLIENT_H
#define CACHE_CLIENT_HTTP_CLIENT_H

#include <stdint.h>

#include "cache/client/kubeconfig.h"
#include "cache/store/shares.h"

enum {
    HTTP_CONNECT_MS_MAX = 5000,
    HTTP_DEAD_PEER_MS = 20000,
    HTTP_ERROR_BYTES = 256,
    HTTP_CALLS_AT_ONCE_MAX = 32,   /* reads, and as many writes; each has its own connection */
    HTTP_MESSAGES_AT_ONCE_MAX = 8, /* in addition to those */
    HTTP_SHARE_PARTS = 3,          /* one share has three quarters of them (shares.h) */

    /* A write uses no connection that was idle for longer. Servers and load balancers close idle
     * connections, the earliest after ten seconds. A write that is sent at that moment has an
     * unknown outcome, which blocks its claims for a minute; a new connection costs milliseconds.
     */
    HTTP_WRITE_IDLE_S_MAX = 5,
};

/* Calls of one class wait for each other, but not for those of another class: webhooks may make
 * writes slow, while a scheduling cycle waits for a read. */
enum http_class {
    HTTP_READ,    /* a caller waits for the answer */
    HTTP_WRITE,   /* the same */
    HTTP_MESSAGE, /* no caller waits for the answer */
    HTTP_WATCH,   /* lists and watches: few, and long; not limited */
    HTTP_CLASS_COUNT,
};

struct http_client;
struct http_transfer;
struct api_stats;

/* How a call ended. */
struct http_result {
    unsigned status;              /* HTTP; 0: there was no answer */
    bool is_cut;                  /* the answer is not complete */
    bool is_unsent;               /* no byte of the request was sent: it was not applied */
    int64_t retry_after_ms;       /* from the server; 0: none */
    char error[HTTP_ERROR_BYTES]; /* why there is no complete answer */
};

struct http_request {
    const char *method; /* NULL: GET. Copied, like path and body. */
    const char *path;   /* with the query */
    struct slice body;  /* empty: none */
    const char *content_type;
    int64_t timeout_ms; /* for the whole call, from http_client_start on; 0: none */
    enum http_class class;
    unsigned share; /* whose calls it waits behind: share_of a namespace */

    /* The call can be sent now. False: it is no longer needed, and is freed when this returns. May
     * be NULL. */
    bool (*on_turn)(void *context);
    /* A part of the answer's body. False: the call is cut off. May be NULL. */
    bool (*on_bytes)(void *context, unsigned status, struct slice bytes);
    /* The call has ended, and is freed when this returns. Not called after http_client_cancel. */
    void (*on_end)(void *context, const struct http_result *result);
    void *context;
};

/* Ownership: http_client_free, which cancels running calls. The kubeconfig is borrowed. */
int http_client_new(struct http_client **out, const struct kubeconfig *kubeconfig,
                    struct error *err);
void http_client_free(struct http_client *client);

/* Counts each call that was sent, when it ends. */
void http_client_observe(struct http_client *client, struct api_stats *stats);

/* Starts a call; http_client_poll does the work. Errors: no memory; no function is called back. */
int http_client_start(struct http_client *client, const struct http_request *request,
                      struct http_transfer **out, struct error *err);

/* Ends a call; on_end is not called. Must not be called within a callback of a call. */
void http_client_cancel(struct http_client *client, struct http_transfer *call);

/* Works on all calls; waits at most timeout_ms for an event. */
void http_client_poll(struct http_client *client, int timeout_ms);

/* Makes http_client_poll return. */
void http_client_wake(struct http_client *client);

/* For how long calls have been waiting for an answer, while none was answered. Watches do not
 * count. 0: no call waits. */
int64_t http_client_unanswered_ms(const struct http_client *client);

/* Once per process, before other threads start; and at its end. */
int http_client_global_init(struct error *err);
void http_client_global_cleanup(void);

#endif
