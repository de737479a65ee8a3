#include "extender/state.h"

#include "extender/claim_lock.h"

int state_init(struct state *state, struct config *config, struct error *err)
{
    pthread_rwlockattr_t attributes;

    memset(state, 0, sizeof *state);
    if (pthread_rwlockattr_init(&attributes) != 0)
        return error_no_memory(err);
    /* a steady stream of filter calls must not keep events out */
    (void)pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    int rc = pthread_rwlock_init(&state->lock, &attributes);
    (void)pthread_rwlockattr_destroy(&attributes);
    if (rc != 0)
        return error_system(err, rc, "lock");
    cluster_init(&state->cluster);
    metrics_init(&state->metrics);
    nudge_init(&state->nudge);
    events_init(&state->events);
    evictions_init(&state->evictions);
    state->config = config;
    atomic_store(&state->body_bytes_max, (size_t)config->server.max_request_bytes);
    state->started_ms = now_ms();
    for (int kind = 0; kind < KIND_COUNT; kind++) /* until someone follows a cluster */
        atomic_store(&state->status[kind].is_synced, true);
    return 0;
}

void state_dispose(struct state *state)
{
    cluster_dispose(&state->cluster);
    metrics_dispose(&state->metrics);
    nudge_dispose(&state->nudge);
    events_dispose(&state->events);
    evictions_dispose(&state->evictions);
    seen_locks_dispose(&state->seen_locks);
    config_free(state->config);
    (void)pthread_rwlock_destroy(&state->lock);
}

enum kind state_unsynced(const struct state *state)
{
    int kind = 0;

    while (kind < KIND_COUNT && atomic_load(&state->status[kind].is_synced))
        kind++;
    return (enum kind)kind;
}

uint64_t state_reservation_end(const struct state *state, bool is_binding)
{
    int64_t ms = state->config->read_write_once_pod.reservation_ttl_ms;

    if (is_binding && ms < BINDING_DEAD_MS)
        ms = BINDING_DEAD_MS;
    return monotonic_ns() + (uint64_t)ms * UINT64_C(1000000);
}

void state_expire(struct state *state)
{
    const struct reservation *expired;
    char text[UID_TEXT_BYTES];

    while ((expired = assumed_expired(&state->cluster, monotonic_ns())) != NULL) {
        struct uid uid = expired->uid;
        nudge_changed(&state->nudge,
                      &(struct object_reference){.kind = KIND_POD, .uid = uid_text(&uid, text)},
                      state->follow);
        assumed_release(&state->cluster, &uid);
    }
}

void state_tick(struct state *state)
{
    nudge_tick(&state->nudge, state->follow);
    (void)pthread_rwlock_rdlock(&state->lock);
    bool has_expired = assumed_expired(&state->cluster, monotonic_ns()) != NULL;
    (void)pthread_rwlock_unlock(&state->lock);
    if (!has_expired)
        return;
    (void)pthread_rwlock_wrlock(&state->lock);
    state_expire(state);
    (void)pthread_rwlock_unlock(&state->lock);
}

void state_reload(struct state *state, struct config *config)
{
    (void)pthread_rwlock_wrlock(&state->lock);
    struct config *old = state->config;
    state->config = config;
    atomic_store(&state->body_bytes_max, (size_t)config->server.max_request_bytes);
    (void)pthread_rwlock_unlock(&state->lock);
    config_free(old);
}
