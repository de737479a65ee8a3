#include "extender/live/handlers.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/base/log.h"
#include "extender/live/requeue.h"
#include "extender/live/violations.h"

enum {
    WAKE_BYTES_MAX = 1 << 20,
    WOKEN_MAX = 1000, /* pods, so that pods that wait for other reasons cost few requests */
};

/* Used by the informer's thread alone. */
struct handlers {
    struct state *state;
    struct informer *informer;
    bool is_synced;
    struct violations violations;
};

/* ---- pods that may wait for the previous claimguard ---- */

/* Whether the pod may pass, or preempt. If it waits though its claims are free, the previous
 * claimguard may have rejected it for a reservation; if not, it may have been about to evict the
 * holders. This one knows neither. A pod that is rejected waits here for what it waited for there.
 */
static bool reconsider(const struct handlers *handlers, const struct pod *pod,
                       const struct meta *meta, struct arena *arena)
{
    struct view view = state_view(handlers->state);
    const struct policy *decided_by;
    struct pod_object object;
    struct verdict verdict;

    if (!cluster_describe_pod(pod, arena, &object))
        return false;
    policy_prefilter(&view, &object, arena, &verdict, &decided_by);
    if (code_is_rejection(verdict.code) && verdict.awaited_count != 0)
        requeue_wait(handlers->state->requeue, meta, verdict.awaited, verdict.awaited_count);
    return verdict.code == CODE_SUCCESS || verdict.code == CODE_UNSCHEDULABLE;
}

static bool wake(const struct handlers *handlers, const struct object_reference *waiting)
{
    struct state *state = handlers->state;
    struct meta meta = {.ns = waiting->ns, .name = waiting->name, .uid = waiting->uid};
    struct arena arena;

    arena_init(&arena, WAKE_BYTES_MAX);
    (void)pthread_rwlock_rdlock(&state->lock);
    const struct pod *pod = cluster_find_pod(&state->cluster, meta.ns, meta.name);
    bool is_woken =
        pod != NULL && uid_is(&pod->uid, meta.uid) && reconsider(handlers, pod, &meta, &arena);
    (void)pthread_rwlock_unlock(&state->lock);
    arena_dispose(&arena);
    if (is_woken)
        requeue_pod(state->requeue, &meta);
    return is_woken;
}

/* Lists the pods of the walk's next page that wait for a node, and have claims or mounts (of inline
 * CSI volumes). No scheduler has asked about a gated pod: gates are never added to one, and when
 * the last one goes, the scheduler tries it. False: there was no more page. */
static bool list_waiting(const struct handlers *handlers, struct table_walk *walk,
                         struct kept_reference **waiting, struct arena *arena)
{
    struct state *state = handlers->state;
    char uid[UID_TEXT_BYTES];

    (void)pthread_rwlock_rdlock(&state->lock);
    bool has_more = table_next_page(&state->cluster.pods, walk);
    for (; has_more && walk->next < walk->count; walk->next++) {
        const struct pod *pod = (const struct pod *)(const void *)walk->records[walk->next];
        if ((pod->use_count == 0 && !pod->has_mounts) || pod->node != NULL || pod->is_gated ||
            pod->is_terminal || pod->is_terminating)
            continue;
        struct object_reference reference = {KIND_POD, name_slice(pod->ns), pod_name(pod),
                                             uid_text(&pod->uid, uid)};
        (void)object_reference_keep(waiting, &reference,
                                    arena); /* else it waits for the scheduler's flush */
    }
    (void)pthread_rwlock_unlock(&state->lock);
    return has_more;
}

static void wake_all(const struct handlers *handlers)
{
    struct table_walk walk = {.at = 0};
    struct arena arena;
    unsigned woken = 0;
    bool has_more = true;

    arena_init(&arena, WAKE_BYTES_MAX);
    while (has_more && woken < WOKEN_MAX) {
        struct kept_reference *waiting = NULL;
        arena_reset(&arena);
        has_more = list_waiting(handlers, &walk, &waiting, &arena);
        for (; waiting != NULL && woken < WOKEN_MAX; waiting = waiting->next)
            woken += wake(handlers, &waiting->reference);
    }
    arena_dispose(&arena);
}

/* Requeues the pods that wait for one of the drivers of a node. */
static void requeue_drivers(struct state *state, struct slice drivers)
{
    struct slice driver;

    while (words_next(&drivers, &driver))
        requeue_changed(state->requeue,
                        &(struct object_reference){.kind = KIND_CSI_NODE, .name = driver},
                        state->api);
}

