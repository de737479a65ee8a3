#include "extender/serving/live/requeue.h"

#include <limits.h>
#include <stdlib.h>

#include "config/base/log.h"

enum {
    TEXT_BYTES_MAX = 4096,
    WAKE_BYTES_MAX = 1 << 20,
    WOKEN_MAX = 1000, /* pods, so that pods that wait for other reasons cost few requests */
};

/* One thing that a pod waits for. */
struct cause {
    struct object_reference reference;
    struct waiting_pod *pod;
    struct cause *next, **link; /* in one list; link: the pointer to this cause */
};

struct waiting_pod {
    struct object_reference pod; /* its UID is the key */
    uint64_t due_ns;             /* UINT64_MAX: none of its causes has changed */
    unsigned requeues;
    UT_hash_handle hh; /* ordered by time */
    uint32_t cause_count, bytes;
    struct cause causes[]; /* followed by the text of all references */
};

void requeue_init(struct requeue *requeue)
{
    *requeue = (struct requeue){.due_ns = UINT64_MAX};
    rate_init(&requeue->rate, REQUEUES_PER_SECOND, REQUEUES_PER_SECOND, monotonic_ns());
    (void)pthread_mutex_init(&requeue->lock, NULL);
}

static struct cause **list_of(struct requeue *requeue, const struct object_reference *reference)
{
    struct slice key = reference->kind == KIND_POD ? reference->uid : reference->name;
    return &requeue->by_cause[table_hash(key, 0) % REQUEUE_CAUSES];
}

static void link_cause(struct requeue *requeue, struct cause *cause)
{
    cause->link = list_of(requeue, &cause->reference);
    cause->next = *cause->link;
    if (cause->next != NULL)
        cause->next->link = &cause->next;
    *cause->link = cause;
}

static void unlink_cause(struct cause *cause)
{
    *cause->link = cause->next;
    if (cause->next != NULL)
        cause->next->link = cause->link;
}

static void count_result(struct requeue *requeue, enum requeue_result result)
{
    atomic_fetch_add(&requeue->results[result], 1);
}

static void drop(struct requeue *requeue, struct waiting_pod *pod)
{
    HASH_DEL(requeue->pods, pod);
    requeue->bytes -= pod->bytes;
    requeue->bytes_in[share_of(pod->pod.ns)] -= pod->bytes;
    for (size_t i = 0; i < pod->cause_count; i++)
        unlink_cause(&pod->causes[i]);
    free(pod);
}

void requeue_dispose(struct requeue *requeue)
{
    while (requeue->pods != NULL)
        drop(requeue, requeue->pods);
    (void)pthread_mutex_destroy(&requeue->lock);
}

static struct waiting_pod *find(struct requeue *requeue, struct slice uid)
{
    struct waiting_pod *pod = NULL;

    HASH_FIND(hh, requeue->pods, uid.ptr, uid.len, pod);
    return pod;
}

static void drop_uid(struct requeue *requeue, struct slice uid)
{
    struct waiting_pod *pod = find(requeue, uid);

    if (pod != NULL)
        drop(requeue, pod);
}

/* NULL: out of memory. */
static struct waiting_pod *waiting_pod_new(const struct meta *meta,
                                           const struct object_reference *causes, size_t count)
{
    struct object_reference reference = object_reference_of_pod(meta);
    size_t head_bytes = sizeof(struct waiting_pod) + count * sizeof(struct cause);
    size_t bytes = head_bytes + object_reference_bytes(&reference);

    for (size_t i = 0; i < count; i++)
        bytes += object_reference_bytes(&causes[i]);
    struct waiting_pod *pod = calloc(1, bytes);
    if (pod == NULL)
        return NULL;
    char *text = (char *)pod + head_bytes;
    pod->pod = object_reference_copy(&reference, text);
    text += object_reference_bytes(&reference);
    for (size_t i = 0; i < count; i++) {
        pod->causes[i] =
            (struct cause){.reference = object_reference_copy(&causes[i], text), .pod = pod};
        text += object_reference_bytes(&causes[i]);
    }
    pod->cause_count = (uint32_t)count;
    pod->bytes = (uint32_t)bytes;
    return pod;
}

/* The oldest pod of the share that has most bytes does not wait any more. */
static void drop_one(struct requeue *requeue)
{
    struct waiting_pod *oldest = requeue->pods;
    unsigned largest = share_largest(requeue->bytes_in);

    while (share_of(oldest->pod.ns) != largest)
        oldest = oldest->hh.next;
    drop(requeue, oldest);
    count_result(requeue, REQUEUE_DROPPED);
}

