#include "extender/preemption/attempt.h"

#include "config/base/log.h"
#include "extender/live/evaluate.h"
#include "extender/live/events.h"
#include "extender/live/requeue.h"
#include "extender/preemption/eviction.h"
#include "extender/preemption/outlook.h"
#include "extender/preemption/preemption.h"

/* ---- attempts that exclude each other ---- */

/* Both would evict the same pod; or one evicts several, and the other may use up the budget that it
 * relies on. */
static bool exclude_each_other(const struct attempt *a, const struct attempt *b)
{
    if (!slice_equal(a->pod.ns, b->pod.ns))
        return false;
    return a->victim_count > 1 || b->victim_count > 1 ||
           object_reference_equal(&a->victims[0], &b->victims[0]);
}

/* False: another attempt excludes this one. */
static bool begin_evicting(struct attempt *attempt)
{
    struct preemption *preemption = attempt->state->preemption;
    bool may_begin = true;

    (void)pthread_mutex_lock(&preemption->lock);
    for (const struct attempt *other = preemption->evicting; other != NULL; other = other->next)
        may_begin = may_begin && !exclude_each_other(attempt, other);
    if (may_begin) {
        attempt->next = preemption->evicting;
        preemption->evicting = attempt;
    }
    (void)pthread_mutex_unlock(&preemption->lock);
    return may_begin;
}

static void end_evicting(struct attempt *attempt)
{
    struct preemption *preemption = attempt->state->preemption;
    struct attempt **link = &preemption->evicting;

    (void)pthread_mutex_lock(&preemption->lock);
    while (*link != attempt)
        link = &(*link)->next;
    *link = attempt->next;
    (void)pthread_mutex_unlock(&preemption->lock);
}

/* ---- evicting ---- */

static void report_evicted(struct attempt *attempt, const struct object_reference *victim)
{
    struct state *state = attempt->state;

    log_info("pod evicted for one of higher priority", LOG_SLICE("namespace", victim->ns),
             LOG_SLICE("pod", victim->name), LOG_SLICE("for", attempt->pod.name),
             LOG_SLICE("reason", attempt->why));
    events_post(state->events, state->api, victim, "Normal", "Preempted",
                arena_printf(&attempt->arena, "Preempted by pod %.*s/%.*s: %.*s",
                             SLICE_ARG(attempt->pod.ns), SLICE_ARG(attempt->pod.name),
                             SLICE_ARG(attempt->why)));
    atomic_fetch_add(&state->metrics.victims, 1);
}

/* Whether all of them are gone or terminate, according to the cache. */
static bool are_going(struct state *state, const struct object_reference *victims, size_t count)
{
    bool are_going = true;

    (void)pthread_rwlock_rdlock(&state->lock);
    for (size_t i = 0; i < count; i++) {
        const struct pod *pod = cluster_find_pod(&state->cluster, victims[i].ns, victims[i].name);
        are_going =
            are_going && (pod == NULL || !uid_is(&pod->uid, victims[i].uid) || pod->is_terminating);
    }
    (void)pthread_rwlock_unlock(&state->lock);
    return are_going;
}

/* The same, according to the API server: the answer to an eviction does not prove its result.
 * False: the API server cannot be asked. */
static bool confirm_going(const struct attempt *attempt, const struct object_reference *victims,
                          size_t count, bool *is_going)
{
    struct error unknown = {0};

    if (requests_confirm(attempt->state->api, victims, count, CONFIRM_MS, &unknown) < 0)
        return false;
    *is_going = are_going(attempt->state, victims, count);
    return true;
}

static int stays(const struct object_reference *victim, struct error *err)
{
    return error_set(
        err, ERROR_UNAVAILABLE,
        "pod %.*s/%.*s cannot be evicted: the API server answers that it is gone, but a "
        "GET does not confirm it",
        SLICE_ARG(victim->ns), SLICE_ARG(victim->name));
}

