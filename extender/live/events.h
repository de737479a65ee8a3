/*
 * events: Events (core/v1) about pods, for those who read `kubectl describe pod`. Of each reason at
 * most EVENTS_PER_MINUTE in the long run, so that what comes in crowds (each pod that defers less
 * than it could) keeps out nothing that matters. Those beyond are dropped and counted: they are
 * news, not state.
 *
 * Threads: any.
 */
#ifndef EXTENDER_LIVE_EVENTS_H
#define EXTENDER_LIVE_EVENTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "cache/watch/informer.h"
#include "config/base/rate.h"

enum {
    EVENTS_BURST = 50,
    EVENTS_PER_MINUTE = 120,
    EVENT_REASONS = 7, /* the last: all that events.c does not list */
};

struct events {
    pthread_mutex_t lock; /* guards rates and posted */
    struct rate rates[EVENT_REASONS];
    unsigned posted; /* so far: part of their names */
    atomic_uint_fast64_t dropped;
    char host[65];
};

void events_init(struct events *events);
void events_dispose(struct events *events);

/* Posts an event about the pod: type is "Normal" or "Warning". follow: NULL: it is a snapshot, and
 * there is nowhere to post it. */
void events_post(struct events *events, struct requests *requests,
                 const struct object_reference *pod, const char *type, const char *reason,
                 struct slice message);

#endif
