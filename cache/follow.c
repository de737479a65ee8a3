#include "cache/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "cache/api.h"
#include "config/base/log.h"

enum {
    PATH_BYTES_MAX = 16 * 1024,
    FETCH_TIMEOUT_MS = 5000,
    POST_TIMEOUT_MS = 10000,
    POLL_MS_MAX = 1000
};

/* A kind's reflector, and the call that is on its way for it. */
struct following {
    struct follow *follow;
    struct reflector reflector;
    struct api_call *call;
};

enum fetch_state { FETCH_QUEUED, FETCH_SENT, FETCH_DONE };

/* One object that is asked about. */
struct fetch {
    struct fetch *next;
    struct follow *follow;
    struct object_reference reference; /* its strings lie behind the struct */
    enum fetch_state state;
    unsigned waiters; /* callers that will look at the result; the last one frees a done fetch */
    bool has_failed;
    struct buf body;
    char text[];
};

struct post {
    struct post *next;
    struct follow *follow;
    bool is_sent;
    char *path;
    struct slice body;
    char text[];
};

struct follow {
    struct follow_target target;
    struct api *api;
    pthread_t thread;
    struct following watched[KIND_COUNT];
    bool has_synced;

    pthread_mutex_t mutex;  /* guards what follows */
    pthread_cond_t changed; /* a fetch is done */
    bool is_stopping;
    struct fetch *fetches;
    size_t fetch_count;
    uint64_t unreachable_until_ns;
    struct post *posts;
    size_t post_count;
};

static uint64_t clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int64_t since_1970_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- what the reflectors hand on; called with the lock held for writing ---- */

static void begin_list(void *context, enum kind kind, bool overrides)
{
    const struct following *following = context;
    cluster_list_begin(following->follow->target.cluster, kind, overrides);
}

static void end_list(void *context, enum kind kind, uint64_t version)
{
    const struct following *following = context;
    cluster_list_end(following->follow->target.cluster, kind, version);
}

static bool is_holding(const struct cluster *cluster, const struct object *object)
{
    const struct pod *pod =
        object->kind == KIND_POD
            ? cluster_find_pod(cluster, object->meta.namespace, object->meta.name)
            : NULL;
    return pod != NULL && pod_holds(pod) && uid_is(&pod->uid, object->meta.uid);
}

static void tell(const struct follow *follow, enum change change, const struct object *object,
                 bool was_holding)
{
    if (follow->target.changed != NULL)
        follow->target.changed(follow->target.context, change, object, was_holding);
}

static int take(void *context, enum change change, const struct object *object, struct slice text,
                struct error *err)
{
    const struct follow *follow = ((const struct following *)context)->follow;
    bool was_holding = is_holding(follow->target.cluster, object);

    (void)text;
    if (change == CHANGE_DELETE)
        cluster_delete(follow->target.cluster, object);
    else if (cluster_apply(follow->target.cluster, object, err) < 0)
        return err->code;
    tell(follow, change, object, was_holding);
    return 0;
}

/* ---- lists and watches ---- */

static void note_synced(struct follow *follow)
{
    if (follow->has_synced)
        return;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (!atomic_load(&follow->target.status[kind].is_synced))
            return;
    follow->has_synced = true;
    if (follow->target.synced == NULL)
        return;
    (void)pthread_rwlock_wrlock(follow->target.lock);
    follow->target.synced(follow->target.context);
    (void)pthread_rwlock_unlock(follow->target.lock);
}

static bool on_bytes(void *context, unsigned status, struct slice bytes)
{
    struct following *following = context;
    struct follow *follow = following->follow;

    (void)pthread_rwlock_wrlock(follow->target.lock);
    bool goes_on = reflector_take(&following->reflector, status, bytes, clock_ns());
    (void)pthread_rwlock_unlock(follow->target.lock);
    if (status == 200)
        atomic_store(&follow->target.status[following->reflector.kind].last_event_ms,
                     since_1970_ms());
    note_synced(follow);
    return goes_on;
}

