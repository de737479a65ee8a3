#include "extender/live/expiry.h"

#include "extender/live/requeue.h"

enum {
    EXPIRED_CLAIMS_MAX = 256, /* of reservations that end while the lock is held once */
    EXPIRED_BYTES_MAX = 1 << 20,
};

/* Ends some reservations; *ended lists their pods. Under the lock, for writing. */
static void end_expired(struct state *state, struct kept_reference **ended, struct arena *arena)
{
    struct reservation *expired;
    uint64_t now_ns = monotonic_ns();
    char text[UID_TEXT_BYTES];
    size_t claims = 0;

    while (claims < EXPIRED_CLAIMS_MAX &&
           (expired = reservation_expired(&state->cluster, now_ns)) != NULL) {
        struct uid uid = expired->uid;
        struct object_reference pod = {.kind = KIND_POD, .uid = uid_text(&uid, text)};
        (void)object_reference_keep(
            ended, &pod,
            arena); /* else the pods that wait for it wait for the scheduler's own flush */
        claims += 1 + expired->claim_count + expired->shared_count;
        reservation_end(&state->cluster, expired);
    }
}

static bool has_expired(struct state *state)
{
    (void)pthread_rwlock_rdlock(&state->lock);
    bool has_expired = reservation_expired(&state->cluster, monotonic_ns()) != NULL;
    (void)pthread_rwlock_unlock(&state->lock);
    return has_expired;
}

void expiry_run(struct state *state)
{
    struct kept_reference *ended;
    struct arena arena;

    arena_init(&arena, EXPIRED_BYTES_MAX);
    while (has_expired(state)) {
        ended = NULL;
        arena_reset(&arena);
        (void)pthread_rwlock_wrlock(&state->lock);
        end_expired(state, &ended, &arena);
        (void)pthread_rwlock_unlock(&state->lock);
        for (const struct kept_reference *pod = ended; pod != NULL; pod = pod->next)
            requeue_changed(state->requeue, &pod->reference, state->api);
    }
    arena_dispose(&arena);
}

void expiry_tick(struct state *state)
{
    requeue_tick(state->requeue, state->api);
    expiry_run(state);
}
