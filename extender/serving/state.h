/*
 * state: what the threads of `serve` share: the cluster and the configuration under one lock, the
 * metrics, and pointers to the services. A verdict holds the lock for reading, for microseconds; a
 * bind and a watch event hold it for writing. No thread holds it while it waits for the API server.
 * The informer decodes an object first, then holds it for that object, or for a step of a list's
 * end. Long pages (/metrics, /debug/...) hold it for a few records at a time. No other mutex is
 * held while it is taken, but that of /prefilter.
 */
#ifndef EXTENDER_SERVING_STATE_H
#define EXTENDER_SERVING_STATE_H

#include <pthread.h>

#include "cache/cluster/reservation.h"
#include "cache/watch/informer.h"
#include "config/base/clock.h"
#include "config/base/scope.h"
#include "config/base/watchdog.h"
#include "config/config.h"
#include "extender/serving/metrics/metrics.h"

enum {
    BINDING_DEAD_MS = 65000,       /* the API server abandons a request after 60 s */
    REQUESTS_BYTES_MIN = 64 << 20, /* of all calls together; or twice the largest body */
    REVIEWS_BYTES_MAX = 32 << 20,  /* of all reviews together */
    /* A review that takes no more than this, as one of a Binding, always has it: all connections
     * together take the reserve. */
    REVIEW_SMALL_BYTES = 48 << 10,
    REVIEWS_RESERVE_BYTES = 12 << 20,
    /* Of a review's body. API servers store no pod of over 1.5 MiB; as JSON, it is some times as
     * large as in their own form. */
    REVIEW_BODY_BYTES_MAX = 12 << 20,
};

/* The services, of modules that use this one. cli/services.h makes them; a program without them
 * leaves NULL. */
struct events;
struct services;
struct requeue;
struct nominations;
struct trials;
struct preemption;
struct seen_locks;
struct defer_support;
struct agreement;
struct tls;

struct state {
    pthread_rwlock_t lock; /* guards cluster, config, seen_locks, agreement and agreed */
    struct cluster cluster;
    struct config *config;        /* owned; replaced as a whole by state_reload */
    atomic_size_t body_bytes_max; /* of config; a copy, so that no probe waits for the lock */
    struct quota call_memory;     /* of all calls but reviews */
    struct quota review_memory;   /* of all reviews: their port may be open to everybody */
    pthread_mutex_t explaining;   /* one explanation at a time: no quota counts jansson's memory */
    struct metrics metrics;       /* has locks of its own */
    pthread_mutex_t confirming;   /* guards confirmed_ms */
    struct share_window
        confirmed_ms;             /* how long calls may wait, or have waited, for confirmations */
    atomic_uint binds_in[SHARES]; /* under way, by share_of a namespace */
    atomic_uint reviews_waiting_in[SHARES]; /* by share_of a namespace */
    struct resource_status status[KIND_COUNT];
    atomic_uint needed;   /* kinds that the configuration in force needs: bits 1 << kind */
    atomic_uint watched;  /* those, and what a new configuration waits for; of a snapshot, all */
    struct requests *api; /* to the API server; NULL: the cluster is a snapshot */
    struct api_stats api_stats;
    struct services *services; /* the memory of these: */
    struct requeue *requeue;   /* each has its own lock, except those named above */
    struct nominations *nominations;
    struct trials *trials;
    struct events *events;
    struct preemption *preemption;
    struct defer_support *defer_support;
    struct seen_locks *seen_locks;
    struct agreement *agreement;
    const struct agreed_classes *agreed; /* the agreement's; NULL: there is none to follow */
    struct tls *tls;                     /* of the scheduler's port; NULL: plain HTTP */
    struct tls *admission_tls;           /* of the admission port; NULL: it is not served */
    char source[256];   /* where the cluster comes from, for people; set before there are threads */
    int64_t started_ms; /* since 1970 */
    atomic_bool is_draining;
    struct watchdog watchdog; /* of all threads */
};

/* Ownership: takes the config, if it succeeds. */
int state_init(struct state *state, struct config *config, struct error *err);
void state_dispose(struct state *state);

/* What policies see. Under the lock. */
static inline struct view state_view(const struct state *state)
{
    return (struct view){
        .cluster = &state->cluster, .config = state->config, .agreed = state->agreed};
}

/* The first kind that is needed and not synced yet; KIND_COUNT: all are synced. */
enum kind state_unsynced(const struct state *state);

/* Whether the kind is needed by the configuration in force; whether it is watched. */
static inline bool state_needs(const struct state *state, enum kind kind)
{
    return (atomic_load(&state->needed) & 1U << kind) != 0;
}

static inline bool state_watches(const struct state *state, enum kind kind)
{
    return (atomic_load(&state->watched) & 1U << kind) != 0;
}

/* For an informer that is about to start: the kinds that the configuration needs are watched from
 * now on, and no others; and namespaces may take as much memory as it says. */
void state_watch_needed(struct state *state);
void state_limit_cache(struct state *state);

/* When a reservation that is made now expires. For a pod that is being bound, not before the API
 * server abandons the Binding. Under the lock. */
uint64_t state_reservation_end(const struct state *state, bool is_binding);

/*
 * Replaces the configuration. Until all kinds that the new one needs are synced, the old one stays
 * in force, and those kinds are watched: false, and the caller tries again with the same
 * configuration, or with another, later. So no verdict ever lacks objects that exist. A
 * configuration that is not synced itself decides nothing, and is replaced at once.
 * Ownership: if true, takes the new one, and frees the old one.
 */
bool state_reload(struct state *state, struct config *config) MUST_USE;

#endif
