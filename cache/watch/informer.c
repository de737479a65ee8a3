#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "cache/watch/informer_internal.h"
#include "config/base/clock.h"
#include "config/base/log.h"

enum { POLL_MS_MAX = 1000, REFUSAL_BYTES_MAX = 1024 };

/* ---- what the reflectors hand on ---- */

static void begin_list(void *context, enum kind kind, bool overrides)
{
    const struct following *following = context;
    fold_list_begin(&following->follow->target, kind, overrides,
                    following->reflector.list_started_ns);
}

static void end_list(void *context, enum kind kind, uint64_t version)
{
    const struct following *following = context;
    fold_list_end(&following->follow->target, kind, version);
}

static int take(void *context, enum change change, const struct object *object, struct slice text,
                struct error *err)
{
    const struct following *following = context;

    (void)text;
    return fold_change(&following->follow->target, change, object, err);
}

static void keep(void *context, enum kind kind, struct slice namespace, struct slice name)
{
    const struct following *following = context;
    fold_list_keep(&following->follow->target, kind, namespace, name);
}

/* ---- lists and watches ---- */

static void note_synced(struct follow *follow)
{
    if (follow->has_synced)
        return;
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        if (!atomic_load(&follow->target.status[kind].is_synced))
            return;
    follow->has_synced = true;
    if (follow->target.synced != NULL)
        follow->target.synced(follow->target.context);
}

static void keep_refusal(struct buf *refusal, struct slice bytes)
{
    size_t room = REFUSAL_BYTES_MAX - refusal->len;

    buf_put(refusal, (struct slice){bytes.ptr, bytes.len < room ? bytes.len : room});
}

static bool on_bytes(void *context, unsigned status, struct slice bytes)
{
    struct following *following = context;
    struct follow *follow = following->follow;
    uint64_t news = following->reflector.news;

    if (status != 200)
        keep_refusal(&following->refusal, bytes);
    bool goes_on = reflector_take(&following->reflector, status, bytes, monotonic_ns());
    if (following->reflector.news != news)
        atomic_store(&follow->target.status[following->reflector.kind].last_event_ms, now_ms());
    note_synced(follow);
    return goes_on;
}

static void end_call(struct following *following, const struct reflector_ending *ending)
{
    following->call = NULL;
    reflector_end(&following->reflector, ending, monotonic_ns());
    note_synced(following->follow);
}

static void on_end(void *context, const struct api_result *result)
{
    struct following *following = context;
    struct arena arena;

    arena_init(&arena, (size_t)2 * REFUSAL_BYTES_MAX);
    struct slice said = status_message(buf_slice(&following->refusal), &arena);
    struct slice text = arena_printf(&arena, "%.*s", SLICE_ARG(said));
    end_call(following,
             &(struct reflector_ending){.status = result->status,
                                        .is_cut = result->is_cut,
                                        .retry_after_ms = result->retry_after_ms,
                                        .error = text.len != 0 ? text.ptr : result->error});
    arena_dispose(&arena);
}

static void start_call(struct following *following, uint64_t now_ns)
{
    struct error err = {0};
    struct buf path;

    buf_reset(&following->refusal, 0);
    buf_init(&path, PATH_BYTES_MAX);
    reflector_request(&following->reflector, now_ns, &path);
    const char *text = buf_text(&path);
    int rc = text == NULL ? error_no_memory(&err)
                          : api_start(following->follow->api,
                                      &(struct api_request){.path = text,
                                                            .class = API_WATCH,
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
    uint64_t next = now_ns + POLL_MS_MAX * NS_PER_MS;

    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++) {
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
        struct watched *watched = watchdog_begin(follow->target.watchdog, "follow");
        uint64_t now_ns = monotonic_ns();
        uint64_t next_ns = attend(follow, now_ns);
        ask_again(follow, now_ns);
        hand_over(follow);
        uint64_t wait_ns = next_ns > now_ns ? next_ns - now_ns : 0;
        api_poll(follow->api, (int)((wait_ns + NS_PER_MS - 1) / NS_PER_MS));
        watchdog_end(watched);
    }
    return NULL;
}

static void init_watched(struct follow *follow)
{
    uint32_t seed = 0;

    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) < 0)
        seed = (uint32_t)monotonic_ns(); /* it only spreads retries */
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++) {
        struct following *following = &follow->watched[kind];
        struct reflector_sink sink = {following, begin_list, end_list, take, keep};
        following->follow = follow;
        buf_init(&following->refusal, REFUSAL_BYTES_MAX);
        reflector_init(&following->reflector, (enum kind)kind, &sink, &follow->target.status[kind],
                       seed + (uint32_t)kind * 7919);
    }
}

static void follow_free(struct follow *follow)
{
    api_free(follow->api);
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++) {
        reflector_dispose(&follow->watched[kind].reflector);
        buf_dispose(&follow->watched[kind].refusal);
    }
    requests_dispose(follow);
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
    api_observe(follow->api, target->stats);
    TAILQ_INIT(&follow->incoming);
    TAILQ_INIT(&follow->under_way);
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
