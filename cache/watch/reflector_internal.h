/* What reflector.c, reflector_read.c and reflector_skip.c share; nobody else includes this. */
#ifndef CACHE_WATCH_REFLECTOR_INTERNAL_H
#define CACHE_WATCH_REFLECTOR_INTERNAL_H

#include "cache/watch/reflector.h"

/* What an ERROR event and a failed request's body say: metav1.Status. A BOOKMARK has metadata. */
struct event_details {
    struct slice version, message, reason, initial_events_end;
    int64_t code, retry_after_s;
};

bool read_details(struct slice text, struct arena *arena, struct event_details *out);

/* Asked for a version that is still to come: the server's history ends before what we have seen. */
bool is_too_large(const struct event_details *details);

/* What a whole answer to the probe says: a reason to start anew, or -1: the server's history has
 * come as far as ours. */
int evaluate_probe(struct reflector *reflector, unsigned status);

/* The reason to give for an HTTP status, or an ERROR event's code. */
enum restart reason_of(unsigned status);

/* Whether this says that the server cannot stream lists: it does not know the parameters, or its
 * etcd cannot tell how far it is. */
bool refuses_streaming(const struct reflector *reflector, int64_t code);

/* What a text says of its object, as far as it can be read. What cannot be is empty. */
struct identity {
    struct slice type; /* of the event */
    struct slice kind, api_version, ns, name, uid, version;
};

/* Of an object, or of an event: up to where it cannot be read any more. */
struct identity read_identity(struct slice text, bool is_event, struct arena *arena);

/* Whether it says which object it is. */
bool identity_is_whole(const struct identity *identity, enum kind kind);

/* An object that cannot be read: counted, logged (one a second, since its owner may write it as
 * often as they like), and passed over. It stays as it was known, unless this is its deletion. */
void reflector_pass_over(struct reflector *reflector, enum watch_change change,
                         const struct identity *identity, struct slice text, const char *problem);

/* The version has moved on, or a list is whole. */
void reflector_moved(struct reflector *reflector);

#endif
