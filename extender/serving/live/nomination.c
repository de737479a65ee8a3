#include "extender/serving/live/nomination.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/base/log.h"

enum { PATCH_BYTES_MAX = 4096, CHECK_BYTES_MAX = 1 << 20, DOUBLINGS_MAX = 6 };

/* ---- the node ---- */

/* Whether one of the verdict's filters is for the node, and says that it is worth a nomination. */
static bool is_nominee(const struct verdict *verdict, struct slice node)
{
    for (const struct node_filter *filter = verdict->nodes; filter != NULL; filter = filter->next)
        if (filter->nominates && !filter->warns &&
            slice_is_among(node, filter->names, filter->count))
            return true;
    return false;
}

/* A nominated pod holds its exclusive claims against others. */
static bool has_exclusive(const struct pod_object *pod, const struct verdict *verdict)
{
    for (size_t i = 0; verdict->exclusive != NULL && i < pod->claim_count; i++)
        if (verdict->exclusive[i])
            return true;
    return false;
}

struct slice nomination_choose(const struct view *view, const struct pod_object *pod,
                               const struct verdict *verdict, struct arena *arena)
{
    const struct pod *cached = cluster_find_pod(view->cluster, pod->meta.ns, pod->meta.name);
    struct slice reason;

    if (verdict->code != CODE_SUCCESS || pod->meta.uid.len == 0 || pod->nominated_node.len != 0 ||
        cached == NULL || !uid_is(&cached->uid, pod->meta.uid) || pod_is_nominated(cached) ||
        cached->is_terminating || has_exclusive(pod, verdict))
        return SLICE("");
    for (const struct node_filter *filter = verdict->nodes; filter != NULL; filter = filter->next)
        for (size_t i = 0; filter->nominates && !filter->warns && i < filter->count; i++)
            if (node_is_usable(cluster_find_node(view->cluster, filter->names[i])) &&
                policy_filter(verdict, filter->names[i], arena, &reason) == NULL)
                return filter->names[i];
    return SLICE("");
}

/* Whether the node is all that the pod waits for. REASON_UNKNOWN: there is no verdict now, or no
 * memory. */
enum reason { REASON_UNKNOWN, REASON_GONE, REASON_HOLDS };

static enum reason find_reason(const struct view *view, const struct pod *pod, struct slice node,
                               struct arena *arena)
{
    struct pod_object object;
    struct verdict verdict;
    struct slice reason;

    if (!node_is_usable(cluster_find_node(view->cluster, node)))
        return REASON_GONE;
    if (!cluster_describe_pod(pod, arena, &object))
        return REASON_UNKNOWN;
    policy_prefilter(view, &object, arena, &verdict);
    if (verdict.code == CODE_ERROR)
        return REASON_UNKNOWN;
    if (verdict.code != CODE_SUCCESS || !is_nominee(&verdict, node))
        return REASON_GONE;
    if (policy_filter(&verdict, node, arena, &reason) == NULL)
        return REASON_HOLDS;
    return reason.ptr == NULL ? REASON_UNKNOWN : REASON_GONE;
}

/* ---- the pods that wait ---- */

/*
 * No answer to a PATCH comes back here. One that succeeds changes the pod's version; so while the
 * pod has the version that it had when the last PATCH was sent, that one is unanswered, and from
 * retry_ns on it counts as failed.
 */
struct nominated_pod {
    struct object_reference pod; /* its UID is the key */
    char node[POD_NAME_BYTES_MAX + 1];
    char before[POD_NAME_BYTES_MAX + 1]; /* a node that was wanted earlier, for which a PATCH may
                                            still arrive; or empty */
    uint64_t wanted_ns; /* first, since the last nomination was sent; 0: not wanted since */
    uint64_t due_ns;    /* when it is nominated (again); UINT64_MAX: not before it is wanted */
    unsigned sent;      /* nominations to the node, without those that failed */
    uint64_t version;   /* of the pod, when the last PATCH was sent; 0: none was sent */
    uint64_t retry_ns;
    unsigned retries; /* of the last PATCH */
    UT_hash_handle hh;
    char text[]; /* of the reference */
};

void nomination_init(struct nominations *nominations)
{
    *nominations = (struct nominations){.pods = NULL};
    rate_init(&nominations->rate, NOMINATIONS_PER_SECOND, NOMINATIONS_PER_SECOND, monotonic_ns());
    (void)pthread_mutex_init(&nominations->lock, NULL);
    clock_init_cond(&nominations->changed);
}

