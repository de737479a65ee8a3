/* http_client_internal: what http_client.c and http_client_options.c share. Only they include it.
 */
#ifndef CACHE_CLIENT_HTTP_CLIENT_INTERNAL_H
#define CACHE_CLIENT_HTTP_CLIENT_INTERNAL_H

#include <curl/curl.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "cache/client/api_stats.h"
#include "cache/client/credentials.h"
#include "cache/client/http_client.h"

TAILQ_HEAD(api_calls, http_transfer);

struct http_client {
    const struct kubeconfig *kubeconfig;
    struct credentials credentials;
    struct api_stats *stats; /* NULL: nothing is counted */
    CURLM *multi;
    int epoll, wake;    /* wake: an eventfd */
    uint64_t looked_ns; /* when libcurl last looked at all calls */
    uint64_t timer_ns;  /* when libcurl has to be called, without an event; UINT64_MAX: never */
    struct api_calls waiting, running; /* in the order of start, and of launch */
    size_t running_count[HTTP_CLASS_COUNT];
    unsigned running_in[HTTP_CLASS_COUNT][SHARES];
    uint64_t answered_ns;               /* when a call other than a watch last had an answer */
    atomic_uint_fast64_t unanswered_ns; /* since when none had an answer; 0: none waits */
};

struct http_transfer {
    TAILQ_ENTRY(http_transfer) link;
    struct http_client *client;
    struct http_request request;
    struct api_target target;
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    uint64_t deadline_ns; /* UINT64_MAX: none */
    uint64_t launched_ns; /* 0: it waits for its turn */
    bool is_read;         /* a GET, which may be repeated */
    bool is_connecting;   /* on a new socket: nothing is sent on it yet */
    unsigned sendings;    /* how often libcurl began to send it */
    unsigned generation;  /* of the credentials */
    char error[CURL_ERROR_SIZE];
};

/* Sets libcurl's options for the request. The request's strings may be freed afterwards. */
CURLcode http_client_set_request(struct http_transfer *call);

/* Sets the credentials, when the request is sent. */
CURLcode http_client_set_credentials(struct http_transfer *call,
                                     const struct credentials *credentials);

#endif
