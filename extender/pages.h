/*
 * pages: what the server shows: probes, /metrics, /statusz, /debug/cache. Like verbs, without HTTP.
 */
#ifndef EXTENDER_PAGES_H
#define EXTENDER_PAGES_H

#include "extender/state.h"

struct page_request {
    struct slice path;
    bool is_verbose;         /* ?verbose */
    bool wants_open_metrics; /* by the Accept header */
};

/* Writes the page. Returns the HTTP status, 404 for a path that is none; *content_type is a static
 * string. */
unsigned page_answer(struct state *state, const struct page_request *request, struct buf *out,
                     const char **content_type);

/* Whether there is a page of that path. */
bool page_exists(struct slice path);

#endif
