#include "extender/live/nomination.h"

#include <stdlib.h>

#include "config/base/log.h"
#include "extender/live/nominee.h"

enum { PATCH_BYTES_MAX = 4096, CHECK_BYTES_MAX = 1 << 20, DOUBLINGS_MAX = 6 };

/*
 * No answer to a PATCH comes back here. One that succeeds changes the pod's version; so while the
 * pod has the version that it had when the last PATCH was sent, that one is unanswered, and from
 * retry_ns on it counts as failed.
 */
struct nominated_pod {
    struct object_reference pod; /* its UID is the key */
    char *node;
    char *before; /* a node that was wanted earlier: a PATCH for it may still arrive; or NULL */
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
    pthread_condattr_t attributes;

    *nominations = (struct nominations){.pods = NULL};
    rate_init(&nominations->rate, NOMINATIONS_PER_SECOND, NOMINATIONS_PER_SECOND, monotonic_ns());
    (void)pthread_mutex_init(&nominations->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&nominations->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

static void free_pod(struct nominated_pod *pod)
{
    free(pod->node);
    free(pod->before);
    free(pod);
}

static void drop(struct nominations *nominations, struct nominated_pod *pod)
{
    HASH_DEL(nominations->pods, pod);
    free_pod(pod);
}

void nomination_dispose(struct nominations *nominations)
{
    while (nominations->pods != NULL)
        drop(nominations, nominations->pods);
    (void)pthread_cond_destroy(&nominations->changed);
    (void)pthread_mutex_destroy(&nominations->lock);
}

unsigned nomination_count(struct nominations *nominations)
{
    (void)pthread_mutex_lock(&nominations->lock);
    unsigned count = HASH_COUNT(nominations->pods);
    (void)pthread_mutex_unlock(&nominations->lock);
    return count;
}

/* ---- requests ---- */

static bool send_patch(struct requests *requests, const struct object_reference *pod,
                       struct slice node, uint64_t version)
{
    struct buf body;

    buf_init(&body, PATCH_BYTES_MAX);
    buf_put(&body, SLICE("{\"metadata\":{\"uid\":"));
    buf_json(&body, pod->uid);
    if (version != 0)
        buf_printf(&body, ",\"resourceVersion\":\"%llu\"", (unsigned long long)version);
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
    bool is_sent = !body.failed && requests_send(requests, &request);
    buf_dispose(&body);
    return is_sent;
}

static void count(struct nominations *nominations, enum nomination_result result)
{
    atomic_fetch_add(&nominations->results[result], 1);
}

/* A namespace has as many as are left (shares.h). */
static bool has_room(const struct nominations *nominations, struct slice ns)
{
    size_t used = HASH_COUNT(nominations->pods), used_in = 0;

    for (struct nominated_pod *pod = used < NOMINATED_PODS_MAX / 2 ? NULL : nominations->pods;
         pod != NULL; pod = pod->hh.next)
        used_in += slice_equal(pod->pod.ns, ns);
    return !share_is_over(used_in, used, NOMINATED_PODS_MAX, 1);
}

/* NULL: there is no room, or no memory. */
static struct nominated_pod *add(struct nominations *nominations,
                                 const struct object_reference *pod, struct slice node)
{
    struct nominated_pod *added = has_room(nominations, pod->ns)
                                      ? calloc(1, sizeof *added + object_reference_bytes(pod))
                                      : NULL;

    if (added == NULL)
        return NULL;
    added->pod = object_reference_copy(pod, added->text);
    added->node = strndup(node.ptr, node.len);
    if (added->node != NULL)
        HASH_ADD_KEYPTR(hh, nominations->pods, added->pod.uid.ptr, added->pod.uid.len, added);
    if (added->hh.tbl != NULL)
        return added;
    free_pod(added);
    return NULL;
}

/* Another node is wanted. False: no memory; the record is as it was. */
static bool change_node(struct nominated_pod *pod, struct slice node)
{
    char *copy = strndup(node.ptr, node.len);

    if (copy == NULL)
        return false;
    if (pod->sent != 0) {
        free(pod->before);
        pod->before = pod->node;
    } else {
        free(pod->node);
    }
    pod->node = copy;
    pod->sent = 0;
    pod->wanted_ns = 0;
    return true;
}

/* The record of the pod, for the node. NULL: there is no room, or no memory. Under the lock. */
static struct nominated_pod *find_or_add(struct nominations *nominations,
                                         const struct object_reference *pod, struct slice node)
{
    struct nominated_pod *known = NULL;

    HASH_FIND(hh, nominations->pods, pod->uid.ptr, pod->uid.len, known);
    if (known == NULL)
        return add(nominations, pod, node);
    if (slice_equal(slice_of(known->node), node) || change_node(known, node))
        return known;
    return NULL;
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
    struct object_reference reference = {KIND_POD, pod->ns, pod->name, pod->uid};
    uint64_t now_ns = monotonic_ns();

    (void)pthread_mutex_lock(&nominations->lock);
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
    (void)pthread_mutex_unlock(&nominations->lock);
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
        return nominee_reason(view, pod, ours, arena) == REASON_GONE ? STEP_CLEAR : STEP_NOTHING;
    if (pod_is_nominated(pod) || nominated->due_ns > now_ns)
        return STEP_NOTHING;
    if (nominated->wanted_ns == 0 && !is_unanswered)
        return STEP_SETTLE; /* the last PATCH did not fail */
    return steps[nominee_reason(view, pod, slice_of(nominated->node), arena)];
}

/* Sends a PATCH, and notes when it counts as failed. node: empty: no nomination any more. False: it
 * cannot be sent now. */
static bool send(struct state *state, struct nominated_pod *nominated, const struct pod *pod,
                 struct slice node)
{
    uint64_t now_ns = monotonic_ns();

    /* if the pod has changed since, clearing is refused, and requested for the new version */
    if (!rate_take(&state->nominations->rate, now_ns) ||
        !send_patch(state->api, &nominated->pod, node, node.len == 0 ? pod->version : 0))
        return false;
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
    log_info("pod nominated to the node where its claim is in use",
             LOG_SLICE("namespace", reference->ns), LOG_SLICE("pod", reference->name),
             LOG_STR("node", nominated->node));
    count(state->nominations, NOMINATION_SENT);
}

static void clear(struct state *state, struct nominated_pod *nominated, const struct pod *pod)
{
    const struct object_reference *reference = &nominated->pod;

    if (!send(state, nominated, pod, SLICE("")))
        return;
    log_info("nomination cleared: its reason has gone", LOG_SLICE("namespace", reference->ns),
             LOG_SLICE("pod", reference->name), LOG_SLICE("node", pod_nominated_node(pod)));
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
    struct nominated_pod *nominated = NULL;

    (void)pthread_mutex_lock(&nominations->lock);
    HASH_FIND(hh, nominations->pods, uid.ptr, uid.len, nominated);
    if (nominated != NULL)
        settle(nominated);
    (void)pthread_mutex_unlock(&nominations->lock);
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
    const struct pod *pod = cluster_find_pod(view.cluster, reference->ns, reference->name);

    if (pod == NULL || !uid_is(&pod->uid, reference->uid) || pod_is_assigned(pod) ||
        pod->is_terminal) {
        drop(nominations, first);
        return;
    }
    arena_reset(arena);
    take_step(state, first, pod, find_step(&view, first, pod, arena));
    if (first->due_ns > monotonic_ns()) /* else it could not be sent now */
        tick_at(nominations, first->due_ns);
    HASH_DEL(nominations->pods, first);
    HASH_ADD_KEYPTR(hh, nominations->pods, first->pod.uid.ptr, first->pod.uid.len, first);
    if (first->hh.tbl == NULL)
        free_pod(first);
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
    struct arena arena;

    if (state->api == NULL)
        return;
    arena_init(&arena, CHECK_BYTES_MAX);
    for (unsigned left = begin_tick(nominations); left != 0; left--) {
        /* one by one: filter calls wait for both locks */
        (void)pthread_rwlock_rdlock(&state->lock);
        (void)pthread_mutex_lock(&nominations->lock);
        if (nominations->pods != NULL)
            check_first(state, &arena);
        (void)pthread_mutex_unlock(&nominations->lock);
        (void)pthread_rwlock_unlock(&state->lock);
    }
    arena_dispose(&arena);
}

uint64_t nomination_tick_ns(struct nominations *nominations)
{
    (void)pthread_mutex_lock(&nominations->lock);
    uint64_t tick_ns = nominations->tick_ns;
    (void)pthread_mutex_unlock(&nominations->lock);
    return tick_ns;
}
