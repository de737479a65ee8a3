#include "extender/serving/verbs/verbs.h"

#include "config/base/log.h"
#include "extender/report/explain.h"
#include "extender/serving/bind/bind.h"
#include "extender/serving/live/evaluate.h"
#include "extender/serving/live/nomination.h"
#include "extender/serving/preemption/preemption.h"
#include "extender/serving/protocol/protocol.h"

void verb_write_failure(struct buf *answer, const char *message)
{
    buf_put(answer, SLICE("{\"error\":"));
    buf_json(answer, slice_of(message));
    buf_put(answer, SLICE("}"));
}

bool verb_find(enum verb *out, const char *path)
{
    static const char *const paths[VERB_COUNT] = {"/filter", "/prefilter", "/preempt", "/bind",
                                                  "/volcano/predicate"};

    for (int verb = 0; verb < VERB_COUNT; verb++)
        if (strcmp(path, paths[verb]) == 0) {
            *out = (enum verb)verb;
            return true;
        }
    return false;
}

/* ---- filter ---- */

/* kube-scheduler looks for that many nodes at least (minFeasibleNodesToFind). If it offers fewer,
 * it has looked at all of them, and a node that it does not offer is none for this pod. */
enum { SAMPLE_MIN = 100 };

/* A filter call, and which of its nodes are rejected. */
struct filter_call {
    struct filter_request request;
    const struct slice
        *names;            /* of the nodes, if the verdict differs from node to node; else NULL */
    struct slice *reasons; /* for each node: why the pod does not pass there; or empty */
    size_t rejected_count;
    struct slice nominee; /* the node to which the pod is nominated; empty: none */
};

/* Puts the pod's own reason before that of each node, on which it is rejected for both. False: out
 * of memory. */
static bool add_own_reason(struct filter_call *call, struct slice own, struct arena *arena)
{
    struct slice last = {"", 0}, joined = {"", 0};

    for (size_t i = 0; i < call->request.node_count; i++) {
        if (joined.len == 0 || !slice_equal(call->reasons[i], last)) {
            last = call->reasons[i];
            joined = arena_printf(arena, "%.*s; %.*s", SLICE_ARG(own), SLICE_ARG(last));
        }
        if (joined.ptr == NULL)
            return false;
        call->reasons[i] = joined;
    }
    return true;
}

/* Checks each node, for a verdict that differs from node to node. False: out of memory. */
static bool filter_nodes(struct question *question, struct filter_call *call,
                         const struct view *view)
{
    struct verdict *verdict = &question->verdict;
    const struct verdict on_pod = *verdict;
    struct arena *arena = question->arena;
    size_t count = call->request.node_count;
    struct slice own = {"", 0};

    if (call->names == NULL)
        call->names = protocol_node_names(&call->request, arena);
    if (call->reasons == NULL)
        call->reasons = arena_alloc(arena, (count + 1) * sizeof *call->reasons);
    if (call->names == NULL || call->reasons == NULL)
        return false;
    if (code_is_rejection(verdict->code))
        own = verdict_message(verdict, arena);
    call->rejected_count = policy_filter_nodes(verdict, call->names, count, arena, call->reasons);
    if (call->rejected_count == count && count >= SAMPLE_MIN)
        call->nominee = arena_copy(arena, nomination_choose(view, question->pod, &on_pod, arena));
    return own.len == 0 || call->rejected_count == 0 || add_own_reason(call, own, arena);
}

/* Decides about the pod, and about each node if the verdict differs. */
static void decide_filter(struct question *question, const struct view *view)
{
    struct filter_call *call = question->context;
    struct verdict *verdict = &question->verdict;

    policy_prefilter(view, question->pod, question->arena, verdict);
    call->rejected_count = 0;
    call->nominee = SLICE("");
    if (policy_filters_nodes(verdict) && call->request.node_count != 0 &&
        !filter_nodes(question, call, view))
        verdict_out_of_memory(verdict);
    question->is_refused = code_is_rejection(verdict->code);
}