static struct eviction eviction_of(struct attempt *attempt, const struct object_reference *victim)
{
    return (struct eviction){attempt->state->api, victim, attempt->deadline_ns, &attempt->arena};
}

static int evict(struct attempt *attempt, const struct object_reference *victim, struct error *err)
{
    struct eviction eviction = eviction_of(attempt, victim);
    enum eviction_result result = eviction_do(&eviction, attempt->respects_budgets, err);
    bool is_going = false, is_seen = true;

    if (result != EVICTION_DONE && result != EVICTION_UNSENT)
        is_seen = confirm_going(attempt, victim, 1, &is_going);
    attempt->is_doubtful = attempt->is_doubtful || result == EVICTION_UNKNOWN || !is_seen;
    if (result == EVICTION_NEEDLESS && is_seen && !is_going)
        return stays(victim, err);
    if (result == EVICTION_DONE || (eviction_failed(result) && is_going)) {
        attempt->evicted_count++;
        report_evicted(attempt, victim);
        return 0;
    }
    return eviction_failed(result) ? err->code : 0;
}

/* Whether the pod still waits: one eviction may have taken seconds. */
static bool still_waits(const struct attempt *attempt)
{
    (void)pthread_rwlock_rdlock(&attempt->state->lock);
    bool waits = outlook_find_waiting(attempt) != NULL;
    (void)pthread_rwlock_unlock(&attempt->state->lock);
    return waits;
}

static int try_one(struct attempt *attempt, const struct object_reference *victim,
                   struct error *err)
{
    struct eviction eviction = eviction_of(attempt, victim);
    enum eviction_result result = eviction_try(&eviction, err);
    bool is_going = false;

    if (result == EVICTION_NEEDLESS && !(confirm_going(attempt, victim, 1, &is_going) && is_going))
        return stays(victim, err);
    return eviction_failed(result) ? err->code : 0;
}

/* Whether a budget forbids the eviction of all of them, according to the cache: the API server
 * checks one eviction at a time. */
static bool breaks_budget(const struct attempt *attempt)
{
    struct state *state = attempt->state;
    const struct pod *pods[VICTIMS_MAX];
    size_t count = 0;

    (void)pthread_rwlock_rdlock(&state->lock);
    for (size_t i = 0; i < attempt->victim_count; i++) {
        const struct object_reference *victim = &attempt->victims[i];
        const struct pod *pod = cluster_find_pod(&state->cluster, victim->ns, victim->name);
        if (pod != NULL && uid_is(&pod->uid, victim->uid))
            pods[count++] = pod;
    }
    bool breaks = count > 1 && cluster_breaks_budgets(&state->cluster, pods, count);
    (void)pthread_rwlock_unlock(&state->lock);
    return breaks;
}

/* Whether the API server would evict all of them. Without budgets, it would. */
static int try_all(struct attempt *attempt, struct error *err)
{
    int rc = 0;

    if (!attempt->respects_budgets)
        return 0;
    if (breaks_budget(attempt))
        rc = error_set(err, ERROR_INVALID,
                       "a PodDisruptionBudget forbids the eviction of all its victims");
    for (size_t i = 0; rc == 0 && i < attempt->victim_count; i++)
        rc = try_one(attempt, &attempt->victims[i], err);
    return rc;
}

/* Stops once the pod does not wait any more. */
static int evict_all(struct attempt *attempt, struct error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < attempt->victim_count && still_waits(attempt); i++)
        rc = evict(attempt, &attempt->victims[i], err);
    return rc;
}

/* ---- an attempt ---- */

static void count(const struct attempt *attempt, enum preemption_result result)
{
    atomic_fetch_add(&attempt->state->metrics.preemptions[result], 1);
}

/* Ends the reservation, unless holders are on their way out. */
static void give_back(struct attempt *attempt)
{
    struct state *state = attempt->state;
    struct uid uid;

    if (!attempt->has_reserved || attempt->is_under_way || attempt_may_have_evicted(attempt))
        return;
    (void)pthread_rwlock_wrlock(&state->lock);
    const struct pod *pod = outlook_find_waiting(attempt);
    if (pod != NULL)
        uid = pod->uid;
    bool is_undone = pod != NULL && reservation_give_back(&state->cluster, &uid);
    (void)pthread_rwlock_unlock(&state->lock);
    if (is_undone)
        requeue_changed(state->requeue, &attempt->pod, state->api);
}

