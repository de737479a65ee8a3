#include "extender/live/requeue.h"

#include <limits.h>
#include <stdlib.h>

#include "config/base/clock.h"
#include "config/base/log.h"

enum { TEXT_BYTES_MAX = 4096 };

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
    struct object_reference reference = {KIND_POD, meta->ns, meta->name, meta->uid};
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
    unsigned largest = 0;

    for (unsigned share = 1; share < SHARES; share++)
        if (requeue->bytes_in[share] > requeue->bytes_in[largest])
            largest = share;
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
    (void)pthread_mutex_lock(&requeue->lock);
    add(requeue, pod, causes, count, UINT64_MAX);
    (void)pthread_mutex_unlock(&requeue->lock);
}

void requeue_pod(struct requeue *requeue, const struct meta *pod)
{
    (void)pthread_mutex_lock(&requeue->lock);
    add(requeue, pod, NULL, 0, monotonic_ns());
    (void)pthread_mutex_unlock(&requeue->lock);
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
    (void)pthread_mutex_lock(&requeue->lock);
    bool has = find(requeue, uid) != NULL;
    (void)pthread_mutex_unlock(&requeue->lock);
    return has;
}

void requeue_forget(struct requeue *requeue, struct slice uid)
{
    (void)pthread_mutex_lock(&requeue->lock);
    drop_uid(requeue, uid);
    (void)pthread_mutex_unlock(&requeue->lock);
}

/* The UID is a precondition: another pod of that name is not changed. False: it was not sent. */
static bool send_patch(struct requests *requests, const struct object_reference *pod)
{
    struct buf body;

    buf_init(&body, TEXT_BYTES_MAX);
    buf_put(&body, SLICE("{\"metadata\":{\"uid\":"));
    buf_json(&body, pod->uid);
    buf_printf(&body, ",\"annotations\":{\"claimguard.io/requeue-requested\":\"%lld\"}}}",
               (long long)now_ms());
    bool is_sent =
        !body.failed &&
        requests_send(requests, &(struct request){.method = "PATCH",
                                                  .object = *pod,
                                                  .content_type = "application/merge-patch+json",
                                                  .body = buf_slice(&body)});
    if (is_sent)
        log_debug("pod requeued: what it was rejected for has changed",
                  LOG_SLICE("namespace", pod->ns), LOG_SLICE("pod", pod->name));
    buf_dispose(&body);
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
static uint16_t *sent_in(struct requeue *requeue, const struct waiting_pod *pod, uint64_t now_ns)
{
    if (now_ns - requeue->second_ns >= NS_PER_SECOND) {
        requeue->second_ns = now_ns;
        memset(requeue->sent_in, 0, sizeof requeue->sent_in);
    }
    return &requeue->sent_in[share_of(pod->pod.ns)];
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
        uint16_t *sent = sent_in(requeue, pod, now_ns);
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

    (void)pthread_mutex_lock(&requeue->lock);
    bool is_any = false;
    for (const struct cause *at = *list_of(requeue, cause); at != NULL; at = at->next) {
        if (at->pod->due_ns != UINT64_MAX || !is_same_cause(&at->reference, cause))
            continue;
        at->pod->due_ns = now_ns;
        is_any = true;
    }
    if (is_any)
        requeue_due(requeue, requests, now_ns);
    (void)pthread_mutex_unlock(&requeue->lock);
}

void requeue_all(struct requeue *requeue, struct requests *requests)
{
    uint64_t now_ns = monotonic_ns();

    (void)pthread_mutex_lock(&requeue->lock);
    for (struct waiting_pod *pod = requeue->pods; pod != NULL; pod = pod->hh.next)
        pod->due_ns = pod->due_ns == UINT64_MAX ? now_ns : pod->due_ns;
    requeue_due(requeue, requests, now_ns);
    (void)pthread_mutex_unlock(&requeue->lock);
}

unsigned requeue_waiting(struct requeue *requeue)
{
    (void)pthread_mutex_lock(&requeue->lock);
    unsigned waiting = HASH_COUNT(requeue->pods);
    (void)pthread_mutex_unlock(&requeue->lock);
    return waiting;
}

void requeue_tick(struct requeue *requeue, struct requests *requests)
{
    uint64_t now_ns = monotonic_ns();

    (void)pthread_mutex_lock(&requeue->lock);
    if (requeue->due_ns <= now_ns)
        requeue_due(requeue, requests, now_ns);
    (void)pthread_mutex_unlock(&requeue->lock);
}
