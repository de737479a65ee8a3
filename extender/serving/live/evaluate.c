#include "extender/serving/live/evaluate.h"

#include "config/base/log.h"
#include "extender/serving/live/expiry.h"
#include "extender/serving/live/requeue.h"

/* ---- trials ---- */

void trials_init(struct trials *trials)
{
    memset(trials->slots, 0, sizeof trials->slots);
    (void)pthread_mutex_init(&trials->lock, NULL);
}

void trials_dispose(struct trials *trials)
{
    (void)pthread_mutex_destroy(&trials->lock);
}

/* A hash of 64 bits. */
static uint64_t add(uint64_t hash, struct slice text)
{
    uint64_t low = table_hash(text, (uint32_t)hash),
             high = table_hash(text, ~(uint32_t)(hash >> 32));

    return high << 32 | low;
}

static uint64_t hash_pod(const struct meta *pod)
{
    return add(add(add(0, pod->ns), pod->name), pod->uid);
}

static uint64_t hash_causes(const struct verdict *verdict)
{
    uint64_t hash = verdict->cause_count;

    for (size_t i = 0; i < verdict->cause_count; i++) {
        const struct object_reference *cause = &verdict->causes[i];
        hash = add(add(add(hash + cause->kind, cause->ns), cause->name), cause->uid);
    }
    return hash;
}

/* The pod's slot, which is another pod's no more. Under the lock. */
static struct trial *slot_of(struct trials *trials, const struct meta *pod)
{
    uint64_t hash = hash_pod(pod);
    struct trial *trial = &trials->slots[hash % TRIAL_SLOTS];

    if (trial->pod != hash)
        *trial = (struct trial){.pod = hash};
    return trial;
}

bool trials_recall(struct trials *trials, const struct meta *pod, const struct verdict *verdict,
                   enum confirmation *confirmation)
{
    uint64_t causes = hash_causes(verdict), now_ns = monotonic_ns();

    SCOPED_LOCK(&trials->lock);
    const struct trial *trial = slot_of(trials, pod);
    bool is_known = trial->confirmed_ns != 0 && trial->causes == causes &&
                    now_ns < trial->confirmed_ns + TRIAL_CONFIRMED_MS * NS_PER_MS;
    *confirmation = trial->confirmation;
    return is_known;
}

void trials_note(struct trials *trials, const struct meta *pod, const struct verdict *verdict,
                 enum confirmation confirmation)
{
    uint64_t causes = hash_causes(verdict), now_ns = monotonic_ns();

    SCOPED_LOCK(&trials->lock);
    struct trial *trial = slot_of(trials, pod);
    trial->causes = causes;
    trial->confirmed_ns = now_ns;
    trial->confirmation = confirmation;
}

uint64_t trials_reserve_until(struct trials *trials, const struct meta *pod, uint64_t ttl_ns)
{
    const uint64_t lead_ns = TRIAL_LEAD_MS * NS_PER_MS, pause_ns = TRIAL_PAUSE_MS * NS_PER_MS;
    uint64_t now_ns = monotonic_ns(), until_ns = 0;

    SCOPED_LOCK(&trials->lock);
    struct trial *trial = slot_of(trials, pod);
    if (trial->reserved_ns == 0 || now_ns >= trial->reserved_ns + ttl_ns + lead_ns + pause_ns)
        trial->reserved_ns = now_ns;
    uint64_t end_ns = trial->reserved_ns + ttl_ns;
    if (now_ns < end_ns)
        until_ns = end_ns > now_ns + lead_ns ? end_ns : now_ns + lead_ns;
    return until_ns;
}

void trials_rejected(struct trials *trials, const struct meta *pod)
{
    SCOPED_LOCK(&trials->lock);
    slot_of(trials, pod)->reserved_ns = 0;
}

/* ---- the verdict ---- */

static void decide(struct question *question, const struct view *view)
{
    if (question->decide != NULL) {
        question->decide(question, view);
        return;
    }
    policy_prefilter(view, question->pod, question->arena, &question->verdict);
    question->is_refused = code_is_rejection(question->verdict.code);
}

/* Causes of a refusal that can change without an event for the scheduler. */
struct causes {
    struct object_reference items[1 + 2 * CAUSES_MAX];
    size_t count;
};

static void find_causes(const struct question *question, enum confirmation confirmation,
                        struct causes *out)
{
    const struct verdict *verdict = &question->verdict;
    bool is_unconfirmed = confirmation == CONFIRMATION_UNKNOWN;