static void report_failure(struct attempt *attempt, const struct error *problem)
{
    struct state *state = attempt->state;

    if (attempt->is_reported || atomic_load(&state->is_draining)) /* a shutdown is no failure */
        return;
    attempt->is_reported = true;
    log_warn("preemption failed", LOG_SLICE("namespace", attempt->pod.ns),
             LOG_SLICE("pod", attempt->pod.name), LOG_STR("error", problem->message));
    events_post(state->events, state->api, &attempt->pod, "Warning", "PreemptionFailed",
                slice_of(problem->message));
}

static enum attempt_result give_up(struct attempt *attempt, const struct error *problem)
{
    count(attempt, problem->code == ERROR_INVALID ? PREEMPTION_FORBIDDEN : PREEMPTION_FAILED);
    report_failure(attempt, problem);
    give_back(attempt);
    return ATTEMPT_FAILED;
}

/* Reads the victims again: from now on the cache has them terminating, so that no attempt evicts
 * them again. */
static int read_victims(struct attempt *attempt, struct error *err)
{
    bool is_going = true; /* as far as is known */

    (void)confirm_going(attempt, attempt->victims, attempt->victim_count, &is_going);
    return is_going ? 0 : stays(&attempt->victims[0], err);
}

static void succeed(struct attempt *attempt)
{
    struct state *state = attempt->state;

    count(attempt, attempt->evicted_count != 0 ? PREEMPTION_EVICTED : PREEMPTION_NEEDLESS);
    if (attempt->evicted_count != 0)
        events_post(state->events, state->api, &attempt->pod, "Normal", "Preempting",
                    arena_printf(&attempt->arena, "Evicted %zu pod%s: %.*s", attempt->evicted_count,
                                 attempt->evicted_count == 1 ? "" : "s", SLICE_ARG(attempt->why)));
}

static bool was_asked_lately(const struct attempt *attempt)
{
    return monotonic_ns() < attempt->fresh_until_ns;
}

/* Several victims are tried first, so that either all of them are evicted, or none: a pod needs all
 * of its claims. */
static enum attempt_result evict_or_requeue(struct attempt *attempt)
{
    struct error err = {0};

    if ((attempt->victim_count > 1 || !was_asked_lately(attempt)) && try_all(attempt, &err) < 0)
        return give_up(attempt, &err);
    if (!was_asked_lately(attempt)) { /* checked again: trying takes time */
        log_debug("before others are evicted for a pod, the scheduler has to ask about it again",
                  LOG_SLICE("namespace", attempt->pod.ns), LOG_SLICE("pod", attempt->pod.name));
        give_back(attempt);
        return ATTEMPT_UNASKED;
    }
    if (evict_all(attempt, &err) < 0 || read_victims(attempt, &err) < 0)
        return give_up(attempt, &err);
    succeed(attempt);
    return ATTEMPT_WAIT;
}

enum attempt_result attempt_run(struct attempt *attempt)
{
    enum outlook outlook = OUTLOOK_WAIT;
    struct error err = {0};

    attempt->deadline_ns = monotonic_ns() + ATTEMPT_MS * NS_PER_MS;
    if (outlook_find(attempt, &outlook, &err) < 0)
        return attempt->is_under_way ? ATTEMPT_UNSURE : give_up(attempt, &err);
    if (outlook != OUTLOOK_EVICT)
        return outlook == OUTLOOK_OVER ? ATTEMPT_OVER : ATTEMPT_WAIT;
    if (!begin_evicting(attempt))
        return ATTEMPT_WAIT;
    enum attempt_result result = evict_or_requeue(attempt);
    end_evicting(attempt);
    return result;
}
