#include "extender/preemption/preemption_attempt.h"

#include "config/base/log.h"
#include "extender/live/evaluate.h"
#include "extender/live/events.h"
#include "extender/live/expiry.h"
#include "extender/live/requeue.h"
#include "extender/preemption/eviction.h"
#include "extender/preemption/preemption.h"
#include "extender/protocol/protocol.h"

/* What can be done for the pod. */
enum outlook {
    OUTLOOK_OVER,  /* nothing, now or later */
    OUTLOOK_WAIT,  /* what is in its way is on its way out */
    OUTLOOK_ASK,   /* the API server about the victims */
    OUTLOOK_EVICT, /* the victims */
};

/* ---- what can be done ---- */

/* Copies the verdict's victims. False: they are too many, or there is no memory. */
static bool copy_victims(struct attempt *attempt, const struct verdict *verdict)
{
    if (verdict->victim_count > VICTIMS_MAX)
        return false;
    for (size_t i = 0; i < verdict->victim_count; i++) {
        const struct pod *victim = verdict->victims[i];
        char uid[UID_TEXT_BYTES];
        struct object_reference reference = {KIND_POD, name_slice(victim->ns), pod_name(victim),
                                             uid_text(&victim->uid, uid)};
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
        cluster_find_pod(&attempt->state->cluster, attempt->pod.ns, attempt->pod.name);
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

/* So that nobody of lower priority gets the claims once the victims are gone. */
static bool reserve(struct attempt *attempt, const struct pod_object *pod,
                    const struct verdict *verdict)
{
    struct state *state = attempt->state;
    uint64_t end_ns = state_reservation_end(state, false);
    uint64_t least_ns = monotonic_ns() + PREEMPTOR_KEEP_MS * NS_PER_MS;
    struct error ignored = {0};

    attempt->has_reserved = reservation_take(&state->cluster, pod, verdict->alone, false,
                                             end_ns > least_ns ? end_ns : least_ns, &ignored) == 0;
    return attempt->has_reserved;
}

/* What the cache says. When something can be done, the pod's claims are reserved for it. Under the
 * lock, for writing. */
static enum outlook look(struct attempt *attempt)
{
    struct state *state = attempt->state;
    const struct pod *pod = find_waiting(attempt);
    const struct policy *decided_by;
    struct pod_object object;
    struct verdict verdict;

    attempt->victim_count = 0;
    if (pod == NULL && attempt->asked_count == 0) /* the watch may be late */
        return OUTLOOK_ASK;
    if (pod == NULL || state->config->read_write_once_pod.preemption != SWITCH_ENABLED ||
        !cluster_describe_pod(pod, &attempt->arena, &object))
        return OUTLOOK_OVER;
    struct view view = state_view(state);
    policy_prefilter(&view, &object, &attempt->arena, &verdict, &decided_by);
    if (verdict.code != CODE_UNSCHEDULABLE || !copy_victims(attempt, &verdict))
        return OUTLOOK_OVER;
    if (verdict.reserved_for.len != 0) /* a pod is being bound: it is a victim afterwards */
        return OUTLOOK_WAIT;
    bool is_sure = !has_unasked_victims(attempt);
    if ((is_sure || attempt->is_under_way) && !reserve(attempt, &object, &verdict))
        return OUTLOOK_WAIT;
    if (!is_sure)
        return OUTLOOK_ASK;
    attempt->respects_budgets = state->config->read_write_once_pod.respects_budgets;
    attempt->why = protocol_join_reasons(&verdict, &attempt->arena);
    return attempt->victim_count == 0 ? OUTLOOK_WAIT : OUTLOOK_EVICT;
}

/* Asks the API server about the pod and its victims. Never with less than CONFIRM_MS left: a
 * time-out counts as an API server that does not answer anyone. */
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

/* Looks until the API server was asked about the pod and all its victims. Errors: it could not be.
 */
static int look_closely(struct attempt *attempt, enum outlook *outlook, struct error *err)
{
    struct state *state = attempt->state;

    for (int round = 0; round <= CONFIRM_ROUNDS_MAX; round++) {
        expiry_run(state);
        (void)pthread_rwlock_wrlock(&state->lock);
        *outlook = look(attempt);
        (void)pthread_rwlock_unlock(&state->lock);
        if (*outlook != OUTLOOK_ASK)
            return 0;
        if (ask(attempt, err) < 0)
            return err->code;
    }
    return error_set(err, ERROR_UNAVAILABLE, "its claims change hands all the time");
}

/* ---- one at a time ---- */

/* Both would evict the same pod; or one, evicting several, has counted on a budget that the other
 * takes from. */
static bool exclude_each_other(const struct attempt *a, const struct attempt *b)
{
    if (!slice_equal(a->pod.ns, b->pod.ns))
        return false;
    return a->victim_count > 1 || b->victim_count > 1 ||
           object_reference_equal(&a->victims[0], &b->victims[0]);
}

/* False: another attempt comes first. */
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

static void tell_evicted(struct attempt *attempt, const struct object_reference *victim)
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

/* Whether all of them go, as the cache says. */
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

/* The same, as the API server says: no answer to an eviction proves what came of it. False: it
 * cannot be asked. */
static bool look_at(const struct attempt *attempt, const struct object_reference *victims,
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
    return error_set(err, ERROR_UNAVAILABLE,
                     "pod %.*s/%.*s cannot be evicted: the API server says that it goes, and it "
                     "stays",
                     SLICE_ARG(victim->ns), SLICE_ARG(victim->name));
}

static int evict(struct attempt *attempt, const struct object_reference *victim, struct error *err)
{
    enum eviction_result result =
        eviction_do(attempt->state->api, victim, attempt->respects_budgets, attempt->deadline_ns,
                    &attempt->arena, err);
    bool is_going = false, is_seen = true;

    if (result != EVICTION_DONE && result != EVICTION_UNSENT)
        is_seen = look_at(attempt, victim, 1, &is_going);
    attempt->is_doubtful = attempt->is_doubtful || result == EVICTION_UNKNOWN || !is_seen;
    if (result == EVICTION_NEEDLESS && is_seen && !is_going)
        return stays(victim, err);
    if (result == EVICTION_DONE || (eviction_failed(result) && is_going)) {
        attempt->evicted_count++;
        tell_evicted(attempt, victim);
        return 0;
    }
    return eviction_failed(result) ? err->code : 0;
}

/* Whether the pod still waits: asking for one eviction may have taken seconds. */
static bool still_waits(const struct attempt *attempt)
{
    (void)pthread_rwlock_rdlock(&attempt->state->lock);
    bool waits = find_waiting(attempt) != NULL;
    (void)pthread_rwlock_unlock(&attempt->state->lock);
    return waits;
}

static int try_one(struct attempt *attempt, const struct object_reference *victim,
                   struct error *err)
{
    enum eviction_result result =
        eviction_try(attempt->state->api, victim, attempt->deadline_ns, &attempt->arena, err);
    bool is_going = false;

    if (result == EVICTION_NEEDLESS && !(look_at(attempt, victim, 1, &is_going) && is_going))
        return stays(victim, err);
    return eviction_failed(result) ? err->code : 0;
}

/* Whether a budget forbids to evict all of them, as far as the cache knows: the API server says it
 * of one at a time. */
static bool break_a_budget(const struct attempt *attempt)
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

/* Whether the API server would evict them, all of them. Without budgets, it would. */
static int try_all(struct attempt *attempt, struct error *err)
{
    int rc = 0;

    if (!attempt->respects_budgets)
        return 0;
    if (break_a_budget(attempt))
        rc = error_set(err, ERROR_INVALID, "a PodDisruptionBudget forbids it");
    for (size_t i = 0; rc == 0 && i < attempt->victim_count; i++)
        rc = try_one(attempt, &attempt->victims[i], err);
    return rc;
}

/* No more once the pod is gone. */
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

/* What was reserved is not, any more; but it is while holders terminate. */
static void give_back(struct attempt *attempt)
{
    struct state *state = attempt->state;
    struct uid uid;

    if (!attempt->has_reserved || attempt->is_under_way || attempt_may_have_evicted(attempt))
        return;
    (void)pthread_rwlock_wrlock(&state->lock);
    const struct pod *pod = find_waiting(attempt);
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

    if (attempt->is_told || atomic_load(&state->is_draining)) /* that is no failure */
        return;
    attempt->is_told = true;
    log_warn("no preemption", LOG_SLICE("namespace", attempt->pod.ns),
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

/* From now on they are seen to terminate, so that nobody evicts them again. */
static int see_them_go(struct attempt *attempt, struct error *err)
{
    bool is_going = true; /* as far as is known */

    (void)look_at(attempt, attempt->victims, attempt->victim_count, &is_going);
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

/* Once the first holder is evicted, the others are: a pod needs all of its claims. */
static enum attempt_result evict_or_requeue(struct attempt *attempt)
{
    struct error err = {0};

    if ((attempt->victim_count > 1 || !was_asked_lately(attempt)) && try_all(attempt, &err) < 0)
        return give_up(attempt, &err);
    if (!was_asked_lately(attempt)) { /* trying takes its time, too */
        log_debug("the scheduler is to ask about a pod again before others are evicted for it",
                  LOG_SLICE("namespace", attempt->pod.ns), LOG_SLICE("pod", attempt->pod.name));
        give_back(attempt);
        return ATTEMPT_UNASKED;
    }
    if (evict_all(attempt, &err) < 0 || see_them_go(attempt, &err) < 0)
        return give_up(attempt, &err);
    succeed(attempt);
    return ATTEMPT_WAIT;
}

enum attempt_result attempt_run(struct attempt *attempt)
{
    enum outlook outlook = OUTLOOK_WAIT;
    struct error err = {0};

    attempt->deadline_ns = monotonic_ns() + ATTEMPT_MS * NS_PER_MS;
    if (look_closely(attempt, &outlook, &err) < 0)
        return attempt->is_under_way ? ATTEMPT_UNSURE : give_up(attempt, &err);
    if (outlook != OUTLOOK_EVICT)
        return outlook == OUTLOOK_OVER ? ATTEMPT_OVER : ATTEMPT_WAIT;
    if (!begin_evicting(attempt))
        return ATTEMPT_WAIT;
    enum attempt_result result = evict_or_requeue(attempt);
    end_evicting(attempt);
    return result;
}
