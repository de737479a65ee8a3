#include "extender/serving/live/expiry.h"

#include "extender/serving/live/evaluate.h"
#include "extender/serving/live/requeue.h"

enum {
    SETTLE_AGAIN_MS = 10000,  /* a pod that could not be read */
    EXPIRED_CLAIMS_MAX = 256, /* of reservations that end while the lock is held once */
    NOMINATIONS_MAX = 256,    /* that are checked while it is held once */
    EXPIRED_BYTES_MAX = 1 << 20,
};

/* Adds what has ended. Without memory, the pods that wait for it wait for the scheduler's own
 * flush. */
static void keep(struct kept_reference **ended, const struct object_reference *reference,
                 struct arena *arena)
{
    (void)object_reference_keep(ended, reference, arena);
}

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
        keep(ended, &(struct object_reference){.kind = KIND_POD, .uid = uid_text(&uid, text)},
             arena);
        claims += 1 + expired->claim_count + expired->shared_count;
        reservation_end(&state->cluster, expired);
    }
}

/* Checks some nominations; *ended also lists those that lapse. Under the lock, for writing. */
static void check_nominations(struct state *state, struct kept_reference **ended,
                              struct arena *arena)
{
    uint64_t now_ns = monotonic_ns();

    for (size_t i = 0; i < NOMINATIONS_MAX && nominated_is_due(&state->cluster, now_ns); i++) {
        const struct pod *pod = nominated_check(&state->cluster, now_ns);
        if (pod != NULL)
            keep(ended,
                 &(struct object_reference){
                     .kind = KIND_NODE, .ns = name_text(pod->ns), .name = pod_name(pod)},
                 arena);
    }
}

static bool has_expired(struct state *state)
{
    uint64_t now_ns = monotonic_ns();

    SCOPED_READ_LOCK(&state->lock);
    return reservation_expired(&state->cluster, now_ns) != NULL ||
           nominated_is_due(&state->cluster, now_ns);
}

void expiry_run(struct state *state)
{
    SCOPED_ARENA(arena, EXPIRED_BYTES_MAX);

    while (has_expired(state)) {
        struct kept_reference *ended = NULL;
        arena_reset(&arena);
        (void)pthread_rwlock_wrlock(&state->lock);
        end_expired(state, &ended, &arena);
        check_nominations(state, &ended, &arena);
        (void)pthread_rwlock_unlock(&state->lock);
        for (const struct kept_reference *at = ended; at != NULL; at = at->next)
            requeue_changed(state->requeue, &at->reference, state->api);
    }
}

void expiry_tick(struct state *state)
{
    requeue_tick(state->requeue, state->api);
    expiry_run(state);
}

/* Some pods of expired reservations that are in doubt. Under the lock. */
static size_t list_doubtful(const struct state *state, uint64_t now_ns,
                            struct object_reference pods[CONFIRM_MAX], struct arena *arena)
{
    const struct reservation *next = NULL;
    char text[UID_TEXT_BYTES];
    size_t count = 0;

    while (count < CONFIRM_MAX &&
           (next = reservation_next_doubtful(&state->cluster, next, now_ns)) != NULL) {
        struct object_reference pod = {KIND_POD, name_slice(next->ns), name_slice(next->name),
                                       uid_text(&next->uid, text)};
        if (!object_reference_copy_in(&pods[count], &pod, arena))
            break; /* no memory: later */
        count++;
    }
    return count;
}

/* Those that were read, and have not been seen bound, or gone, are in doubt no more. Where nothing
 * is stored of their namespace, nothing is seen: then later, behind those of others, as also those
 * that were not read. Under the lock. */
static void settle(struct cluster *cluster, const struct object_reference *pods, size_t count,
                   bool are_read, uint64_t now_ns)
{
    for (size_t i = 0; i < count; i++) {
        const struct reservation *reservation = reservation_of(cluster, &pods[i]);
        if (reservation == NULL)
            continue;
        if (!are_read || allowance_is_over(cluster, pods[i].ns))
            reservation_postpone(cluster, &reservation->uid, now_ns + SETTLE_AGAIN_MS * NS_PER_MS);
        else
            reservation_settle(cluster, &reservation->uid, now_ns);
    }
}

/* Reads the pods. Those that could be read are in doubt no more. */
static bool settle_read(struct state *state, const struct object_reference *pods, size_t count,
                        uint64_t now_ns)
{
    struct error unknown = {0};

    if (requests_confirm(state->api, pods, count, CONFIRM_MS, &unknown) < 0)
        return false;
    SCOPED_WRITE_LOCK(&state->lock);
    settle(&state->cluster, pods, count, true, now_ns);
    return true;
}

/* One of the pods could not be read, which must not keep the others in doubt: one that cannot be
 * decoded never will be. */
static void settle_one_by_one(struct state *state, const struct object_reference *pods,
                              size_t count, uint64_t now_ns, uint64_t until_ns)
{
    for (size_t i = 0; i < count && monotonic_ns() < until_ns; i++) {
        if (settle_read(state, &pods[i], 1, now_ns))
            continue;
        SCOPED_WRITE_LOCK(&state->lock);
        settle(&state->cluster, &pods[i], 1, false, now_ns);
    }
}

/* Returns how many there were, CONFIRM_MAX at most; 0: none, or they could not be read. */
static size_t settle_some(struct state *state, struct arena *arena, uint64_t until_ns)
{
    struct object_reference pods[CONFIRM_MAX];
    uint64_t now_ns = monotonic_ns();

    (void)pthread_rwlock_rdlock(&state->lock);
    size_t count = list_doubtful(state, now_ns, pods, arena);
    (void)pthread_rwlock_unlock(&state->lock);
    if (count == 0)
        return 0;
    bool is_read = settle_read(state, pods, count, now_ns);
    if (!is_read)
        settle_one_by_one(state, pods, count, now_ns, until_ns);
    expiry_run(state);
    return is_read ? count : 0;
}

void expiry_settle(struct state *state)
{
    uint64_t until_ns = monotonic_ns() + CONFIRM_MS * NS_PER_MS;
    SCOPED_ARENA(arena, EXPIRED_BYTES_MAX);
    size_t count = CONFIRM_MAX;

    while (state->api != NULL && count == CONFIRM_MAX && monotonic_ns() < until_ns) {
        arena_reset(&arena);
        count = settle_some(state, &arena, until_ns);
    }
}
