#include "extender/evictions.h"

#include <stdlib.h>
#include <time.h>

#include "config/base/log.h"
#include "extender/eviction.h"
#include "extender/judge.h"
#include "extender/protocol.h"

enum { ATTEMPT_BYTES_MAX = 1 << 20 };

/* A pod for which something may have to be evicted. */
struct wanted {
    struct object_reference pod; /* its UID is the key; its strings lie behind the struct */
    int64_t priority;
    uint64_t due_ns;
    bool is_left;      /* to the scheduler, which has until due_ns */
    bool is_under_way; /* holders were evicted: it is not the scheduler's any more */
    bool is_told;      /* that it was forbidden */
    UT_hash_handle hh;
    char text[];
};

/* What can be done for it. */
enum outlook {
    OUTLOOK_OVER,  /* nothing, now or later */
    OUTLOOK_WAIT,  /* what is in its way is on its way out */
    OUTLOOK_ASK,   /* the API server about the victims */
    OUTLOOK_EVICT, /* the victims */
};

/* The work on one of them. What it points to lies in its arena. */
struct attempt {
    struct state *state;
    struct arena arena;
    struct object_reference pod;
    int64_t priority;
    bool is_told;
    bool respects_budgets;
    bool breaks_budgets; /* as far as the cache knows */
    struct object_reference victims[VICTIMS_MAX];
    size_t victim_count;
    struct object_reference asked[1 + VICTIMS_MAX]; /* about whom the API server was asked */
    size_t asked_count;
    size_t evicted_count;
    struct slice why; /* the verdict's reasons: which claim, which holder */
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

static void add(struct evictions *evictions, const struct pod_object *pod, uint64_t due_ns)
{
    struct object_reference reference = {KIND_POD, pod->meta.namespace, pod->meta.name,
                                         pod->meta.uid};
    struct wanted *wanted = HASH_COUNT(evictions->wanted) < WANTED_MAX
                                ? calloc(1, sizeof *wanted + object_reference_bytes(&reference))
                                : NULL;

    if (wanted == NULL)
        return; /* it is rejected again before long */
    wanted->pod = object_reference_copy(&reference, wanted->text);
    wanted->priority = pod->priority;
    wanted->due_ns = due_ns;
    HASH_ADD_KEYPTR(hh, evictions->wanted, wanted->pod.uid.ptr, wanted->pod.uid.len, wanted);
    if (wanted->hh.tbl == NULL)
        free(wanted);
}

void evictions_want(struct state *state, const struct pod_object *pod)
{
    struct evictions *evictions = &state->evictions;

    if (state->follow == NULL || pod->meta.uid.len == 0)
        return;
    (void)pthread_rwlock_rdlock(&state->lock);
    bool is_enabled = state->config->read_write_once_pod.preemption == SWITCH_ENABLED;
    int64_t grace_ms = state->config->read_write_once_pod.preemption_grace_ms;
    (void)pthread_rwlock_unlock(&state->lock);
    if (!is_enabled)
        return;
    (void)pthread_mutex_lock(&evictions->lock);
    struct wanted *known = find(evictions, pod->meta.uid);
    if (known != NULL)
        known->priority = pod->priority;
    else
        add(evictions, pod, monotonic_ns() + (uint64_t)grace_ms * UINT64_C(1000000));
    (void)pthread_cond_signal(&evictions->changed);
    (void)pthread_mutex_unlock(&evictions->lock);
}

void evictions_leave(struct state *state, struct slice uid)
{
    struct evictions *evictions = &state->evictions;

    (void)pthread_mutex_lock(&evictions->lock);
    struct wanted *wanted = find(evictions, uid);
    bool is_left = wanted != NULL && !wanted->is_under_way;
    if (is_left && !wanted->is_left) { /* once: else its time would never be over */
        wanted->is_left = true;
        wanted->due_ns = monotonic_ns() + LEFT_MS * UINT64_C(1000000);
    }
    (void)pthread_mutex_unlock(&evictions->lock);
    if (is_left)
        atomic_fetch_add(&state->metrics.preemptions[PREEMPTION_LEFT], 1);
}

/* Of those that are due, the one of the highest priority becomes the attempt's pod. */
static void choose(struct evictions *evictions, struct attempt *attempt)
{
    uint64_t now_ns = monotonic_ns();
    const struct wanted *chosen = NULL;

    (void)pthread_mutex_lock(&evictions->lock);
    for (const struct wanted *wanted = evictions->wanted; wanted != NULL; wanted = wanted->hh.next)
        if (wanted->due_ns <= now_ns && (chosen == NULL || wanted->priority > chosen->priority))
            chosen = wanted;
    char *text =
        chosen == NULL ? NULL : arena_alloc(&attempt->arena, object_reference_bytes(&chosen->pod));
    if (text != NULL) {
        attempt->pod = object_reference_copy(&chosen->pod, text);
        attempt->priority = chosen->priority;
        attempt->is_told = chosen->is_told;
    }
    (void)pthread_mutex_unlock(&evictions->lock);
}

/* The attempt's pod is looked at again after so long; 0: it is not wanted any more. */
static void put_back(const struct attempt *attempt, int64_t after_ms)
{
    struct evictions *evictions = &attempt->state->evictions;

    (void)pthread_mutex_lock(&evictions->lock);
    struct wanted *wanted = find(evictions, attempt->pod.uid);
    if (wanted != NULL && after_ms == 0) {
        forget(evictions, wanted);
    } else if (wanted != NULL) {
        wanted->due_ns = monotonic_ns() + (uint64_t)after_ms * UINT64_C(1000000);
        wanted->is_under_way = wanted->is_under_way || attempt->evicted_count != 0;
        wanted->is_told = attempt->is_told;
    }
    (void)pthread_mutex_unlock(&evictions->lock);
}

/* ---- what can be done ---- */

/* Copies the verdict's victims. False: they are too many, or there is no memory. */
static bool copy_victims(struct attempt *attempt, const struct verdict *verdict)
{
    if (verdict->victim_count > VICTIMS_MAX)
        return false;
    for (size_t i = 0; i < verdict->victim_count; i++) {
        const struct pod *victim = verdict->victims[i];
        char uid[UID_TEXT_BYTES];
        struct object_reference reference = {KIND_POD, name_slice(victim->namespace),
                                             pod_name(victim), uid_text(&victim->uid, uid)};
        char *text = arena_alloc(&attempt->arena, object_reference_bytes(&reference));
        if (text == NULL)
            return false;
        attempt->victims[attempt->victim_count++] = object_reference_copy(&reference, text);
    }
    return true;
}

/* The pod as it is known now, if it is one that waits; else NULL. Under the lock. */
static const struct pod *find_waiting(const struct attempt *attempt)
{
    const struct pod *pod =
        cluster_find_pod(&attempt->state->cluster, attempt->pod.namespace, attempt->pod.name);
    bool waits = pod != NULL && uid_is(&pod->uid, attempt->pod.uid) && pod->node == NULL &&
                 !pod->is_terminating && !pod->is_terminal && pod->priority == attempt->priority;

    return waits ? pod : NULL;
}

static bool was_asked_about(const struct attempt *attempt, const struct object_reference *victim)
{
    for (size_t i = 0; i < attempt->asked_count; i++)
        if (object_reference_equal(&attempt->asked[i], victim))
            return true;
    return false;
}

static bool has_unasked_victims(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->victim_count; i++)
        if (!was_asked_about(attempt, &attempt->victims[i]))
            return true;
    return false;
}