    out->count = 0;
    if (question->is_refused && verdict->reserved_for.len != 0)
        out->items[out->count++] =
            (struct object_reference){.kind = KIND_POD, .uid = verdict->reserved_for};
    for (size_t i = 0; question->is_refused && i < verdict->awaited_count; i++)
        out->items[out->count++] = verdict->awaited[i];
    for (size_t i = 0; question->is_refused && is_unconfirmed && i < verdict->cause_count; i++)
        out->items[out->count++] = verdict->causes[i];
}

static bool are_equal(const struct causes *a, const struct causes *b)
{
    bool are_equal = a->count == b->count;

    for (size_t i = 0; are_equal && i < a->count; i++)
        are_equal = object_reference_equal(&a->items[i], &b->items[i]);
    return are_equal;
}

/* The pod waits for the causes of the decision. Under the lock under which it was made, so that
 * none of them changes before: else it would have to be made again, which takes long if it differs
 * from node to node. */
static void register_causes(struct state *state, const struct question *question)
{
    struct causes causes;

    find_causes(question, CONFIRMATION_STANDS, &causes);
    if (causes.count == 0 || are_equal(&causes, question->registered))
        return;
    requeue_wait(state->requeue, &question->pod->meta, causes.items, causes.count);
    *question->registered = causes;
}

static void decide_cached(struct state *state, struct question *question)
{
    (void)pthread_rwlock_rdlock(&state->lock);
    struct view view = state_view(state);
    decide(question, &view);
    if (question->registered != NULL)
        register_causes(state, question);
    (void)pthread_rwlock_unlock(&state->lock); /* reasons and causes lie in the arena */
}

/* The objects that the API server was asked about, for one pod. */
struct asked {
    struct object_reference references[(CONFIRM_ROUNDS_MAX + 1) * CAUSES_MAX];
    size_t count;
};

/* Adds the verdict's causes that were not asked about yet; returns how many. */
static size_t add_causes(struct asked *asked, const struct verdict *verdict)
{
    size_t before = asked->count;

    for (size_t i = 0; i < verdict->cause_count; i++)
        if (!object_reference_is_among(&verdict->causes[i], asked->references, asked->count))
            asked->references[asked->count++] = verdict->causes[i];
    return asked->count - before;
}

/* Of its time, a scheduler waits three quarters for confirmations at most, or it would place hardly
 * any other pod. Of these, one namespace has as much as is left (shares.h): its holders may be
 * megabytes each, and every rejection of its pods asks about sixteen.
 */
enum { WINDOW_MS = 4000, WAITS_MS = 3000 };

/* What the namespace may have of the time that is left; a part is for those that have had none.
 * Under the mutex. */
static int64_t left_in_window(struct share_window *window, unsigned share)
{
    share_window_pass(window, monotonic_ns(), WINDOW_MS * NS_PER_MS);
    int64_t used_ms = window->used_in[share];
    int64_t left_ms = WAITS_MS - (int64_t)window->used;
    left_ms = used_ms == 0 ? left_ms : left_ms - WAITS_MS / 8;
    left_ms = (left_ms - used_ms) / 2; /* what is spent now is taken from both */
    return left_ms > 0 ? left_ms : 0;
}

/* Takes the time that the question may cost from that of its namespace. */
static int64_t take_patience(struct state *state, const struct question *question)
{
    unsigned share = share_of(question->pod->meta.ns);
    int64_t patience_ms = question->is_trial ? CONFIRM_TRIAL_MS : CONFIRM_MS;

    if (requests_are_silent(state->api))
        patience_ms = CONFIRM_SILENT_MS;
    SCOPED_LOCK(&state->confirming);
    int64_t left_ms = left_in_window(&state->confirmed_ms, share);
    patience_ms = left_ms < patience_ms ? left_ms : patience_ms;
    state->confirmed_ms.used_in[share] += (uint32_t)patience_ms;
    state->confirmed_ms.used += (uint32_t)patience_ms;
    return patience_ms;
}

/* Gives back what it did not cost, unless another window has begun. */
static void return_patience(struct state *state, const struct question *question, int64_t ms)
{
    unsigned share = share_of(question->pod->meta.ns);

    SCOPED_LOCK(&state->confirming);
    if (ms > 0 && state->confirmed_ms.used_in[share] >= ms) {
        state->confirmed_ms.used_in[share] -= (uint32_t)ms;
        state->confirmed_ms.used -= (uint32_t)ms;
    }
}

