#include "extender/live/handlers.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/base/log.h"
#include "extender/live/events.h"
#include "extender/live/requeue.h"
#include "policy/defer_fs_mount.h"

enum {
    MESSAGE_BYTES_MAX = 16 * 1024,
    WAKE_BYTES_MAX = 1 << 20,
    WOKEN_MAX = 1000, /* pods: what may wait for other reasons costs the API server little */
};

/* A violation that was told. */
struct reported {
    struct reported_key {
        struct uid pod, claim;
    } key;
    UT_hash_handle hh;
};

/* All of it is used on the informer's thread alone. */
struct handlers {
    struct state *state;
    struct informer *informer;
    bool is_synced;
    struct reported *reported; /* uthash */
};

/* ---- violations ---- */

/* Whether it is news that the pod violates the claim; remembers it. */
static bool is_news(struct handlers *handlers, const struct pod *pod, const struct claim *claim)
{
    struct reported_key key = {pod->uid, claim->uid};
    struct reported *known = NULL;

    HASH_FIND(hh, handlers->reported, &key, sizeof key, known);
    if (known != NULL)
        return false;
    if (HASH_COUNT(handlers->reported) >= REPORTED_MAX) {
        known = handlers->reported; /* the oldest */
        HASH_DEL(handlers->reported, known);
        free(known);
    }
    known = calloc(1, sizeof *known);
    if (known == NULL)
        return true;
    known->key = key;
    HASH_ADD(hh, handlers->reported, key, sizeof known->key, known);
    if (known->hh.tbl == NULL)
        free(known);
    return true;
}

/* Another pod that holds the claim; NULL: none does. */
static const struct pod *other_holder(const struct claim *claim, const struct pod *pod)
{
    for (const struct use *use = claim->uses; use != NULL; use = use->next)
        if (use_pod(use) != pod && pod_holds(use_pod(use)))
            return use_pod(use);
    return NULL;
}

static bool is_violated(const struct handlers *handlers, const struct claim *claim)
{
    struct view view = state_view(handlers->state);

    return claim_is_violated(claim) || defer_is_violated(&view, claim);
}

/* The pod came second to a claim that is for one pod: it set spec.nodeName, or a scheduler without
 * claimguard bound it. It can be told, not undone. */
static void report(struct handlers *handlers, const struct pod *pod, const struct claim *claim)
{
    const struct pod *first = other_holder(claim, pod);
    struct slice ns = name_slice(pod->ns);
    char uid[UID_TEXT_BYTES];
    struct arena arena;

    if (first == NULL || !is_news(handlers, pod, claim))
        return;
    arena_init(&arena, MESSAGE_BYTES_MAX);
    struct slice message = arena_printf(
        &arena, "claim %.*s/%.*s is %s, and in use by pod %.*s/%.*s on %.*s, too", SLICE_ARG(ns),
        SLICE_ARG(claim_name(claim)),
        claim->is_rwop ? "ReadWriteOncePod" : "mounted by a container runtime (deferFSMount)",
        SLICE_ARG(ns), SLICE_ARG(pod_name(first)), SLICE_ARG(pod_node(first)));
    log_warn("two pods hold an exclusive claim", LOG_SLICE("namespace", ns),
             LOG_SLICE("claim", claim_name(claim)), LOG_SLICE("pod", pod_name(pod)),
             LOG_SLICE("node", pod_node(pod)), LOG_SLICE("with", pod_name(first)));
    events_post(handlers->state->events, handlers->state->api,
                &(struct object_reference){KIND_POD, ns, pod_name(pod), uid_text(&pod->uid, uid)},
                "Warning", "ExclusiveClaimViolated", message);
    arena_dispose(&arena);
}

/* Of pods that were there before we looked: the one that changed last passes for the second. */
static void report_claim(struct handlers *handlers, const struct claim *claim)
{
    const struct pod *latest = NULL;

    for (const struct use *use = claim->uses; use != NULL; use = use->next) {
        const struct pod *pod = use_pod(use);
        if (pod_holds(pod) && (latest == NULL || pod->version > latest->version))
            latest = pod;
    }
    if (latest != NULL)
        report(handlers, latest, claim);
}

/* ---- who may have waited for the claimguard before this one ---- */

/* A pod that waits, though its claims are free or can be had by preemption, may have been rejected
 * for what that claimguard alone knew, or be the one that it was about to evict others for. */
static bool is_hopeful(const struct handlers *handlers, const struct pod *pod, struct arena *arena)
{
    struct view view = state_view(handlers->state);
    const struct policy *decided_by;
    struct pod_object object;
    struct verdict verdict;

    if (!cluster_describe_pod(pod, arena, &object))
        return false;
    policy_prefilter(&view, &object, arena, &verdict, &decided_by);
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
    bool is_woken = pod != NULL && uid_is(&pod->uid, meta.uid) && is_hopeful(handlers, pod, &arena);
    (void)pthread_rwlock_unlock(&state->lock);
    arena_dispose(&arena);
    if (is_woken)
        requeue_pod(state->requeue, &meta);
    return is_woken;
}