/*
 * What the cache says. When something can be done, the pod's claims are reserved for it, so that
 * nobody of lower priority gets them once the victims are gone. Under the lock, for writing.
 */
static enum outlook look(struct attempt *attempt)
{
    struct state *state = attempt->state;
    const struct pod *pod = find_waiting(attempt);
    const struct policy *judge;
    struct pod_object object;
    struct verdict verdict;
    struct error err = {0};

    attempt->victim_count = 0;
    if (pod == NULL && attempt->asked_count == 0) /* the watch may be late */
        return OUTLOOK_ASK;
    if (pod == NULL || state->config->read_write_once_pod.preemption != SWITCH_ENABLED ||
        !cluster_describe_pod(pod, &attempt->arena, &object))
        return OUTLOOK_OVER;
    struct view view = state_view(state);
    policy_prefilter(&view, &object, &attempt->arena, &verdict, &judge);
    if (verdict.code != CODE_UNSCHEDULABLE || !copy_victims(attempt, &verdict))
        return OUTLOOK_OVER;
    if (verdict.reserved_for.len != 0) /* a pod is being bound: it is a victim afterwards */
        return OUTLOOK_WAIT;
    if (has_unasked_victims(attempt))
        return OUTLOOK_ASK;
    attempt->respects_budgets = state->config->read_write_once_pod.respects_budgets;
    attempt->breaks_budgets = cluster_count_budget_violations(&state->cluster, verdict.victims,
                                                              verdict.victim_count) != 0;
    attempt->why = protocol_join_reasons(&verdict, &attempt->arena);
    if (assumed_reserve(&state->cluster, &object, verdict.alone, false,
                        state_reservation_end(state, false), &err) < 0)
        return OUTLOOK_WAIT;
    return attempt->victim_count == 0 ? OUTLOOK_WAIT : OUTLOOK_EVICT;
}

