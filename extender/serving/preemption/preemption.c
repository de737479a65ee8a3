#include "extender/serving/preemption/preemption.h"

#include <stdlib.h>
#include <time.h>

#include "extender/serving/live/requeue.h"
#include "extender/serving/preemption/attempt.h"

enum { ATTEMPT_BYTES_MAX = 1 << 20 };

/* A pod for which holders may have to be evicted. */
struct wanted {
    struct object_reference pod; /* its UID is the key; its strings lie in `text` */
    int64_t priority;
    uint64_t due_ns;
    uint64_t asked_ns, fresh_until_ns; /* see struct attempt */
    uint64_t under_way_until_ns;       /* 0: no holder was evicted */
    uint64_t requeue_after_ns;
    unsigned requeues;
    unsigned failures;    /* in a row */
    bool is_busy;         /* an attempt is under way */
    bool is_left;         /* it was left to the scheduler, once */
    bool awaits_question; /* nothing is done until the scheduler asks about it */
    bool is_reported;     /* that the preemption fails */
    UT_hash_handle hh;
    char text[];
};

void preemption_init(struct preemption *preemption)
{
    *preemption = (struct preemption){.wanted = NULL};
    (void)pthread_mutex_init(&preemption->lock, NULL);
    clock_init_cond(&preemption->changed);
}

static void forget(struct preemption *preemption, struct wanted *wanted)
{
    HASH_DEL(preemption->wanted, wanted);
    preemption->wanted_in[share_of(wanted->pod.ns)]--;
    free(wanted);
}

void preemption_dispose(struct preemption *preemption)
{
    while (preemption->wanted != NULL)
        forget(preemption, preemption->wanted);
    (void)pthread_cond_destroy(&preemption->changed);
    (void)pthread_mutex_destroy(&preemption->lock);
}

/* ---- the pods ---- */

static struct wanted *find(const struct preemption *preemption, struct slice uid)
{
    struct wanted *wanted = NULL;

    HASH_FIND(hh, preemption->wanted, uid.ptr, uid.len, wanted);
    return wanted;
}

/* Of two, the one to forget first: that of lower priority, then the one that has failed more often.
 * A pod for which an attempt or an eviction is under way stays. NULL: both stay. */
static struct wanted *less_promising(struct wanted *a, struct wanted *b, uint64_t now_ns)
{
    if (b->is_busy || b->under_way_until_ns > now_ns)
        return a;
    if (a == NULL || a->priority > b->priority)
        return b;
    return a->priority == b->priority && a->failures < b->failures ? b : a;
}

/* The pod of the same namespace that yields to one of that priority; NULL: none does. */
static struct wanted *find_yielding(const struct preemption *preemption, struct slice ns,
                                    int64_t priority)
{
    uint64_t now_ns = monotonic_ns();
    struct wanted *least = NULL;

    for (struct wanted *wanted = preemption->wanted; wanted != NULL; wanted = wanted->hh.next)
        if (slice_equal(wanted->pod.ns, ns))
            least = less_promising(least, wanted, now_ns);
    if (least == NULL || least->priority > priority ||
        (least->priority == priority && least->failures == 0))
        return NULL;
    return least;
}

/* A namespace has as many as are left (shares.h). */
static bool make_room(struct preemption *preemption, struct slice ns, int64_t priority)
{
    if (!share_is_over(preemption->wanted_in[share_of(ns)], HASH_COUNT(preemption->wanted), 1,
                       WANTED_MAX, 1))
        return true;
    struct wanted *yielding = find_yielding(preemption, ns, priority);
    if (yielding != NULL)
        forget(preemption, yielding);
    return yielding != NULL;
}

/* NULL: too many pods, or out of memory. The pod is added when it is rejected again. */
static struct wanted *add(struct preemption *preemption, const struct pod_object *pod)
{
    struct object_reference reference = object_reference_of_pod(&pod->meta);
    struct wanted *wanted = make_room(preemption, pod->meta.ns, pod->priority)
                                ? calloc(1, sizeof *wanted + object_reference_bytes(&reference))
                                : NULL;

    if (wanted == NULL)
        return NULL;
    wanted->pod = object_reference_copy(&reference, wanted->text);
    wanted->awaits_question = true;
    HASH_ADD_KEYPTR(hh, preemption->wanted, wanted->pod.uid.ptr, wanted->pod.uid.len, wanted);
    if (wanted->hh.tbl == NULL) {
        free(wanted);
        return NULL;
    }
    preemption->wanted_in[share_of(reference.ns)]++;
    return wanted;
}

/* The entry of the pod; NULL: there is none. An entry with the same UID and another name is
 * replaced: a caller may send any UID, and must not keep out the pod that really has it. */
static struct wanted *find_pod(struct preemption *preemption, const struct meta *pod)
{
    struct wanted *wanted = find(preemption, pod->uid);

    if (wanted == NULL || wanted->is_busy || object_reference_has_name(&wanted->pod, pod))
        return wanted;
    forget(preemption, wanted);
    return NULL;
}

