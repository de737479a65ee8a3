/*
 * metrics: counters and gauges for /metrics (scrape.h). Other modules, such as the informer, have
 * more of their own. All are atomic, except the set of rejected pods and the deferrals, which have
 * locks.
 *
 * Threads: any.
 */
#ifndef EXTENDER_SERVING_METRICS_METRICS_H
#define EXTENDER_SERVING_METRICS_METRICS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cache/watch/reflector.h"
#include "config/base/histogram.h"
#include "policy/policy.h"

enum verb {
    VERB_FILTER,
    VERB_PREFILTER,
    VERB_PREEMPT,
    VERB_BIND,
    VERB_VOLCANO_PREDICATE,
    VERB_COUNT
};

enum call_result {
    RESULT_OK,      /* answered */
    RESULT_ERROR,   /* answered with Error set, or before the first sync */
    RESULT_INVALID, /* refused with 400 */
    RESULT_FAILED,  /* failed in claimguard: 5xx */
    RESULT_COUNT,
};

/* The calls of admission webhooks. */
enum admit_path { ADMIT_BINDING, ADMIT_POD, ADMIT_COUNT };

enum review_result {
    REVIEW_ALLOWED,
    REVIEW_DENIED,
    REVIEW_OBSERVED, /* would be denied, but for admission.mode Observe */
    REVIEW_INVALID,  /* refused with 400 */
    REVIEW_FAILED,   /* no decision could be made: 500 */
    REVIEW_RESULT_COUNT,
};

/* The result of the requests to the API server before a rejection. */
enum confirmation {
    CONFIRMATION_STANDS,    /* the pod is rejected */
    CONFIRMATION_OVERRULED, /* not rejected: the cause that the cache had does not exist any more */
    CONFIRMATION_UNKNOWN,   /* no answer: rejected, as the cache has it */
    CONFIRMATION_COUNT,
};

/* The result of a preemption. */
enum preemption_result {
    PREEMPTION_LEFT,      /* left to the scheduler */
    PREEMPTION_EVICTED,   /* claimguard evicted pods */
    PREEMPTION_FORBIDDEN, /* by a PodDisruptionBudget */
    PREEMPTION_FAILED,    /* the API server did not answer, or refused */
    PREEMPTION_NEEDLESS,  /* the victims were gone before they were evicted */
    PREEMPTION_COUNT,
};

enum port { PORT_EXTENDER, PORT_METRICS, PORT_ADMISSION, PORT_COUNT };

enum { REJECTED_PODS_MAX = 100000, DEFERRED_TALLIES_MAX = 1000 };

/* The number of mounts that were deferred by an entry (configuration, deferFSMount.entries). */
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
    struct histogram review_durations[ADMIT_COUNT];
    atomic_uint_fast64_t reviews[ADMIT_COUNT][REVIEW_RESULT_COUNT];
    atomic_uint reviews_waiting; /* for the API server */
    atomic_uint_fast64_t verdicts[POLICIES_MAX][CODE_COUNT];
    atomic_uint_fast64_t warnings[POLICIES_MAX];
    atomic_uint_fast64_t bind_conflicts;
    atomic_uint_fast64_t confirmations[CONFIRMATION_COUNT];
    atomic_uint_fast64_t preemptions[PREEMPTION_COUNT];
    atomic_uint_fast64_t victims;
    atomic_uint_fast64_t handshakes_refused;
    atomic_uint_fast64_t lock_takeovers;
    atomic_uint binds_in_flight;
    atomic_bool is_config_refused;        /* the last file that was read is not in force */
    atomic_int_fast64_t config_loaded_ms; /* when the file in force was read, since 1970 */
    atomic_uint connections[PORT_COUNT];
    unsigned connections_max[PORT_COUNT]; /* set before the first connection */
    pthread_mutex_t rejected_lock;        /* guards rejected and rejected_counts */
    struct rejected_pod *rejected;        /* uthash, by UID; if it is full, the oldest is removed */
    size_t rejected_counts[POLICIES_MAX];
    pthread_mutex_t deferred_lock;   /* guards deferred */
    struct deferred_tally *deferred; /* one for each entry that was ever used, up to a limit */
};

void metrics_init(struct metrics *metrics);
void metrics_dispose(struct metrics *metrics);

extern const char *const verb_texts[VERB_COUNT];   /* "filter", ...: the label */
extern const char *const admit_paths[ADMIT_COUNT]; /* "/admit/binding", ... */

void metrics_count_request(struct metrics *metrics, enum verb verb, enum call_result result,
                           uint64_t duration_ns);

void metrics_count_review(struct metrics *metrics, enum admit_path path, enum review_result result,
                          uint64_t duration_ns);

/* The configuration file was read; is_good: it is in force now. */
void metrics_note_config(struct metrics *metrics, bool is_good);

/* Counts a volume whose mount was deferred. */
void metrics_count_deferral(struct metrics *metrics, struct slice storage_class,
                            struct slice runtime_class);

/* Counts a filter verdict on the pod, and updates the set of rejected pods. */
void metrics_count_verdict(struct metrics *metrics, const struct verdict *verdict,
                           const struct pod_object *pod);

/* Counts the verdict only, because it is about one node of many: a pod that this node rejects may
 * pass on another. */
void metrics_count_node_verdict(struct metrics *metrics, const struct verdict *verdict);

/* Counts a warning about a pod that was bound. */
void metrics_count_warning(struct metrics *metrics, const struct policy *policy);

/* Removes the pod from the rejected ones, because it is bound or deleted. */
void metrics_forget_pod(struct metrics *metrics, struct slice uid);

/* The number of pods that each policy rejects now. */
void metrics_count_rejected(struct metrics *metrics, size_t counts[POLICIES_MAX]);

#endif