static void end_call(struct following *following, const struct reflector_ending *ending)
{
    following->call = NULL;
    reflector_end(&following->reflector, ending, clock_ns());
    note_synced(following->follow);
}

static void on_end(void *context, const struct api_result *result)
{
    end_call(context, &(struct reflector_ending){.status = result->status,
                                                 .is_cut = result->is_cut,
                                                 .retry_after_ms = result->retry_after_ms,
                                                 .error = result->error});
}

static void start_call(struct following *following, uint64_t now_ns)
{
    struct error err = {0};
    struct buf path;

    buf_init(&path, PATH_BYTES_MAX);
    reflector_request(&following->reflector, now_ns, &path);
    buf_put(&path, (struct slice){"", 1});
    int rc = path.failed ? error_no_memory(&err)
                         : api_start(following->follow->api,
                                     &(struct api_request){.path = path.bytes,
                                                           .on_bytes = on_bytes,
                                                           .on_end = on_end,
                                                           .context = following},
                                     &following->call, &err);
    buf_dispose(&path);
    if (rc < 0)
        end_call(following, &(struct reflector_ending){.error = err.message});
}

/* Starts what is due and cancels what is silent. Returns when to look again. */
static uint64_t attend(struct follow *follow, uint64_t now_ns)
{
    uint64_t next = now_ns + POLL_MS_MAX * UINT64_C(1000000);

    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct following *following = &follow->watched[kind];
        const struct reflector *reflector = &following->reflector;
        if (following->call != NULL && now_ns >= reflector->deadline_ns) {
            api_cancel(follow->api, following->call);
            end_call(following, &(struct reflector_ending){.status = 200, .is_silent = true});
        }
        if (following->call == NULL && now_ns >= reflector->due_ns)
            start_call(following, now_ns);
        uint64_t at = following->call != NULL ? reflector->deadline_ns : reflector->due_ns;
        next = at < next ? at : next;
    }
    return next;
}

/* ---- single objects ---- */

static void fetch_free(struct fetch *fetch)
{
    struct follow *follow = fetch->follow;
    struct fetch **link = &follow->fetches;

    while (*link != fetch)
        link = &(*link)->next;
    *link = fetch->next;
    follow->fetch_count--;
    buf_dispose(&fetch->body);
    free(fetch);
}

/* The answer is there: folded in, and whoever waits is told. */
static void fetch_finish(struct fetch *fetch, bool has_failed)
{
    struct follow *follow = fetch->follow;

    (void)pthread_mutex_lock(&follow->mutex);
    fetch->has_failed = has_failed;
    fetch->state = FETCH_DONE;
    if (fetch->waiters == 0)
        fetch_free(fetch);
    (void)pthread_cond_broadcast(&follow->changed);
    (void)pthread_mutex_unlock(&follow->mutex);
}

static bool on_fetched_bytes(void *context, unsigned status, struct slice bytes)
{
    struct fetch *fetch = context;

    if (status == 200)
        buf_put(&fetch->body, bytes);
    return !fetch->body.failed;
}

/* What the API server has under the name now. */
static int fold_object(const struct fetch *fetch, struct error *err)
{
    const struct follow *follow = fetch->follow;
    enum kind kind = fetch->reference.kind;
    struct arena arena;
    struct object object;
    struct pull json;

    arena_init(&arena, FETCH_BYTES_MAX);
    pull_init(&json, buf_slice(&fetch->body));
    int rc = object_read(&json, kind, &arena, &object) && pull_finish(&json)
                 ? 0
                 : pull_fail(&json, kind_resource(kind), (struct place){1, 1}, err);
    if (rc == 0) {
        (void)pthread_rwlock_wrlock(follow->target.lock);
        bool was_holding = is_holding(follow->target.cluster, &object);
        rc = cluster_learn(follow->target.cluster, &object,
                           follow->watched[kind].reflector.number, err);
        if (rc == 0)
            tell(follow, CHANGE_PUT, &object, was_holding);
        (void)pthread_rwlock_unlock(follow->target.lock);
    }
    arena_dispose(&arena);
    return rc;
}