static void note_asked(struct wanted *wanted, int64_t priority, uint64_t grace_ns)
{
    wanted->priority = priority;
    wanted->asked_ns = monotonic_ns();
    wanted->fresh_until_ns = wanted->asked_ns + grace_ns + ASKED_LATELY_MS * NS_PER_MS;
    if (wanted->awaits_question)
        wanted->due_ns = wanted->asked_ns + grace_ns;
    wanted->awaits_question = false;
}

void preemption_want(struct state *state, const struct pod_object *pod)
{
    struct preemption *preemption = state->preemption;

    if (state->api == NULL || pod->meta.uid.len == 0)
        return;
    (void)pthread_rwlock_rdlock(&state->lock);
    bool is_enabled = state->config->read_write_once_pod.preemption == SWITCH_ENABLED;
    int64_t grace_ms = state->config->read_write_once_pod.preemption_grace_ms;
    (void)pthread_rwlock_unlock(&state->lock);
    if (!is_enabled)
        return;
    SCOPED_LOCK(&preemption->lock);
    struct wanted *wanted = find_pod(preemption, &pod->meta);
    if (wanted == NULL)
        wanted = add(preemption, pod);
    if (wanted != NULL)
        note_asked(wanted, pod->priority, (uint64_t)grace_ms * NS_PER_MS);
    (void)pthread_cond_signal(&preemption->changed);
}

void preemption_leave(struct state *state, struct slice uid)
{
    struct preemption *preemption = state->preemption;
    uint64_t now_ns = monotonic_ns();

    (void)pthread_mutex_lock(&preemption->lock);
    struct wanted *wanted = find(preemption, uid);
    bool is_left = wanted != NULL && wanted->under_way_until_ns <= now_ns;
    if (is_left && !wanted->is_left) { /* once: else it might never be due */
        wanted->is_left = true;
        wanted->due_ns = now_ns + LEFT_MS * NS_PER_MS;
    }
    (void)pthread_mutex_unlock(&preemption->lock);
    if (is_left)
        atomic_fetch_add(&state->metrics.preemptions[PREEMPTION_LEFT], 1);
}

/* ---- an attempt for a pod that is due ---- */

static bool comes_before(const struct wanted *a, const struct wanted *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->due_ns < b->due_ns;
}

/* Whether its namespace has not its share of the attempts. */
static bool may_begin(const struct preemption *preemption, const struct wanted *wanted)
{
    return !wanted->is_busy && !share_is_over(preemption->busy_in[share_of(wanted->pod.ns)],
                                              preemption->busy, 1, EVICTORS, EVICTORS_SHARE);
}

/* Of the pods that are due, the one of the highest priority, then the one that has been due
 * longest; NULL: none may begin. */
static struct wanted *choose(const struct preemption *preemption)
{
    uint64_t now_ns = monotonic_ns();
    struct wanted *chosen = NULL;

    for (struct wanted *wanted = preemption->wanted; wanted != NULL; wanted = wanted->hh.next)
        if (wanted->due_ns <= now_ns && (chosen == NULL || comes_before(wanted, chosen)) &&
            may_begin(preemption, wanted))
            chosen = wanted;
    return chosen;
}

/* Begins an attempt for a pod that is due. False: none is. */
static bool take(struct preemption *preemption, struct attempt *attempt)
{
    SCOPED_LOCK(&preemption->lock);
    struct wanted *wanted = choose(preemption);
    bool is_taken =
        wanted != NULL && object_reference_copy_in(&attempt->pod, &wanted->pod, &attempt->arena);
    if (is_taken) {
        attempt->priority = wanted->priority;
        attempt->asked_ns = wanted->asked_ns;
        attempt->fresh_until_ns = wanted->fresh_until_ns;
        attempt->is_under_way = wanted->under_way_until_ns > monotonic_ns();
        attempt->is_reported = wanted->is_reported;
        wanted->is_busy = true;
        preemption->busy++;
        preemption->busy_in[share_of(wanted->pod.ns)]++;
    } else if (wanted != NULL) {
        wanted->due_ns =
            monotonic_ns() + RETRY_MS * NS_PER_MS; /* out of memory: later there may be some */
    }
    return is_taken;
}

/* Waits until the scheduler asks about the pod again. Returns whether it has to be requeued. */
static bool await_question(struct wanted *wanted, uint64_t now_ns)
{
    wanted->due_ns = wanted->requeue_after_ns;
    if (now_ns < wanted->requeue_after_ns)
        return false;
    wanted->requeue_after_ns = now_ns + (RETRY_MS * NS_PER_MS << wanted->requeues);
    wanted->requeues += wanted->requeues < REQUEUE_DOUBLINGS_MAX;
    wanted->awaits_question = true;
    wanted->due_ns = wanted->asked_ns + FORGOTTEN_MS * NS_PER_MS;
    return true;
}

static uint64_t pause_ns(const struct wanted *wanted, enum attempt_result result)
{
    unsigned doublings = wanted->failures == 0 ? 0 : wanted->failures - 1;

    if (result == ATTEMPT_WAIT || result == ATTEMPT_UNSURE)
        return (result == ATTEMPT_WAIT ? WAIT_MS : UNSURE_MS) * NS_PER_MS;
    return RETRY_MS * NS_PER_MS << (doublings < RETRY_DOUBLINGS_MAX ? doublings
                                                                    : RETRY_DOUBLINGS_MAX);
}

