#include "extender/preemption/preemption.h"

#include <stdlib.h>
#include <time.h>

#include "extender/live/requeue.h"
#include "extender/preemption/preemption_attempt.h"

enum { ATTEMPT_BYTES_MAX = 1 << 20 };

/* A pod for which something may have to be evicted. */
struct wanted {
    struct object_reference pod; /* its UID is the key; its strings lie behind the struct */
    int64_t priority;
    uint64_t due_ns;
    uint64_t asked_ns, fresh_until_ns; /* see struct attempt */
    uint64_t under_way_until_ns;       /* 0: no holder was evicted */
    uint64_t requeue_after_ns;
    unsigned requeues;
    unsigned failures;    /* in a row */
    bool is_busy;         /* an attempt is made */
    bool is_left;         /* to the scheduler: it was, once */
    bool awaits_question; /* of the scheduler: nothing is done before */
    bool is_told;         /* that it cannot be done */
    UT_hash_handle hh;
    char text[];
};

void evictions_init(struct evictions *evictions)
{
    pthread_condattr_t attributes;

    *evictions = (struct evictions){.wanted = NULL};
    (void)pthread_mutex_init(&evictions->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&evictions->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

static void forget(struct evictions *evictions, struct wanted *wanted)
{
    HASH_DEL(evictions->wanted, wanted);
    free(wanted);
}

void evictions_dispose(struct evictions *evictions)
{
    while (evictions->wanted != NULL)
        forget(evictions, evictions->wanted);
    (void)pthread_cond_destroy(&evictions->changed);
    (void)pthread_mutex_destroy(&evictions->lock);
}

/* ---- who is wanted ---- */

static struct wanted *find(const struct evictions *evictions, struct slice uid)
{
    struct wanted *wanted = NULL;

    HASH_FIND(hh, evictions->wanted, uid.ptr, uid.len, wanted);
    return wanted;
}

/* Of two, the one for which less is lost if it is forgotten: of lower priority, then the one that
 * has failed more often. Those for which something is under way stay. NULL: both do. */
static struct wanted *less_promising(struct wanted *a, struct wanted *b, uint64_t now_ns)
{
    if (b->is_busy || b->under_way_until_ns > now_ns)
        return a;
    if (a == NULL || a->priority > b->priority)
        return b;
    return a->priority == b->priority && a->failures < b->failures ? b : a;
}

/* Of a full queue: one that yields to a pod of that priority; NULL: none does. */
static struct wanted *find_yielding(const struct evictions *evictions, int64_t priority)
{
    uint64_t now_ns = monotonic_ns();
    struct wanted *least = NULL;

    for (struct wanted *wanted = evictions->wanted; wanted != NULL; wanted = wanted->hh.next)
        least = less_promising(least, wanted, now_ns);
    if (least == NULL || least->priority > priority ||
        (least->priority == priority && least->failures == 0))
        return NULL;
    return least;
}

static bool make_room(struct evictions *evictions, int64_t priority)
{
    if (HASH_COUNT(evictions->wanted) < WANTED_MAX)
        return true;
    struct wanted *yielding = find_yielding(evictions, priority);
    if (yielding != NULL)
        forget(evictions, yielding);
    return yielding != NULL;
}

/* NULL: they are too many, or there is no memory. It is rejected again before long. */
static struct wanted *add(struct evictions *evictions, const struct pod_object *pod)
{
    struct object_reference reference = {KIND_POD, pod->meta.namespace, pod->meta.name,
                                         pod->meta.uid};
    struct wanted *wanted = make_room(evictions, pod->priority)
                                ? calloc(1, sizeof *wanted + object_reference_bytes(&reference))
                                : NULL;

    if (wanted == NULL)
        return NULL;
    wanted->pod = object_reference_copy(&reference, wanted->text);
    wanted->awaits_question = true;
    HASH_ADD_KEYPTR(hh, evictions->wanted, wanted->pod.uid.ptr, wanted->pod.uid.len, wanted);
    if (wanted->hh.tbl != NULL)
        return wanted;
    free(wanted);
    return NULL;
}

/* The entry of the pod; NULL: there is none. One of another name is none: whoever asks may say any
 * UID, and what he has said does not stand in the way of the pod that has it. */
static struct wanted *find_pod(struct evictions *evictions, const struct meta *pod)
{
    struct wanted *wanted = find(evictions, pod->uid);
    bool is_same = wanted != NULL && slice_equal(wanted->pod.namespace, pod->namespace) &&
                   slice_equal(wanted->pod.name, pod->name);

    if (wanted == NULL || is_same || wanted->is_busy)
        return wanted;
    forget(evictions, wanted);
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

void evictions_want(struct state *state, const struct pod_object *pod)
{
    struct evictions *evictions = state->evictions;

    if (state->api == NULL || pod->meta.uid.len == 0)
        return;
    (void)pthread_rwlock_rdlock(&state->lock);
    bool is_enabled = state->config->read_write_once_pod.preemption == SWITCH_ENABLED;
    int64_t grace_ms = state->config->read_write_once_pod.preemption_grace_ms;
    (void)pthread_rwlock_unlock(&state->lock);
    if (!is_enabled)
        return;
    (void)pthread_mutex_lock(&evictions->lock);
    struct wanted *wanted = find_pod(evictions, &pod->meta);
    if (wanted == NULL)
        wanted = add(evictions, pod);
    if (wanted != NULL)
        note_asked(wanted, pod->priority, (uint64_t)grace_ms * NS_PER_MS);
    (void)pthread_cond_signal(&evictions->changed);
    (void)pthread_mutex_unlock(&evictions->lock);
}

void evictions_leave(struct state *state, struct slice uid)
{
    struct evictions *evictions = state->evictions;
    uint64_t now_ns = monotonic_ns();

    (void)pthread_mutex_lock(&evictions->lock);
    struct wanted *wanted = find(evictions, uid);
    bool is_left = wanted != NULL && wanted->under_way_until_ns <= now_ns;
    if (is_left && !wanted->is_left) { /* once: else its time would never be over */
        wanted->is_left = true;
        wanted->due_ns = now_ns + LEFT_MS * NS_PER_MS;
    }
    (void)pthread_mutex_unlock(&evictions->lock);
    if (is_left)
        atomic_fetch_add(&state->metrics.preemptions[PREEMPTION_LEFT], 1);
}

/* ---- one that is due ---- */

static bool comes_before(const struct wanted *a, const struct wanted *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->due_ns < b->due_ns;
}

/* Of those that are due, the one of the highest priority, then the one that has waited longest;
 * NULL: there is none. */
static struct wanted *choose(const struct evictions *evictions)
{
    uint64_t now_ns = monotonic_ns();
    struct wanted *chosen = NULL;

    for (struct wanted *wanted = evictions->wanted; wanted != NULL; wanted = wanted->hh.next)
        if (!wanted->is_busy && wanted->due_ns <= now_ns &&
            (chosen == NULL || comes_before(wanted, chosen)))
            chosen = wanted;
    return chosen;
}

/* Begins an attempt for one that is due. False: none is. */
static bool take(struct evictions *evictions, struct attempt *attempt)
{
    (void)pthread_mutex_lock(&evictions->lock);
    struct wanted *wanted = choose(evictions);
    char *text =
        wanted == NULL ? NULL : arena_alloc(&attempt->arena, object_reference_bytes(&wanted->pod));
    if (text != NULL) {
        attempt->pod = object_reference_copy(&wanted->pod, text);
        attempt->priority = wanted->priority;
        attempt->asked_ns = wanted->asked_ns;
        attempt->fresh_until_ns = wanted->fresh_until_ns;
        attempt->is_under_way = wanted->under_way_until_ns > monotonic_ns();
        attempt->is_told = wanted->is_told;
        wanted->is_busy = true;
    } else if (wanted != NULL) {
        wanted->due_ns = monotonic_ns() + RETRY_MS * NS_PER_MS; /* there may be memory then */
    }
    (void)pthread_mutex_unlock(&evictions->lock);
    return text != NULL;
}

/* The scheduler has to ask about it again. Returns whether it is to be requeued. */
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

/* Plans what comes next, and forgets the pod when nothing does. Returns whether it is to be
 * requeued. */
static bool plan_next(struct evictions *evictions, struct wanted *wanted,
                      const struct attempt *attempt, enum attempt_result result)
{
    uint64_t now_ns = monotonic_ns();
    bool was_asked = wanted->asked_ns != attempt->asked_ns; /* since: what was found is old */
    bool is_silent = now_ns - wanted->asked_ns >= FORGOTTEN_MS * NS_PER_MS &&
                     (result == ATTEMPT_FAILED || result == ATTEMPT_UNASKED);

    wanted->is_busy = false;
    wanted->is_told = attempt->is_told;
    wanted->failures = result == ATTEMPT_FAILED ? wanted->failures + 1 : 0;
    wanted->due_ns = now_ns + pause_ns(wanted, result);
    if (attempt_may_have_evicted(attempt) || (attempt->is_under_way && result == ATTEMPT_WAIT))
        wanted->under_way_until_ns = now_ns + UNDER_WAY_MS * NS_PER_MS;
    if (was_asked && (result == ATTEMPT_OVER || result == ATTEMPT_UNASKED))
        wanted->due_ns = wanted->fresh_until_ns - ASKED_LATELY_MS * NS_PER_MS; /* after the grace */
    else if (result == ATTEMPT_OVER || is_silent)
        forget(evictions, wanted);
    else if (result == ATTEMPT_UNASKED)
        return await_question(wanted, now_ns);
    return false;
}

/* Ends the attempt. Nobody else forgets the pod meanwhile, so that it is found. */
static void put_back(const struct attempt *attempt, enum attempt_result result)
{
    struct state *state = attempt->state;
    struct evictions *evictions = state->evictions;

    (void)pthread_mutex_lock(&evictions->lock);
    bool is_requeued = plan_next(evictions, find(evictions, attempt->pod.uid), attempt, result);
    (void)pthread_mutex_unlock(&evictions->lock);
    if (is_requeued)
        nudge_pod(state->nudge, &(struct meta){.namespace = attempt->pod.namespace,
                                               .name = attempt->pod.name,
                                               .uid = attempt->pod.uid});
}

void evictions_step(struct state *state)
{
    struct attempt attempt = {.state = state};

    arena_init(&attempt.arena, ATTEMPT_BYTES_MAX);
    if (take(state->evictions, &attempt))
        put_back(&attempt, attempt_run(&attempt));
    arena_dispose(&attempt.arena);
}

/* ---- the threads ---- */

/* When the first one is due; UINT64_MAX: there is none. Under the mutex. */
static uint64_t first_due_ns(const struct evictions *evictions)
{
    uint64_t first_ns = UINT64_MAX;

    for (const struct wanted *wanted = evictions->wanted; wanted != NULL; wanted = wanted->hh.next)
        if (!wanted->is_busy && wanted->due_ns < first_ns)
            first_ns = wanted->due_ns;
    return first_ns;
}

uint64_t evictions_due_ns(struct evictions *evictions)
{
    (void)pthread_mutex_lock(&evictions->lock);
    uint64_t due_ns = first_due_ns(evictions);
    (void)pthread_mutex_unlock(&evictions->lock);
    return due_ns;
}

/* Waits until one is due. False: the threads are to stop. */
static bool wait_for_work(struct evictions *evictions)
{
    uint64_t due_ns;

    (void)pthread_mutex_lock(&evictions->lock);
    while (!evictions->is_stopping && (due_ns = first_due_ns(evictions)) > monotonic_ns()) {
        struct timespec at = monotonic_timespec(due_ns);
        if (due_ns == UINT64_MAX)
            (void)pthread_cond_wait(&evictions->changed, &evictions->lock);
        else
            (void)pthread_cond_timedwait(&evictions->changed, &evictions->lock, &at);
    }
    bool goes_on = !evictions->is_stopping;
    (void)pthread_mutex_unlock(&evictions->lock);
    return goes_on;
}

static void *run(void *context)
{
    struct state *state = context;

    while (wait_for_work(state->evictions)) {
        struct watched *watched = watchdog_begin(&state->watchdog, "evictions");
        evictions_step(state);
        watchdog_end(watched);
    }
    return NULL;
}

int evictions_start(struct state *state, struct error *err)
{
    struct evictions *evictions = state->evictions;

    while (evictions->thread_count < EVICTORS) {
        int rc = pthread_create(&evictions->threads[evictions->thread_count], NULL, run, state);
        if (rc != 0)
            return error_system(err, rc, "thread");
        evictions->thread_count++;
    }
    return 0;
}

void evictions_stop(struct state *state)
{
    struct evictions *evictions = state->evictions;

    (void)pthread_mutex_lock(&evictions->lock);
    evictions->is_stopping = true;
    (void)pthread_cond_broadcast(&evictions->changed);
    (void)pthread_mutex_unlock(&evictions->lock);
    while (evictions->thread_count != 0)
        (void)pthread_join(evictions->threads[--evictions->thread_count], NULL);
}