/* Looks until the API server was asked about the pod and all its victims. Errors: it could not be.
 */
static int look_closely(struct attempt *attempt, enum outlook *outlook, struct error *err)
{
    struct state *state = attempt->state;

    for (int round = 0; round <= CONFIRM_ROUNDS_MAX; round++) {
        state_expire(state);
        (void)pthread_rwlock_wrlock(&state->lock);
        *outlook = look(attempt);
        (void)pthread_rwlock_unlock(&state->lock);
        if (*outlook != OUTLOOK_ASK)
            return 0;
        attempt->asked[0] = attempt->pod;
        memcpy(attempt->asked + 1, attempt->victims,
               attempt->victim_count * sizeof *attempt->victims);
        attempt->asked_count = 1 + attempt->victim_count;
        if (follow_confirm(state->follow, attempt->asked, attempt->asked_count, CONFIRM_MS, err) <
            0)
            return err->code;
    }
    return error_set(err, ERROR_UNAVAILABLE, "its claims change hands all the time");
}

/* ---- evicting ---- */

static void tell_evicted(struct attempt *attempt, const struct object_reference *victim)
{
    struct state *state = attempt->state;

    log_info("pod evicted for one of higher priority", LOG_SLICE("namespace", victim->namespace),
             LOG_SLICE("pod", victim->name), LOG_SLICE("for", attempt->pod.name),
             LOG_SLICE("reason", attempt->why));
    events_post(&state->events, state->follow, victim, "Normal", "Preempted",
                arena_printf(&attempt->arena, "Preempted by pod %.*s/%.*s: %.*s",
                             SLICE_ARG(attempt->pod.namespace), SLICE_ARG(attempt->pod.name),
                             SLICE_ARG(attempt->why)));
    atomic_fetch_add(&state->metrics.victims, 1);
}

static int evict(struct attempt *attempt, const struct object_reference *victim, struct error *err)
{
    bool is_evicted = false;

    if (eviction_do(attempt->state->follow, victim, attempt->respects_budgets, &attempt->arena,
                    &is_evicted, err) < 0)
        return err->code;
    if (is_evicted) {
        attempt->evicted_count++;
        tell_evicted(attempt, victim);
    }
    return 0;
}

/* Whether the pod still waits: asking for one eviction may have taken seconds. */
static bool still_waits(const struct attempt *attempt)
{
    (void)pthread_rwlock_rdlock(&attempt->state->lock);
    bool waits = find_waiting(attempt) != NULL;
    (void)pthread_rwlock_unlock(&attempt->state->lock);
    return waits;
}

/* All of them, or none as far as that can be known before; no more once the pod is gone. */
static int evict_all(struct attempt *attempt, struct error *err)
{
    bool tries_first = attempt->respects_budgets && attempt->victim_count > 1;
    int rc = 0;

    if (tries_first && attempt->breaks_budgets)
        rc = error_set(err, ERROR_INVALID, "a PodDisruptionBudget forbids it");
    for (size_t i = 0; tries_first && rc == 0 && i < attempt->victim_count; i++)
        rc = eviction_try(attempt->state->follow, &attempt->victims[i], &attempt->arena, err);
    for (size_t i = 0; rc == 0 && i < attempt->victim_count && still_waits(attempt); i++)
        rc = evict(attempt, &attempt->victims[i], err);
    return rc;
}

/* ---- an attempt ---- */

static void count(const struct attempt *attempt, enum preemption_result result)
{
    atomic_fetch_add(&attempt->state->metrics.preemptions[result], 1);
}