/* The pod is rejected on every node. */
static void note_rejected(struct state *state, const struct filter_request *request,
                          enum verdict_code code, struct slice reason)
{
    log_debug("pod rejected", LOG_POD(&request->pod.meta), LOG_STR("code", code_text(code)),
              LOG_SLICE("reason", reason));
    if (code == CODE_UNSCHEDULABLE && request->node_count != 0)
        preemption_want(state, &request->pod);
}

/* A large answer is only begun, if the caller takes it in pieces. */
static int write_rejected(struct scratch *scratch, const struct filter_request *request,
                          enum verdict_code code, struct slice reason, struct error *err)
{
    struct buf *answer = &scratch->answer;
    struct rejection all;

    if (!scratch->takes_pieces || request->node_names.ptr == NULL)
        return protocol_write_rejected(answer, request, code, reason, &scratch->arena, err);
    if (!protocol_begin_rejection(&all, request, code, reason, &scratch->arena))
        return error_no_memory(err);
    if (all.bytes > ANSWER_WHOLE_BYTES_MAX && all.bytes <= answer->max_bytes)
        return scratch_begin_pieces(scratch, &all) ? 0 : error_no_memory(err);
    protocol_put_rejection(answer, &all);
    return 0;
}

static int answer_filter(struct state *state, struct scratch *scratch, enum call_result *result,
                         struct error *err)
{
    struct filter_call call = {.names = NULL};
    struct filter_request *request = &call.request;
    struct question question = {.pod = &request->pod,
                                .arena = &scratch->arena,
                                .reserves = true,
                                .decide = decide_filter,
                                .context = &call};

    if (protocol_read_filter(request, buf_slice(&scratch->body), &scratch->arena, err) < 0)
        return err->code;
    if (request->node_count != 0)
        evaluate_and_remember(state, &question);
    else /* there is no node to bind it to: nothing is reserved or requeued for it */
        (void)evaluate_question(state, &question);
    enum verdict_code code = question.verdict.code;
    metrics_count_verdict(&state->metrics, &question.verdict, &request->pod);
    struct slice reason = verdict_message(&question.verdict, &scratch->arena);
    if (code == CODE_ERROR && scratch->share.was_refused)
        return error_no_memory(err);
    if (code == CODE_ERROR) {
        *result = RESULT_ERROR;
        protocol_write_error(&scratch->answer, reason);
        return 0;
    }
    if (code_is_rejection(code))
        note_rejected(state, request, code, reason);
    if (call.nominee.len != 0)
        nomination_want(state->nominations, &request->pod.meta, call.nominee);
    else if (!code_is_rejection(code))
        nomination_unwant(state->nominations, request->pod.meta.uid);
    if (call.rejected_count != 0) {
        protocol_write_filtered(&scratch->answer, request, call.names, call.reasons);
        return 0;
    }
    if (code_is_rejection(code))
        return write_rejected(scratch, request, code, reason, err);
    scratch->result = protocol_pass(&scratch->body, request, &scratch->answer);
    return 0;
}

/* ---- prefilter ---- */

static int answer_prefilter(struct state *state, struct scratch *scratch, enum call_result *result,
                            struct error *err)
{
    struct pod_object pod;
    struct question question = {.pod = &pod, .arena = &scratch->arena};
    struct explained explained;
    struct fields out;

    (void)result;
    /* nodes are not read: the request may lack them */
    if (protocol_read_pod(&pod, buf_slice(&scratch->body), &scratch->arena, err) < 0)
        return err->code;
    (void)evaluate_question(state, &question); /* refreshes the cache: see evaluate.h */
    SCOPED_LOCK(&state->explaining);
    SCOPED_READ_LOCK(&state->lock);
    struct view view = state_view(state);
    bool has_memory = explain_prefilter(&explained, &view, &pod, &scratch->arena);
    fields_begin_compact(&out, &scratch->answer);
    if (has_memory)
        explained_put_prefilter(&out, &explained);
    return fields_end(&out) && has_memory && !scratch->share.was_refused ? 0 : error_no_memory(err);
}

