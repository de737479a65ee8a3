#include "extender/serving/live/handlers.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/base/log.h"
#include "extender/serving/live/claim_reports.h"
#include "extender/serving/live/requeue.h"
#include "extender/serving/live/seen_locks.h"

enum { DRIVERS_BYTES_MAX = 1 << 20 };

/* Used by the informer's thread alone. */
struct handlers {
    struct state *state;
    struct informer *informer;
    bool is_synced;
    struct violations violations;
    struct claim_in_use claim_in_use;
};

/* Requeues the pods that wait for the cause. */
static void requeue(struct state *state, struct object_reference cause)
{
    requeue_changed(state->requeue, &cause, state->api);
}

/* Requeues the pods that wait for one of the drivers of a node. */
static void requeue_drivers(struct state *state, struct slice drivers)
{
    struct slice driver;

    while (words_next(&drivers, &driver))
        requeue(state, (struct object_reference){.kind = KIND_CSI_NODE, .name = driver});
}

/* Requeues the pods that wait for one of the drivers of a node that is new here: the watch of
 * CSINodes may have been faster. */
static void requeue_node(struct state *state, struct slice name)
{
    SCOPED_ARENA(arena, DRIVERS_BYTES_MAX);
    struct slice drivers = {"", 0};

    (void)pthread_rwlock_rdlock(&state->lock);
    const struct node *node = cluster_find_node(&state->cluster, name);
    if (node != NULL)
        drivers = arena_copy(&arena, name_slice(node->drivers));
    (void)pthread_rwlock_unlock(&state->lock);
    requeue_drivers(state, drivers); /* none without memory: they wait for the scheduler's flush */
}

/* Requeues the pods that wait for a volume that a claim can be bound to. */
static void requeue_offer(struct state *state, struct slice offer)
{
    if (offer.len != 0)
        requeue(state, (struct object_reference){.kind = KIND_VOLUME, .name = offer});
}

/* Only the pod's own scheduler hears that it is not nominated any more. */
static bool may_be_nominated(const struct pod_object *pod)
{
    return pod->nominated_node.len != 0 || pod->node.len != 0;
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
        requeue_forget(state->requeue, meta);
        seen_locks_see_pod(state, meta, is_gone_pod);
    }
    if (object->kind == KIND_CLAIM && change == CHANGE_PUT)
        seen_locks_see_claim(state, &object->claim);
    if (object->kind == KIND_CLAIM && change == CHANGE_DELETE)
        seen_locks_see_claim_gone(state, &object->claim);
    if (is_gone_pod || object->kind == KIND_CLAIM || object->kind == KIND_CSI_DRIVER ||
        object->kind == KIND_STORAGE_CLASS || object->kind == KIND_VOLUME_ATTRIBUTES_CLASS)
        requeue(state, (struct object_reference){object->kind, meta->ns, meta->name, meta->uid});
    if (is_gone_pod || (object->kind == KIND_POD && !may_be_nominated(&object->pod)))
        requeue(state,
                (struct object_reference){.kind = KIND_NODE, .ns = meta->ns, .name = meta->name});
    if (object->kind == KIND_CSI_NODE && change == CHANGE_PUT && !was_there)
        requeue_drivers(state, object->resource.attributes[CSI_NODE_DRIVERS]);
    if (object->kind == KIND_NODE && change == CHANGE_PUT && !was_there)
        requeue_node(state, meta->name);
    if (object->kind == KIND_VOLUME && change == CHANGE_PUT)
        requeue_offer(state, object->resource.attributes[VOLUME_OFFER]);
    if (is_gone_pod)
        claim_in_use_delete(&handlers->claim_in_use, meta);
    else if (object->kind == KIND_POD)
        claim_in_use_put(&handlers->claim_in_use, &object->pod, was_there);
    if (!handlers->is_synced || change == CHANGE_DELETE)
        return;
    SCOPED_READ_LOCK(&state->lock);
    violations_report_change(&handlers->violations, object, was_there);
}

static void synced(void *context)
{
    struct handlers *handlers = context;

    handlers->is_synced = true;
    log_info("the cache is synced", LOG_NONE);
    violations_report_all(&handlers->violations);
    claim_in_use_synced(&handlers->claim_in_use);
    requeue_wake_all(handlers->state);
}

static uint64_t tick(void *context, uint64_t now_ns)
{
    struct handlers *handlers = context;

    return claim_in_use_tick(&handlers->claim_in_use, now_ns);
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
                                     .synced = synced,
                                     .tick = tick};

    if (handlers == NULL)
        return error_no_memory(err);
    handlers->state = state;
    handlers->violations.state = handlers->claim_in_use.state = state;
    (void)snprintf(state->source, sizeof state->source, "%s (by %s)", kubeconfig->server,
                   kubeconfig->origin);
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        atomic_store(&state->status[kind].is_synced, false);
    state_watch_needed(state);
    /* the informer's thread takes the lock before it reports anything: state->api is set by then */
    (void)pthread_rwlock_wrlock(&state->lock);
    state_limit_cache(state);
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
    claim_in_use_dispose(&handlers->claim_in_use);
    free(handlers);
}
