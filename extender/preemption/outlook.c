#include "extender/preemption/outlook.h"

#include "extender/live/evaluate.h"
#include "extender/live/expiry.h"
#include "extender/protocol/protocol.h"

/* Copies the verdict's victims. False: there are too many, or there is no memory. */
static bool copy_victims(struct attempt *attempt, const struct verdict *verdict)
{
    attempt->has_too_many = verdict->victim_count > VICTIMS_MAX;
    if (attempt->has_too_many)
        return false;
    for (size_t i = 0; i < verdict->victim_count; i++) {
        const struct pod *victim = verdict->victims[i];
        char uid[UID_TEXT_BYTES];
        struct object_reference reference = {KIND_POD, name_text(victim->ns), pod_name(victim),
                                             uid_text(&victim->uid, uid)};
        char *text = arena_alloc(&attempt->arena, object_reference_bytes(&reference));
        if (text == NULL)
            return false;
        attempt->victims[attempt->victim_count++] = object_reference_copy(&reference, text);
    }
    return true;
}

const struct pod *outlook_find_waiting(const struct attempt *attempt)
{
    const struct pod *pod =
        cluster_find_pod(&attempt->state->cluster, attempt->pod.ns, attempt->pod.name);
    bool waits = pod != NULL && uid_is(&pod->uid, attempt->pod.uid) && !pod_is_assigned(pod) &&
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

/* Reserves the claims, so that no pod of lower priority gets them once the victims are gone. Also
 * after an offer of nodes that do not suit the pod: the next one may. */
static bool reserve(struct attempt *attempt, const struct pod_object *pod,
                    const struct verdict *verdict)
{
    struct state *state = attempt->state;
    uint64_t end_ns = state_reservation_end(state, false);
    uint64_t least_ns = monotonic_ns() + PREEMPTOR_KEEP_MS * NS_PER_MS;
    struct error ignored = {0};

    attempt->has_reserved = reservation_take(&state->cluster, pod, verdict->exclusive, false,
                                             end_ns > least_ns ? end_ns : least_ns, &ignored) == 0;
    struct reservation *reservation = reservation_of(&state->cluster, &attempt->pod);
    if (attempt->has_reserved && reservation != NULL)
        reservation->is_of_preemptor = true;
    return attempt->has_reserved;
}

/* The outlook according to the cache. If something can be done, the pod's claims are reserved.
 * Under the lock, for writing. */
static enum outlook find_cached(struct attempt *attempt)
{
    struct state *state = attempt->state;
    const struct pod *pod = outlook_find_waiting(attempt);
    const struct policy *decided_by;
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
    policy_prefilter(&view, &object, &attempt->arena, &verdict, &decided_by);
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

int outlook_find(struct attempt *attempt, enum outlook *out, struct error *err)
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
