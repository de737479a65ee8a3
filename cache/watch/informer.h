/*
 * follow: keeps a cluster as the API server has it: one thread that lists and watches every kind
 * (reflector), and asks about single objects in between.
 *
 *     struct follow_target target = {.cluster = cluster};
 *     struct object_reference pod = {KIND_POD, SLICE("default"), SLICE("web-0"), SLICE("")};
 *     struct follow *follow;
 *     if (follow_start(&follow, kubeconfig, &target, err) < 0)
 *         return error_wrap(err, "watch the cluster");
 *     // the cluster fills; target.status says how far
 *     follow_confirm(follow, &pod, 1, 1000, err); // the API server's answer is in the cluster
 *     follow_stop(follow);
 *
 * The cluster is written under target.lock, in pieces that take microseconds (fold).
 *
 * Threads: follow_confirm, follow_send and follow_call may be called by any; confirm and call not
 * with the lock held.
 */
#ifndef CACHE_WATCH_INFORMER_H
#define CACHE_WATCH_INFORMER_H

#include <pthread.h>

#include "cache/client/http_client_stats.h"
#include "cache/client/kubeconfig.h"
#include "cache/cluster/cluster.h"
#include "cache/watch/reflector.h"
#include "config/base/watchdog.h"

enum {
    CONFIRM_MAX = 16,           /* objects in one call; the others are not asked about */
    OBJECTS_ASKED_MAX = 1024,   /* objects being asked about at a time, over all callers */
    FETCH_BYTES_MAX = 16 << 20, /* of one object */
    MESSAGES_MAX = 256,         /* of follow_send, not yet answered; more are dropped */
    UNANSWERED_MS = 1000,       /* see follow_is_silent */
};

struct follow_target {
    struct cluster *cluster;
    pthread_rwlock_t *lock;         /* guards *cluster */
    struct resource_status *status; /* KIND_COUNT of them */
    struct watchdog *watchdog;      /* NULL: nobody looks */
    struct api_stats *stats;        /* NULL: nobody counts */

    /* Called on follow's thread, without the lock. */
    void *context;
    /* The object has been applied or removed; of one that a list has left out, only the meta is
     * set. was_holding: of a pod: that one took up its claims before. */
    void (*changed)(void *context, enum change change, const struct object *object,
                    bool was_holding);
    /* All kinds are synced for the first time. */
    void (*synced)(void *context);
};

struct follow;

/* Ownership: follow_stop. The kubeconfig and all that the target points to have to stay. */
int follow_start(struct follow **out, const struct kubeconfig *kubeconfig,
                 const struct follow_target *target, struct error *err);
void follow_stop(struct follow *follow);

/* For a shutdown: everyone who waits in follow_confirm or follow_call, now or later, returns at
 * once: with ERROR_UNAVAILABLE, or with status 0 where the request has left. Lists and watches go
 * on until follow_stop. Threads: any; NULL is ignored. */
void follow_interrupt(struct follow *follow);

/* Whether a request has been on its way to the API server for UNANSWERED_MS, and no other was
 * answered in the meantime: for who would rather not wait for the next one. Threads: any. */
bool follow_is_silent(struct follow *follow);

/*
 * Asks the API server what the pods and claims are now (a GET is a quorum read), and folds the
 * answers into the cluster. Many callers that ask the same cost one request; but a request that was
 * on its way before the caller came does not count: what it read may be older than the caller.
 * Whoever asks is asked for, however others fared, and waits as long as it wants.
 * Errors: ERROR_TIMEOUT, ERROR_UNAVAILABLE, ERROR_NO_MEMORY: not all is known.
 */
int follow_confirm(struct follow *follow, const struct object_reference *references, size_t count,
                   int64_t timeout_ms, struct error *err);

/* Sends a request and does not wait for its answer; a failure is logged. method and content_type
 * are static strings. False: it was dropped, since too many wait to be sent, or without memory. */
bool follow_send(struct follow *follow, const char *method, const char *path,
                 const char *content_type, struct slice body);

struct follow_answer {
    unsigned status;   /* 0: none came, or not all of it: what became of the request is unknown */
    struct slice body; /* both in the arena */
    struct slice message; /* of a metav1.Status */
};

/* Sends a request, once (cache/api.h), and waits for its answer, timeout_ms at most. Those of many
 * callers are sent in the order in which they come, API_CALLS_AT_ONCE_MAX at a time.
 * Errors: ERROR_UNAVAILABLE, ERROR_TIMEOUT, ERROR_NO_MEMORY: it was not sent, and will not be. */
int follow_call(struct follow *follow, const char *method, const char *path,
                const char *content_type, struct slice body, int64_t timeout_ms,
                struct arena *arena, struct follow_answer *out, struct error *err);

/* A request about one object. */
struct object_call {
    const char *method;
    struct object_reference object;
    const char *suffix; /* behind the object's path, "/binding" or "?dryRun=All"; NULL: nothing */
    const char *content_type;
    struct slice body;
    int64_t timeout_ms;
};

/* As follow_call. */
int follow_call_object(struct follow *follow, const struct object_call *call, struct arena *arena,
                       struct follow_answer *out, struct error *err);

#endif
