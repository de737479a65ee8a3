/* What follow asks the API server about single objects. */
#include <stdlib.h>

#include "cache/watch/informer_internal.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum {
    OBJECT_TIMEOUT_MS = 5000, /* an answer that comes too late for who asked is still news */
    DOUBT_BYTES_MAX = 4096,
    ASK_AGAIN_MS = 1000, /* when there was nothing to ask, or no answer */
};

void take_object(struct request *request, const struct api_result *result)
{
    struct follow *follow = request->follow;
    const struct object_reference *object = &request->object;
    int rc = 0;

    follow->is_asking_again = follow->is_asking_again && !request->is_own;
    if (result->status == 404 && !result->is_cut &&
        fold_says_absent(object, buf_slice(&request->answer)))
        fold_absence(&follow->target, object);
    else if (result->status == 200 && !result->is_cut)
        rc = fold_object(&follow->target, object, buf_slice(&request->answer),
                         follow->watched[object->kind].reflector.number, request->asked_ns,
                         &request->problem);
    else
        rc = error_set(&request->problem, ERROR_UNAVAILABLE, "status %u %s", result->status,
                       result->error);
    if (rc < 0 && request->is_own)
        follow->ask_again_ns = monotonic_ns() + ASK_AGAIN_MS * NS_PER_MS;
    if (rc < 0)
        log_warn("the API server could not be asked about an object",
                 LOG_STR("resource", kind_resource(object->kind)),
                 LOG_SLICE("namespace", object->namespace), LOG_SLICE("name", object->name),
                 LOG_STR("error", request->problem.message));
}

/* One that asks about the object and is still to be sent; NULL: there is none. */
static struct request *find(const struct requests *requests, const struct object_reference *object)
{
    struct request *request;

    TAILQ_FOREACH (request, requests, link)
        if (request->state == REQUEST_QUEUED && object_reference_equal(&request->object, object))
            return request;
    return NULL;
}

static struct request *ask(struct follow *follow, const struct object_reference *object)
{
    struct request *request = NULL;
    struct buf path;

    buf_init(&path, PATH_BYTES_MAX);
    object_path(&path, object->kind, object->namespace, object->name);
    const char *text = buf_text(&path);
    if (text != NULL)
        request = request_new(follow,
                              &(struct api_request){.path = text, .timeout_ms = OBJECT_TIMEOUT_MS},
                              object, FETCH_BYTES_MAX);
    buf_dispose(&path);
    if (request != NULL)
        request_queue(request);
    return request;
}

void ask_again(struct follow *follow, uint64_t now_ns)
{
    struct kept_reference *doubt = NULL;
    struct arena arena;

    if (follow->is_asking_again || now_ns < follow->ask_again_ns)
        return;
    arena_init(&arena, DOUBT_BYTES_MAX);
    (void)pthread_rwlock_wrlock(follow->target.lock);
    bool has_doubt = cluster_next_doubt(follow->target.cluster, now_ns, &doubt, &arena);
    (void)pthread_rwlock_unlock(follow->target.lock);
    if (has_doubt) {
        (void)pthread_mutex_lock(&follow->mutex);
        struct request *request = ask(follow, &doubt->reference);
        if (request != NULL)
            request->is_own = follow->is_asking_again = true;
        (void)pthread_mutex_unlock(&follow->mutex);
    }
    if (!follow->is_asking_again)
        follow->ask_again_ns = now_ns + ASK_AGAIN_MS * NS_PER_MS;
    arena_dispose(&arena);
}

/* A request that will be sent, for the object; the caller is one of its waiters. NULL: there are
 * too many, or no memory. Under the mutex. */
static struct request *obtain(struct follow *follow, const struct object_reference *object,
                              struct error *err)
{
    struct request *request = find(&follow->incoming, object);

    if (request == NULL)
        request = find(&follow->under_way, object);
    if (request == NULL && follow->object_count >= OBJECTS_ASKED_MAX) {
        (void)error_set(err, ERROR_UNAVAILABLE, "over %d objects are being asked about",
                        OBJECTS_ASKED_MAX);
        return NULL;
    }
    if (request == NULL)
        request = ask(follow, object);
    if (request == NULL)
        (void)error_no_memory(err);
    else
        request->waiters++;
    return request;
}

/* Under the mutex. */
static int await(struct request *request, const struct timespec *deadline, struct error *err)
{
    int rc = 0;

    if (!request_wait(request, deadline))
        rc = request_give_up(request, err);
    else if (request->problem.code != 0)
        rc = error_set(err, ERROR_UNAVAILABLE, "the API server cannot be asked: %s",
                       request->problem.message);
    request_leave(request);
    return rc;
}

int follow_confirm(struct follow *follow, const struct object_reference *references, size_t count,
                   int64_t timeout_ms, struct error *err)
{
    struct timespec deadline = deadline_in(timeout_ms);
    struct request *requests[CONFIRM_MAX];
    size_t asked = 0;
    int rc = 0;

    (void)pthread_mutex_lock(&follow->mutex);
    for (size_t i = 0; i < count && i < CONFIRM_MAX && rc == 0; i++) {
        if (!object_reference_is_possible(&references[i]))
            continue; /* it is not there, whoever is asked */
        requests[asked] = obtain(follow, &references[i], err);
        if (requests[asked] == NULL)
            rc = err->code;
        else
            asked++;
    }
    if (asked != 0)
        api_wake(follow->api);
    for (size_t i = 0; i < asked; i++) {
        int one = await(requests[i], &deadline, err);
        rc = one < 0 ? one : rc;
    }
    (void)pthread_mutex_unlock(&follow->mutex);
    return rc;
}
