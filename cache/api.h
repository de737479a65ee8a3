/*
 * api: HTTP requests to the API server, many at a time on one thread (libcurl's multi interface).
 * HTTP/1.1 with TLS, kept connections, and the credentials of a kubeconfig.
 *
 * A dead peer is found by TCP (keep-alive and TCP_USER_TIMEOUT: 20 s), a silent one by the caller,
 * who knows how long silence may last, and cancels. Redirects are not followed.
 *
 *     api_start(api, &(struct api_request){.path = "/api/v1/pods", .on_bytes = take,
 *                                          .on_end = done, .context = me}, err);
 *     while (...) api_poll(api, 1000);
 *
 * Threads: one calls everything; api_wake may be called by any.
 */
#ifndef CACHE_API_H
#define CACHE_API_H

#include <stdint.h>

#include "config/kubeconfig.h"

enum {
    API_CONNECT_MS_MAX = 5000,
    API_DEAD_PEER_MS = 20000,
    API_ERROR_BYTES = 256,
};

struct api;
struct api_call;

/* How a call ended. */
struct api_result {
    unsigned status;             /* HTTP; 0: there was no answer */
    bool is_cut;                 /* the answer is not whole */
    int64_t retry_after_ms;      /* as the server asks; 0: it does not */
    char error[API_ERROR_BYTES]; /* why there is no (whole) answer */
};

struct api_request {
    const char *method; /* NULL: GET */
    const char *path;   /* with the query */
    struct slice body;  /* empty: none. Copied. */
    const char *content_type;
    int64_t timeout_ms; /* for all of the call; 0: none */

    /* A piece of the answer's body; may be NULL. False: the call is cut off. */
    bool (*on_bytes)(void *context, unsigned status, struct slice bytes);
    /* The call is over, and gone when this returns. Not called after api_cancel. */
    void (*on_end)(void *context, const struct api_result *result);
    void *context;
};

/* Ownership: api_free, which cancels what runs. The kubeconfig has to stay. */
int api_new(struct api **out, const struct kubeconfig *kubeconfig, struct error *err);
void api_free(struct api *api);

/* Starts a call. Errors: no credentials, no memory; nothing is called back then. */
int api_start(struct api *api, const struct api_request *request, struct api_call **out,
              struct error *err);

/* Ends a call: on_end is not called. */
void api_cancel(struct api *api, struct api_call *call);

/* Moves calls on, waiting for at most timeout_ms until something happens. */
void api_poll(struct api *api, int timeout_ms);

/* Ends an api_poll. */
void api_wake(struct api *api);

/* Once for the process, before threads; and at its end. */
int api_global_init(struct error *err);
void api_global_cleanup(void);

#endif
