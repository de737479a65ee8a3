/*
 * pages: what the server shows: probes, /metrics, /statusz, /debug/cache. Like verbs, without HTTP.
 */
#ifndef EXTENDER_ZPAGES_ZPAGES_H
#define EXTENDER_ZPAGES_ZPAGES_H

#include "extender/state.h"
#include "extender/zpages/pieces.h"

struct zpages_request {
    struct slice path;
    bool is_verbose;           /* ?verbose */
    bool wants_open_metrics;   /* by the Accept header */
    struct quota_share *share; /* of the memory that it takes; may be NULL */
};

/* Writes the page, or its beginning: *rest is what is still to be written, or NULL. Returns the
 * HTTP status, 404 for a path that is none; *content_type is a static string. Ownership: *rest:
 * pieces_free; the request's share has to stay as long. */
unsigned zpages_answer(struct state *state, const struct zpages_request *request, struct buf *out,
                      const char **content_type, struct pieces **rest);

/* Whether there is a page of that path. */
bool zpages_exists(struct slice path);

#endif
