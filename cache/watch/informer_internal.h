/* What follow.c, follow_ask.c and follow_request.c share; nobody else includes this. */
#ifndef CACHE_WATCH_INFORMER_INTERNAL_H
#define CACHE_WATCH_INFORMER_INTERNAL_H

#include <sys/queue.h>

#include "cache/client/http_client.h"
#include "cache/watch/apply.h"

enum { PATH_BYTES_MAX = 16 * 1024 };

/* A kind's reflector, and the call that is on its way for it. */
struct following {
    struct follow *follow;
    struct reflector reflector;
    struct api_call *call;
    struct buf refusal; /* the beginning of an answer that is no success */
};

enum request_state { REQUEST_QUEUED, REQUEST_SENT, REQUEST_DONE };

/* What is asked of the API server beside lists and watches. All of it is guarded by follow's mutex,
 * but for what is sent, which does not change, and the answer, which is follow's thread's until it
 * is done, and then the waiters'. */
struct request {
    TAILQ_ENTRY(request) link;
    struct follow *follow;
    enum request_state state;
    bool is_handed_over; /* to the API client */
    bool is_own;         /* nobody waits for it: follow itself asks */
    uint64_t asked_ns;   /* when its turn came: it is sent after that */
    unsigned waiters;    /* callers who will look at it; the last one frees it, if it is done */
    struct api_request sent;
    struct object_reference object; /* that is asked about; KIND_OTHER: none */
    struct buf answer;
    unsigned status;      /* 0: none, or not all of it */
    bool is_unsent;       /* it cannot have been applied */
    struct error problem; /* why it failed */
    char text[];          /* path, body, and the object's strings */
};

TAILQ_HEAD(requests, request);

struct follow {
    struct follow_target target;
    struct api *api;
    pthread_t thread;
    struct following watched[KIND_WATCHED_COUNT];
    bool has_synced;
    bool is_asking_again;  /* about what was answered, and no watch has confirmed */
    uint64_t ask_again_ns; /* not before then */

    pthread_mutex_t mutex;  /* guards what follows */
    pthread_cond_t changed; /* a request is done */
    bool is_stopping;
    bool is_interrupted;       /* nobody waits any more */
    struct requests incoming;  /* first come, first served */
    struct requests under_way; /* handed over to the API client */
    size_t object_count, message_count;
};

/* The message of a metav1.Status, or of its beginning; empty when there is none. It lies in the
 * answer, or in the arena. */
struct slice status_message(struct slice answer, struct arena *arena);

/* ---- requests; all but hand_over under the mutex ---- */

/* One that is to be queued. sent: what it points to is copied, but for method and content type.
 * object: may be NULL. max_bytes: of the answer. NULL: no memory. */
struct request *request_new(struct follow *follow, const struct api_request *sent,
                            const struct object_reference *object, size_t max_bytes);

/* Puts it into the queue. */
void request_queue(struct request *request);

/* Waits until it is done. False: the time is over, or nobody waits any more. */
bool request_wait(const struct request *request, const struct timespec *deadline);

/* A waiter looks at it no more. One that nobody wants is not sent. */
void request_leave(struct request *request);

/* The deadline of somebody who begins to wait now. */
struct timespec deadline_in(int64_t timeout_ms);

/* Why one that is not done is not waited for any longer. */
int request_give_up(const struct request *request, struct error *err);

/* Hands what is queued over to the API client. On follow's thread. */
void hand_over(struct follow *follow);

/* Frees what is left, when nothing runs any more. */
void requests_dispose(struct follow *follow);

/* ---- objects that are asked about (follow_ask.c) ---- */

/* Asks again about what the API server answered once, and no watch has confirmed: one object after
 * the other. On follow's thread. */
void ask_again(struct follow *follow, uint64_t now_ns);

/* The answer is there: folds it into the cluster. On follow's thread. */
void take_object(struct request *request, const struct api_result *result);

#endif
