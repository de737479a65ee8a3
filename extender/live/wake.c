#include "extender/live/wake.h"

#include "extender/live/requeue.h"

enum {
    WAKE_BYTES_MAX = 1 << 20,
    WOKEN_MAX = 1000, /* pods, so that pods that wait for other reasons cost few requests */
};

/* Whether the pod may pass, or preempt. If it waits though its claims are free, it may have been
 * rejected for a reservation of the previous claimguard, or by the former configuration; if not,
 * the previous claimguard may have been about to evict the holders. A pod that is rejected waits
 * for what it waited for there. */
static bool reconsider(struct state *state, const struct pod *pod, const struct meta *meta,
                       struct arena *arena)
{
    struct view view = state_view(state);
    const struct policy *decided_by;
    struct pod_object object;
    struct verdict verdict;

    if (!cluster_describe_pod(pod, arena, &object))
        return false;
    policy_prefilter(&view, &object, arena, &verdict, &decided_by);
    if (code_is_rejection(verdict.code) && verdict.awaited_count != 0)
        requeue_wait(state->requeue, meta, verdict.awaited, verdict.awaited_count);
    return verdict.code == CODE_SUCCESS || verdict.code == CODE_UNSCHEDULABLE;
}

/* A requeue would change the pod under its own Binding. */
static bool is_being_bound(const struct state *state, const struct pod *pod)
{
    const struct reservation *reservation = reservation_find(&state->cluster, &pod->uid);

    return reservation != NULL && reservation_binds(reservation);
}

static bool wake(struct state *state, const struct object_reference *waiting)
{
    struct meta meta = {.ns = waiting->ns, .name = waiting->name, .uid = waiting->uid};
    struct arena arena;

    arena_init(&arena, WAKE_BYTES_MAX);
    (void)pthread_rwlock_rdlock(&state->lock);
    const struct pod *pod = cluster_find_pod(&state->cluster, meta.ns, meta.name);
    bool is_woken = pod != NULL && !requeue_has(state->requeue, meta.uid) &&
                    uid_is(&pod->uid, meta.uid) && !is_being_bound(state, pod) &&
                    reconsider(state, pod, &meta, &arena);
    if (is_woken) /* under the lock: a bind that begins now forgets it */
        requeue_pod(state->requeue, &meta);
    (void)pthread_rwlock_unlock(&state->lock);
    arena_dispose(&arena);
    return is_woken;
}

/* Lists the pods of the walk's next page that wait for a node, and have claims or mounts (of inline
 * CSI volumes). No scheduler has asked about a gated pod: gates are never added to one, and when
 * the last one goes, the scheduler tries it. False: there was no more page. */
static bool list_waiting(struct state *state, struct table_walk *walk,
                         struct kept_reference **waiting, struct arena *arena)
{
    char uid[UID_TEXT_BYTES];

    (void)pthread_rwlock_rdlock(&state->lock);
    bool has_more = table_next_page(&state->cluster.pods, walk);
    for (; has_more && walk->next < walk->count; walk->next++) {
        const struct pod *pod = (const struct pod *)(const void *)walk->records[walk->next];
        if ((pod->use_count == 0 && !pod->has_mounts) || pod_is_assigned(pod) || pod->is_gated ||
            pod->is_terminal || pod->is_terminating)
            continue;
        struct object_reference reference = {KIND_POD, name_text(pod->ns), pod_name(pod),
                                             uid_text(&pod->uid, uid)};
        (void)object_reference_keep(waiting, &reference,
                                    arena); /* else it waits for the scheduler's flush */
    }
    (void)pthread_rwlock_unlock(&state->lock);
    return has_more;
}

void wake_all(struct state *state)
{
    struct table_walk walk = {.at = 0};
    struct arena arena;
    unsigned woken = 0;
    bool has_more = true;

    arena_init(&arena, WAKE_BYTES_MAX);
    while (has_more && woken < WOKEN_MAX) {
        struct kept_reference *waiting = NULL;
        arena_reset(&arena);
        has_more = list_waiting(state, &walk, &waiting, &arena);
        for (; waiting != NULL && woken < WOKEN_MAX; waiting = waiting->next)
            woken += wake(state, &waiting->reference);
    }
    arena_dispose(&arena);
}