/* As the last one. NULL: no memory, and it is freed. */
static struct nominated_pod *append(struct nominations *nominations, struct nominated_pod *pod)
{
    HASH_ADD_KEYPTR(hh, nominations->pods, pod->pod.uid.ptr, pod->pod.uid.len, pod);
    if (pod->hh.tbl == NULL) {
        free(pod);
        return NULL;
    }
    nominations->pods_in[share_of(pod->pod.ns)]++;
    return pod;
}

static void take_out(struct nominations *nominations, struct nominated_pod *pod)
{
    HASH_DEL(nominations->pods, pod);
    nominations->pods_in[share_of(pod->pod.ns)]--;
}

static void drop(struct nominations *nominations, struct nominated_pod *pod)
{
    take_out(nominations, pod);
    free(pod);
}

void nomination_dispose(struct nominations *nominations)
{
    while (nominations->pods != NULL)
        drop(nominations, nominations->pods);
    (void)pthread_cond_destroy(&nominations->changed);
    (void)pthread_mutex_destroy(&nominations->lock);
}

/* ---- requests ---- */

static bool send_patch(struct requests *requests, const struct object_reference *pod,
                       struct slice node, struct slice version)
{
    SCOPED_BUF(body, PATCH_BYTES_MAX);

    request_begin_patch(&body, pod->uid, version);
    buf_put(&body, SLICE("},\"status\":{\"nominatedNodeName\":"));
    if (node.len != 0)
        buf_json(&body, node);
    else
        buf_put(&body, SLICE("null"));
    buf_put(&body, SLICE("}}"));
    struct request request = {.method = "PATCH",
                              .object = *pod,
                              .suffix = "/status",
                              .content_type = "application/merge-patch+json",
                              .body = buf_slice(&body)};
    return !body.failed && requests_send(requests, &request);
}

static void count(struct nominations *nominations, enum nomination_result result)
{
    atomic_fetch_add(&nominations->results[result], 1);
}

/* Another node is wanted. */
static void change_node(struct nominated_pod *pod, struct slice node)
{
    if (pod->sent != 0)
        memcpy(pod->before, pod->node, sizeof pod->before);
    (void)snprintf(pod->node, sizeof pod->node, "%.*s", SLICE_ARG(node));
    pod->sent = 0;
    pod->wanted_ns = 0;
}

/* A namespace has as many as are left (shares.h). NULL: there is no room, or no memory. */
static struct nominated_pod *add(struct nominations *nominations,
                                 const struct object_reference *pod, struct slice node)
{
    bool is_full = share_is_over(nominations->pods_in[share_of(pod->ns)],
                                 HASH_COUNT(nominations->pods), 1, NOMINATED_PODS_MAX, 1);
    struct nominated_pod *added =
        is_full ? NULL : calloc(1, sizeof *added + object_reference_bytes(pod));

    if (added == NULL)
        return NULL;
    added->pod = object_reference_copy(pod, added->text);
    change_node(added, node);
    return append(nominations, added);
}

/* NULL: the pod is not known. Under the lock. */
static struct nominated_pod *find(const struct nominations *nominations, struct slice uid)
{
    struct nominated_pod *known = NULL;

    HASH_FIND(hh, nominations->pods, uid.ptr, uid.len, known);
    return known;
}

/* The record of the pod, for the node. NULL: there is no room, or no memory. Under the lock. */
static struct nominated_pod *find_or_add(struct nominations *nominations,
                                         const struct object_reference *pod, struct slice node)
{
    struct nominated_pod *known = find(nominations, pod->uid);

    if (known == NULL)
        return add(nominations, pod, node);
    if (!slice_equal(slice_of(known->node), node))
        change_node(known, node);
    return known;
}

/* The next tick is due then, or earlier. Under the lock. */
static void tick_at(struct nominations *nominations, uint64_t at_ns)
{
    if (at_ns >= nominations->tick_ns)
        return;
    nominations->tick_ns = at_ns;
    (void)pthread_cond_signal(&nominations->changed);
}

