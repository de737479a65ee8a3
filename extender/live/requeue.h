/*
 * requeue: pods that were rejected for something that can change without an event that makes the
 * scheduler try them again: a claim reserved for a pod that is not bound in the end, or a holder
 * that the API server could not be asked about, so that the scheduler had heard of its end before
 * us. When it does change, the pod is requeued: an annotation on it is an event that the scheduler
 * sees. It is requeued again, after 10 s, 20 s, 40 s, ..., until a scheduler asks about it, for as
 * long as the scheduler's own flush takes (five minutes).
 *
 *     rejected      requeue_wait       waits for its cause
 *     cause changed requeue_changed    due
 *     asked about, bound or gone     requeue_forget
 *
 * At most REQUEUES_PER_SECOND; the others wait for their turn.
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
    REQUEUE_PODS_MAX = 10000, /* then the oldest waits for the scheduler's own flush */
    REQUEUES_PER_SECOND = 50,
    REQUEUE_AGAIN_MS = 10000, /* the first time */
    REQUEUES_MAX = 6,         /* of one pod, which take 310 s */
    REQUEUE_CAUSES = 4096     /* lists of pods, by what they wait for */
};

/* What came of a requeue. */
enum requeue_result {
    REQUEUE_SENT,
    REQUEUE_DROPPED,  /* the pod was one too many, or the request was */
    REQUEUE_GIVEN_UP, /* REQUEUES_MAX were sent, and no scheduler has asked */
    REQUEUE_RESULTS,
};

struct waiting_pod;
struct cause;

struct requeue {
    pthread_mutex_t lock;     /* guards the rest */
    struct waiting_pod *pods; /* uthash, by UID */
    struct cause *by_cause[REQUEUE_CAUSES];
    uint64_t due_ns; /* no requeue is due before */
    struct rate rate;
    atomic_uint_fast64_t results[REQUEUE_RESULTS]; /* of these, no lock */
};

void requeue_init(struct requeue *requeue);
void requeue_dispose(struct requeue *requeue);

/* The pod waits for any of the causes, and for nothing else any more: a pod, or its reservation, by
 * UID; or a claim, by its name. Without memory, it waits for the scheduler's own flush. */
void requeue_wait(struct requeue *requeue, const struct meta *pod,
                  const struct object_reference *causes, size_t count);

/* The cause is not what it was when pods were rejected for it: they are requeued. follow: as below.
 */
void requeue_changed(struct requeue *requeue, const struct object_reference *cause,
                     struct requests *requests);

/* The pod is due, whatever it waits for. */
void requeue_pod(struct requeue *requeue, const struct meta *pod);

/* The pod waits for nothing. */
void requeue_forget(struct requeue *requeue, struct slice uid);

/* How many pods wait. */
unsigned requeue_waiting(struct requeue *requeue);

/* Requeues who is due. To be called often. follow: NULL: there is nobody to tell. */
void requeue_tick(struct requeue *requeue, struct requests *requests);

#endif
