/*
 * state: what the threads of `serve` share: the cluster and the configuration under one lock, the
 * metrics, and the services. Verdicts read under the lock for microseconds; a bind or an event
 * writes.
 */
#ifndef EXTENDER_STATE_H
#define EXTENDER_STATE_H

#include <pthread.h>

#include "cache/cluster/reservation.h"
#include "cache/watch/informer.h"
#include "config/base/clock.h"
#include "config/base/watchdog.h"
#include "config/config.h"
#include "extender/metrics/metrics.h"

enum {
    BINDING_DEAD_MS = 65000,       /* the API server gives a request 60 s */
    REQUESTS_BYTES_MIN = 64 << 20, /* for all calls together; or two of the largest bodies */
};

/* The services, in folders behind this one; a part of the program that has none of them may run
 * with NULL. cli/services.h makes them. */
struct events;
struct requeue;
struct preemption;
struct seen_locks;
struct defer_support;
struct tls;

struct state {
    pthread_rwlock_t lock; /* guards cluster, config and seen_locks */
    struct cluster cluster;
    struct config *config;        /* owned; replaced as a whole by state_reload */
    atomic_size_t body_bytes_max; /* config's: no probe waits for the lock */
    struct quota call_memory;     /* of all calls */
    pthread_mutex_t explaining;   /* one explanation at a time: jansson's memory is in no quota */
    struct metrics metrics;       /* has its own rules */
    struct resource_status status[KIND_COUNT];
    struct requests *api; /* the way to the API server; NULL: the cluster is a snapshot */
    struct api_stats api_stats;
    struct requeue *requeue; /* the services have locks of their own, but for seen_locks */
    struct events *events;
    struct preemption *preemption;
    struct defer_support *defer_support;
    struct seen_locks *seen_locks;
    struct tls *tls;    /* of the scheduler's port; NULL: plain text */
    char source[256];   /* of the cluster, for people; set before there are threads */
    int64_t started_ms; /* since 1970 */
    atomic_bool is_draining;
    struct watchdog watchdog; /* of all threads */
};

/* Ownership: takes the config. */
int state_init(struct state *state, struct config *config, struct error *err);
void state_dispose(struct state *state);

/* What policies see. Under the lock. */
static inline struct view state_view(const struct state *state)
{
    return (struct view){&state->cluster, state->config};
}

/* The first kind that is not synced yet; KIND_COUNT: all are. */
enum kind state_unsynced(const struct state *state);

/* When a reservation that is made now ends; of a pod that is being bound not before the API server
 * has given its Binding up. Under the lock. */
uint64_t state_reservation_end(const struct state *state, bool is_binding);

/* Puts another configuration in force. Ownership: takes it; frees the old one. */
void state_reload(struct state *state, struct config *config);

#endif