/* ---- preempt ---- */

/* A preempt call, and its answer. */
struct preempt_call {
    struct preempt_request request;
    struct buf *answer;
    size_t kept; /* candidates that the answer keeps */
    bool offers; /* a candidate on which the pod would run as soon as its claims are free */
};

/* Whether the pod would run on a candidate as soon as its claims are free: all victims that the
 * scheduler offers there hold a claim, and no filter rejects the node. */
static bool offers_node(const struct preempt_request *request, const struct verdict *verdict,
                        struct arena *arena)
{
    struct slice reason;

    for (size_t i = 0; i < request->candidate_count; i++) {
        const struct candidate *candidate = &request->candidates[i];
        if (candidate->offers_rivals_only &&
            policy_filter(verdict, candidate->node, arena, &reason) == NULL)
            return true;
    }
    return false;
}

/* Decides about each candidate, and writes the answer, because its pods are valid under the lock
 * only. */
static void decide_preempt(struct question *question, const struct view *view)
{
    bool may_add = view->config->read_write_once_pod.preemption == SWITCH_ENABLED;
    struct preempt_call *call = question->context;

    policy_prefilter(view, question->pod, question->arena, &question->verdict);
    policy_preempt(view, question->pod, &question->verdict, question->arena,
                   call->request.candidates, call->request.candidate_count);
    for (size_t i = 0; i < call->request.candidate_count && !may_add; i++)
        if (call->request.candidates[i].added_count != 0)
            call->request.candidates[i].keeps_node = false;
    call->offers = question->verdict.code == CODE_UNSCHEDULABLE &&
                   offers_node(&call->request, &question->verdict, question->arena);
    buf_reset(call->answer, SCRATCH_KEEP_BYTES);
    call->kept = protocol_write_preempt(call->answer, &call->request);
    question->is_refused =
        question->verdict.code == CODE_ERROR || call->kept != call->request.candidate_count;
}

static int answer_preempt(struct state *state, struct scratch *scratch, enum call_result *result,
                          struct error *err)
{
    struct preempt_call call = {.answer = &scratch->answer};
    struct question question = {.pod = &call.request.pod,
                                .arena = &scratch->arena,
                                .decide = decide_preempt,
                                .context = &call};

    (void)result;
    if (protocol_read_preempt(&call.request, buf_slice(&scratch->body), &scratch->arena, err) < 0)
        return err->code;
    evaluate_and_remember(state, &question);
    if (question.verdict.code ==
        CODE_ERROR) /* a node that is left out would mean that preemption fails there */
        return error_set(err, ERROR_UNAVAILABLE, "%.*s", SLICE_ARG(question.verdict.reasons[0]));
    /* a scheduler that sees the conflict itself never calls filter for such a pod */
    if (call.offers)
        preemption_want(state, &call.request.pod);
    if (call.kept != 0)
        preemption_leave(state, call.request.pod.meta.uid);
    return 0;
}

/* ---- bind ---- */

/* Binds, unless too many binds are under way, waiting for the API server. */
static int bind_bounded(struct state *state, const struct bind_request *request,
                        struct arena *arena, struct error *refusal)
{
    struct shared_count binds = {&state->metrics.binds_in_flight,
                                 &state->binds_in[share_of(request->pod.ns)]};

    if (!share_take(&binds, BINDS_MAX, BINDS_SHARE))
        return error_set(refusal, ERROR_UNAVAILABLE,
                         "%d binds are under way, or as many as the namespace may have: try again",
                         BINDS_MAX);
    int rc = bind_pod(state, request, arena, refusal);
    share_give(&binds);
    return rc;
}

static int answer_bind(struct state *state, struct scratch *scratch, enum call_result *result,
                       struct error *err)
{
    struct bind_request request;
    struct error refusal = {0};

