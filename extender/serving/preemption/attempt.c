#include "extender/serving/preemption/attempt.h"

#include <utlist.h>

#include "config/base/log.h"
#include "extender/serving/live/evaluate.h"
#include "extender/serving/live/events.h"
#include "extender/serving/live/expiry.h"
#include "extender/serving/live/requeue.h"
#include "extender/serving/preemption/preemption.h"
#include "extender/serving/protocol/protocol.h"

/*
 * ---- the outlook ----
 *
 * What can be done for a pod that may preempt. The policies decide again, from the cache; then the
 * API server is asked about the pod and its victims, until no victim is new.
 */

enum outlook {
    OUTLOOK_OVER,  /* nothing, now or later */
    OUTLOOK_WAIT,  /* wait: the holders terminate, or a pod is being bound */
    OUTLOOK_ASK,   /* ask the API server about the pod and its victims; find_outlook does */
    OUTLOOK_EVICT, /* evict attempt->victims */
};

/* Copies the verdict's victims. False: there are too many, or there is no memory. */
static bool copy_victims(struct attempt *attempt, const struct verdict *verdict)
{
    attempt->has_too_many = verdict->victim_count > VICTIMS_MAX;
    if (attempt->has_too_many)
        return false;
    for (size_t i = 0; i < verdict->victim_count; i++) {
        char uid[UID_TEXT_BYTES];
        struct object_reference reference = pod_reference(verdict->victims[i], uid);
        if (!object_reference_copy_in(&attempt->victims[i], &reference, &attempt->arena))
            return false;
        attempt->victim_count++;
    }
    return true;
}

/* The attempt's pod, if it still waits for a node, with the same priority; else NULL. Under the
 * lock. */
static const struct pod *find_waiting(const struct attempt *attempt)
{
    const struct pod *pod = cluster_find_same_pod(&attempt->state->cluster, &attempt->pod);
    bool waits = pod != NULL && !pod_is_assigned(pod) && !pod->is_terminating &&
                 !pod->is_terminal && pod->priority == attempt->priority;

    return waits ? pod : NULL;
}

static bool has_unasked_victims(const struct attempt *attempt)
{
    for (size_t i = 0; i < attempt->victim_count; i++)
        if (!object_reference_is_among(&attempt->victims[i], attempt->asked, attempt->asked_count))
            return true;
    return false;
}

/* Reserves the claims, so that no pod of lower priority gets them once the victims are gone. Also
 * after an offer of nodes that do not suit the pod: the next one may. */
static bool reserve(struct attempt *attempt, const struct pod_object *pod,
                    const struct verdict *verdict)
{
    struct state *state = attempt->state;
    uint64_t end_ns = state_reservation_end(state, false);
    uint64_t least_ns = monotonic_ns() + PREEMPTOR_KEEP_MS * NS_PER_MS;
    struct reservation *reservation = reservation_of(&state->cluster, &attempt->pod);
    struct error ignored = {0};

    if (reservation != NULL && verdict->victim_count != 0)
        reservation->kept_until_ns = 0; /* of an eviction before this one */
    attempt->has_reserved = reservation_take(&state->cluster, pod, verdict->exclusive, false,
                                             end_ns > least_ns ? end_ns : least_ns, &ignored) == 0;
    reservation = reservation_of(&state->cluster, &attempt->pod);
    if (attempt->has_reserved && reservation != NULL)
        reservation->is_of_preemptor = true;
    return attempt->has_reserved;
}

/* The outlook according to the cache. If something can be done, the pod's claims are reserved.
 * Under the lock, for writing. */
static enum outlook find_cached(struct attempt *attempt)
{
    struct state *state = attempt->state;
    const struct pod *pod = find_waiting(attempt);
    struct pod_object object;
    struct verdict verdict;

    attempt->victim_count = 0;
    attempt->has_too_many = false;
    if (pod == NULL && attempt->asked_count == 0) /* the watch may be late */
        return OUTLOOK_ASK;
    if (pod == NULL || state->config->read_write_once_pod.preemption != SWITCH_ENABLED ||
        !cluster_describe_pod(pod, &attempt->arena, &object))
        return OUTLOOK_OVER;
    struct view view = state_view(state);
    policy_prefilter(&view, &object, &attempt->arena, &verdict);
    if (verdict.code != CODE_UNSCHEDULABLE || !copy_victims(attempt, &verdict))
        return OUTLOOK_OVER;
    /* a driver may have left the node that was offered */
    if (verdict.victim_count != 0 && !policy_passes_somewhere(&view, &verdict, &attempt->arena))
        return OUTLOOK_OVER;
    if (verdict.reserved_for.len !=
        0) /* for a pod that is being bound: afterwards it is a victim */
        return OUTLOOK_WAIT;
    bool is_sure = !has_unasked_victims(attempt);
    if ((is_sure || attempt->is_under_way) && !reserve(attempt, &object, &verdict))
        return OUTLOOK_WAIT;
    if (!is_sure)
        return OUTLOOK_ASK;
    attempt->respects_budgets = state->config->read_write_once_pod.respects_budgets;
    attempt->why = verdict_message(&verdict, &attempt->arena);
    return attempt->victim_count == 0 ? OUTLOOK_WAIT : OUTLOOK_EVICT;
}