static void fold_absence(const struct fetch *fetch)
{
    const struct follow *follow = fetch->follow;
    const struct object_reference *gone = &fetch->reference;

    (void)pthread_rwlock_wrlock(follow->target.lock);
    cluster_learn_gone(follow->target.cluster, gone->kind, gone->namespace, gone->name, gone->uid);
    (void)pthread_rwlock_unlock(follow->target.lock);
}

static void on_fetched(void *context, const struct api_result *result)
{
    struct fetch *fetch = context;
    struct error err = {0};
    int rc = 0;

    if (result->status == 404 && !result->is_cut)
        fold_absence(fetch);
    else if (result->status == 200 && !result->is_cut)
        rc = fold_object(fetch, &err);
    else
        rc = error_set(&err, ERROR_UNAVAILABLE, "status %u %s", result->status, result->error);
    if (rc < 0)
        log_warn("the API server could not be asked about an object",
                 LOG_STR("resource", kind_resource(fetch->reference.kind)),
                 LOG_SLICE("namespace", fetch->reference.namespace),
                 LOG_SLICE("name", fetch->reference.name), LOG_STR("error", err.message));
    fetch_finish(fetch, rc < 0);
}

static void send_fetch(struct fetch *fetch)
{
    struct error err = {0};
    struct api_call *call;
    struct buf path;

    buf_init(&path, PATH_BYTES_MAX);
    object_path(&path, fetch->reference.kind, fetch->reference.namespace, fetch->reference.name);
    buf_put(&path, (struct slice){"", 1});
    int rc = path.failed ? ERROR_NO_MEMORY
                         : api_start(fetch->follow->api,
                                     &(struct api_request){.path = path.bytes,
                                                           .timeout_ms = FETCH_TIMEOUT_MS,
                                                           .on_bytes = on_fetched_bytes,
                                                           .on_end = on_fetched,
                                                           .context = fetch},
                                     &call, &err);
    buf_dispose(&path);
    if (rc < 0)
        fetch_finish(fetch, true);
}

/* Only this thread moves a fetch on from QUEUED, so that one found stays until it is sent. */
static void send_fetches(struct follow *follow)
{
    for (;;) {
        (void)pthread_mutex_lock(&follow->mutex);
        struct fetch *fetch = follow->fetches;
        while (fetch != NULL && fetch->state != FETCH_QUEUED)
            fetch = fetch->next;
        if (fetch != NULL)
            fetch->state = FETCH_SENT;
        (void)pthread_mutex_unlock(&follow->mutex);
        if (fetch == NULL)
            return;
        send_fetch(fetch);
    }
}

static bool is_same(const struct object_reference *a, const struct object_reference *b)
{
    return a->kind == b->kind && slice_equal(a->namespace, b->namespace) &&
           slice_equal(a->name, b->name) && slice_equal(a->uid, b->uid);
}

static struct slice copy_slice(char **at, struct slice text)
{
    struct slice copy = {*at, text.len};

    if (text.len != 0)
        memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return copy;
}

/* A fetch that is still to be sent for the object; NULL: too many, or no memory. Under the mutex.
 */
static struct fetch *fetch_obtain(struct follow *follow, const struct object_reference *reference)
{
    for (struct fetch *fetch = follow->fetches; fetch != NULL; fetch = fetch->next)
        if (fetch->state == FETCH_QUEUED && is_same(&fetch->reference, reference))
            return fetch;
    size_t text_bytes = reference->namespace.len + reference->name.len + reference->uid.len;
    struct fetch *fetch =
        follow->fetch_count < FETCHES_MAX ? calloc(1, sizeof *fetch + text_bytes) : NULL;
    if (fetch == NULL)
        return NULL;
    char *at = fetch->text;
    fetch->follow = follow;
    fetch->reference = (struct object_reference){
        reference->kind, copy_slice(&at, reference->namespace), copy_slice(&at, reference->name),
        copy_slice(&at, reference->uid)};
    buf_init(&fetch->body, FETCH_BYTES_MAX);
    fetch->next = follow->fetches;
    follow->fetches = fetch;
    follow->fetch_count++;
    return fetch;
}