/* Plans the next attempt, or forgets the pod. Returns whether the pod has to be requeued. */
static bool plan_next(struct preemption *preemption, struct wanted *wanted,
                      const struct attempt *attempt, enum attempt_result result)
{
    uint64_t now_ns = monotonic_ns();
    bool was_asked =
        wanted->asked_ns != attempt->asked_ns; /* since the attempt began: its result is old */
    bool is_silent = now_ns - wanted->asked_ns >= FORGOTTEN_MS * NS_PER_MS &&
                     (result == ATTEMPT_FAILED || result == ATTEMPT_UNASKED);

    wanted->is_busy = false;
    preemption->busy--;
    preemption->busy_in[share_of(wanted->pod.ns)]--;
    wanted->is_reported = attempt->is_reported;
    wanted->failures = result == ATTEMPT_FAILED ? wanted->failures + 1 : 0;
    wanted->due_ns = now_ns + pause_ns(wanted, result);
    if (attempt_may_have_evicted(attempt) || (attempt->is_under_way && result == ATTEMPT_WAIT))
        wanted->under_way_until_ns = now_ns + UNDER_WAY_MS * NS_PER_MS;
    if (was_asked && (result == ATTEMPT_OVER || result == ATTEMPT_UNASKED))
        wanted->due_ns = wanted->fresh_until_ns - ASKED_LATELY_MS * NS_PER_MS; /* after the grace */
    else if (result == ATTEMPT_OVER || is_silent)
        forget(preemption, wanted);
    else if (result == ATTEMPT_UNASKED)
        return await_question(wanted, now_ns);
    return false;
}

/* Ends the attempt. Its pod is found: a busy pod is not forgotten. */
static void put_back(const struct attempt *attempt, enum attempt_result result)
{
    struct state *state = attempt->state;
    struct preemption *preemption = state->preemption;

    (void)pthread_mutex_lock(&preemption->lock);
    bool is_requeued = plan_next(preemption, find(preemption, attempt->pod.uid), attempt, result);
    (void)pthread_mutex_unlock(&preemption->lock);
    if (is_requeued)
        requeue_pod(state->requeue, &(struct meta){.ns = attempt->pod.ns,
                                                   .name = attempt->pod.name,
                                                   .uid = attempt->pod.uid});
}

void preemption_step(struct state *state)
{
    struct attempt attempt = {.state = state};

    arena_init(&attempt.arena, ATTEMPT_BYTES_MAX);
    if (take(state->preemption, &attempt))
        put_back(&attempt, attempt_run(&attempt));
    arena_dispose(&attempt.arena);
}

/* ---- the threads ---- */

/* When the first pod is due that may begin; UINT64_MAX: none is. The thread of an attempt that ends
 * looks again. Under the mutex. */
static uint64_t first_due_ns(const struct preemption *preemption)
{
    uint64_t first_ns = UINT64_MAX;

    for (const struct wanted *wanted = preemption->wanted; wanted != NULL; wanted = wanted->hh.next)
        if (wanted->due_ns < first_ns && may_begin(preemption, wanted))
            first_ns = wanted->due_ns;
    return first_ns;
}

uint64_t preemption_due_ns(struct preemption *preemption)
{
    SCOPED_LOCK(&preemption->lock);
    return first_due_ns(preemption);
}

/* Waits until a pod is due. False: the threads have to stop. */
static bool wait_for_work(struct preemption *preemption)
{
    uint64_t due_ns;

    SCOPED_LOCK(&preemption->lock);
    while (!preemption->is_stopping && (due_ns = first_due_ns(preemption)) > monotonic_ns()) {
        struct timespec at = monotonic_timespec(due_ns);
        if (due_ns == UINT64_MAX)
            (void)pthread_cond_wait(&preemption->changed, &preemption->lock);
        else
            (void)pthread_cond_timedwait(&preemption->changed, &preemption->lock, &at);
    }
    return !preemption->is_stopping;
}

static void *run(void *context)
{
    struct state *state = context;

    while (wait_for_work(state->preemption)) {
        struct watched *watched = watchdog_begin(&state->watchdog, "preemption");
        preemption_step(state);
        watchdog_end(watched);
    }
    return NULL;
}

int preemption_start(struct state *state, struct error *err)
{
    struct preemption *preemption = state->preemption;

    while (preemption->thread_count < EVICTORS) {
        int rc = pthread_create(&preemption->threads[preemption->thread_count], NULL, run, state);
        if (rc != 0)
            return error_system(err, rc, "thread");
        preemption->thread_count++;
    }
    return 0;
}

void preemption_stop(struct state *state)
{
    struct preemption *preemption = state->preemption;

    (void)pthread_mutex_lock(&preemption->lock);
    preemption->is_stopping = true;
    (void)pthread_cond_broadcast(&preemption->changed);
    (void)pthread_mutex_unlock(&preemption->lock);
    while (preemption->thread_count != 0)
        (void)pthread_join(preemption->threads[--preemption->thread_count], NULL);
}
