/*
 * zpages: the pages of the server: probes, /metrics, /statusz and /debug/cache. Like verbs, they do
 * not need HTTP, so tests call them directly.
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

/* Writes the page, or its beginning; then *rest writes the other pieces, else it is NULL. Returns
 * the HTTP status, which is 404 if there is no such page. *content_type is a static string.
 * Ownership: *rest: pieces_free. The request's share must live until then. */
unsigned zpages_answer(struct state *state, const struct zpages_request *request, struct buf *out,
                       const char **content_type, struct pieces **rest);

/* Whether there is a page with that path. */
bool zpages_exists(struct slice path);

#endif
