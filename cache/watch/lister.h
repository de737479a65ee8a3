/*
 * lister: lists the objects of a kind once, page by page, with a reflector that does not watch: for
 * commands. It repeats requests that fail, a few times, and blocks until the list is complete.
 *
 *     struct reflector_sink sink = {0}; // with all functions
 *     struct lister lister = {.client = client, .server = kubeconfig->server};
 *     if (lister_list(&lister, KIND_POD, SLICE(""), &sink, err) < 0 && lister.status != 403)
 *         return err->code;
 *
 * Threads: one: the client's.
 */
#ifndef CACHE_WATCH_LISTER_H
#define CACHE_WATCH_LISTER_H

#include "cache/client/http_client.h"
#include "cache/watch/reflector.h"

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
 * error.
 * Errors: those of sink->take, which ends the list; ERROR_UNAVAILABLE: refused, or no good answer.
 */
int lister_list(struct lister *lister, enum kind kind, struct slice ns,
                const struct reflector_sink *sink, struct error *err);

/* The same, of a kind that is not stored: sink->take gets each text, and an object of KIND_OTHER
 * without fields. */
int lister_list_texts(struct lister *lister, const struct text_resource *texts, struct slice ns,
                      const struct reflector_sink *sink, struct error *err);

#endif
