/* What follow.c and follow_ask.c share; nobody else includes this. */
#ifndef CACHE_FOLLOW_INTERNAL_H
#define CACHE_FOLLOW_INTERNAL_H

#include "cache/api.h"
#include "cache/follow.h"

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
    struct fetch *fetches;
    size_t fetch_count;
    uint64_t unreachable_until_ns;
    struct request *requests;
    size_t request_count;
};

/* Whether the pod that the object speaks of takes up its claims, as far as is known. */
bool is_holding(const struct cluster *cluster, const struct object *object);

/* Tells whoever listens that the object has been applied. With the lock held for writing. */
void tell(const struct follow *follow, enum change change, const struct object *object,
          bool was_holding);

/* Send what was asked for since the last time. On follow's thread. */
void send_fetches(struct follow *follow);
void send_requests(struct follow *follow);

/* Frees what is left, when nothing runs any more. */
void asks_dispose(struct follow *follow);

#endif
