/*
 * Volcano asks about one pod and one node in each call, for as many nodes as it has workers at the
 * same time (pkg/scheduler/util/predicate_helper.go). The verdict is that of `filter` with this one
 * node. What a pod waits for and what it might preempt is left to Volcano: it tries each pod again
 * in its next cycle, and a trial does not say that the pod's gang has room, so nothing is evicted.
 */
#include "config/base/log.h"
#include "extender/live/evaluate.h"
#include "extender/protocol/protocol.h"
#include "extender/verbs/verbs_internal.h"

/* Decides about the pod, and about the node if the verdict differs from node to node. */
static void decide_predicate(struct question *question, const struct view *view)
{
    const struct predicate_request *request = question->context;
    struct verdict *verdict = &question->verdict;
    struct view on_node = *view;
    struct slice reason;

    on_node.node = request->node;
    policy_prefilter(&on_node, question->pod, question->arena, verdict, &question->decided_by);
    bool was_final = verdict->code == CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    if (policy_filters_nodes(verdict))
        (void)policy_filter_nodes(verdict, &request->node, 1, question->arena, &reason,
                                  &question->decided_by);
    question->is_for_node = verdict->code == CODE_UNSCHEDULABLE_AND_UNRESOLVABLE && !was_final;
    question->is_refused = code_is_rejection(verdict->code);
}

static void count(struct state *state, const struct question *question)
{
    if (question->is_for_node)
        metrics_count_node_verdict(&state->metrics, question->decided_by, question->verdict.code);
    else
        metrics_count_verdict(&state->metrics, question->decided_by, &question->verdict,
                              question->pod);
}

int answer_volcano_predicate(struct state *state, struct scratch *scratch, enum call_result *result,
                             struct error *err)
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
    count(state, &question);
    struct slice reason = verdict_message(&question.verdict, &scratch->arena);
    if (code == CODE_ERROR && scratch->share.was_refused)
        return error_no_memory(err);
    if (code == CODE_ERROR)
        *result = RESULT_ERROR;
    if (code_is_rejection(code))
        log_debug("pod rejected on a node", LOG_SLICE("namespace", request.pod.meta.ns),
                  LOG_SLICE("pod", request.pod.meta.name), LOG_SLICE("node", request.node),
                  LOG_STR("code", code_text(code)), LOG_SLICE("reason", reason));
    protocol_write_predicate(&scratch->answer, code, reason);
    return 0;
}
