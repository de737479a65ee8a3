/*
 * metrics: what is counted for /metrics (scrape.h), beside what others count. It is lock-free but
 * for the set of pods that are rejected now, and for deferrals.
 *
 * Threads: any, at any time.
 */
#ifndef EXTENDER_METRICS_METRICS_H
#define EXTENDER_METRICS_METRICS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cache/watch/reflector.h"
#include "config/base/histogram.h"
#include "policy/policy.h"

enum verb { VERB_FILTER, VERB_PREFILTER, VERB_PREEMPT, VERB_BIND, VERB_COUNT };

enum call_result {
    RESULT_OK,      /* answered */
    RESULT_ERROR,   /* answered with Error set, or before the sync */
    RESULT_INVALID, /* refused: 400 */
    RESULT_FAILED,  /* failed here: 5xx */
    RESULT_COUNT,
};

/* What came of asking the API server before a rejection. */
enum confirmation {
    CONFIRMATION_STANDS,    /* the pod is rejected */
    CONFIRMATION_OVERRULED, /* it would have been rejected for something that is no more */
    CONFIRMATION_UNKNOWN,   /* the API server could not be asked: the cache's word stands */
    CONFIRMATION_COUNT,
};

/* What came of a preemption. */
enum preemption_result {
    PREEMPTION_LEFT,      /* the scheduler does it */
    PREEMPTION_EVICTED,   /* claimguard evicted pods */
    PREEMPTION_FORBIDDEN, /* by a PodDisruptionBudget */
    PREEMPTION_FAILED,    /* the API server could not be asked, or refused */
    PREEMPTION_NEEDLESS,  /* the victims were gone when their turn came */
    PREEMPTION_COUNT,
};

enum port { PORT_EXTENDER, PORT_METRICS, PORT_COUNT };

enum { METRICS_POLICIES_MAX = 4, REJECTED_PODS_MAX = 100000, DEFERRED_TALLIES_MAX = 1000 };

/* How many mounts an entry deferred. */
struct deferred_tally {
    struct deferred_tally *next;
    uint64_t count;
    struct slice storage_class, runtime_class; /* in text */
    char text[];
};

struct rejected_pod;

struct metrics {
    struct histogram durations[VERB_COUNT];
    atomic_uint_fast64_t requests[VERB_COUNT][RESULT_COUNT];
    atomic_uint_fast64_t verdicts[METRICS_POLICIES_MAX][CODE_COUNT];
    atomic_uint_fast64_t bind_conflicts;
    atomic_uint_fast64_t confirmations[CONFIRMATION_COUNT];
    atomic_uint_fast64_t preemptions[PREEMPTION_COUNT];
    atomic_uint_fast64_t victims;
    atomic_uint_fast64_t handshakes_refused;
    atomic_uint_fast64_t lock_takeovers;
    atomic_uint binds_in_flight;
    atomic_bool is_config_refused;        /* the file that was read last */
    atomic_int_fast64_t config_loaded_ms; /* when one was good, since 1970 */
    atomic_uint connections[PORT_COUNT];
    unsigned connections_max[PORT_COUNT]; /* set before there are any */
    pthread_mutex_t rejected_lock;        /* guards the next two */
    struct rejected_pod *rejected;        /* uthash, by UID; the oldest makes room */
    size_t rejected_counts[METRICS_POLICIES_MAX];
    pthread_mutex_t deferred_lock;   /* guards deferred */
    struct deferred_tally *deferred; /* one for each entry that was ever used; bounded */
};

void metrics_init(struct metrics *metrics);
void metrics_dispose(struct metrics *metrics);

/* "filter", ... */
const char *verb_text(enum verb verb);

void metrics_count_request(struct metrics *metrics, enum verb verb, enum call_result result,
                           uint64_t duration_ns);

/* The configuration was read: whether it is in force now. */
void metrics_note_config(struct metrics *metrics, bool is_good);

/* A volume whose mount was deferred. */
void metrics_count_deferral(struct metrics *metrics, struct slice storage_class,
                            struct slice runtime_class);

/* A filter verdict on the pod; keeps unschedulable_pods. */
void metrics_count_verdict(struct metrics *metrics, const struct policy *policy,
                           const struct verdict *verdict, const struct pod_object *pod);

/* The pod is bound or gone: it is not unschedulable any more. */
void metrics_forget_pod(struct metrics *metrics, struct slice uid);

/* How many pods each policy rejects now. */
void metrics_count_rejected(struct metrics *metrics, size_t counts[METRICS_POLICIES_MAX]);

#endif