static void add(struct requeue *requeue, const struct meta *meta,
                const struct object_reference *causes, size_t count, uint64_t due_ns)
{
    drop_uid(requeue, meta->uid);
    struct waiting_pod *pod = waiting_pod_new(meta, causes, count);
    if (pod == NULL)
        return;
    while (requeue->pods != NULL && (HASH_COUNT(requeue->pods) >= REQUEUE_PODS_MAX ||
                                     requeue->bytes + pod->bytes > REQUEUE_BYTES_MAX))
        drop_one(requeue);
    pod->due_ns = due_ns;
    HASH_ADD_KEYPTR(hh, requeue->pods, pod->pod.uid.ptr, pod->pod.uid.len, pod);
    if (pod->hh.tbl == NULL) {
        free(pod);
        return;
    }
    requeue->bytes += pod->bytes;
    requeue->bytes_in[share_of(meta->ns)] += pod->bytes;
    for (size_t i = 0; i < count; i++)
        link_cause(requeue, &pod->causes[i]);
    if (due_ns < requeue->due_ns)
        requeue->due_ns = due_ns;
}

void requeue_wait(struct requeue *requeue, const struct meta *pod,
                  const struct object_reference *causes, size_t count)
{
    if (pod->uid.len == 0)
        return;
    SCOPED_LOCK(&requeue->lock);
    add(requeue, pod, causes, count, UINT64_MAX);
}

void requeue_pod(struct requeue *requeue, const struct meta *pod)
{
    SCOPED_LOCK(&requeue->lock);
    add(requeue, pod, NULL, 0, monotonic_ns());
}

static bool is_same_cause(const struct object_reference *a, const struct object_reference *b)
{
    if (a->kind != b->kind)
        return false;
    return a->kind == KIND_POD ? slice_equal(a->uid, b->uid)
                               : slice_equal(a->name, b->name) && slice_equal(a->ns, b->ns);
}

bool requeue_has(struct requeue *requeue, struct slice uid)
{
    SCOPED_LOCK(&requeue->lock);
    return find(requeue, uid) != NULL;
}

void requeue_forget(struct requeue *requeue, const struct meta *pod)
{
    SCOPED_LOCK(&requeue->lock);
    const struct waiting_pod *waiting = find(requeue, pod->uid);
    if (waiting != NULL && object_reference_has_name(&waiting->pod, pod))
        drop_uid(requeue, pod->uid);
}

/* The UID is a precondition: another pod of that name is not changed. False: it was not sent. */
static bool send_patch(struct requests *requests, const struct object_reference *pod)
{
    SCOPED_BUF(body, TEXT_BYTES_MAX);

    request_begin_patch(&body, pod->uid, SLICE(""));
    buf_printf(&body, ",\"annotations\":{\"claimguard.io/requeue-requested\":\"%lld\"}}}",
               (long long)now_ms());
    bool is_sent =
        !body.failed &&
        requests_send(requests, &(struct request){.method = "PATCH",
                                                  .object = *pod,
                                                  .content_type = "application/merge-patch+json",
                                                  .body = buf_slice(&body)});
    if (is_sent)
        log_debug("pod requeued: what it was rejected for has changed", LOG_POD(pod));
    return is_sent;
}

/* Requeues a pod that is due, and computes when it is due again. */
static void requeue_one(struct requeue *requeue, struct requests *requests, struct waiting_pod *pod,
                        uint64_t now_ns)
{
    bool is_sent = send_patch(requests, &pod->pod);

    count_result(requeue, is_sent ? REQUEUE_SENT : REQUEUE_DROPPED);
    pod->due_ns = now_ns + (REQUEUE_AGAIN_MS * NS_PER_MS << pod->requeues);
    pod->requeues += is_sent;
}

/* How many requeues the pod's share has had in this second. */
static uint32_t *sent_in(struct requeue *requeue, const struct waiting_pod *pod, uint64_t now_ns)
{
    share_window_pass(&requeue->sent, now_ns, NS_PER_SECOND);
    return &requeue->sent.used_in[share_of(pod->pod.ns)];
}

/* Whether it waits no more: it was requeued often enough, or the cluster is a snapshot. */
static bool give_up(struct requeue *requeue, const struct requests *requests,
                    struct waiting_pod *pod)
{
    if (requests != NULL && pod->requeues != REQUEUES_MAX)
        return false;
    if (requests != NULL)
        count_result(requeue, REQUEUE_GIVEN_UP);
    drop(requeue, pod);
    return true;
}

/* Requeues the pods that are due: those of shares that have had less than `most` in this second.
 * False: the rate is used up. */
static bool requeue_some(struct requeue *requeue, struct requests *requests, unsigned most,
                         uint64_t now_ns)
{
    for (struct waiting_pod *pod = requeue->pods, *next; pod != NULL; pod = next) {
        next = pod->hh.next;
        if (pod->due_ns > now_ns || give_up(requeue, requests, pod))
            continue;
        uint32_t *sent = sent_in(requeue, pod, now_ns);
        if (*sent >= most)
            continue;
        if (!rate_take(&requeue->rate, now_ns))
            return false;
        ++*sent;
        requeue_one(requeue, requests, pod, now_ns);
    }
    return true;
}

/* Requeues the pods that are due, if the rate allows, and computes when the next one is due. Those
 * of namespaces that have had fewest in this second come first. */