    if (protocol_read_bind(&request, buf_slice(&scratch->body), &scratch->arena, err) < 0)
        return err->code;
    if (bind_bounded(state, &request, &scratch->arena, &refusal) == 0) {
        metrics_forget_pod(&state->metrics, request.pod.uid);
    } else {
        *result = RESULT_ERROR;
        log_warn("bind refused", LOG_POD(&request.pod), LOG_SLICE("node", request.node),
                 LOG_STR("reason", refusal.message));
    }
    protocol_write_error(&scratch->answer, slice_of(refusal.message));
    return 0;
}

/*
 * ---- Volcano ----
 *
 * It asks about one pod and one node in each call, for as many nodes as it has workers at the
 * same time (pkg/scheduler/util/predicate_helper.go). The verdict is that of `filter` with this one
 * node. What a pod waits for and what it might preempt is left to Volcano: it tries each pod again
 * in its next cycle, and a trial does not say that the pod's gang has room, so nothing is evicted.
 */

/* Decides about the pod, and about the node if the verdict differs from node to node. */
static void decide_predicate(struct question *question, const struct view *view)
{
    const struct predicate_request *request = question->context;
    struct verdict *verdict = &question->verdict;
    struct view on_node = *view;
    struct slice reason;

    on_node.node = request->node;
    policy_prefilter(&on_node, question->pod, question->arena, verdict);
    bool was_final = verdict->code == CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    if (policy_filters_nodes(verdict))
        (void)policy_filter_nodes(verdict, &request->node, 1, question->arena, &reason);
    question->is_for_node = verdict->code == CODE_UNSCHEDULABLE_AND_UNRESOLVABLE && !was_final;
    question->is_refused = code_is_rejection(verdict->code);
}

static void count_predicate(struct state *state, const struct question *question)
{
    if (question->is_for_node)
        metrics_count_node_verdict(&state->metrics, &question->verdict);
    else
        metrics_count_verdict(&state->metrics, &question->verdict, question->pod);
}

static int answer_volcano_predicate(struct state *state, struct scratch *scratch,
                                    enum call_result *result, struct error *err)
{
    struct predicate_request request;
    struct question question = {.pod = &request.pod,
                                .arena = &scratch->arena,
                                .reserves = true,
                                .is_trial = true,
                                .decide = decide_predicate,
                                .context = &request};

    if (protocol_read_predicate(&request, buf_slice(&scratch->body), &scratch->arena, err) < 0)
        return err->code;
    evaluate_trial(state, &question);
    enum verdict_code code = question.verdict.code;
    count_predicate(state, &question);
    struct slice reason = verdict_message(&question.verdict, &scratch->arena);
    if (code == CODE_ERROR && scratch->share.was_refused)
        return error_no_memory(err);
    if (code == CODE_ERROR)
        *result = RESULT_ERROR;
    if (code_is_rejection(code))
        log_debug("pod rejected on a node", LOG_POD(&request.pod.meta),
                  LOG_SLICE("node", request.node), LOG_STR("code", code_text(code)),
                  LOG_SLICE("reason", reason));
    protocol_write_predicate(&scratch->answer, code, reason);
    return 0;
}

/* ---- a call ---- */

/* Writes an answer with status 200 that says that no decision could be made. */
static void write_undecided(struct buf *answer, enum verb verb, struct slice message)
{
    if (verb == VERB_VOLCANO_PREDICATE)
        protocol_write_predicate(answer, CODE_ERROR, message);
    else
        protocol_write_error(answer, message);
}

/* Writes the answer to a call before the cache is synced: an error that makes the scheduler try
 * again. Returns the HTTP status: 503 for preempt, whose answer has no field for an error. */
