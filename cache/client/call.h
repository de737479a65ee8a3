/*
 * call: one request to the API server at a time: for a command without other threads, or, through
 * `requests`, for one of the threads of `serve`.
 *
 *     struct api api;
 *     struct request_answer answer;
 *     int rc = api_open(&api, kubeconfig, err);
 *     if (rc == 0)
 *         rc = api_get(&api, "/version", &answer, err);
 *     api_close(&api);
 *
 * Threads: one.
 */
#ifndef CACHE_CLIENT_CALL_H
#define CACHE_CLIENT_CALL_H

#include <signal.h>

#include "cache/client/requests.h"

enum {
    API_CALL_MS = 30000,
    API_CALLS_AT_ONCE_MAX = 4,
    API_SHARED_MS = 10000,
    API_ANSWER_BYTES_MAX = 8 << 20,
    API_ARENA_BYTES_MAX = 64 << 20
};

struct api {
    struct http_client *client; /* a lister may also use it; NULL: requests sends */
    struct requests *requests;  /* borrowed */
    const char *server;         /* for messages; borrowed */
    struct arena arena;         /* of all answers */
    bool is_started;            /* http_client_global_init was called */
    /* Not 0: calls of the client end with ERROR_UNAVAILABLE, a second later at most. NULL: never.
     */
    const volatile sig_atomic_t *interrupt;
};

/* Ownership: api_close, also after an error, or of a struct that is all zero. The kubeconfig is
 * borrowed. */
int api_open(struct api *out, const struct kubeconfig *kubeconfig, struct error *err);
void api_close(struct api *api);

/* The same through requests. */
void api_open_on(struct api *out, struct requests *requests);

/* Sends a request with a path, once, and waits for its answer. timeout_ms is API_CALL_MS,
 * through requests API_SHARED_MS.
 * Errors: ERROR_UNAVAILABLE: no complete answer; ERROR_TOO_BIG: it is over API_ANSWER_BYTES_MAX; in
 * both cases, a write may have happened. */
int api_call(struct api *api, const struct request *request, struct request_answer *out,
             struct error *err);

/* The same for several, which are sent at the same moment. An error is that of any of them. Not
 * through requests. */
int api_call_all(struct api *api, const struct request *requests, size_t count,
                 struct request_answer *out, struct error *err);

/* The same for a GET. */
int api_get(struct api *api, const char *path, struct request_answer *out, struct error *err);

/* Fills err: the API server has not done what was asked. what: "Secret ns/name cannot be read". */
int api_refused(const struct request_answer *answer, const char *what, struct error *err);

#endif
