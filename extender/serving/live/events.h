/*
 * events: Events (core/v1) about pods, as `kubectl describe pod` shows them. At most
 * EVENTS_PER_MINUTE of each reason in the long run, so that a frequent reason (each pod that defers
 * less than it could) does not displace a rare one. Of what may be posted at once, one namespace
 * (shares.h) leaves half to others. More are dropped and counted; nothing depends on an Event.
 *
 * Threads: any.
 */
#ifndef EXTENDER_SERVING_LIVE_EVENTS_H
#define EXTENDER_SERVING_LIVE_EVENTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "cache/watch/informer.h"
#include "config/base/quota.h"

enum {
    EVENTS_BURST = 50,
    EVENTS_LEFT = EVENTS_BURST / 2, /* of these, by one namespace for others */
    EVENTS_PER_MINUTE = 120,
    EVENT_REASONS = 9, /* the last: all reasons that events.c does not list */
};

struct events {
    pthread_mutex_t lock; /* guards rates, posted_in, minute_ns and posted */
    struct rate rates[EVENT_REASONS];
    uint8_t posted_in[EVENT_REASONS][SHARES]; /* since minute_ns, for a minute; or more */
    uint64_t minute_ns;
    unsigned posted; /* so far: part of the next name */
    atomic_uint_fast64_t dropped;
    char host[65];
};

void events_init(struct events *events);
void events_dispose(struct events *events);

/* Posts an Event about the pod, without waiting for the answer. type: "Normal" or "Warning".
 * message: without text (no memory), the Event is dropped. requests: NULL: the cluster is a
 * snapshot, and nothing is posted. */
void events_post(struct events *events, struct requests *requests,
                 const struct object_reference *pod, const char *type, const char *reason,
                 struct slice message);

/* An Event with a name of its own. */
struct event_note {
    const char *type, *reason;
    struct slice message;
    const char *name; /* NULL: one that no other Event has */
};

/* The same, at most once for each name, also by several claimguards, as long as the API server
 * keeps the Event. Returns whether it may be there now. */
bool events_post_once(struct events *events, struct requests *requests,
                      const struct object_reference *pod, const struct event_note *note);

#endif
