/*
 * preemption: preemption that claimguard starts itself. kube-scheduler does not start one for a
 * conflict that only an extender sees (before kubernetes#135486), and cannot if the holder's node
 * is no candidate. So claimguard evicts for a pod that `filter` or `preempt` has rejected, if the
 * pod has a higher priority than all pods that it conflicts with.
 *
 *     rejected             due after the scheduler's readWriteOncePod.preemptionGrace
 *     preempt answered,    left to the scheduler for LEFT_MS, then due: the answer may be lost,
 *     with a node          and the scheduler would not try again
 *     due                  an attempt (attempt.h): holders are evicted, or terminate
 *     holders terminate    checked every WAIT_MS, until they are gone
 *     forbidden, failed    tried again after 10 s, 20 s, 40 s, then every 80 s
 *     not asked about      requeued (10 s after the last time at the earliest, then 20 s, 40 s,
 *       lately             ... 320 s), and due when the scheduler has asked again
 *
 * A pod about which the scheduler does not ask for FORGOTTEN_MS is forgotten.
 *
 * Only the scheduler knows whether a node would take the pod, and only when it asks: it asks
 * `filter` about nodes that passed its own plugins, and `preempt` about nodes that would pass. That
 * is valid for ASKED_LATELY_MS after the grace. In a quiet cluster a rejected pod is tried twice,
 * and then only at kube-scheduler's flush after five minutes. In a busy one it is tried again and
 * again, with a back-off of 1 to 10 s, and a node can be taken within seconds. Five seconds are
 * enough for an attempt that is due, even if others are also due; and they are less than the time
 * after which a failed attempt is repeated, so no repeated attempt evicts for a node that was taken
 * in the meantime.
 *
 * Threads: any thread calls preemption_want and preemption_leave, which do not wait. EVICTORS
 * threads evict.
 */
#ifndef EXTENDER_SERVING_PREEMPTION_PREEMPTION_H
#define EXTENDER_SERVING_PREEMPTION_PREEMPTION_H

#include <pthread.h>
#include <stdint.h>

#include "cache/watch/informer.h"

enum {
    WANTED_MAX = 2000,    /* pods. One more replaces the least promising, or is added when it is
                             rejected again */
    EVICTORS = 8,         /* attempts at a time: one that hangs does not stop the others, */
    EVICTORS_SHARE = 3,   /* nor do those of one namespace (shares.h) */
    WAIT_MS = 300,        /* between two checks of holders that terminate */
    UNSURE_MS = 1000,     /* the same, after a check that failed */
    UNDER_WAY_MS = 60000, /* such checks may fail this long: see attempt.is_under_way */
    LEFT_MS = 10000,      /* the scheduler has this long to preempt after `preempt` */
    RETRY_MS = 10000,     /* after an attempt that failed */
    RETRY_DOUBLINGS_MAX = 3,
    ASKED_LATELY_MS = 5000,      /* see above */
    REQUEUE_DOUBLINGS_MAX = 5,   /* of RETRY_MS: more than the scheduler's own five minutes */
    FORGOTTEN_MS = 6 * 60 * 1000 /* more than the scheduler's own five minutes */
};

struct state;
struct wanted;
struct attempt;

struct preemption {
    pthread_mutex_t lock;   /* guards the rest */
    pthread_cond_t changed; /* a pod may be due earlier, or the threads stop */
    struct wanted *wanted;  /* uthash, by UID */
    uint16_t wanted_in[SHARES];
    unsigned busy; /* attempts that are under way */
    uint8_t busy_in[SHARES];
    struct attempt *evicting; /* attempts that evict just now */
    pthread_t threads[EVICTORS];
    unsigned thread_count;
    bool is_stopping;
};

void preemption_init(struct preemption *preemption);
void preemption_dispose(struct preemption *preemption);

/* The scheduler has asked about the pod, with at least one node on which it could run if its claims
 * were free; it was rejected, and may preempt the holders. With a snapshot, or with preemption
 * Disabled, nothing happens. */
void preemption_want(struct state *state, const struct pod_object *pod);

/* The scheduler preempts for the pod, or has time to. */
void preemption_leave(struct state *state, struct slice uid);

/* Makes an attempt for the most important pod that is due, if any is. Blocks on the API server, for
 * ATTEMPT_MS and a second at most. */
void preemption_step(struct state *state);

/* When the next pod is due, on the clock of monotonic_ns; UINT64_MAX: none is. */
uint64_t preemption_due_ns(struct preemption *preemption);

/* Starts the threads. Ownership: preemption_stop, which waits for attempts that are under way:
 * after requests_interrupt, and before handlers_stop. */
int preemption_start(struct state *state, struct error *err);
void preemption_stop(struct state *state);

#endif
