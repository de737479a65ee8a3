#include "extender/state.h"

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
    state->config = config;
    state->started_ms = now_ms();
    for (int kind = 0; kind < KIND_COUNT; kind++) /* until someone follows a cluster */
        atomic_store(&state->status[kind].is_synced, true);
    return 0;
}

void state_dispose(struct state *state)
{
    cluster_dispose(&state->cluster);
    metrics_dispose(&state->metrics);
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

void state_reload(struct state *state, struct config *config)
{
    (void)pthread_rwlock_wrlock(&state->lock);
    struct config *old = state->config;
    state->config = config;
    (void)pthread_rwlock_unlock(&state->lock);
    config_free(old);
}
