/* What reflector.c and reflector_read.c share; nobody else includes this. */
#ifndef CACHE_REFLECTOR_INTERNAL_H
#define CACHE_REFLECTOR_INTERNAL_H

#include "cache/reflector.h"

/* What an ERROR event and a failed request's body say: metav1.Status. A BOOKMARK has metadata. */
struct event_details {
    struct slice version, message, reason, initial_events_end;
    int64_t code, retry_after_s;
};

bool read_details(struct slice text, struct arena *arena, struct event_details *out);

/* Asked for a version that is still to come: the server's history ends before what we have seen. */
bool is_too_large(const struct event_details *details);

/* The reason to give for an HTTP status, or an ERROR event's code. */
enum restart reason_of(unsigned status);

/* Whether this says that the server cannot stream lists: it does not know the parameters, or its
 * etcd cannot tell how far it is. */
bool refuses_streaming(const struct reflector *reflector, int64_t code);

#endif
