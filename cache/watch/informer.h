/*
 * informer: keeps a cluster equal to the API server, as client-go's informers do. One thread lists
 * and watches every kind (reflector), sends the requests of the other threads
 * (cache/client/requests.h), and repeats GETs whose answers no watch has confirmed.
 *
 *     struct informer_target target = {.cluster = cluster};
 *     struct object_reference pod = {KIND_POD, SLICE("default"), SLICE("web-0"), SLICE("")};
 *     struct informer *informer;
 *     if (informer_start(&informer, kubeconfig, &target, err) < 0)
 *         return error_wrap(err, "watch the cluster");
 *     // the cluster fills; target.status says which kinds are synced
 *     requests_confirm(informer_requests(informer), &pod, 1, 1000, err);
 *     // if it returned 0, the API server's answer is in the cluster
 *     informer_stop(informer);
 *
 * The cluster is written under target.lock, in pieces that take microseconds (apply).
 *
 * target.watched: bits 1 << kind, which may change: under the lock, and then requests_wake. The
 * list and watch of a kind that is no longer there are ended, and its objects are removed. Before
 * the first of them goes, the kind is not synced any more, and this is also written under the
 * lock: who adds the kind under the lock and finds it synced knows that it is complete, and stays.
 */
#ifndef CACHE_WATCH_INFORMER_H
#define CACHE_WATCH_INFORMER_H

#include <pthread.h>

#include "cache/client/api_stats.h"
#include "cache/client/requests.h"
#include "cache/cluster/cluster.h"
#include "cache/watch/reflector.h"
#include "config/base/watchdog.h"

struct informer_target {
    struct cluster *cluster;
    pthread_rwlock_t *lock;         /* guards *cluster */
    struct resource_status *status; /* KIND_COUNT of them */
    const atomic_uint *watched;     /* the kinds to watch; NULL: all; see above */
    struct watchdog *watchdog;      /* NULL: none */
    struct api_stats *stats;        /* NULL: none */

    /* Called on the informer's thread, without the lock. */
    void *context;
    /* The object has been applied or removed. Only its meta is set if a list did not name it.
     * was_there: before, the pod held its claims, and a watch or a list had said so; or the node
     * existed; or the CSINode, with the same owner, listed all the drivers that it lists now. */
    void (*changed)(void *context, enum watch_change change, const struct object *object,
                    bool was_there);
    /* All kinds that are watched are synced, for the first time. */
    void (*synced)(void *context);
    /* What is left to do, after each of these, and when it was asked for. Returns the time of the
     * next call, or UINT64_MAX. NULL: nothing. */
    uint64_t (*tick)(void *context, uint64_t now_ns);
};

struct informer;

/* Ownership: informer_stop. The kubeconfig and everything that the target points to are borrowed.
 */
int informer_start(struct informer **out, const struct kubeconfig *kubeconfig,
                   const struct informer_target *target, struct error *err);
void informer_stop(struct informer *informer);

/* The requests to the API server, valid until informer_stop. NULL for NULL. */
struct requests *informer_requests(struct informer *informer);

#endif