/* Waits for the fetch. Under the mutex. */
static int await(struct follow *follow, struct fetch *fetch, const struct timespec *deadline,
                 struct error *err)
{
    int rc = 0;

    while (fetch->state != FETCH_DONE && rc == 0)
        rc = pthread_cond_timedwait(&follow->changed, &follow->mutex, deadline);
    bool is_done = fetch->state == FETCH_DONE, has_failed = fetch->has_failed;
    if (--fetch->waiters == 0 && is_done)
        fetch_free(fetch);
    if (!is_done) {
        follow->unreachable_until_ns = clock_ns() + UNREACHABLE_MS * UINT64_C(1000000);
        return error_set(err, ERROR_TIMEOUT, "the API server does not answer in time");
    }
    return has_failed ? error_set(err, ERROR_UNAVAILABLE, "the API server cannot be asked") : 0;
}

int follow_confirm(struct follow *follow, const struct object_reference *references, size_t count,
                   int64_t timeout_ms, struct error *err)
{
    uint64_t deadline_ns = clock_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / UINT64_C(1000000000)),
                                .tv_nsec = (long)(deadline_ns % UINT64_C(1000000000))};
    struct fetch *fetches[CONFIRM_MAX];
    size_t asked = 0;
    int rc = 0;

    (void)pthread_mutex_lock(&follow->mutex);
    if (clock_ns() < follow->unreachable_until_ns)
        rc = error_set(err, ERROR_UNAVAILABLE, "the API server does not answer");
    while (rc == 0 && asked < count && asked < CONFIRM_MAX) {
        fetches[asked] = fetch_obtain(follow, &references[asked]);
        if (fetches[asked] == NULL)
            rc = error_no_memory(err);
        else
            fetches[asked++]->waiters++;
    }
    if (asked != 0)
        api_wake(follow->api);
    for (size_t i = 0; i < asked; i++) {
        int one = await(follow, fetches[i], &deadline, err);
        rc = one < 0 ? one : rc;
    }
    (void)pthread_mutex_unlock(&follow->mutex);
    return rc;
}

/* ---- posts ---- */

static void post_free(struct post *post)
{
    struct follow *follow = post->follow;
    struct post **link = &follow->posts;

    while (*link != post)
        link = &(*link)->next;
    *link = post->next;
    follow->post_count--;
    free(post);
}

static void post_finish(struct post *post)
{
    struct follow *follow = post->follow;

    (void)pthread_mutex_lock(&follow->mutex);
    post_free(post);
    (void)pthread_mutex_unlock(&follow->mutex);
}

static void on_posted(void *context, const struct api_result *result)
{
    struct post *post = context;
    char status[16];

    (void)snprintf(status, sizeof status, "%u", result->status);
    if (result->status / 100 != 2)
        log_warn("the API server did not take what was posted", LOG_STR("path", post->path),
                 LOG_STR("status", status), LOG_STR("error", result->error));
    post_finish(post);
}

static void send_post(struct post *post)
{
    struct api_call *call;
    struct error err = {0};
    struct api_request request = {.method = "POST",
                                  .path = post->path,
                                  .body = post->body,
                                  .content_type = "application/json",
                                  .timeout_ms = POST_TIMEOUT_MS,
                                  .on_end = on_posted,
                                  .context = post};

    if (api_start(post->follow->api, &request, &call, &err) == 0)
        return;
    log_warn("nothing can be posted to the API server", LOG_STR("error", err.message));
    post_finish(post);
}

