/*
 * requeue: makes the scheduler try a rejected pod again, when the cause of the rejection changes
 * without an event for the scheduler. There are three such causes: a reservation for a pod that is
 * then not bound; a holder about which the API server could not be asked, and of whose end the
 * scheduler knew before we did; and an object that a policy waits for (verdict.awaited), such as a
 * VolumeAttributesClass, of which the scheduler gets no event, or gets it before we do.
 *
 * An annotation on the pod is an event that the scheduler sees. It is written again after 10 s,
 * 20 s, 40 s, ..., until a scheduler asks about the pod, and at most until the scheduler's own
 * flush (five minutes).
 *
 *     requeue_wait       the pod is rejected: it waits for its causes
 *     requeue_changed    a cause has changed: the pod is due
 *     requeue_all        the configuration has changed
 *     requeue_wake_all   the same, or a start: pods of which nobody knows whether they wait for us
 *     requeue_forget     the scheduler has asked about the pod; or it is bound, or gone
 *
 * At most REQUEUES_PER_SECOND; the other pods wait for their turn. Of several namespaces (shares.h)
 * with pods that are due, one with fewer requeues in this second comes first.
 *
 * Threads: any; no function waits for the API server.
 */
#ifndef EXTENDER_SERVING_LIVE_REQUEUE_H
#define EXTENDER_SERVING_LIVE_REQUEUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "config/base/quota.h"
#include "extender/serving/state.h"

enum {
    REQUEUE_PODS_MAX = 10000, /* more, or more bytes: the oldest one of the namespace that has most
                                 bytes waits for the scheduler's own flush */
    REQUEUE_BYTES_MAX = 16 << 20,
    REQUEUES_PER_SECOND = 50,
    REQUEUE_AGAIN_MS = 10000, /* after the first requeue */
    REQUEUES_MAX = 6,         /* of one pod; they take 310 s */
    REQUEUE_CAUSES = 4096     /* lists of pods, by the hash of a cause */
};

/* The result of a requeue. */
enum requeue_result {
    REQUEUE_SENT,
    REQUEUE_DROPPED,  /* too many pods, or too many requests */
    REQUEUE_GIVEN_UP, /* REQUEUES_MAX were sent, and no scheduler has asked about the pod */
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
    size_t bytes;                                  /* of all pods, with their causes */
    uint32_t bytes_in[SHARES];                     /* the same, by share */
    struct share_window sent;                      /* requeues in this second */
    atomic_uint_fast64_t results[REQUEUE_RESULTS]; /* the lock does not guard these */
};

void requeue_init(struct requeue *requeue);
void requeue_dispose(struct requeue *requeue);

/* From now on the pod waits for a change of one of the causes, and no other: a pod or its
 * reservation, by UID; or another object, by name. Without memory, it waits for the scheduler's own
 * flush. */
void requeue_wait(struct requeue *requeue, const struct meta *pod,
                  const struct object_reference *causes, size_t count);

/* Requeues the pods that wait for the cause. requests: as for requeue_tick. */
void requeue_changed(struct requeue *requeue, const struct object_reference *cause,
                     struct requests *requests);

/* Requeues all pods that wait: a new configuration may let them pass. requests: the same. */
void requeue_all(struct requeue *requeue, struct requests *requests);

/* The pod is due now. */
void requeue_pod(struct requeue *requeue, const struct meta *pod);

/* Whether the pod waits, or is being requeued. */
bool requeue_has(struct requeue *requeue, struct slice uid);

/* The pod does not wait any more. */
void requeue_forget(struct requeue *requeue, const struct meta *pod);

/* How many pods wait. */
unsigned requeue_waiting(struct requeue *requeue);

/* Requeues the pods that are due. To be called often. requests: NULL: the cluster is a snapshot;
 * they are forgotten. */
void requeue_tick(struct requeue *requeue, struct requests *requests);

/*
 * Requeues pending pods that would pass now, or could preempt, and of which there is no record
 * here: after a start, those that the previous claimguard has rejected; after a reload, those that
 * the former configuration has. At most WOKEN_MAX (1,000) pods; the others wait for the scheduler's
 * own flush. Takes the cluster's lock for one page of pods, and for one pod, at a time.
 */
void requeue_wake_all(struct state *state);

#endif