/* It did not work: the claims are not reserved any more, unless some of it did. */
static void give_up(struct attempt *attempt, const struct error *problem)
{
    struct state *state = attempt->state;
    bool is_forbidden = problem->code == ERROR_INVALID;
    struct uid uid;

    count(attempt, is_forbidden ? PREEMPTION_FORBIDDEN : PREEMPTION_FAILED);
    if (!attempt->is_told) {
        log_warn("no preemption", LOG_SLICE("namespace", attempt->pod.namespace),
                 LOG_SLICE("pod", attempt->pod.name), LOG_STR("error", problem->message));
        events_post(&state->events, state->follow, &attempt->pod, "Warning", "PreemptionFailed",
                    slice_of(problem->message));
    }
    attempt->is_told = true;
    if (attempt->evicted_count != 0)
        return;
    (void)pthread_rwlock_wrlock(&state->lock);
    const struct pod *pod = find_waiting(attempt);
    if (pod != NULL)
        uid = pod->uid;
    bool is_undone = pod != NULL && assumed_give_back(&state->cluster, &uid);
    (void)pthread_rwlock_unlock(&state->lock);
    if (is_undone)
        nudge_changed(&state->nudge, &attempt->pod, state->follow);
}

static void succeed(struct attempt *attempt)
{
    struct state *state = attempt->state;
    struct error ignored = {0};

    count(attempt, attempt->evicted_count != 0 ? PREEMPTION_EVICTED : PREEMPTION_NEEDLESS);
    if (attempt->evicted_count != 0)
        events_post(&state->events, state->follow, &attempt->pod, "Normal", "Preempting",
                    arena_printf(&attempt->arena, "Evicted %zu pod%s: %.*s", attempt->evicted_count,
                                 attempt->evicted_count == 1 ? "" : "s", SLICE_ARG(attempt->why)));
    /* from now on they are seen to terminate, so that nobody evicts them again */
    (void)follow_confirm(state->follow, attempt->victims, attempt->victim_count, CONFIRM_MS,
                         &ignored);
}

/* Returns after how long to look again; 0: not any more. */
static int64_t attempt_it(struct attempt *attempt)
{
    enum outlook outlook = OUTLOOK_WAIT;
    struct error err = {0};

    int rc = look_closely(attempt, &outlook, &err);
    if (rc == 0 && outlook != OUTLOOK_EVICT)
        return outlook == OUTLOOK_OVER ? 0 : WAIT_MS;
    if (rc == 0)
        rc = evict_all(attempt, &err);
    if (rc < 0) {
        give_up(attempt, &err);
        return RETRY_MS;
    }
    succeed(attempt);
    return WAIT_MS;
}

void evictions_step(struct state *state)
{
    struct attempt attempt = {.state = state};

    arena_init(&attempt.arena, ATTEMPT_BYTES_MAX);
    choose(&state->evictions, &attempt);
    if (attempt.pod.uid.len != 0)
        put_back(&attempt, attempt_it(&attempt));
    arena_dispose(&attempt.arena);
}

/* ---- the thread ---- */

/* When the first one is due; UINT64_MAX: there is none. Under the mutex. */
static uint64_t first_due_ns(const struct evictions *evictions)
{
    uint64_t first_ns = UINT64_MAX;

    for (const struct wanted *wanted = evictions->wanted; wanted != NULL; wanted = wanted->hh.next)
        first_ns = wanted->due_ns < first_ns ? wanted->due_ns : first_ns;
    return first_ns;
}

uint64_t evictions_due_ns(struct evictions *evictions)
{
    (void)pthread_mutex_lock(&evictions->lock);
    uint64_t due_ns = first_due_ns(evictions);
    (void)pthread_mutex_unlock(&evictions->lock);
    return due_ns;
}

/* Waits until one is due. False: the thread is to stop. */
static bool wait_for_work(struct evictions *evictions)
{
    uint64_t due_ns;

    (void)pthread_mutex_lock(&evictions->lock);
    while (!evictions->is_stopping && (due_ns = first_due_ns(evictions)) > monotonic_ns()) {
        struct timespec at = {.tv_sec = (time_t)(due_ns / UINT64_C(1000000000)),
                              .tv_nsec = (long)(due_ns % UINT64_C(1000000000))};
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

    while (wait_for_work(&state->evictions))
        evictions_step(state);
    return NULL;
}

int evictions_start(struct state *state, struct error *err)
{
    int rc = pthread_create(&state->evictions.thread, NULL, run, state);

    if (rc != 0)
        return error_system(err, rc, "thread");
    state->evictions.is_running = true;
    return 0;
}

void evictions_stop(struct state *state)
{
    struct evictions *evictions = &state->evictions;

    if (!evictions->is_running)
        return;
    (void)pthread_mutex_lock(&evictions->lock);
    evictions->is_stopping = true;
    (void)pthread_cond_signal(&evictions->changed);
    (void)pthread_mutex_unlock(&evictions->lock);
    (void)pthread_join(evictions->thread, NULL);
    evictions->is_running = false;
}