/* Only this thread sends and frees posts. */
static void send_posts(struct follow *follow)
{
    for (;;) {
        (void)pthread_mutex_lock(&follow->mutex);
        struct post *post = follow->posts;
        while (post != NULL && post->is_sent)
            post = post->next;
        if (post != NULL)
            post->is_sent = true;
        (void)pthread_mutex_unlock(&follow->mutex);
        if (post == NULL)
            return;
        send_post(post);
    }
}

void follow_post(struct follow *follow, const char *path, struct slice body)
{
    size_t path_bytes = strlen(path) + 1;
    struct post *post = calloc(1, sizeof *post + path_bytes + body.len);

    if (post == NULL)
        return;
    post->follow = follow;
    post->path = memcpy(post->text, path, path_bytes);
    char *at = post->text + path_bytes;
    post->body = copy_slice(&at, body);
    (void)pthread_mutex_lock(&follow->mutex);
    bool is_full = follow->post_count >= POSTS_MAX;
    if (!is_full) {
        post->next = follow->posts;
        follow->posts = post;
        follow->post_count++;
    }
    (void)pthread_mutex_unlock(&follow->mutex);
    if (is_full)
        free(post);
    else
        api_wake(follow->api);
}

/* ---- the thread ---- */

static bool is_stopping(struct follow *follow)
{
    (void)pthread_mutex_lock(&follow->mutex);
    bool is_stopping = follow->is_stopping;
    (void)pthread_mutex_unlock(&follow->mutex);
    return is_stopping;
}

static void *run(void *context)
{
    struct follow *follow = context;

    while (!is_stopping(follow)) {
        uint64_t now_ns = clock_ns();
        uint64_t next_ns = attend(follow, now_ns);
        send_fetches(follow);
        send_posts(follow);
        uint64_t wait_ns = next_ns > now_ns ? next_ns - now_ns : 0;
        api_poll(follow->api, (int)((wait_ns + 999999) / 1000000));
    }
    return NULL;
}

static void init_watched(struct follow *follow)
{
    uint32_t seed = 0;

    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) < 0)
        seed = (uint32_t)clock_ns(); /* it only spreads retries */
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct following *following = &follow->watched[kind];
        struct reflector_sink sink = {following, begin_list, end_list, take};
        following->follow = follow;
        reflector_init(&following->reflector, (enum kind)kind, &sink, &follow->target.status[kind],
                       seed + (uint32_t)kind * 7919);
    }
}

static void follow_free(struct follow *follow)
{
    api_free(follow->api);
    for (int kind = 0; kind < KIND_COUNT; kind++)
        reflector_dispose(&follow->watched[kind].reflector);
    while (follow->fetches != NULL)
        fetch_free(follow->fetches);
    while (follow->posts != NULL)
        post_free(follow->posts);
    (void)pthread_cond_destroy(&follow->changed);
    (void)pthread_mutex_destroy(&follow->mutex);
    free(follow);
}

int follow_start(struct follow **out, const struct kubeconfig *kubeconfig,
                 const struct follow_target *target, struct error *err)
{
    struct follow *follow = calloc(1, sizeof *follow);
    pthread_condattr_t attributes;

    if (follow == NULL)
        return error_no_memory(err);
    if (api_new(&follow->api, kubeconfig, err) < 0) {
        free(follow);
        return err->code;
    }
    follow->target = *target;
    (void)pthread_mutex_init(&follow->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&follow->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    init_watched(follow);
    int rc = pthread_create(&follow->thread, NULL, run, follow);
    if (rc != 0) {
        follow_free(follow);
        return error_system(err, rc, "thread");
    }
    *out = follow;
    return 0;
}

void follow_stop(struct follow *follow)
{
    if (follow == NULL)
        return;
    (void)pthread_mutex_lock(&follow->mutex);
    follow->is_stopping = true;
    (void)pthread_mutex_unlock(&follow->mutex);
    api_wake(follow->api);
    (void)pthread_join(follow->thread, NULL);
    follow_free(follow);
}