/* The pods of the walk's next page that wait. False: that was the last page. */
static bool list_waiting(const struct handlers *handlers, struct table_walk *walk,
                         struct kept_reference **waiting, struct arena *arena)
{
    struct state *state = handlers->state;
    char uid[UID_TEXT_BYTES];

    (void)pthread_rwlock_rdlock(&state->lock);
    bool has_more = table_next_page(&state->cluster.pods, walk);
    for (; has_more && walk->next < walk->count; walk->next++) {
        const struct pod *pod = (const struct pod *)(const void *)walk->records[walk->next];
        if (pod->use_count == 0 || pod->node != NULL || pod->is_terminal || pod->is_terminating)
            continue;
        struct object_reference reference = {KIND_POD, name_slice(pod->ns), pod_name(pod),
                                             uid_text(&pod->uid, uid)};
        (void)object_reference_keep(waiting, &reference, arena); /* else the scheduler's flush */
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

/* ---- what follow tells ---- */

static void report_if_violated(struct handlers *handlers, const struct claim *claim)
{
    if (is_violated(handlers, claim))
        report_claim(handlers, claim);
}

/* Tells of what the change violates. Under the lock. */
static void look_for_violations(struct handlers *handlers, const struct object *object,
                                bool was_holding)
{
    const struct cluster *cluster = &handlers->state->cluster;
    struct slice ns = object->meta.ns, name = object->meta.name;
    const struct claim *claim =
        object->kind == KIND_CLAIM ? cluster_find_claim(cluster, ns, name) : NULL;
    const struct pod *pod = object->kind == KIND_POD ? cluster_find_pod(cluster, ns, name) : NULL;

    if (cluster->violations == 0 && cluster->deferring == NULL)
        return;
    if (claim != NULL)
        report_if_violated(handlers, claim);
    if (pod == NULL || was_holding || !pod_holds(pod))
        return;
    for (unsigned i = 0; i < pod->use_count; i++)
        if (is_violated(handlers, pod->uses[i].claim))
            report(handlers, pod, pod->uses[i].claim);
}

static void changed(void *context, enum watch_change change, const struct object *object,
                    bool was_holding)
{
    struct handlers *handlers = context;
    struct state *state = handlers->state;
    const struct meta *meta = &object->meta;
    bool is_gone_pod = object->kind == KIND_POD && change == CHANGE_DELETE;

    if (is_gone_pod || (object->kind == KIND_POD && object->pod.node.len != 0)) {
        metrics_forget_pod(&state->metrics, meta->uid);
        requeue_forget(state->requeue, meta->uid);
    }
    if (is_gone_pod || object->kind == KIND_CLAIM)
        requeue_changed(state->requeue,
                        &(struct object_reference){object->kind, meta->ns, meta->name, meta->uid},
                        state->api);
    if (!handlers->is_synced || change == CHANGE_DELETE)
        return;
    (void)pthread_rwlock_rdlock(&state->lock);
    look_for_violations(handlers, object, was_holding);
    (void)pthread_rwlock_unlock(&state->lock);
}

static void report_all(struct handlers *handlers)
{
    struct state *state = handlers->state;
    struct table_walk walk = {.at = 0};
    bool has_more = true;

    while (has_more) {
        (void)pthread_rwlock_rdlock(&state->lock);
        has_more = table_next_page(&state->cluster.claims, &walk);
        for (; has_more && walk.next < walk.count; walk.next++)
            report_if_violated(handlers, (const struct claim *)(void *)walk.records[walk.next]);
        (void)pthread_rwlock_unlock(&state->lock);
    }
}

static void synced(void *context)
{
    struct handlers *handlers = context;

    handlers->is_synced = true;
    log_info("the cache is synced", LOG_NONE);
    report_all(handlers);
    wake_all(handlers);
}

int handlers_start(struct handlers **out, struct state *state, const struct kubeconfig *kubeconfig,
                   struct error *err)
{
    struct handlers *handlers = calloc(1, sizeof *handlers);
    struct informer_target target = {.cluster = &state->cluster,
                                     .lock = &state->lock,
                                     .status = state->status,
                                     .watchdog = &state->watchdog,
                                     .stats = &state->api_stats,
                                     .context = handlers,
                                     .changed = changed,
                                     .synced = synced};

    if (handlers == NULL)
        return error_no_memory(err);
    handlers->state = state;
    (void)snprintf(state->source, sizeof state->source, "%s (by %s)", kubeconfig->server,
                   kubeconfig->origin);
    for (int kind = 0; kind < KIND_WATCHED_COUNT; kind++)
        atomic_store(&state->status[kind].is_synced, false);
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
    struct reported *first = handlers->reported;
    HASH_CLEAR(hh, handlers->reported); /* they stay linked to one another */
    for (struct reported *reported = first, *next; reported != NULL; reported = next) {
        next = reported->hh.next;
        free(reported);
    }
    free(handlers);
}
