/*
 * reflector_run: a reflector with its requests: sends them with an http_client when they are due,
 * passes the answers on, and cancels those that are silent.
 *
 *     extern struct reflector_sink sink;
 *     extern struct resource_status status;
 *     void progressed(void *context);
 *     struct reflector_run run = {.client = client, .progressed = progressed, .context = context};
 *     reflector_init(&run.reflector, KIND_POD, &sink, &status, 1);
 *     for (;;) {
 *         uint64_t next_ns = reflector_run_step(&run, monotonic_ns());
 *         http_client_poll(client, next_ns == 0 ? 0 : 1000); // until next_ns
 *     }
 *     reflector_run_stop(&run);
 *     reflector_dispose(&run.reflector);
 *
 * Threads: one: the client's.
 */
#ifndef CACHE_WATCH_REFLECTOR_RUN_H
#define CACHE_WATCH_REFLECTOR_RUN_H

#include "cache/client/http_client.h"
#include "cache/watch/reflector.h"

enum { REFUSAL_BYTES_MAX = 1024 };

struct reflector_run {
    struct reflector reflector;
    struct http_client *client;
    /* Bytes have come, or an answer has ended. */
    void (*progressed)(void *context);
    void *context;

    struct http_transfer *transfer;  /* NULL: none is under way */
    struct buf refusal;              /* the beginning of an error answer */
    char problem[REFUSAL_BYTES_MAX]; /* why the last answer has ended; "": it was good */
};

/* Starts a request if it is due, and cancels it if it is silent. Returns when to call again. */
uint64_t reflector_run_step(struct reflector_run *run, uint64_t now_ns);

/* Ends the watch, and reads a new list; unless a request is about to be sent. */
void reflector_run_relist(struct reflector_run *run);

/* Cancels the request that is under way, and frees all but the reflector. It can be started again
 * by reflector_run_step. */
void reflector_run_stop(struct reflector_run *run);

#endif
