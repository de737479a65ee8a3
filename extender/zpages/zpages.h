/*
 * zpages: the pages of the server: probes, /metrics, /statusz, /debug/cache and /debug/snapshot.
 * Like verbs, they do not need HTTP, so tests call them directly.
 *
 * Threads: any. A page takes the state's lock for reading, for a short time.
 */
#ifndef EXTENDER_ZPAGES_ZPAGES_H
#define EXTENDER_ZPAGES_ZPAGES_H

#include "extender/state.h"
#include "extender/zpages/pieces.h"

struct zpages_request {
    struct slice path;
    bool is_verbose;           /* ?verbose */
    bool wants_open_metrics;   /* the header Accept names OpenMetrics */
    struct quota_share *share; /* counts the page's memory; may be NULL */
};

/* How a page is sent. */
struct zpages_answer {
    unsigned status;          /* HTTP */
    const char *content_type; /* static */
    struct pieces *rest;      /* writes the other pieces; NULL: the page is complete */
};

/* Writes the page, or its beginning. The status is 404 if there is no such page.
 * Ownership: rest: pieces_free. The request's share must live until then. */
struct zpages_answer zpages_answer(struct state *state, const struct zpages_request *request,
                                   struct buf *out);

/* Whether there is a page with that path. */
bool zpages_exists(struct slice path);

#endif
