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
    /* Bytes have come, or an answer has ended. NULL: nobody wants to know. */
    void (*progressed)(void *context);
    void *context;

    struct http_transfer *transfer;  /* NULL: none is under way */
    struct buf refusal;              /* the beginning of an error answer */
    unsigned status;                 /* HTTP, of the last answer; 0: there was none */
    char problem[REFUSAL_BYTES_MAX]; /* why the last answer has ended; "": it was good */
};

/* Starts a request if it is due, and cancels it if it is silent. Returns when to call again. */
uint64_t reflector_run_step(struct reflector_run *run, uint64_t now_ns);

/* Ends the watch, and reads a new list; unless a request is about to be sent. */
void reflector_run_relist(struct reflector_run *run);

/* Cancels the request that is under way, and frees all but the reflector. It can be started again
 * by reflector_run_step. */
void reflector_run_stop(struct reflector_run *run);

/* ---- one list ---- */

/*
 * Lists the objects of a kind once, page by page, with a reflector that does not watch: for
 * commands. It repeats requests that fail, a few times, and blocks until the list is complete.
 *
 *     struct reflector_sink sink = {0}; // with all functions
 *     struct lister lister = {.client = client, .server = kubeconfig->server};
 *     if (lister_list(&lister, KIND_POD, SLICE(""), &sink, err) < 0 && lister.status != 403)
 *         return err->code;
 */
struct lister {
    struct http_client *client;
    const char *server;  /* for error messages */
    bool reads_finished; /* pods that have finished, too */

    unsigned status;   /* HTTP, of the last answer; 0: there was none */
    uint64_t left_out; /* objects that could not be decoded, of all lists so far */
};

/*
 * Lists a kind. ns: the only namespace, if the kind is namespaced; empty: all. The sink is as in
 * reflector.h; where the API server does not serve the kind, `unserved` is called, and that is no
 * error. Of a kind that is not stored, sink->take gets the text, and an object without fields.
 * Errors: those of sink->take, which ends the list; ERROR_UNAVAILABLE: refused, or no good answer.
 */
int lister_list(struct lister *lister, enum kind kind, struct slice ns,
                const struct reflector_sink *sink, struct error *err);

#endif