/* Requeues the pods that wait for one of the drivers of a node that is new here: the watch of
 * CSINodes may have been faster. */
static void requeue_node(struct state *state, struct slice name)
{
    struct slice drivers = {"", 0};
    struct arena arena;

    arena_init(&arena, WAKE_BYTES_MAX);
    (void)pthread_rwlock_rdlock(&state->lock);
    const struct node *node = cluster_find_node(&state->cluster, name);
    if (node != NULL)
        drivers = arena_copy(&arena, name_slice(node->drivers));
    (void)pthread_rwlock_unlock(&state->lock);
    requeue_drivers(state, drivers); /* none without memory: they wait for the scheduler's flush */
    arena_dispose(&arena);
}

/* Requeues the pods that wait for a volume that a claim can be bound to. */
static void requeue_offer(struct state *state, struct slice offer)
{
    if (offer.len != 0)
        requeue_changed(state->requeue,
                        &(struct object_reference){.kind = KIND_VOLUME, .name = offer}, state->api);
}

static void changed(void *context, enum watch_change change, const struct object *object,
                    bool was_there)
{
    struct handlers *handlers = context;
    struct state *state = handlers->state;
    const struct meta *meta = &object->meta;
    bool is_gone_pod = object->kind == KIND_POD && change == CHANGE_DELETE;

    if (is_gone_pod || (object->kind == KIND_POD && object->pod.node.len != 0)) {
        metrics_forget_pod(&state->metrics, meta->uid);
        requeue_forget(state->requeue, meta->uid);
    }
    if (is_gone_pod || object->kind == KIND_CLAIM || object->kind == KIND_CSI_DRIVER ||
        object->kind == KIND_STORAGE_CLASS || object->kind == KIND_VOLUME_ATTRIBUTES_CLASS)
        requeue_changed(state->requeue,
                        &(struct object_reference){object->kind, meta->ns, meta->name, meta->uid},
                        state->api);
    if (object->kind == KIND_CSI_NODE && change == CHANGE_PUT)
        requeue_drivers(state, object->resource.attributes[CSI_NODE_DRIVERS]);
    if (object->kind == KIND_NODE && change == CHANGE_PUT && !was_there)
        requeue_node(state, meta->name);
    if (object->kind == KIND_VOLUME && change == CHANGE_PUT)
        requeue_offer(state, object->resource.attributes[VOLUME_OFFER]);
    if (!handlers->is_synced || change == CHANGE_DELETE)
        return;
    (void)pthread_rwlock_rdlock(&state->lock);
    violations_report_change(&handlers->violations, object, was_there);
    (void)pthread_rwlock_unlock(&state->lock);
}

static void synced(void *context)
{
    struct handlers *handlers = context;

    handlers->is_synced = true;
    log_info("the cache is synced", LOG_NONE);
    violations_report_all(&handlers->violations);
    wake_all(handlers);
}

int handlers_start(struct handlers **out, struct state *state, const struct kubeconfig *kubeconfig,
                   struct error *err)
{
    struct handlers *handlers = calloc(1, sizeof *handlers);
    struct informer_target target = {.cluster = &state->cluster,
                                     .lock = &state->lock,
                                     .status = state->status,
                                     .watched = &state->watched,
                                     .watchdog = &state->watchdog,
                                     .stats = &state->api_stats,
                                     .context = handlers,
                                     .changed = changed,
                                     .synced = synced};

    if (handlers == NULL)
        return error_no_memory(err);
    handlers->state = state;
    handlers->violations.state = state;
    (void)snprintf(state->source, sizeof state->source, "%s (by %s)", kubeconfig->server,
                   kubeconfig->origin);
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        atomic_store(&state->status[kind].is_synced, false);
    state_watch_needed(state);
    /* the informer's thread takes the lock before it reports anything: state->api is set by then */
    (void)pthread_rwlock_wrlock(&state->lock);
    int rc = informer_start(&handlers->informer, kubeconfig, &target, err);
    state->api = informer_requests(handlers->informer);
    (void)pthread_rwlock_unlock(&state->lock);
    if (rc < 0) {
        free(handlers);
        return rc;
    }
    *out = handlers;
    return 0;
}

void handlers_stop(struct handlers *handlers)
{
    if (handlers == NULL)
        return;
    informer_stop(handlers->informer);
    handlers->state->api = NULL;
    violations_dispose(&handlers->violations);
    free(handlers);
}
