/* What api.c and api_options.c share. */
#ifndef CACHE_CLIENT_HTTP_CLIENT_INTERNAL_H
#define CACHE_CLIENT_HTTP_CLIENT_INTERNAL_H

#include <curl/curl.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "cache/client/credentials.h"
#include "cache/client/http_client.h"
#include "cache/client/http_client_stats.h"

TAILQ_HEAD(api_calls, api_call);

struct api {
    const struct kubeconfig *kubeconfig;
    struct credentials credentials;
    struct api_stats *stats; /* NULL: nothing is counted */
    CURLM *multi;
    struct api_calls waiting, running; /* in the order in which they came, and were launched */
    size_t running_count[API_CLASS_COUNT];
    uint64_t answered_ns;               /* when a call but a watch last had an answer */
    atomic_uint_fast64_t unanswered_ns; /* since when none had; 0: none waits */
};

struct api_call {
    TAILQ_ENTRY(api_call) link;
    struct api *api;
    struct api_request request;
    struct api_target target;
    CURL *easy;
    struct curl_slist *headers;
    struct curl_slist *connect_to;
    uint64_t deadline_ns; /* UINT64_MAX: none */
    uint64_t launched_ns; /* 0: it waits for its turn */
    bool is_read;         /* a GET, which may be repeated */
    unsigned sendings;    /* how often libcurl came to sending it */
    unsigned generation;  /* of the credentials */
    char error[CURL_ERROR_SIZE];
};

/* Tells libcurl what the request is. The request's strings may go afterwards. */
CURLcode api_set_request(struct api_call *call);

/* Tells libcurl who we are, now that it is sent. */
CURLcode api_set_credentials(struct api_call *call, const struct credentials *credentials);

#endif