void nomination_want(struct nominations *nominations, const struct meta *pod, struct slice node)
{
    struct object_reference reference = object_reference_of_pod(pod);
    uint64_t now_ns = monotonic_ns();

    SCOPED_LOCK(&nominations->lock);
    struct nominated_pod *wanted = find_or_add(nominations, &reference, node);
    if (wanted == NULL) {
        count(nominations, NOMINATION_DROPPED);
    } else if (wanted->sent < NOMINATIONS_SENT_MAX) {
        if (wanted->wanted_ns == 0)
            wanted->wanted_ns = now_ns;
        uint64_t latest_ns = wanted->wanted_ns + NOMINATION_LATE_MS * NS_PER_MS;
        wanted->due_ns = now_ns + NOMINATION_QUIET_MS * NS_PER_MS;
        if (wanted->due_ns > latest_ns)
            wanted->due_ns = latest_ns;
        tick_at(nominations, wanted->due_ns);
    }
}

/* ---- its end ---- */

/* What is to be done about a nomination. */
enum step {
    STEP_NOTHING,
    STEP_SEND,
    STEP_PUT_OFF, /* whether it has a reason is not known now */
    STEP_SETTLE,  /* nothing, until it is wanted again */
    STEP_CLEAR,   /* its reason has gone */
};

/* The node to which we have nominated the pod; empty: it has no nomination, or another one's. */
static struct slice find_our_node(const struct nominated_pod *nominated, const struct pod *pod)
{
    struct slice node = pod_nominated_node(pod);
    bool is_ours = (nominated->sent != 0 && slice_equal(node, slice_of(nominated->node))) ||
                   slice_equal(node, slice_of(nominated->before));

    return is_ours ? node : SLICE("");
}

static enum step find_step(const struct view *view, const struct nominated_pod *nominated,
                           const struct pod *pod, struct arena *arena)
{
    static const enum step steps[] = {
        [REASON_UNKNOWN] = STEP_PUT_OFF, [REASON_GONE] = STEP_SETTLE, [REASON_HOLDS] = STEP_SEND};
    struct slice ours = find_our_node(nominated, pod);
    bool is_unanswered = nominated->version == pod->version;
    uint64_t now_ns = monotonic_ns();

    if (is_unanswered && nominated->retry_ns > now_ns)
        return STEP_NOTHING;
    if (ours.len != 0)
        return find_reason(view, pod, ours, arena) == REASON_GONE ? STEP_CLEAR : STEP_NOTHING;
    if (pod_is_nominated(pod) || nominated->due_ns > now_ns)
        return STEP_NOTHING;
    if (nominated->wanted_ns == 0 && !is_unanswered)
        return STEP_SETTLE; /* the last PATCH did not fail */
    return steps[find_reason(view, pod, slice_of(nominated->node), arena)];
}

/* Whether the namespace has had its share of the last second's PATCHes. */
static bool has_had_share(struct nominations *nominations, struct slice ns, uint64_t now_ns)
{
    share_window_pass(&nominations->sent, now_ns, NS_PER_SECOND);
    size_t used = NOMINATIONS_PER_SECOND - (size_t)rate_left(&nominations->rate, now_ns);
    return share_is_over(nominations->sent.used_in[share_of(ns)], used, 1, NOMINATIONS_PER_SECOND,
                         NOMINATIONS_SHARE);
}

/* Sends a PATCH, and notes when it counts as failed. node: empty: no nomination any more. False: it
 * cannot be sent now. */
static bool send(struct state *state, struct nominated_pod *nominated, const struct pod *pod,
                 struct slice node)
{
    uint64_t now_ns = monotonic_ns();
    char text[24] = "";

    /* if the pod has changed since, clearing is refused, and requested for the new version */
    if (node.len == 0 && pod->version != 0)
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)pod->version);
    if (!rate_take(&state->nominations->rate, now_ns) ||
        !send_patch(state->api, &nominated->pod, node, slice_of(text)))
        return false;
    state->nominations->sent.used_in[share_of(nominated->pod.ns)]++;
    nominated->retries = nominated->version == pod->version ? nominated->retries + 1 : 0;
    nominated->version = pod->version;
    unsigned doublings = nominated->retries < DOUBLINGS_MAX ? nominated->retries : DOUBLINGS_MAX;
    nominated->retry_ns = now_ns + ((uint64_t)NOMINATION_RETRY_MS << doublings) * NS_PER_MS;
    return true;
}

