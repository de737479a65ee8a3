#include "extender/live/nomination.h"

#include <stdlib.h>

#include "config/base/log.h"

enum { PATCH_BYTES_MAX = 4096, CHECK_BYTES_MAX = 1 << 20 };

struct nominated_pod {
    struct object_reference pod; /* its UID is the key */
    struct slice node;
    uint64_t wanted_ns; /* first, of those that are not sent yet */
    uint64_t due_ns;    /* UINT64_MAX: nothing is to be sent */
    unsigned sent;
    uint64_t cleared; /* the pod's version for which this was requested */
    UT_hash_handle hh;
    char text[]; /* of the reference and the node */
};

void nomination_init(struct nominations *nominations)
{
    *nominations = (struct nominations){.pods = NULL};
    rate_init(&nominations->rate, NOMINATIONS_PER_SECOND, NOMINATIONS_PER_SECOND, monotonic_ns());
    (void)pthread_mutex_init(&nominations->lock, NULL);
}

static void drop(struct nominations *nominations, struct nominated_pod *pod)
{
    HASH_DEL(nominations->pods, pod);
    free(pod);
}

void nomination_dispose(struct nominations *nominations)
{
    while (nominations->pods != NULL)
        drop(nominations, nominations->pods);
    (void)pthread_mutex_destroy(&nominations->lock);
}

unsigned nomination_count(struct nominations *nominations)
{
    (void)pthread_mutex_lock(&nominations->lock);
    unsigned count = HASH_COUNT(nominations->pods);
    (void)pthread_mutex_unlock(&nominations->lock);
    return count;
}

/* ---- which node ---- */

static bool is_usable(const struct cluster *cluster, struct slice name)
{
    const struct node *node = cluster_find_node(cluster, name);

    return node != NULL && !node->is_not_ready && !node->is_unschedulable;
}

/* Whether one of the verdict's filters is for the node, and says that it is worth a nomination. */
static bool is_nominee(const struct verdict *verdict, struct slice node)
{
    for (const struct node_filter *filter = verdict->nodes; filter != NULL; filter = filter->next)
        for (size_t i = 0; filter->nominates && !filter->warns && i < filter->count; i++)
            if (slice_equal(filter->names[i], node))
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
        cached == NULL || !uid_is(&cached->uid, pod->meta.uid) || cached->nomination != NULL ||
        cached->is_terminating || has_exclusive(pod, verdict))
        return SLICE("");
    for (const struct node_filter *filter = verdict->nodes; filter != NULL; filter = filter->next)
        for (size_t i = 0; filter->nominates && !filter->warns && i < filter->count; i++)
            if (is_usable(view->cluster, filter->names[i]) &&
                policy_filter(verdict, filter->names[i], arena, &reason) == NULL)
                return filter->names[i];
    return SLICE("");
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

/* NULL: there is no room, or no memory. */
static struct nominated_pod *add(struct nominations *nominations,
                                 const struct object_reference *pod, struct slice node)
{
    size_t bytes = object_reference_bytes(pod);
    struct nominated_pod *added = HASH_COUNT(nominations->pods) >= NOMINATED_PODS_MAX
                                      ? NULL
                                      : calloc(1, sizeof *added + bytes + node.len);

    if (added == NULL)
        return NULL;
    added->pod = object_reference_copy(pod, added->text);
    memcpy(added->text + bytes, node.ptr, node.len);
    added->node = (struct slice){added->text + bytes, node.len};
    HASH_ADD_KEYPTR(hh, nominations->pods, added->pod.uid.ptr, added->pod.uid.len, added);
    if (added->hh.tbl != NULL)
        return added;
    free(added);
    return NULL;
}

/* The record of the pod and the node; NULL: there is no room, or no memory. Under the lock. */
static struct nominated_pod *find_or_add(struct nominations *nominations,
                                         const struct object_reference *pod, struct slice node)
{
    struct nominated_pod *known = NULL;

    HASH_FIND(hh, nominations->pods, pod->uid.ptr, pod->uid.len, known);
    if (known != NULL && slice_equal(known->node, node))
        return known;
    if (known != NULL)
        drop(nominations, known);
    known = add(nominations, pod, node);
    if (known != NULL)
        known->due_ns = UINT64_MAX;
    return known;
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
        if (wanted->due_ns == UINT64_MAX)
            wanted->wanted_ns = now_ns;
        uint64_t latest_ns = wanted->wanted_ns + NOMINATION_LATE_MS * NS_PER_MS;
        wanted->due_ns = now_ns + NOMINATION_QUIET_MS * NS_PER_MS;
        if (wanted->due_ns > latest_ns)
            wanted->due_ns = latest_ns;
    }
    (void)pthread_mutex_unlock(&nominations->lock);
}

/* ---- its end ---- */

