/*
 * nomination: makes the scheduler try the one node where a pod passes. kube-scheduler shows an
 * extender a sample of the nodes, so a pod that passes on one node only is rejected again and again
 * though that node is free. `status.nominatedNodeName` makes the scheduler try that node first,
 * alone; and the patch is an event, which wakes the pod.
 *
 *     nomination_want    the pod was rejected, and is worth a nomination to that node
 *     nomination_unwant  it passes after all
 *     nomination_start   starts the thread that nominates pods; that clears our nominations whose
 *                        reason has gone, while the pods still wait; and that repeats what failed
 *
 * kube-scheduler removes a nomination that it sees before an attempt has failed (handleScheduling-
 * Failure: preemption does not help), and it tries a rejected pod once more at once, because of its
 * own change of the pod's status. So a pod is nominated when it was not rejected for
 * NOMINATION_QUIET_MS, and no later: each event in the cluster makes the scheduler try a pod again
 * that an extender has rejected. It is nominated a few times more if the nomination is removed.
 *
 * A nomination reserves room on the node against pods of lower and equal priority, also for a pod
 * that cannot run, and nobody but us clears it. So a pod is nominated only if the node is all that
 * keeps it waiting, and a pod that somebody else has nominated is left alone. A nomination is ours
 * if we sent one to that node. Where a verdict fails (Error, no memory), nothing is sent or
 * cleared.
 *
 * A PATCH that succeeds changes the pod's version. If the version is the same NOMINATION_RETRY_MS
 * later, the PATCH has failed. It is repeated while there is a reason for it: then, after twice
 * that time, and so on, up to 64 times that. One that has failed does not count towards
 * NOMINATIONS_SENT_MAX, unless the pod has changed otherwise in the meantime.
 *
 * Best effort: with several replicas, each knows its own nominations; after a restart, those of
 * before stay until their pods are bound.
 *
 * Threads: any; no function waits for the API server.
 */
#ifndef EXTENDER_SERVING_LIVE_NOMINATION_H
#define EXTENDER_SERVING_LIVE_NOMINATION_H

#include "config/base/quota.h"
#include "extender/serving/state.h"

enum {
    NOMINATED_PODS_MAX = 1000, /* that wait at the same time; further pods are not nominated */
    NOMINATIONS_PER_SECOND = 20,
    NOMINATIONS_SHARE = 3,     /* of one namespace: three quarters (shares.h) */
    NOMINATIONS_CHECKED = 100, /* in one tick */
    NOMINATIONS_SENT_MAX = 3,  /* for one pod and node, until another node is wanted */
    NOMINATION_QUIET_MS = 100,
    NOMINATION_LATE_MS = 1000,  /* after the first rejection, it is sent anyway */
    NOMINATION_RETRY_MS = 4000, /* for the watch to show what a PATCH has changed */
    NOMINATION_TICK_MS = 1000,  /* between two ticks, unless one is due earlier */
    NOMINATION_AGAIN_MS = 50,   /* the same, if a namespace may have no more now */
};

enum nomination_result {
    NOMINATION_SENT,
    NOMINATION_DROPPED, /* too many pods */
    NOMINATION_CLEARED,
    NOMINATION_RESULTS,
};

struct nominated_pod;

struct nominations {
    pthread_mutex_t lock;       /* guards the others, but for results and thread */
    pthread_cond_t changed;     /* a tick is due earlier, or the thread stops */
    struct nominated_pod *pods; /* uthash, by UID; the one that is checked next is the first */
    uint16_t pods_in[SHARES];   /* how many */
    struct rate rate;
    struct share_window sent; /* PATCHes in this second */
    uint64_t tick_ns;         /* when the next tick is due */
    bool is_stopping;
    bool is_started;
    pthread_t thread;
    atomic_uint_fast64_t results[NOMINATION_RESULTS];
};

void nomination_init(struct nominations *nominations);
void nomination_dispose(struct nominations *nominations);

/* The node for a pod that passes by the verdict on none of the offered nodes: the first of a filter
 * that nominates that exists, is ready and schedulable, and that no filter rejects. Empty: there is
 * none, or the pod is nominated already. Ownership: the name lies in the cluster. Under the
 * cluster's lock. */
struct slice nomination_choose(const struct view *view, const struct pod_object *pod,
                               const struct verdict *verdict, struct arena *arena);

/* The pod is nominated to the node (of nomination_choose) at one of the next ticks, if that has a
 * reason then, unless it was NOMINATIONS_SENT_MAX times before. Does nothing else, so it costs
 * filter nothing. */
void nomination_want(struct nominations *nominations, const struct meta *pod, struct slice node);

/* The pod passes: it is not nominated, unless it is rejected again. One that is nominated stays so
 * until it is bound. */
void nomination_unwant(struct nominations *nominations, struct slice uid);

/* Does what is due for NOMINATIONS_CHECKED of the pods. Takes the cluster's lock. In a snapshot,
 * nothing. */
void nomination_tick(struct state *state);

/* Starts the thread, which ticks. Ownership: nomination_stop, before handlers_stop. */
int nomination_start(struct state *state, struct error *err);
void nomination_stop(struct state *state);

#endif
