/*
 * api_stats: what was asked of the API server, and what came of it, counted.
 *
 * Threads: any.
 */
#ifndef CACHE_CLIENT_API_STATS_H
#define CACHE_CLIENT_API_STATS_H

#include "cache/objects/objects.h"
#include "config/base/histogram.h"

enum api_verb {
    API_VERB_GET,
    API_VERB_LIST,
    API_VERB_WATCH, /* also a list that is streamed */
    API_VERB_CREATE,
    API_VERB_PATCH,
    API_VERB_DELETE,
    API_VERB_COUNT,
};

/* The kinds, and what else is asked for. */
enum {
    API_RESOURCE_EVENTS = KIND_COUNT,
    API_RESOURCE_BINDING,
    API_RESOURCE_EVICTION,
    API_RESOURCE_OTHER, /* OpenAPI */
    API_RESOURCE_COUNT,
    API_CODES = 20, /* see api_code_text */
};

/* What a request asks for. */
struct api_target {
    enum api_verb verb;
    unsigned resource;
};

/* All zero: nothing was asked. */
struct api_stats {
    atomic_uint_fast64_t requests[API_VERB_COUNT][API_RESOURCE_COUNT][API_CODES];
    struct histogram
        durations[API_VERB_COUNT]; /* not of watches, which last as they are meant to */
};

/* method: NULL: GET. */
struct api_target api_target_of(const char *method, const char *path);

/* status: of HTTP; 0: there was no whole answer. */
void api_stats_count(struct api_stats *stats, struct api_target target, unsigned status,
                     uint64_t duration_ns);

/* As in a metric's labels: "get"; "pods", "pods/binding"; "200", "error". */
const char *api_verb_text(enum api_verb verb);
const char *api_resource_text(unsigned resource);
const char *api_code_text(unsigned code);

#endif
