#include "extender/judge.h"

#include "config/base/log.h"

static void judge_cached(struct state *state, const struct pod_object *pod, struct arena *arena,
                         struct verdict *out, const struct policy **judge)
{
    (void)pthread_rwlock_rdlock(&state->lock);
    struct view view = state_view(state);
    policy_prefilter(&view, pod, arena, out, judge);
    (void)pthread_rwlock_unlock(&state->lock); /* reasons and grounds lie in the arena */
}

/* What was asked about for one pod. */
struct asked {
    struct object_reference references[(CONFIRM_ROUNDS_MAX + 1) * GROUNDS_MAX];
    size_t count;
};

static bool was_asked(const struct asked *asked, const struct object_reference *reference)
{
    for (size_t i = 0; i < asked->count; i++)
        if (object_reference_equal(&asked->references[i], reference))
            return true;
    return false;
}

/* Adds what the verdict rests on and was not asked about yet; returns how many. */
static size_t add_grounds(struct asked *asked, const struct verdict *verdict)
{
    size_t before = asked->count;

    for (size_t i = 0; i < verdict->ground_count; i++)
        if (!was_asked(asked, &verdict->grounds[i]))
            asked->references[asked->count++] = verdict->grounds[i];
    return asked->count - before;
}

static enum confirmation confirm(struct state *state, const struct pod_object *pod,
                                 struct arena *arena, struct verdict *out,
                                 const struct policy **judge)
{
    uint64_t started_ns = monotonic_ns();
    struct asked asked = {.count = 0};
    struct error err = {0};

    for (int round = 0; round < CONFIRM_ROUNDS_MAX; round++) {
        size_t added = add_grounds(&asked, out);
        int64_t left_ms = CONFIRM_MS - (int64_t)((monotonic_ns() - started_ns) / 1000000);
        if (added == 0)
            return CONFIRMATION_STANDS;
        if (left_ms <= 0 || follow_confirm(state->follow, &asked.references[asked.count - added],
                                           added, left_ms, &err) < 0)
            return CONFIRMATION_UNKNOWN;
        judge_cached(state, pod, arena, out, judge);
        if (!code_is_rejection(out->code))
            return CONFIRMATION_OVERRULED;
    }
    return add_grounds(&asked, out) == 0 ? CONFIRMATION_STANDS : CONFIRMATION_UNKNOWN;
}

enum confirmation judge_pod(struct state *state, const struct pod_object *pod, struct arena *arena,
                            struct verdict *out, const struct policy **judge)
{
    state_tick(state);
    judge_cached(state, pod, arena, out, judge);
    if (state->follow == NULL || !code_is_rejection(out->code) || out->ground_count == 0)
        return CONFIRMATION_STANDS;
    enum confirmation result = confirm(state, pod, arena, out, judge);
    atomic_fetch_add(&state->metrics.confirmations[result], 1);
    if (result == CONFIRMATION_OVERRULED)
        log_debug("a rejection was overruled by the API server",
                  LOG_SLICE("namespace", pod->meta.namespace), LOG_SLICE("pod", pod->meta.name));
    else if (result == CONFIRMATION_UNKNOWN)
        log_warn("a rejection could not be confirmed: the cache's word stands",
                 LOG_SLICE("namespace", pod->meta.namespace), LOG_SLICE("pod", pod->meta.name));
    return result;
}

/* What the pod is rejected for and can change without an event for the scheduler; false: nothing.
 */
static bool find_cause(const struct verdict *verdict, enum confirmation confirmation,
                       struct object_reference *cause)
{
    bool is_unconfirmed = confirmation == CONFIRMATION_UNKNOWN && verdict->ground_count != 0;

    if (!code_is_rejection(verdict->code) || (verdict->reserved_for.len == 0 && !is_unconfirmed))
        return false;
    *cause = verdict->reserved_for.len != 0
                 ? (struct object_reference){.kind = KIND_POD, .uid = verdict->reserved_for}
                 : verdict->grounds[0];
    return true;
}

/* Judges once more and reserves, so that nothing comes in between. */
static void reserve(struct state *state, const struct pod_object *pod, struct arena *arena,
                    struct verdict *out, const struct policy **judge)
{
    static struct slice reason = {"out of memory", 13};
    struct error err = {0};

    (void)pthread_rwlock_wrlock(&state->lock);
    struct view view = state_view(state);
    policy_prefilter(&view, pod, arena, out, judge);
    if (out->code == CODE_SUCCESS && assumed_reserve(&state->cluster, pod, out->alone, false,
                                                     state_reservation_end(state, false), &err) < 0)
        *out = (struct verdict){.code = CODE_ERROR, .reasons = &reason, .reason_count = 1};
    (void)pthread_rwlock_unlock(&state->lock);
}

void judge_and_reserve(struct state *state, const struct pod_object *pod, struct arena *arena,
                       struct verdict *out, const struct policy **judge)
{
    struct object_reference known = {.kind = KIND_OTHER}, cause;

    nudge_forget(&state->nudge, pod->meta.uid);
    enum confirmation confirmation = judge_pod(state, pod, arena, out, judge);
    for (;;) {
        if (out->code == CODE_SUCCESS && pod->meta.uid.len != 0)
            reserve(state, pod, arena, out, judge);
        if (!find_cause(out, confirmation, &cause) || object_reference_equal(&cause, &known))
            return;
        nudge_wait(&state->nudge, &pod->meta, &cause);
        /* it may have changed just before, so that nobody was waiting */
        judge_cached(state, pod, arena, out, judge);
        confirmation = CONFIRMATION_UNKNOWN;
        known = cause;
    }
}