static void nominate(struct state *state, struct nominated_pod *nominated, const struct pod *pod)
{
    const struct object_reference *reference = &nominated->pod;
    bool has_failed = nominated->sent != 0 && nominated->version == pod->version;

    if (!send(state, nominated, pod, slice_of(nominated->node)))
        return; /* it stays due */
    nominated->sent += !has_failed;
    nominated->wanted_ns = 0;
    nominated->due_ns = nominated->retry_ns;
    log_info("pod nominated to the node where its claim is in use", LOG_POD(reference),
             LOG_STR("node", nominated->node));
    count(state->nominations, NOMINATION_SENT);
}

static void clear(struct state *state, struct nominated_pod *nominated, const struct pod *pod)
{
    const struct object_reference *reference = &nominated->pod;

    if (!send(state, nominated, pod, SLICE("")))
        return;
    log_info("nomination cleared: its reason has gone", LOG_POD(reference),
             LOG_SLICE("node", pod_nominated_node(pod)));
    count(state->nominations, NOMINATION_CLEARED);
}

/* Nothing, until it is wanted again. */
static void settle(struct nominated_pod *nominated)
{
    nominated->wanted_ns = 0;
    nominated->due_ns = UINT64_MAX;
}

void nomination_unwant(struct nominations *nominations, struct slice uid)
{
    SCOPED_LOCK(&nominations->lock);
    struct nominated_pod *nominated = find(nominations, uid);
    if (nominated != NULL)
        settle(nominated);
}

static void take_step(struct state *state, struct nominated_pod *nominated, const struct pod *pod,
                      enum step step)
{
    if (step == STEP_SEND) {
        nominate(state, nominated, pod);
    } else if (step == STEP_CLEAR) {
        clear(state, nominated, pod);
    } else if (step == STEP_PUT_OFF) {
        nominated->due_ns = monotonic_ns() + NOMINATION_RETRY_MS * NS_PER_MS;
    } else if (step == STEP_SETTLE) {
        settle(nominated);
    }
}

/* Checks the first of the nominated pods, and puts it last; or forgets it, if it is bound or gone.
 * Under both locks. */
static void check_first(struct state *state, struct arena *arena)
{
    struct nominations *nominations = state->nominations;
    struct nominated_pod *first = nominations->pods;
    const struct object_reference *reference = &first->pod;
    struct view view = state_view(state);
    const struct pod *pod = cluster_find_same_pod(view.cluster, reference);

    if (pod == NULL || pod_is_assigned(pod) || pod->is_terminal) {
        drop(nominations, first);
        return;
    }
    arena_reset(arena);
    uint64_t now_ns = monotonic_ns();
    if (has_had_share(nominations, reference->ns, now_ns))
        tick_at(nominations, now_ns + NOMINATION_AGAIN_MS * NS_PER_MS);
    else
        take_step(state, first, pod, find_step(&view, first, pod, arena));
    if (first->due_ns > monotonic_ns()) /* else it could not be sent now */
        tick_at(nominations, first->due_ns);
    take_out(nominations, first);
    (void)append(nominations, first);
}

/* Returns how many pods it checks. */
static unsigned begin_tick(struct nominations *nominations)
{
    (void)pthread_mutex_lock(&nominations->lock);
    unsigned count = HASH_COUNT(nominations->pods);
    nominations->tick_ns = monotonic_ns() + NOMINATION_TICK_MS * NS_PER_MS;
    (void)pthread_mutex_unlock(&nominations->lock);
    return count < NOMINATIONS_CHECKED ? count : NOMINATIONS_CHECKED;
}

void nomination_tick(struct state *state)
{
    struct nominations *nominations = state->nominations;
    SCOPED_ARENA(arena, CHECK_BYTES_MAX);

    if (state->api == NULL)
        return;
    for (unsigned left = begin_tick(nominations); left != 0; left--) {
        /* one by one: filter calls wait for both locks */
        SCOPED_READ_LOCK(&state->lock);
        SCOPED_LOCK(&nominations->lock);
        if (nominations->pods != NULL)
            check_first(state, &arena);
    }
}

/* ---- the thread ---- */

/* Waits until a tick is due. False: the thread has to stop. */
static bool wait_for_tick(struct nominations *nominations)
{
    SCOPED_LOCK(&nominations->lock);
    while (!nominations->is_stopping && nominations->tick_ns > monotonic_ns()) {
        struct timespec at = monotonic_timespec(nominations->tick_ns);
        (void)pthread_cond_timedwait(&nominations->changed, &nominations->lock, &at);
    }
    return !nominations->is_stopping;
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
