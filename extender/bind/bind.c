#include "extender/bind/bind.h"

#include <stdlib.h>

#include "config/base/log.h"
#include "extender/bind/claim_lock.h"
#include "extender/bind/defer_write.h"
#include "extender/live/evaluate.h"
#include "extender/live/expiry.h"
#include "extender/live/requeue.h"

enum { BIND_ATTEMPTS_MAX = 3, BINDING_BYTES_MAX = 16 * 1024 };

/* How an attempt to bind the pod ended. */
enum outcome {
    OUTCOME_BOUND,
    OUTCOME_REFUSED, /* not bound, and nothing is under way that would bind it */
    OUTCOME_CHANGED, /* the same, since the pod is not what was decided on */
    OUTCOME_UNKNOWN, /* a Binding was sent, and may have been applied, or may be yet */
};

/* Where a bind is: what is known of the pod, and of its claims. */
struct binding {
    struct state *state;
    const struct bind_request *request;
    struct arena *arena;
    bool is_done;             /* the pod is bound to the node already */
    bool is_conflict;         /* its claims are not free */
    struct uid uid;           /* of the pod's record */
    struct claim_locks locks; /* of a live cluster with claimLock: Annotation */
    struct verdict verdict;
    struct deferral deferral;
    struct slice version; /* of the pod, the Binding's precondition; empty: any will do */
    uint64_t deadline_ns;

    struct kept_reference *shared; /* claims that it shares, and that are to be asked about */
    bool is_shared_known;          /* they were */
};