/* What is to be done about a nomination. */
enum step {
    STEP_NOTHING,
    STEP_SEND,
    STEP_CLEAR,  /* its reason has gone */
    STEP_FORGET, /* the pod is bound or gone */
};

/* Whether the node is still all that the pod waits for. */
static bool has_reason(const struct view *view, const struct pod *pod, struct slice node,
                       struct arena *arena)
{
    const struct policy *decided_by;
    struct pod_object object;
    struct verdict verdict;
    struct slice reason;

    if (!is_usable(view->cluster, node) || !cluster_describe_pod(pod, arena, &object))
        return false;
    policy_prefilter(view, &object, arena, &verdict, &decided_by);
    return verdict.code == CODE_SUCCESS && is_nominee(&verdict, node) &&
           policy_filter(&verdict, node, arena, &reason) == NULL;
}

static enum step find_step(const struct view *view, const struct nominated_pod *nominated,
                           struct arena *arena, uint64_t *version)
{
    const struct object_reference *reference = &nominated->pod;
    const struct pod *pod = cluster_find_pod(view->cluster, reference->ns, reference->name);

    if (pod == NULL || !uid_is(&pod->uid, reference->uid) || pod->node != NULL || pod->is_terminal)
        return STEP_FORGET;
    *version = pod->version;
    bool is_due = nominated->due_ns <= monotonic_ns();
    bool is_ours = slice_equal(pod_nominated_node(pod), nominated->node);
    if (is_ours ? nominated->cleared == pod->version : pod->nomination != NULL || !is_due)
        return STEP_NOTHING;
    if (has_reason(view, pod, nominated->node, arena))
        return is_ours ? STEP_NOTHING : STEP_SEND;
    return is_ours ? STEP_CLEAR : STEP_NOTHING;
}

/* Whether the PATCH is on its way. node: empty: none any more. */
static bool send(struct state *state, const struct nominated_pod *nominated, struct slice node,
                 uint64_t version)
{
    return rate_take(&state->nominations->rate, monotonic_ns()) &&
           send_patch(state->api, &nominated->pod, node, version);
}

static void nominate(struct state *state, struct nominated_pod *nominated)
{
    const struct object_reference *pod = &nominated->pod;

    if (!send(state, nominated, nominated->node, 0))
        return; /* it stays due */
    nominated->due_ns = UINT64_MAX;
    nominated->sent++;
    log_info("pod nominated to the node where its claim is in use", LOG_SLICE("namespace", pod->ns),
             LOG_SLICE("pod", pod->name), LOG_SLICE("node", nominated->node));
    count(state->nominations, NOMINATION_SENT);
}

static void clear(struct state *state, struct nominated_pod *nominated, uint64_t version)
{
    const struct object_reference *pod = &nominated->pod;

    /* if the pod has changed since, this is refused, and requested again for the new version */
    if (!send(state, nominated, SLICE(""), version))
        return;
    nominated->cleared = version;
    log_info("nomination cleared: its reason has gone", LOG_SLICE("namespace", pod->ns),
             LOG_SLICE("pod", pod->name), LOG_SLICE("node", nominated->node));
    count(state->nominations, NOMINATION_CLEARED);
}

/* Checks the first of the nominated pods, and puts it last. Under both locks. */
static void check_first(struct state *state, struct arena *arena)
{
    struct nominations *nominations = state->nominations;
    struct nominated_pod *first = nominations->pods;
    struct view view = state_view(state);
    uint64_t version = 0;

    arena_reset(arena);
    enum step step = find_step(&view, first, arena, &version);
    if (step == STEP_FORGET) {
        drop(nominations, first);
        return;
    }
    if (step == STEP_SEND)
        nominate(state, first);
    else if (step == STEP_CLEAR)
        clear(state, first, version);
    HASH_DEL(nominations->pods, first);
    HASH_ADD_KEYPTR(hh, nominations->pods, first->pod.uid.ptr, first->pod.uid.len, first);
    if (first->hh.tbl == NULL)
        free(first);
}

void nomination_tick(struct state *state)
{
    struct nominations *nominations = state->nominations;
    struct arena arena;

    if (state->api == NULL || nomination_count(nominations) == 0)
        return;
    arena_init(&arena, CHECK_BYTES_MAX);
    (void)pthread_rwlock_rdlock(&state->lock);
    (void)pthread_mutex_lock(&nominations->lock);
    unsigned most = HASH_COUNT(nominations->pods);
    for (unsigned i = 0; i < most && i < NOMINATIONS_CHECKED && nominations->pods != NULL; i++)
        check_first(state, &arena);
    (void)pthread_mutex_unlock(&nominations->lock);
    (void)pthread_rwlock_unlock(&state->lock);
    arena_dispose(&arena);
}