static enum confirmation ask(struct state *state, struct question *question, int64_t patience_ms)
{
    uint64_t deadline_ns = monotonic_ns() + (uint64_t)patience_ms * NS_PER_MS;
    struct asked asked = {.count = 0};
    struct error err = {0};

    for (int round = 0; round < CONFIRM_ROUNDS_MAX; round++) {
        size_t added = add_causes(&asked, &question->verdict);
        int64_t left_ms = ms_until(deadline_ns);
        if (added == 0)
            return CONFIRMATION_STANDS;
        if (left_ms == 0 || requests_confirm(state->api, &asked.references[asked.count - added],
                                             added, left_ms, &err) < 0)
            return CONFIRMATION_UNKNOWN;
        decide_cached(state, question);
        if (!question->is_refused)
            return CONFIRMATION_OVERRULED;
    }
    return add_causes(&asked, &question->verdict) == 0 ? CONFIRMATION_STANDS : CONFIRMATION_UNKNOWN;
}

static enum confirmation confirm(struct state *state, struct question *question)
{
    uint64_t began_ns = monotonic_ns();
    int64_t patience_ms = take_patience(state, question);
    enum confirmation result = ask(state, question, patience_ms);

    int64_t ms = (int64_t)((monotonic_ns() - began_ns) / NS_PER_MS);
    return_patience(state, question, patience_ms - ms);
    return result;
}

enum confirmation evaluate_question(struct state *state, struct question *question)
{
    const struct meta *meta = &question->pod->meta;
    enum confirmation result;

    expiry_tick(state);
    decide_cached(state, question);
    if (state->api == NULL || !question->is_refused || question->verdict.cause_count == 0)
        return CONFIRMATION_STANDS;
    if (question->is_trial && trials_recall(state->trials, meta, &question->verdict, &result))
        return result;
    result = confirm(state, question);
    atomic_fetch_add(&state->metrics.confirmations[result], 1);
    if (question->is_trial && result != CONFIRMATION_OVERRULED)
        trials_note(state->trials, meta, &question->verdict, result);
    if (result == CONFIRMATION_OVERRULED)
        log_debug("a rejection was overruled by the API server", LOG_POD(meta));
    else if (result == CONFIRMATION_UNKNOWN)
        log_warn("a rejection could not be confirmed: the cached verdict stands", LOG_POD(meta));
    return result;
}

/* Whether the pod needs any claim for itself: else there is nothing to reserve, and its verdict
 * need not wait for the writers' lock. */
static bool needs_exclusive(const struct question *question)
{
    const bool *exclusive = question->verdict.exclusive;

    for (size_t i = 0; i < question->pod->claim_count; i++)
        if (exclusive == NULL || exclusive[i])
            return true;
    return false;
}

/* 0: nothing is reserved. To ask about a pod of a scheduling group is a trial, too: the pod is
 * bound only if its whole group has room. */
static uint64_t choose_end(struct state *state, const struct question *question)
{
    int64_t ttl_ms = state->config->read_write_once_pod.reservation_ttl_ms;

    if (!question->is_trial && !question->pod->is_grouped)
        return state_reservation_end(state, false);
    if (question->pod->is_grouped && ttl_ms > GROUP_ATTEMPT_MS)
        ttl_ms = GROUP_ATTEMPT_MS;
    return trials_reserve_until(state->trials, &question->pod->meta, (uint64_t)ttl_ms * NS_PER_MS);
}

static void reserve(struct state *state, struct question *question)
{
    static struct slice reason = {"out of memory", 13};
    struct verdict *out = &question->verdict;
    uint64_t end_ns = choose_end(state, question);
    struct error err = {0};

    if (end_ns != 0 &&
        reservation_take(&state->cluster, question->pod, out->exclusive, false, end_ns, &err) < 0)
        *out = (struct verdict){.code = CODE_ERROR, .reasons = &reason, .reason_count = 1};
}

/* The reservation of the pod, which is rejected, if it ends now; else NULL. Under the lock. */
static struct reservation *find_needless(const struct state *state, const struct question *question,
                                         const struct object_reference *pod)
{
    struct reservation *reservation = reservation_of(&state->cluster, pod);

    return reservation == NULL || reservation_outlasts(reservation, question->verdict.is_by_nodes)
               ? NULL
               : reservation;
}

static bool has_needless(struct state *state, const struct question *question,
                         const struct object_reference *pod)
{
    SCOPED_READ_LOCK(&state->lock);
    return find_needless(state, question, pod) != NULL;
}

