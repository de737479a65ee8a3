/*
 * nudge: pods that were rejected for something that can change without an event that makes the
 * scheduler try them again: a claim reserved for a pod that is not bound in the end, or a holder
 * that the API server could not be asked about, so that the scheduler had heard of its end before
 * us. When it does change, the pod is nudged: an annotation on it is an event that the scheduler
 * sees. It is nudged again, after 10 s, 20 s, 40 s, ..., until a scheduler asks about it, for as
 * long as the scheduler's own flush takes (five minutes).
 *
 *     rejected      nudge_wait       waits for its cause
 *     cause changed nudge_changed    due
 *     asked about, bound or gone     nudge_forget
 *
 * At most NUDGES_PER_SECOND; the others wait for their turn.
 *
 * Threads: any.
 */
#ifndef EXTENDER_LIVE_REQUEUE_H
#define EXTENDER_LIVE_REQUEUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cache/watch/informer.h"
#include "config/base/rate.h"

enum {
    NUDGE_PODS_MAX = 10000, /* then the oldest waits for the scheduler's own flush */
    NUDGES_PER_SECOND = 50,
    NUDGE_AGAIN_MS = 10000, /* the first time */
    NUDGES_MAX = 6,         /* of one pod, which take 310 s */
    NUDGE_CAUSES = 4096     /* lists of pods, by what they wait for */
};

/* What came of a nudge. */
enum nudge_result {
    NUDGE_SENT,
    NUDGE_DROPPED,  /* the pod was one too many, or the request was */
    NUDGE_GIVEN_UP, /* NUDGES_MAX were sent, and no scheduler has asked */
    NUDGE_RESULTS,
};

struct waiting_pod;
struct cause;

struct nudge {
    pthread_mutex_t lock;     /* guards the rest */
    struct waiting_pod *pods; /* uthash, by UID */
    struct cause *by_cause[NUDGE_CAUSES];
    uint64_t due_ns; /* no nudge is due before */
    struct rate rate;
    atomic_uint_fast64_t results[NUDGE_RESULTS]; /* of these, no lock */
};

void nudge_init(struct nudge *nudge);
void nudge_dispose(struct nudge *nudge);

/* The pod waits for any of the causes, and for nothing else any more: a pod, or its reservation, by
 * UID; or a claim, by its name. Without memory, it waits for the scheduler's own flush. */
void nudge_wait(struct nudge *nudge, const struct meta *pod, const struct object_reference *causes,
                size_t count);

/* The cause is not what it was when pods were rejected for it: they are nudged. follow: as below.
 */
void nudge_changed(struct nudge *nudge, const struct object_reference *cause,
                   struct requests *requests);

/* The pod is due, whatever it waits for. */
void nudge_pod(struct nudge *nudge, const struct meta *pod);

/* The pod waits for nothing. */
void nudge_forget(struct nudge *nudge, struct slice uid);

/* How many pods wait. */
unsigned nudge_waiting(struct nudge *nudge);

/* Nudges who is due. To be called often. follow: NULL: there is nobody to tell. */
void nudge_tick(struct nudge *nudge, struct requests *requests);

#endif
