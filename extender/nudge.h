/*
 * nudge: pods that were rejected because a claim is reserved for another pod. When such a
 * reservation ends without a binding, nothing happens in the cluster that would make the scheduler
 * try them again, so they are nudged: an annotation on the pod is an event that the scheduler sees.
 *
 * At most NUDGES_PER_SECOND; the others wait for the scheduler's own flush.
 *
 * Threads: any.
 */
#ifndef EXTENDER_NUDGE_H
#define EXTENDER_NUDGE_H

#include <pthread.h>

#include "cache/follow.h"
#include "config/base/rate.h"

enum { NUDGE_PODS_MAX = 10000, NUDGES_PER_SECOND = 50, NUDGE_UID_BYTES = 64 };

struct waiting_pod;

struct nudge {
    pthread_mutex_t lock;     /* guards the rest */
    struct waiting_pod *pods; /* uthash, by UID */
    struct rate rate;
};

void nudge_init(struct nudge *nudge);
void nudge_dispose(struct nudge *nudge);

/* The pod waits for the reservation of the pod whose UID is `holder`. */
void nudge_wait(struct nudge *nudge, const struct meta *pod, struct slice holder);

/* The reservation of that pod has ended without a binding. follow: NULL: there is nobody to tell.
 */
void nudge_ended(struct nudge *nudge, struct slice holder, struct follow *follow);

#endif
