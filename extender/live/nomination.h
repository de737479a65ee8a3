/*
 * nomination: makes the scheduler try the one node where a pod passes. kube-scheduler shows an
 * extender a sample of the nodes, so a pod that passes on one node only is rejected again and again
 * though that node is free. `status.nominatedNodeName` makes the scheduler try that node first,
 * alone; and the patch is an event, which wakes the pod.
 *
 *     nomination_choose  the node for a pod that no offered node suits
 *     nomination_want    the pod is nominated, once for each node
 *     nomination_tick    clears a nomination whose reason has gone, while the pod still waits
 *
 * A nomination reserves room on the node against pods of lower and equal priority, also for a pod
 * that cannot run, and nobody but us clears it. So a pod is nominated only if the node is all that
 * keeps it waiting, and a pod that somebody else has nominated is left alone.
 *
 * Best effort: with several replicas, each knows its own nominations; after a restart, those of
 * before stay until their pods are bound.
 *
 * Threads: any; no function waits for the API server.
 */
#ifndef EXTENDER_LIVE_NOMINATION_H
#define EXTENDER_LIVE_NOMINATION_H

#include "config/base/rate.h"
#include "extender/state.h"

enum {
    NOMINATED_PODS_MAX = 1000, /* that wait at the same time; further pods are not nominated */
    NOMINATIONS_PER_SECOND = 20,
    NOMINATIONS_CHECKED = 16, /* in one tick */
};

enum nomination_result {
    NOMINATION_SENT,
    NOMINATION_DROPPED, /* too many pods, or too many requests */
    NOMINATION_CLEARED,
    NOMINATION_RESULTS,
};

struct nominated_pod;

struct nominations {
    pthread_mutex_t lock;       /* guards pods and rate */
    struct nominated_pod *pods; /* uthash, by UID; the one that is checked next is the first */
    struct rate rate;
    atomic_uint_fast64_t results[NOMINATION_RESULTS];
};

void nomination_init(struct nominations *nominations);
void nomination_dispose(struct nominations *nominations);

/* The node that the pod, which passes by the verdict on none of the offered nodes, is worth being
 * nominated to: the first of a filter that nominates that exists, is ready and schedulable, and
 * that no filter rejects. Empty: there is none, or the pod is nominated already. Under the
 * cluster's lock. Ownership: the name lies in the cluster. */
struct slice nomination_choose(const struct view *view, const struct pod_object *pod,
                               const struct verdict *verdict, struct arena *arena);

/* Nominates the pod, unless it was nominated to that node before. requests: NULL: the cluster is a
 * snapshot, and nothing is sent. */
void nomination_want(struct nominations *nominations, const struct meta *pod, struct slice node,
                     struct requests *requests);

/* Checks some of the nominated pods. To be called once a second. Takes the cluster's lock. */
void nomination_tick(struct state *state);

/* How many pods are nominated by us and wait. */
unsigned nomination_count(struct nominations *nominations);

#endif