static unsigned answer_unsynced(enum verb verb, enum kind missing, struct scratch *scratch)
{
    struct slice message =
        arena_printf(&scratch->arena, "the cache is not synced yet: %s", kind_resource(missing));

    if (message.ptr == NULL)
        message = SLICE("the cache is not synced yet");
    if (verb == VERB_PREEMPT) {
        verb_write_failure(&scratch->answer, message.ptr);
        return 503;
    }
    if (verb != VERB_PREFILTER) {
        write_undecided(&scratch->answer, verb, message);
        return 200;
    }
    buf_put(&scratch->answer, SLICE("{\"code\":\"Error\",\"reasons\":["));
    buf_json(&scratch->answer, message);
    buf_put(&scratch->answer, SLICE("],\"warnings\":[],\"claims\":[],\"deferFSMount\":[]}"));
    return 200;
}

/* Writes why a call failed. For filter, bind and Volcano, errors that are not the caller's fault
 * are in an answer with 200, since the scheduler shows only the status of any other. */
static unsigned answer_failure(enum verb verb, struct scratch *scratch, const struct error *err,
                               enum call_result *result)
{
    bool is_invalid = err->code == ERROR_INVALID, is_busy = err->code == ERROR_UNAVAILABLE;
    bool has_error = verb != VERB_PREFILTER && verb != VERB_PREEMPT;

    buf_reset(&scratch->answer, SCRATCH_KEEP_BYTES);
    scratch_end_pieces(scratch);
    if (has_error && (is_busy || err->code == ERROR_TOO_BIG)) {
        *result = RESULT_ERROR;
        write_undecided(&scratch->answer, verb, slice_of(err->message));
        return 200;
    }
    *result = is_invalid ? RESULT_INVALID : RESULT_FAILED;
    verb_write_failure(&scratch->answer, err->message);
    return is_invalid ? 400 : is_busy ? 503 : 500;
}

static struct slice answer_without_memory(enum verb verb)
{
    return verb == VERB_VOLCANO_PREDICATE ? SLICE("{\"status\":\"out of memory\",\"code\":1}")
                                          : SLICE("{\"Error\":\"out of memory\"}");
}

/* Errors: that of the verb, or why the answer has not enough memory. */
static int check_memory(const struct scratch *scratch, int rc, struct error *err)
{
    if (rc == 0 && !scratch->answer.failed)
        return 0;
    if (scratch->share.was_refused)
        return error_set(err, ERROR_UNAVAILABLE, "other requests take too much memory");
    if (rc == 0)
        return error_set(err, ERROR_TOO_BIG, "the answer is over %d MiB", ANSWER_BYTES_MAX >> 20);
    return rc;
}

/* A verb writes its answer. Errors: ERROR_INVALID: the request is wrong; others: as answer_failure
 * has them. */
typedef int answer_function(struct state *state, struct scratch *scratch, enum call_result *result,
                            struct error *err);

unsigned verb_answer(struct state *state, enum verb verb, struct scratch *scratch)
{
    static answer_function *const functions[VERB_COUNT] = {
        answer_filter, answer_prefilter, answer_preempt, answer_bind, answer_volcano_predicate};
    enum call_result result = RESULT_OK;
    struct error err = {0};
    unsigned status = 200;
    uint64_t started = monotonic_ns();
    struct watched *watched = watchdog_begin(&state->watchdog, verb_texts[verb]);
    enum kind missing = state_unsynced(state);
    int rc = 0;

    scratch->result = (struct slice){NULL, 0};
    if (missing == KIND_COUNT) {
        rc = functions[verb](state, scratch, &result, &err);
    } else {
        result = RESULT_ERROR;
        status = answer_unsynced(verb, missing, scratch);
    }
    if (check_memory(scratch, rc, &err) < 0)
        status = answer_failure(verb, scratch, &err, &result);
    if (scratch->result.ptr == NULL) /* there may be no memory for the error either */
        scratch->result =
            scratch->answer.failed ? answer_without_memory(verb) : buf_slice(&scratch->answer);
    metrics_count_request(&state->metrics, verb, result, monotonic_ns() - started);
    watchdog_end(watched);
    return status;
}
