/*
 * api_stats: counts requests to the API server by verb, resource and result.
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
    API_VERB_WATCH, /* and streamed lists */
    API_VERB_CREATE,
    API_VERB_PATCH,
    API_VERB_DELETE,
    API_VERB_COUNT,
};

/* Resources besides the kinds. */
enum {
    API_RESOURCE_EVENTS = KIND_COUNT,
    API_RESOURCE_BINDING,
    API_RESOURCE_EVICTION,
    API_RESOURCE_OTHER, /* OpenAPI */
    API_RESOURCE_COUNT,
    API_CODES = 20, /* see api_code_text */
};

/* The verb and the resource of a request. */
struct api_target {
    enum api_verb verb;
    unsigned resource;
};

/* All zero: no request yet. */
struct api_stats {
    atomic_uint_fast64_t requests[API_VERB_COUNT][API_RESOURCE_COUNT][API_CODES];
    struct histogram durations[API_VERB_COUNT]; /* without watches, which are meant to last */
};

/* method: NULL: GET. */
struct api_target api_target_of(const char *method, const char *path);

/* status: of HTTP; 0: there was no complete answer. */
void api_stats_count(struct api_stats *stats, struct api_target target, unsigned status,
                     uint64_t duration_ns);

/* Labels of metrics: "get"; "pods", "pods/binding"; "200", "error". */
const char *api_verb_text(enum api_verb verb);
const char *api_resource_text(unsigned resource);
const char *api_code_text(unsigned code);

#endif
