/*
 * evictions: preemption that claimguard starts itself. A conflict that only an extender sees starts
 * none in kube-scheduler (before kubernetes#135486), and where the holder's node is no candidate it
 * cannot: so a pod that `filter` or `preempt` rejected, and whose conflicts all are with pods of
 * lower priority, is wanted here.
 *
 *     rejected             wanted, after the scheduler's readWriteOncePod.preemptionGrace
 *     preempt answered,    left to the scheduler for LEFT_MS: its answer may be lost, and nothing
 *     with a node          would make the scheduler try again
 *     then                 an attempt (preemption_attempt.h): holders are evicted, or terminate
 *     holders terminate    looked at every WAIT_MS, until they are gone
 *     forbidden, failed    tried again after 10 s, 20 s, 40 s, then every 80 s
 *     not asked about      the pod is requeued, and holders are evicted when the scheduler has
 *       lately               asked again; at most after 10 s, 20 s, 40 s, ... of each pod
 *
 * A pod about which the scheduler does not ask for FORGOTTEN_MS is forgotten.
 *
 * Whether some node would take the pod is known by the scheduler alone, at the moment when it asks:
 * it asks `filter` about nodes that passed its own plugins, and `preempt` about nodes that would
 * pass. ASKED_LATELY_MS is how long that is relied on, once the grace is over. In a quiet cluster a
 * rejected pod is tried twice, and then not before kube-scheduler's flush after five minutes; in a
 * busy one again and again, with a back-off of 1 to 10 s, and there a node can be taken within
 * seconds. Five seconds are enough for an attempt that is due, whatever else goes on here, and less
 * than the time after which a failed one is repeated: so what forbade it for a while never leads to
 * an eviction for a node that is taken by then.
 *
 * A pod is requeued 10 s after the last time at the earliest, then 20 s, 40 s, ... 320 s.
 *
 * Threads: preemption_want and preemption_leave by any, and they do not wait. EVICTORS threads
 * evict.
 */
#ifndef EXTENDER_PREEMPTION_PREEMPTION_H
#define EXTENDER_PREEMPTION_PREEMPTION_H

#include <pthread.h>
#include <stdint.h>

#include "cache/objects/objects.h"

enum {
    WANTED_MAX = 2000,    /* pods at a time. One more takes the place of the least promising;
                             who has none comes again when it is rejected again */
    EVICTORS = 8,         /* attempts at a time: one that hangs stops no other */
    WAIT_MS = 300,        /* between looks at holders that terminate */
    UNSURE_MS = 1000,     /* the same, after a look that failed */
    UNDER_WAY_MS = 60000, /* that such looks may fail: see attempt.is_under_way */
    LEFT_MS = 10000,      /* that the scheduler has to preempt after it asked */
    RETRY_MS = 10000,     /* after a budget, or an API server, that did not let us */
    RETRY_DOUBLINGS_MAX = 3,
    ASKED_LATELY_MS = 5000,      /* see above */
    REQUEUE_DOUBLINGS_MAX = 5,   /* of RETRY_MS: more than the scheduler's own five minutes */
    FORGOTTEN_MS = 6 * 60 * 1000 /* without being asked about, the scheduler's flush included */
};

struct state;
struct wanted;
struct attempt;

struct preemption {
    pthread_mutex_t lock;     /* guards the rest */
    pthread_cond_t changed;   /* there is something to do */
    struct wanted *wanted;    /* uthash, by UID */
    struct attempt *evicting; /* those that evict just now */
    pthread_t threads[EVICTORS];
    unsigned thread_count;
    bool is_stopping;
};

void preemption_init(struct preemption *preemption);
void preemption_dispose(struct preemption *preemption);

/* The scheduler has asked about the pod, with at least one node on which it could run if its claims
 * were free; it was rejected, and may preempt those that are in its way. In a cluster that is not
 * followed, or with preemption Disabled, nothing happens. */
void preemption_want(struct state *state, const struct pod_object *pod);

/* The scheduler preempts for the pod, or has time to. */
void preemption_leave(struct state *state, struct slice uid);

/* Works on the one pod that is due and most important, if any is. It asks the API server, so it
 * takes a while: ATTEMPT_MS at most, and a second. */
void preemption_step(struct state *state);

/* When there is something to do next, on the clock of monotonic_ns; UINT64_MAX: never so far. */
uint64_t preemption_due_ns(struct preemption *preemption);

/* Threads that do so. Ownership: preemption_stop, while the cluster is still followed, and after
 * requests_interrupt: attempts that are under way are waited for. */
int preemption_start(struct state *state, struct error *err);
void preemption_stop(struct state *state);

#endif