/* Asks the API server about the pod and its victims. Not with less than CONFIRM_MS left: a request
 * that times out counts as a silent API server. */
static int ask(struct attempt *attempt, struct error *err)
{
    attempt->asked[0] = attempt->pod;
    memcpy(attempt->asked + 1, attempt->victims, attempt->victim_count * sizeof *attempt->victims);
    attempt->asked_count = 1 + attempt->victim_count;
    if (monotonic_ns() + CONFIRM_MS * NS_PER_MS > attempt->deadline_ns)
        return error_set(err, ERROR_TIMEOUT, "the API server is slow");
    return requests_confirm(attempt->state->api, attempt->asked, attempt->asked_count, CONFIRM_MS,
                            err);
}

/* Finds the outlook, and sets the attempt's victims, respects_budgets and why. Unless it is
 * OUTLOOK_OVER, the pod's claims are reserved if that was possible (has_reserved).
 * Errors: the API server could not be asked about all of them; ERROR_TOO_BIG: there are over
 * VICTIMS_MAX. */
static int find_outlook(struct attempt *attempt, enum outlook *out, struct error *err)
{
    struct state *state = attempt->state;

    for (int round = 0; round <= CONFIRM_ROUNDS_MAX; round++) {
        expiry_run(state);
        (void)pthread_rwlock_wrlock(&state->lock);
        *out = find_cached(attempt);
        (void)pthread_rwlock_unlock(&state->lock);
        if (attempt->has_too_many)
            return error_set(err, ERROR_TOO_BIG,
                             "over %d pods would have to be evicted, so none is", VICTIMS_MAX);
        if (*out != OUTLOOK_ASK)
            return 0;
        if (ask(attempt, err) < 0)
            return err->code;
    }
    return error_set(err, ERROR_UNAVAILABLE, "the holders of its claims keep changing");
}

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

    SCOPED_LOCK(&preemption->lock);
    for (const struct attempt *other = preemption->evicting; other != NULL; other = other->next)
        may_begin = may_begin && !exclude_each_other(attempt, other);
    if (may_begin)
        LL_PREPEND(preemption->evicting, attempt);
    return may_begin;
}

static void end_evicting(struct attempt *attempt)
{
    struct preemption *preemption = attempt->state->preemption;

    SCOPED_LOCK(&preemption->lock);
    LL_DELETE(preemption->evicting, attempt);
}

/* ---- evicting ---- */

static void report_evicted(struct attempt *attempt, const struct object_reference *victim)
{
    struct state *state = attempt->state;

    log_info("pod evicted for one of higher priority", LOG_POD(victim),
             LOG_SLICE("for", attempt->pod.name), LOG_SLICE("reason", attempt->why));
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

    SCOPED_READ_LOCK(&state->lock);
    for (size_t i = 0; i < count; i++) {
        const struct pod *pod = cluster_find_same_pod(&state->cluster, &victims[i]);
        are_going = are_going && (pod == NULL || pod->is_terminating);
    }
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

static int evict(struct attempt *attempt, const struct object_reference *victim, struct error *err)
{
    enum eviction_result result = eviction_do(attempt, victim, err);
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
    SCOPED_READ_LOCK(&attempt->state->lock);
    return find_waiting(attempt) != NULL;
}

static int try_one(struct attempt *attempt, const struct object_reference *victim,
                   struct error *err)
{
    enum eviction_result result = eviction_try(attempt, victim, err);
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

    SCOPED_READ_LOCK(&state->lock);
    for (size_t i = 0; i < attempt->victim_count; i++) {
        const struct pod *pod = cluster_find_same_pod(&state->cluster, &attempt->victims[i]);
        if (pod != NULL)
            pods[count++] = pod;
    }
    return count > 1 && cluster_breaks_budgets(&state->cluster, pods, count);
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

    if (!attempt->has_reserved || attempt->is_under_way || attempt_may_have_evicted(attempt))
        return;
    (void)pthread_rwlock_wrlock(&state->lock);
    const struct pod *pod = find_waiting(attempt);
    bool is_undone = pod != NULL && reservation_give_back(&state->cluster, &pod->uid);
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
    log_warn("preemption failed", LOG_POD(&attempt->pod), LOG_STR("error", problem->message));
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
                  LOG_POD(&attempt->pod));
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
    if (find_outlook(attempt, &outlook, &err) < 0)
        return attempt->is_under_way ? ATTEMPT_UNSURE : give_up(attempt, &err);
    if (outlook != OUTLOOK_EVICT)
        return outlook == OUTLOOK_OVER ? ATTEMPT_OVER : ATTEMPT_WAIT;
    if (!begin_evicting(attempt))
        return ATTEMPT_WAIT;
    enum attempt_result result = evict_or_requeue(attempt);
    end_evicting(attempt);
    return result;
}
