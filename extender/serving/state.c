#include "extender/serving/state.h"

#include "cache/cluster/allowance.h"
#include "policy/policy.h"

enum { ALL_WATCHED = (1 << KIND_WATCHED_COUNT) - 1 };

/* The memory of one call, and of all calls together. */
static void set_limits(struct state *state)
{
    size_t body_max = (size_t)state->config->server.max_request_bytes;

    atomic_store(&state->body_bytes_max, body_max);
    atomic_store(&state->call_memory.max_bytes,
                 2 * body_max < REQUESTS_BYTES_MIN ? REQUESTS_BYTES_MIN : 2 * body_max);
}

int state_init(struct state *state, struct config *config, struct error *err)
{
    pthread_rwlockattr_t attributes;

    memset(state, 0, sizeof *state);
    if (pthread_rwlockattr_init(&attributes) != 0)
        return error_no_memory(err);
    /* many filter calls must not keep watch events waiting */
    (void)pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    int rc = pthread_rwlock_init(&state->lock, &attributes);
    (void)pthread_rwlockattr_destroy(&attributes);
    if (rc != 0)
        return error_system(err, rc, "lock");
    (void)pthread_mutex_init(&state->explaining, NULL);
    (void)pthread_mutex_init(&state->confirming, NULL);
    cluster_init(&state->cluster);
    metrics_init(&state->metrics);
    metrics_note_config(&state->metrics, true);
    state->config = config;
    set_limits(state);
    atomic_store(&state->review_memory.max_bytes, REVIEWS_BYTES_MAX);
    state->review_memory.small_bytes = REVIEW_SMALL_BYTES;
    state->review_memory.reserve_bytes = REVIEWS_RESERVE_BYTES;
    state->started_ms = now_ms();
    atomic_store(&state->needed, ALL_WATCHED);
    atomic_store(&state->watched, ALL_WATCHED);
    for (int kind = 0; kind < KIND_COUNT; kind++) /* until an informer starts */
        atomic_store(&state->status[kind].is_synced, true);
    return 0;
}

void state_dispose(struct state *state)
{
    cluster_dispose(&state->cluster);
    metrics_dispose(&state->metrics);
    config_free(state->config);
    (void)pthread_mutex_destroy(&state->explaining);
    (void)pthread_mutex_destroy(&state->confirming);
    (void)pthread_rwlock_destroy(&state->lock);
}

static enum kind find_unsynced(const struct state *state, unsigned kinds)
{
    int kind = 0;

    while (kind < KIND_COUNT &&
           ((kinds & 1U << kind) == 0 || atomic_load(&state->status[kind].is_synced)))
        kind++;
    return (enum kind)kind;
}

enum kind state_unsynced(const struct state *state)
{
    return find_unsynced(state, atomic_load(&state->needed));
}

void state_limit_cache(struct state *state)
{
    const struct config *config = state->config;

    allowance_limit(&state->cluster, (size_t)config->cache.max_namespace_bytes,
                    (size_t)config->cache.max_bytes);
}

void state_watch_needed(struct state *state)
{
    unsigned kinds = policy_needed_kinds(state->config);

    atomic_store(&state->needed, kinds);
    atomic_store(&state->watched, kinds);
}

uint64_t state_reservation_end(const struct state *state, bool is_binding)
{
    int64_t ms = state->config->read_write_once_pod.reservation_ttl_ms;

    if (is_binding && ms < BINDING_DEAD_MS)
        ms = BINDING_DEAD_MS;
    return monotonic_ns() + (uint64_t)ms * NS_PER_MS;
}

/* Under the lock. The informer unsyncs a kind only under it, and only if it is not watched. */
static bool may_replace(const struct state *state, unsigned needed)
{
    return state->api == NULL || find_unsynced(state, needed) == KIND_COUNT ||
           state_unsynced(state) != KIND_COUNT;
}

bool state_reload(struct state *state, struct config *config)
{
    unsigned needed = policy_needed_kinds(config);

    (void)pthread_rwlock_wrlock(&state->lock);
    bool is_replaced = may_replace(state, needed);
    struct config *old = state->config;
    if (is_replaced) {
        state->config = config;
        set_limits(state);
    }
    if (state->api != NULL && is_replaced) {
        state_limit_cache(state);
        state_watch_needed(state);
    } else if (state->api != NULL) {
        atomic_store(&state->watched, atomic_load(&state->needed) | needed);
    }
    (void)pthread_rwlock_unlock(&state->lock);
    if (state->api != NULL)
        requests_wake(state->api);
    if (is_replaced)
        config_free(old);
    return is_replaced;
}