/* Rejected, and not on one node of many only. */
static bool is_for_good(const struct question *question)
{
    return question->verdict.code == CODE_UNSCHEDULABLE_AND_UNRESOLVABLE && !question->is_for_node;
}

/* Whether the verdict concerns the pod's reservation. A pod whose victims terminate is
 * Unschedulable: it keeps its reservation, so that no pod of lower priority gets the claims in
 * between. */
static bool concerns_reservation(struct state *state, const struct question *question,
                                 const struct object_reference *pod)
{
    return (question->verdict.code == CODE_SUCCESS && needs_exclusive(question)) ||
           (is_for_good(question) && has_needless(state, question, pod));
}

/* Decides again under the writers' lock. Of a pod that passes, not about each node: a bind looks at
 * its node again. */
static void decide_again(struct question *question, const struct view *view)
{
    struct verdict now;

    if (question->verdict.code == CODE_SUCCESS) {
        policy_prefilter(view, question->pod, question->arena, &now);
        question->verdict.exclusive = now.exclusive;
        if (now.code == CODE_SUCCESS)
            return;
    }
    decide(question, view);
}

/* Reserves the claims of a pod that passes; gives back those of a pod that is rejected for good.
 * Decides again under the same lock, so that nothing changes between verdict and reservation: in
 * the meantime the pod may have passed for another scheduler, or its bind may have begun. */
static void settle_reservation(struct state *state, struct question *question)
{
    const struct meta *meta = &question->pod->meta;
    struct object_reference pod = object_reference_of_pod(meta);
    struct reservation *needless = NULL;

    if (!question->reserves || meta->uid.len == 0 || !concerns_reservation(state, question, &pod))
        return;
    (void)pthread_rwlock_wrlock(&state->lock);
    struct view view = state_view(state);
    decide_again(question, &view);
    if (question->verdict.code == CODE_SUCCESS)
        reserve(state, question);
    else if (is_for_good(question))
        needless = find_needless(state, question, &pod);
    bool is_given_back = needless != NULL && reservation_give_back(&state->cluster, &needless->uid);
    (void)pthread_rwlock_unlock(&state->lock);
    if (is_given_back)
        requeue_changed(state->requeue, &pod, state->api);
}

/* Registers that the pod waits for the causes, and decides again: a cause that changed before the
 * registration has not requeued the pod. A cause that is new then was not confirmed. */
static void wait_and_decide(struct state *state, struct question *question,
                            const struct causes *causes, enum confirmation *confirmation)
{
    struct causes present;

    requeue_wait(state->requeue, &question->pod->meta, causes->items, causes->count);
    decide_cached(state, question);
    find_causes(question, *confirmation, &present);
    if (!are_equal(&present, causes))
        *confirmation = CONFIRMATION_UNKNOWN;
    settle_reservation(state, question);
}

/* Whether the pod does not wait any more, now that the scheduler has asked again: when nothing is
 * refused, or only because of what was confirmed. A preempt call follows a filter call that has
 * rejected the pod. If it then finds no conflict, and drops a node where no pod would have to go,
 * the pod still waits for the causes of that rejection. */
static bool is_answered(const struct question *question)
{
    return question->verdict.code != CODE_ERROR &&
           (!question->is_refused || code_is_rejection(question->verdict.code));
}

/* The reservation that the pod makes next is the first one of its trials again. */
static void begin_trials_again(struct state *state, const struct question *question)
{
    if (is_for_good(question) && (question->is_trial || question->pod->is_grouped))
        trials_rejected(state->trials, &question->pod->meta);
}

void evaluate_and_remember(struct state *state, struct question *question)
{
    const struct meta *meta = &question->pod->meta;
    struct causes registered = {.count = 0}, causes;

    if (question->reserves) {
        requeue_forget(state->requeue, meta);
        question->registered = &registered;
    }
    enum confirmation confirmation = evaluate_question(state, question);
    question->registered = NULL;
    settle_reservation(state, question);
    find_causes(question, confirmation, &causes);
    while (causes.count != 0 && !are_equal(&causes, &registered)) {
        registered = causes;
        wait_and_decide(state, question, &registered, &confirmation);
        find_causes(question, confirmation, &causes);
    }
    bool is_left = question->reserves ? registered.count != 0 : is_answered(question);
    if (causes.count == 0 && is_left)
        requeue_forget(state->requeue, meta);
    begin_trials_again(state, question);
}

void evaluate_trial(struct state *state, struct question *question)
{
    (void)evaluate_question(state, question);
    settle_reservation(state, question);
    begin_trials_again(state, question);
}
