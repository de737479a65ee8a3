#include "extender/live/nomination.h"

/* Waits until a tick is due. False: the thread has to stop. */
static bool wait_for_tick(struct nominations *nominations)
{
    (void)pthread_mutex_lock(&nominations->lock);
    while (!nominations->is_stopping && nominations->tick_ns > monotonic_ns()) {
        struct timespec at = monotonic_timespec(nominations->tick_ns);
        (void)pthread_cond_timedwait(&nominations->changed, &nominations->lock, &at);
    }
    bool continues = !nominations->is_stopping;
    (void)pthread_mutex_unlock(&nominations->lock);
    return continues;
}

static void *run(void *context)
{
    struct state *state = context;

    while (wait_for_tick(state->nominations)) {
        struct watched *watched = watchdog_begin(&state->watchdog, "nomination");
        nomination_tick(state);
        watchdog_end(watched);
    }
    return NULL;
}

int nomination_start(struct state *state, struct error *err)
{
    struct nominations *nominations = state->nominations;
    int rc = pthread_create(&nominations->thread, NULL, run, state);

    if (rc != 0)
        return error_system(err, rc, "thread");
    nominations->is_started = true;
    return 0;
}

void nomination_stop(struct state *state)
{
    struct nominations *nominations = state->nominations;

    (void)pthread_mutex_lock(&nominations->lock);
    nominations->is_stopping = true;
    (void)pthread_cond_signal(&nominations->changed);
    (void)pthread_mutex_unlock(&nominations->lock);
    if (nominations->is_started)
        (void)pthread_join(nominations->thread, NULL);
    nominations->is_started = false;
}