static void requeue_due(struct requeue *requeue, struct requests *requests, uint64_t now_ns)
{
    static const unsigned most[] = {1, 5, REQUEUES_PER_SECOND / 2, UINT_MAX};

    requeue->due_ns = UINT64_MAX;
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        if (requeue_some(requeue, requests, most[i], now_ns))
            continue;
        requeue->due_ns = now_ns + NS_PER_SECOND / REQUEUES_PER_SECOND;
        return;
    }
    for (const struct waiting_pod *pod = requeue->pods; pod != NULL; pod = pod->hh.next)
        if (pod->due_ns < requeue->due_ns)
            requeue->due_ns = pod->due_ns;
}

void requeue_changed(struct requeue *requeue, const struct object_reference *cause,
                     struct requests *requests)
{
    uint64_t now_ns = monotonic_ns();

    SCOPED_LOCK(&requeue->lock);
    bool is_any = false;
    for (const struct cause *at = *list_of(requeue, cause); at != NULL; at = at->next) {
        if (at->pod->due_ns != UINT64_MAX || !is_same_cause(&at->reference, cause))
            continue;
        at->pod->due_ns = now_ns;
        is_any = true;
    }
    if (is_any)
        requeue_due(requeue, requests, now_ns);
}

void requeue_all(struct requeue *requeue, struct requests *requests)
{
    uint64_t now_ns = monotonic_ns();

    SCOPED_LOCK(&requeue->lock);
    for (struct waiting_pod *pod = requeue->pods; pod != NULL; pod = pod->hh.next)
        pod->due_ns = pod->due_ns == UINT64_MAX ? now_ns : pod->due_ns;
    requeue_due(requeue, requests, now_ns);
}

unsigned requeue_waiting(struct requeue *requeue)
{
    SCOPED_LOCK(&requeue->lock);
    return HASH_COUNT(requeue->pods);
}

void requeue_tick(struct requeue *requeue, struct requests *requests)
{
    uint64_t now_ns = monotonic_ns();

    SCOPED_LOCK(&requeue->lock);
    if (requeue->due_ns <= now_ns)
        requeue_due(requeue, requests, now_ns);
}

/* ---- pods that are not known to wait ---- */

/* Whether the pod may pass, or preempt. If it waits though its claims are free, it may have been
 * rejected for a reservation of the previous claimguard, or by the former configuration; if not,
 * the previous claimguard may have been about to evict the holders. A pod that is rejected waits
 * for what it waited for there. */
static bool reconsider(struct state *state, const struct pod *pod, const struct meta *meta,
                       struct arena *arena)
{
    struct view view = state_view(state);
    struct pod_object object;
    struct verdict verdict;

    if (!cluster_describe_pod(pod, arena, &object))
        return false;
    policy_prefilter(&view, &object, arena, &verdict);
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
    SCOPED_ARENA(arena, WAKE_BYTES_MAX);

    SCOPED_READ_LOCK(&state->lock);
    const struct pod *pod = cluster_find_same_pod(&state->cluster, waiting);
    bool is_woken = pod != NULL && !requeue_has(state->requeue, meta.uid) &&
                    !is_being_bound(state, pod) && reconsider(state, pod, &meta, &arena);
    if (is_woken) /* under the lock: a bind that begins now forgets it */
        requeue_pod(state->requeue, &meta);
    return is_woken;
}

/* Lists the pods of the walk's next page that wait for a node, and have claims or mounts (of inline
 * CSI volumes). No scheduler has asked about a gated pod: gates are never added to one, and when
 * the last one goes, the scheduler tries it. False: there was no more page. */
static bool list_waiting(struct state *state, struct table_walk *walk,
                         struct kept_reference **waiting, struct arena *arena)
{
    char uid[UID_TEXT_BYTES];

    SCOPED_READ_LOCK(&state->lock);
    bool has_more = table_next_page(&state->cluster.pods, walk);
    for (; has_more && walk->next < walk->count; walk->next++) {
        const struct pod *pod = (const struct pod *)(const void *)walk->records[walk->next];
        if ((pod->use_count == 0 && !pod->has_mounts) || pod_is_assigned(pod) || pod->is_gated ||
            pod->is_terminal || pod->is_terminating)
            continue;
        struct object_reference reference = pod_reference(pod, uid);
        (void)object_reference_keep(waiting, &reference,
                                    arena); /* else it waits for the scheduler's flush */
    }
    return has_more;
}

void requeue_wake_all(struct state *state)
{
    SCOPED_ARENA(arena, WAKE_BYTES_MAX);
    struct table_walk walk = {.at = 0};
    unsigned woken = 0;
    bool has_more = true;

    while (has_more && woken < WOKEN_MAX) {
        struct kept_reference *waiting = NULL;
        arena_reset(&arena);
        has_more = list_waiting(state, &walk, &waiting, &arena);
        for (; waiting != NULL && woken < WOKEN_MAX; waiting = waiting->next)
            woken += wake(state, &waiting->reference);
    }
}
