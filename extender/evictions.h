/*
 * evictions: preemption that claimguard starts itself. A conflict that only an extender sees starts
 * none in kube-scheduler (before kubernetes#135486), and where the holder's node is no candidate it
 * cannot: so a pod that `filter` rejected, and whose conflicts all are with pods of lower priority,
 * is wanted here.
 *
 *     rejected             wanted, after the scheduler's readWriteOncePod.preemptionGrace
 *     preempt answered,    left to the scheduler for LEFT_MS: its answer may be lost, and nothing
 *     with a node          would make the scheduler try again
 *     then                 judged again, and the pod and its holders asked about: is there anything
 *                          to evict, and is it still for that pod? Its claims are reserved for it,
 *                          then each holder is evicted once
 *     holders terminate    the reservation is refreshed until they are gone
 *     forbidden (budget)   the reservation ends; tried again later
 *
 * Nothing is evicted for a pod that is gone, bound, being deleted, or of another priority than it
 * was rejected with; nothing if one of its conflicts could not be resolved.
 *
 * Threads: evictions_want and evictions_leave by any, and they do not wait. One thread evicts.
 */
#ifndef EXTENDER_EVICTIONS_H
#define EXTENDER_EVICTIONS_H

#include <pthread.h>
#include <stdint.h>

#include "cache/objects.h"

enum {
    WANTED_MAX = 2000, /* pods at a time; others come again when they are rejected again */
    VICTIMS_MAX = 15,  /* of one pod */
    WAIT_MS = 300,     /* between looks at holders that terminate */
    LEFT_MS = 10000,   /* that the scheduler has to preempt after it asked */
    RETRY_MS = 10000   /* after a budget, or an API server, that did not let us */
};

struct state;
struct wanted;

struct evictions {
    pthread_mutex_t lock;   /* guards the rest */
    pthread_cond_t changed; /* there is something to do */
    struct wanted *wanted;  /* uthash, by UID */
    pthread_t thread;
    bool is_running, is_stopping;
};

void evictions_init(struct evictions *evictions);
void evictions_dispose(struct evictions *evictions);

/* The pod was rejected, on at least one node, and may preempt those that are in its way. In a
 * cluster that is not followed, or with preemption Disabled, nothing happens. */
void evictions_want(struct state *state, const struct pod_object *pod);

/* The scheduler preempts for the pod, or has time to. */
void evictions_leave(struct state *state, struct slice uid);

/* Works on the one pod that is due and most important, if any is. It asks the API server, so it
 * takes a while. */
void evictions_step(struct state *state);

/* When there is something to do next, on the clock of monotonic_ns; UINT64_MAX: never so far. */
uint64_t evictions_due_ns(struct evictions *evictions);

/* A thread that does so. Ownership: evictions_stop, while the cluster is still followed. */
int evictions_start(struct state *state, struct error *err);
void evictions_stop(struct state *state);

#endif