/* Whether the record is that of the pod, which can be bound, or is. */
static int check_pod(struct binding *binding, const struct pod *pod, struct error *err)
{
    const struct bind_request *request = binding->request;

    if (pod == NULL)
        return error_set(err, ERROR_NOT_FOUND, "pods \"%.*s\" not found",
                         SLICE_ARG(request->pod_name));
    if (!uid_is(&pod->uid, request->pod_uid))
        return error_set(err, ERROR_INVALID, "pod %.*s/%.*s has another UID than %.*s",
                         SLICE_ARG(request->pod_namespace), SLICE_ARG(request->pod_name),
                         SLICE_ARG(request->pod_uid));
    binding->is_done = pod->node != NULL && slice_equal(pod_node(pod), request->node);
    if (binding->is_done)
        return 0;
    if (pod->node != NULL)
        return error_set(err, ERROR_INVALID, "pod %.*s is already assigned to node \"%.*s\"",
                         SLICE_ARG(request->pod_name), SLICE_ARG(pod_node(pod)));
    if (pod->is_terminating || pod->is_terminal)
        return error_set(err, ERROR_INVALID, "pod %.*s is %s", SLICE_ARG(request->pod_name),
                         pod->is_terminating ? "being deleted" : "finished");
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* What is to be locked: the claims that the pod takes alone, in an order that is the same for
 * everyone. */
static int list_locks(struct binding *binding, const struct pod *pod, struct error *err)
{
    struct claim_locks *locks = &binding->locks;

    locks->claim_count = 0;
    if (binding->state->config->read_write_once_pod.claim_lock != CLAIM_LOCK_ANNOTATION ||
        binding->verdict.alone == NULL)
        return 0;
    for (unsigned i = 0; i < pod->use_count; i++) {
        const struct claim *claim = pod->uses[i].claim;
        if (!claim->exists || !binding->verdict.alone[i])
            continue;
        if (locks->claim_count == LOCKED_CLAIMS_MAX)
            return error_set(err, ERROR_TOO_BIG, "pod %.*s has over %d exclusive claims",
                             SLICE_ARG(pod_name(pod)), LOCKED_CLAIMS_MAX);
        struct slice name = arena_printf(binding->arena, "%.*s", SLICE_ARG(claim_name(claim)));
        if (name.ptr == NULL)
            return error_no_memory(err);
        locks->claims[locks->claim_count++] = name;
    }
    qsort(locks->claims, locks->claim_count, sizeof *locks->claims, compare_names);
    return 0;
}

/*
 * Whether a pass for a claim that the pod does not take alone rests on more than our own word.
 * Access modes do not change, but the claim may have been deleted and made anew as ReadWriteOncePod
 * while its watch is late. Where all binds are ours, that harms only if another pod has it, which
 * we know: the first pod of a claim goes by the cache. Replicas do not know of one another.
 */
static bool is_to_be_asked(const struct binding *binding, const struct claim *claim)
{
    return binding->state->config->read_write_once_pod.claim_lock == CLAIM_LOCK_ANNOTATION ||
           claim->refs != 0 || claim->sharers != 0 || claim->reservation != NULL;
}

/* Lists the claims that the pod may have beside others only if the API server says so, too: none of
 * them, or all, since another pod may come to one while the others are being asked about. */
static int list_shared(struct binding *binding, const struct pod *pod, struct error *err)
{
    struct arena *arena = binding->arena;
    struct kept_reference *shared = NULL;
    bool is_asked = false;
    char text[UID_TEXT_BYTES];

    for (unsigned i = 0; i < pod->use_count; i++) {
        const struct claim *claim = pod->uses[i].claim;
        struct object_reference reference = {KIND_CLAIM, name_slice(claim->ns), claim_name(claim),
                                             uid_text(&claim->uid, text)};
        if (!claim->exists || (binding->verdict.alone != NULL && binding->verdict.alone[i]))
            continue;
        is_asked = is_asked || is_to_be_asked(binding, claim);
        if (!object_reference_keep(&shared, &reference, arena))
            return error_no_memory(err);
    }
    binding->shared = is_asked ? shared : NULL;
    return 0;
}

/* Of a snapshot, whose pods are bound in memory. */
static int assign(struct binding *binding, struct pod *pod, struct error *err)
{
    struct state *state = binding->state;

    deferral_settle(state, pod, &binding->deferral); /* first: a pod that is bound is deferred */
    deferral_count(state, &binding->deferral);
    return cluster_assign(&state->cluster, pod, binding->request->node, err);
}

/* Takes the pod's claims, all or none. Under the lock, for writing. */
static int take_claims(struct binding *binding, struct error *err)
{
    struct state *state = binding->state;
    const struct bind_request *request = binding->request;
    struct pod *pod = cluster_find_pod(&state->cluster, request->pod_namespace, request->pod_name);
    const struct policy *decided_by;
    struct pod_object object;

    binding->is_conflict = false;
    binding->shared = NULL;
    binding->verdict = (struct verdict){.code = CODE_SKIP};
    binding->deferral = (struct deferral){.volumes = NULL};
    if (check_pod(binding, pod, err) < 0)
        return err->code;
    if (binding->is_done)
        return 0;
    if (!cluster_describe_pod(pod, binding->arena, &object))
        return error_no_memory(err);
    struct view view = state_view(state);
    policy_prefilter(&view, &object, binding->arena, &binding->verdict, &decided_by);
    binding->is_conflict = code_is_rejection(binding->verdict.code);
    if (binding->is_conflict)
        return error_set(err, ERROR_INVALID, "%.*s",
                         SLICE_ARG(protocol_join_reasons(&binding->verdict, binding->arena)));
    if (state->api != NULL && !binding->is_shared_known && list_shared(binding, pod, err) < 0)
        return err->code;
    if (binding->shared != NULL)
        return error_set(err, ERROR_UNAVAILABLE, "the claims of pod %.*s are to be asked about",
                         SLICE_ARG(pod_name(pod)));
    if (deferral_plan(&view, pod, &object, binding->arena, &binding->deferral, err) < 0)
        return err->code;
    binding->uid = pod->uid;
    if (state->api == NULL)
        return assign(binding, pod, err);
    if (list_locks(binding, pod, err) < 0)
        return err->code;
    return reservation_take(&state->cluster, &object, binding->verdict.alone, true,
                            state_reservation_end(state, true), err);
}

static int take_claims_locked(struct binding *binding, struct error *err)
{
    struct state *state = binding->state;

    *err = (struct error){.code = 0};
    expiry_run(state);
    (void)pthread_rwlock_wrlock(&state->lock);
    int rc = take_claims(binding, err);
    (void)pthread_rwlock_unlock(&state->lock);
    return rc;
}

/* Asks the API server about the pod, and about what its rejection rests on. */
static int refresh(const struct binding *binding, struct error *err)
{
    struct object_reference references[CONFIRM_MAX] = {bind_request_pod(binding->request)};
    size_t count = 1;

    if (binding->deferral.undecided.name.len != 0)
        references[count++] = binding->deferral.undecided;
    for (size_t i = 0; i < binding->verdict.cause_count && count < CONFIRM_MAX; i++)
        references[count++] = binding->verdict.causes[i];
    return requests_confirm(binding->state->api, references, count, CONFIRM_MS, err);
}

/* Asks the API server what the claims are that the pod shares, so many at once as it can. */
static int ask_shared(struct binding *binding, struct error *err)
{
    const struct kept_reference *shared = binding->shared;

    while (shared != NULL) {
        struct object_reference references[CONFIRM_MAX];
        size_t count = 0;
        for (; shared != NULL && count < CONFIRM_MAX; shared = shared->next)
            references[count++] = shared->reference;
        int64_t left_ms = ms_until(binding->deadline_ns);
        if (requests_confirm(binding->state->api, references, count,
                             left_ms < CONFIRM_MS ? left_ms : CONFIRM_MS, err) < 0)
            return err->code;
    }
    binding->is_shared_known = true;
    return 0;
}

/* Whether the pod is bound to the node, as far as is known. */
static bool is_bound_as_asked(const struct binding *binding)
{
    const struct bind_request *request = binding->request;
    struct state *state = binding->state;

    (void)pthread_rwlock_rdlock(&state->lock);
    const struct pod *pod =
        cluster_find_pod(&state->cluster, request->pod_namespace, request->pod_name);
    bool is_bound = pod != NULL && uid_is(&pod->uid, request->pod_uid) && pod->node != NULL &&
                    slice_equal(pod_node(pod), request->node);
    (void)pthread_rwlock_unlock(&state->lock);
    return is_bound;
}

static int check_time(const struct binding *binding, struct error *err)
{
    return ms_until(binding->deadline_ns) >= SEND_MS_MIN
               ? 0
               : error_set(err, ERROR_TIMEOUT, "the API server is too slow: pod %.*s is not bound",
                           SLICE_ARG(binding->request->pod_name));
}

static int post_binding(const struct binding *binding, struct request_answer *answer,
                        struct error *err)
{
    const struct bind_request *request = binding->request;
    struct buf body;

    if (check_time(binding, err) < 0)
        return err->code;
    buf_init(&body, BINDING_BYTES_MAX);
    buf_put(&body, SLICE("{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":"));
    buf_json(&body, request->pod_name);
    buf_put(&body, SLICE(",\"namespace\":"));
    buf_json(&body, request->pod_namespace);
    buf_put(&body, SLICE(",\"uid\":"));
    buf_json(&body, request->pod_uid);
    if (binding->version.len != 0) {
        buf_put(&body, SLICE(",\"resourceVersion\":"));
        buf_json(&body, binding->version);
    }
    buf_put(&body, SLICE("},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":"));
    buf_json(&body, request->node);
    buf_put(&body, SLICE("}}"));
    struct request call = {.method = "POST",
                           .object = bind_request_pod(request),
                           .suffix = "/binding",
                           .content_type = "application/json",
                           .body = buf_slice(&body),
                           .timeout_ms = ms_until(binding->deadline_ns)};
    int rc = body.failed ? error_no_memory(err)
                         : requests_call(binding->state->api, &call, binding->arena, answer, err);
    buf_dispose(&body);
    return rc;
}

/* The Binding is there: the pod holds its claims now, before the watch says so. */
static void settle(const struct binding *binding)
{
    const struct bind_request *request = binding->request;
    struct state *state = binding->state;
    struct error err = {0};

    (void)pthread_rwlock_wrlock(&state->lock);
    struct pod *pod = cluster_find_pod(&state->cluster, request->pod_namespace, request->pod_name);
    if (pod != NULL && uid_is(&pod->uid, request->pod_uid)) {
        deferral_settle(state, pod, &binding->deferral);
        if (pod->node == NULL &&
            cluster_learn_bound(&state->cluster, pod, request->node, monotonic_ns(), &err) < 0)
            log_error("a bound pod cannot be kept: the watch will tell it",
                      LOG_STR("error", err.message)); /* until then its reservation holds */
    } else {
        reservation_release(&state->cluster, &binding->uid); /* it is gone again */
    }
    (void)pthread_rwlock_unlock(&state->lock);
}

/* The pod is not bound: its claims are free, and whoever waits for them may try. */
static void undo(struct binding *binding)
{
    struct object_reference pod = bind_request_pod(binding->request);
    struct state *state = binding->state;

    claim_locks_release(&binding->locks);
    (void)pthread_rwlock_wrlock(&state->lock);
    bool is_undone = reservation_undo(&state->cluster, &binding->uid);
    (void)pthread_rwlock_unlock(&state->lock);
    if (is_undone)
        requeue_changed(state->requeue, &pod, state->api);
}

/* The Binding may still be applied: nothing is undone. */
static void doubt(const struct binding *binding)
{
    struct state *state = binding->state;

    (void)pthread_rwlock_wrlock(&state->lock);
    reservation_doubt(&state->cluster, &binding->uid, state_reservation_end(state, true));
    (void)pthread_rwlock_unlock(&state->lock);
}

/* Writes what is deferred, before the Binding, which has the version that the write made as its
 * precondition: whoever changes the pod in between may have taken the decision away. With locks,
 * which rest on the pod's version, the write's own precondition is the one that they have read. */
static int write_deferral(struct binding *binding, struct error *err)
{
    struct deferral *deferral = &binding->deferral;
    bool is_locked = binding->locks.claim_count != 0;

    binding->version = is_locked ? binding->locks.pod_version : SLICE("");
    if (deferral->volume_count == 0)
        return 0;
    deferral->is_stale = is_locked && !slice_equal(binding->version, deferral->version);
    if (deferral->is_stale) /* what was decided on is not what is there */
        return error_set(err, ERROR_UNAVAILABLE, "pod %.*s has changed",
                         SLICE_ARG(binding->request->pod_name));
    binding->version = deferral->version;
    if (check_time(binding, err) < 0)
        return err->code;
    return deferral_write(binding->state, binding->request, deferral, &binding->version,
                          binding->deadline_ns, binding->arena, err);
}

/*
 * What became of a Binding whose answer is no success. A Binding must not be sent twice, and
 * cache/api sends nothing but GETs twice, but a proxy may: then the answer is that to the second
 * (409, or 403 or 429 from who stands before the API server), and the first may have been applied.
 * So no answer proves that the pod is not bound: the pod itself has to be seen. If it cannot be, or
 * if the answer is none that refuses the Binding (a time-out, 5xx: it may be applied yet; a 200 of
 * something that is no API server), nothing is known.
 */
static enum outcome look(const struct binding *binding, const struct request_answer *answer,
                         struct error *err)
{
    struct error unknown = {0};
    bool is_seen = refresh(binding, &unknown) == 0;

    if (is_bound_as_asked(binding)) /* another bind of the pod, or the watch, may have seen it */
        return OUTCOME_BOUND;
    if (!is_seen || answer->status / 100 != 4) {
        (void)error_set(err, ERROR_UNAVAILABLE,
                        "whether pod %.*s is bound is unknown: its Binding was answered with "
                        "status %u%s%s",
                        SLICE_ARG(binding->request->pod_name), answer->status, is_seen ? "" : "; ",
                        unknown.message);
        return OUTCOME_UNKNOWN;
    }
    (void)error_set(err, ERROR_INVALID, "%.*s (status %u)", SLICE_ARG(answer->message),
                    answer->status);
    return answer->status == 409 && binding->version.len != 0 ? OUTCOME_CHANGED : OUTCOME_REFUSED;
}

/* Locks the claims, writes what is deferred, posts the Binding, and looks what became of it. */
static enum outcome attempt(struct binding *binding, struct error *err)
{
    struct request_answer answer = {0};

    int rc = claim_locks_take(&binding->locks, err);
    if (rc == ERROR_INVALID)
        atomic_fetch_add(&binding->state->metrics.bind_conflicts, 1);
    if (rc == 0 && binding->locks.is_bound)
        return OUTCOME_BOUND;
    if (rc == 0)
        rc = write_deferral(binding, err);
    if (rc == 0)
        rc = post_binding(binding, &answer, err);
    if (rc < 0) /* no Binding was sent */
        return binding->deferral.is_stale ? OUTCOME_CHANGED : OUTCOME_REFUSED;
    return answer.status == 201 ? OUTCOME_BOUND : look(binding, &answer, err);
}

static int bind_live(struct binding *binding, enum outcome *outcome, struct error *err)
{
    *outcome = attempt(binding, err);
    switch (*outcome) {
    case OUTCOME_BOUND:
        settle(binding);
        deferral_tell(binding->state, binding->request, &binding->deferral, binding->arena);
        return 0;
    case OUTCOME_UNKNOWN: doubt(binding); return err->code;
    default: undo(binding); return err->code;
    }
}

/* Takes the claims, and decides what is deferred; no stale refusal: the scheduler may know more
 * than the cache. And no stale pass for a claim that another pod has. */
static int take_claims_freshly(struct binding *binding, struct error *err)
{
    struct error unknown = {0};
    bool is_refreshed = binding->state->api == NULL;
    int rc;

    while ((rc = take_claims_locked(binding, err)) < 0) {
        if (binding->shared != NULL) {
            if (ask_shared(binding, err) < 0)
                return err->code;
        } else if (is_refreshed || refresh(binding, &unknown) < 0) {
            break;
        } else {
            is_refreshed = true;
        }
    }
    if (rc < 0)
        atomic_fetch_add(&binding->state->metrics.bind_conflicts, binding->is_conflict ? 1U : 0U);
    return rc;
}

int bind_pod(struct state *state, const struct bind_request *request, struct arena *arena,
             struct error *err)
{
    uint64_t deadline_ns = monotonic_ns() + (BIND_MS - CONFIRM_MS) * NS_PER_MS;
    struct binding binding = {
        .state = state, .request = request, .arena = arena, .deadline_ns = deadline_ns};
    struct error unknown = {0};
    enum outcome outcome = OUTCOME_CHANGED;
    int rc = 0;

    binding.locks = (struct claim_locks){
        .state = state, .request = request, .arena = arena, .deadline_ns = deadline_ns};
    for (int i = 0; outcome == OUTCOME_CHANGED && i < BIND_ATTEMPTS_MAX; i++) {
        if (i != 0 && (ms_until(binding.deadline_ns) == 0 || refresh(&binding, &unknown) < 0))
            break;
        binding.is_shared_known = false;
        rc = take_claims_freshly(&binding, err);
        if (rc < 0 || binding.is_done || state->api == NULL)
            break;
        rc = bind_live(&binding, &outcome, err);
    }
    return rc;
}
