/*
 * events: Events (core/v1) about pods, for those who read `kubectl describe pod`. At most
 * EVENTS_PER_MINUTE in the long run; those beyond are dropped: they are news, not state.
 *
 * Threads: any.
 */
#ifndef EXTENDER_EVENTS_H
#define EXTENDER_EVENTS_H

#include <pthread.h>

#include "cache/follow.h"
#include "config/base/rate.h"

enum { EVENTS_BURST = 50, EVENTS_PER_MINUTE = 120 };

struct events {
    pthread_mutex_t lock; /* guards rate and posted */
    struct rate rate;
    unsigned posted; /* so far: part of their names */
    char host[65];
};

void events_init(struct events *events);
void events_dispose(struct events *events);

/* Posts an event about the pod: type is "Normal" or "Warning". follow: NULL: there is nobody to
 * tell. */
void events_post(struct events *events, struct follow *follow, const struct object_reference *pod,
                 const char *type, const char *reason, struct slice message);

#endif
