/* What follow.c and follow_ask.c share; nobody else includes this. */
#ifndef CACHE_FOLLOW_INTERNAL_H
#define CACHE_FOLLOW_INTERNAL_H

#include "cache/api.h"
#include "cache/fold.h"

enum { PATH_BYTES_MAX = 16 * 1024 };

struct fetch;
struct request;

/* A kind's reflector, and the call that is on its way for it. */
struct following {
    struct follow *follow;
    struct reflector reflector;
    struct api_call *call;
};

struct follow {
    struct follow_target target;
    struct api *api;
    pthread_t thread;
    struct following watched[KIND_COUNT];
    bool has_synced;

    pthread_mutex_t mutex;  /* guards what follows */
    pthread_cond_t changed; /* a fetch is done */
    bool is_stopping;
    bool is_interrupted; /* nobody waits any more */
    struct fetch *fetches;
    size_t fetch_count;
    uint64_t unreachable_until_ns;
    struct request *requests;
    size_t request_count;
};

/* Send what was asked for since the last time. On follow's thread. */
void send_fetches(struct follow *follow);
void send_requests(struct follow *follow);

/* Frees what is left, when nothing runs any more. */
void asks_dispose(struct follow *follow);

#endif
