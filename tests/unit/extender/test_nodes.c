/* Verdicts that differ from node to node, on their way through a filter call. */
#include "cache/cluster/reservation.h"
#include "extender/serving/live/requeue.h"
#include "support/node_policy.h"
#include "unit/extender/nodes_bench.h"

enum { NODES = 5 };

TestSuite(nodes, .init = nodes_setup, .fini = nodes_teardown, .timeout = 60);

#define POD(name_, claim_) \
    "{\"metadata\":{\"name\":\"" name_ "\",\"namespace\":\"ns\",\"uid\":\"u\"},\"spec\":{" \
    "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"" claim_ "\"}}]}}"
#define NAMES "\"NodeNames\":[\"node-1\",\"node-2\",\"node-3\",\"node-\\u0034\",\"node-5\"]"

/* A node with something behind its name, which comes back as it came. */
#define NODE(name_) "{\"metadata\":{\"name\":\"" name_ "\"},\"spec\":{\"x\" : [1]}}"

/* The filter answer, which the caller frees. */
static json_t *filter(const char *body)
{
    scratch_reset(&scratch);
    buf_put(&scratch.body, slice_of(body));
    cr_assert_eq(verb_answer(&state, VERB_FILTER, &scratch), 200);
    json_t *answer = json_loadb(scratch.result.ptr, scratch.result.len, 0, NULL);
    cr_assert_not_null(answer, "%.*s", SLICE_ARG(scratch.result));
    cr_expect_str_eq(json_string_value(json_object_get(answer, "Error")), "");
    return answer;
}

static bool has_reservation(void)
{
    return state.cluster.reservations != NULL;
}

Test(nodes, names_that_pass_are_kept_and_the_others_have_the_tests_reason)
{
    json_t *answer = filter("{\"Pod\":" POD("tested", "free") "," NAMES "}");

    expect_equal(answer, "NodeNames", "[\"node-2\",\"node-4\"]");
    expect_equal(answer, "Nodes", "null");
    expect_equal(answer, "FailedNodes", "{}");
    expect_equal(answer, "FailedAndUnresolvableNodes",
                 "{\"node-1\":\"" NODE_POLICY_TESTED "\",\"node-3\":\"" NODE_POLICY_TESTED
                 "\",\"node-5\":\"" NODE_POLICY_TESTED "\"}");
    cr_expect(has_reservation(), "it passes somewhere: its claim is reserved");
    json_decref(answer);
}

/* Those that stand side by side are copied at once. */
Test(nodes, names_that_pass_are_written_once_however_they_are_separated)
{
    json_t *answer = filter(
        "{\"Pod\":" POD("tested", "free") ",\"NodeNames\":[ \"node-2\",\"node-4\", \"node-2\""
                                          ",\"node-1\",\"node-4\",\"node-\\u0034\",\"node-2\","
                                          "\"node-3\",\"node-2\",\"node-4\"\n]}");

    expect_equal(answer, "NodeNames",
                 "[\"node-2\",\"node-4\",\"node-2\",\"node-4\",\"node-4\",\"node-2\",\"node-2\","
                 "\"node-4\"]");
    expect_equal(answer, "FailedAndUnresolvableNodes",
                 "{\"node-1\":\"" NODE_POLICY_TESTED "\",\"node-3\":\"" NODE_POLICY_TESTED "\"}");
    json_decref(answer);
}

Test(nodes, a_pod_that_every_node_rejects_loses_the_reservation_of_an_earlier_call)
{
    json_decref(filter("{\"Pod\":" POD("tested", "free") "," NAMES "}"));
    cr_expect(has_reservation());
    json_decref(filter("{\"Pod\":" POD("tested", "free") ",\"NodeNames\":[\"node-1\"]}"));
    cr_expect(!has_reservation());
}

static void reserve_for_a_preemptor(void)
{
    json_decref(filter("{\"Pod\":" POD("tested", "free") "," NAMES "}"));
    state.cluster.reservations->is_of_preemptor = true;
    json_decref(filter("{\"Pod\":" POD("tested", "free") "," NAMES "}"));
    cr_assert(has_reservation(), "it was renewed");
}

/* Pods were evicted for it: the next offer may have a node on which it passes. */
Test(nodes, a_preemptor_that_every_node_rejects_keeps_its_reservation)
{
    reserve_for_a_preemptor();
    json_decref(filter("{\"Pod\":" POD("tested", "free") ",\"NodeNames\":[\"node-1\"]}"));
    cr_expect(has_reservation());
}

Test(nodes, a_preemptor_that_is_rejected_for_itself_loses_its_reservation)
{
    struct object claim = {.kind = KIND_CLAIM, .meta = {.ns = SLICE("ns"), .name = SLICE("free")}};

    reserve_for_a_preemptor();
    claim.meta.deletion_timestamp = SLICE("set");
    claim.claim = (struct claim_object){.meta = claim.meta, .is_rwop = true};
    apply(&claim);
    json_decref(filter("{\"Pod\":" POD("tested", "free") "," NAMES "}"));
    cr_expect(!has_reservation());
}

/* Binds pod "tested" to node-1, which rejects it. */
static void bind_to_a_wrong_node(void)
{
    struct object pod = {.kind = KIND_POD,
                         .meta = {.ns = SLICE("ns"), .name = SLICE("tested"), .uid = SLICE("u")}};
    struct claim_reference claim = {.name = SLICE("free")};

    pod.pod = (struct pod_object){.meta = pod.meta, .claims = &claim, .claim_count = 1};
    apply(&pod);
    cr_expect(has_reservation());
    scratch_reset(&scratch);
    buf_put(&scratch.body, SLICE("{\"PodName\":\"tested\",\"PodNamespace\":\"ns\","
                                 "\"PodUID\":\"u\",\"Node\":\"node-1\"}"));
    cr_assert_eq(verb_answer(&state, VERB_BIND, &scratch), 200);
    cr_expect(slice_has(scratch.result, SLICE(NODE_POLICY_TESTED)), "%.*s",
              SLICE_ARG(scratch.result));
}

Test(nodes, a_bind_that_its_node_refuses_ends_the_reservation)
{
    json_decref(filter("{\"Pod\":" POD("tested", "free") "," NAMES "}"));
    bind_to_a_wrong_node();
    cr_expect(!has_reservation());
}

Test(nodes, a_bind_that_its_node_refuses_leaves_a_preemptor_its_reservation)
{
    reserve_for_a_preemptor();
    bind_to_a_wrong_node();
    cr_expect(has_reservation());
}

Test(nodes, objects_that_pass_are_copied_as_they_came)
{
    json_t *answer = filter(
        "{\"Pod\":" POD("tested", "free") ",\"Nodes\":{\"kind\":\"NodeList\","
                                          "\"items\":[" NODE("node-1") "," NODE("node-2") "]}}");

    expect_equal(answer, "NodeNames", "null");
    expect_equal(answer, "Nodes", "{\"metadata\":{},\"items\":[" NODE("node-2") "]}");
    expect_equal(answer, "FailedAndUnresolvableNodes", "{\"node-1\":\"" NODE_POLICY_TESTED "\"}");
    json_decref(answer);
}

Test(nodes, a_list_rejects_the_nodes_that_are_not_in_it)
{
    json_t *answer = filter("{\"Pod\":" POD("listed", "free") "," NAMES "}");

    expect_equal(answer, "NodeNames", "[\"node-2\",\"node-4\"]");
    json_decref(answer);
}

Test(nodes, the_first_policy_that_rejects_a_node_gives_the_reason)
{
    json_t *answer = filter("{\"Pod\":" POD(
        "listed-and-tested", "free") ",\"NodeNames\":[\"node-1\",\"node-2\",\"node-6\"]}");

    expect_equal(answer, "NodeNames", "[\"node-2\"]");
    expect_equal(answer, "FailedAndUnresolvableNodes",
                 "{\"node-1\":\"" NODE_POLICY_LISTED "\",\"node-6\":\"" NODE_POLICY_LISTED "\"}");
    json_decref(answer);
}

Test(nodes, a_pod_that_passes_on_no_node_is_rejected_and_reserves_nothing)
{
    json_t *answer =
        filter("{\"Pod\":" POD("tested", "free") ",\"NodeNames\":[\"node-1\",\"node-3\"]}");

    expect_equal(answer, "NodeNames", "[]");
    expect_equal(answer, "FailedNodes", "{}");
    expect_equal(answer, "FailedAndUnresolvableNodes",
                 "{\"node-1\":\"" NODE_POLICY_TESTED "\",\"node-3\":\"" NODE_POLICY_TESTED "\"}");
    cr_expect_not(has_reservation());
    json_decref(answer);
}

/* A requeue would change the pod while it is bound to the node that is left. */
Test(nodes, a_pod_that_passes_on_a_node_waits_for_none_of_the_others)
{
    static const char some[] = "{\"Pod\":" POD("tested-waiting", "free") "," NAMES "}";
    static const char none[] =
        "{\"Pod\":" POD("tested-waiting", "free") ",\"NodeNames\":[\"node-1\",\"node-3\"]}";

    json_decref(filter(some));
    cr_expect_eq(requeue_waiting(state.requeue), 0);
    json_decref(filter(none));
    cr_expect_eq(requeue_waiting(state.requeue), 1, "it is rejected");
    json_decref(filter(some));
    cr_expect_eq(requeue_waiting(state.requeue), 0, "it passes again");
}

#define SPACED "[ \"node-2\" , \"node-4\"]"

Test(nodes, where_every_node_passes_the_list_comes_back_as_it_came)
{
    static const char list[] = SPACED;
    json_t *answer = filter("{\"Pod\":" POD("tested", "free") ",\"NodeNames\":" SPACED "}");

    cr_expect_not_null(memmem(scratch.result.ptr, scratch.result.len, list, sizeof list - 1));
    json_decref(answer);
}

Test(nodes, a_pod_that_is_rejected_is_rejected_on_every_node_for_that)
{
    json_t *answer = filter("{\"Pod\":" POD("tested", "held") ",\"NodeNames\":[\"node-1\"]}");

    expect_equal(answer, "NodeNames", "[]");
    expect_equal(answer, "FailedAndUnresolvableNodes",
                 "{\"node-1\":\"claim ns/held is in use by pod ns/holder on node-2\"}");
    json_decref(answer);
}

Test(nodes, no_nodes_are_no_rejection)
{
    json_t *answer = filter("{\"Pod\":" POD("tested", "free") ",\"NodeNames\":[]}");

    expect_equal(answer, "NodeNames", "[]");
    expect_equal(answer, "FailedAndUnresolvableNodes", "{}");
    json_decref(answer);
}

Test(nodes, no_node_objects_are_no_rejection)
{
    json_t *answer = filter("{\"Pod\":" POD("tested", "free") ",\"Nodes\":{\"items\":[]}}");

    expect_equal(answer, "FailedAndUnresolvableNodes", "{}");
    json_decref(answer);
}

Test(nodes, a_rejection_on_every_node_counts_for_the_policy_that_rejects)
{
    json_decref(filter("{\"Pod\":" POD("tested", "free") ",\"NodeNames\":[\"node-1\"]}"));
    cr_expect_eq(atomic_load(&state.metrics.verdicts[2][CODE_UNSCHEDULABLE_AND_UNRESOLVABLE]), 1);
}

Test(nodes, an_answer_that_is_too_large_is_an_error_of_the_call)
{
    struct buf *body = &scratch.body;

    scratch_reset(&scratch);
    scratch.answer.max_bytes = 1000;
    buf_put(body, SLICE("{\"Pod\":" POD("tested", "free") ",\"NodeNames\":[\"node-2\""));
    for (int i = 0; i < 1000; i++)
        buf_put(body, SLICE(",\"node-1\""));
    buf_put(body, SLICE("]}"));
    cr_expect_eq(verb_answer(&state, VERB_FILTER, &scratch), 200);
    cr_expect_not_null(memmem(scratch.result.ptr, scratch.result.len, "the answer is over", 18));
}

Test(nodes, a_bind_to_a_node_that_is_rejected_is_refused)
{
    static const char bind[] = "{\"PodName\":\"tested\",\"PodNamespace\":\"ns\",\"PodUID\":"
                               "\"20000000-0000-4000-8000-000000000000\",\"Node\":\"node-1\"}";
    struct claim_reference wanted = {.name = SLICE("free")};
    struct object pod = {.kind = KIND_POD};

    pod.meta = (struct meta){.ns = SLICE("ns"),
                             .name = SLICE("tested"),
                             .uid = SLICE("20000000-0000-4000-8000-000000000000")};
    pod.pod = (struct pod_object){.meta = pod.meta, .claims = &wanted, .claim_count = 1};
    apply(&pod);
    scratch_reset(&scratch);
    buf_put(&scratch.body, SLICE(bind));
    cr_expect_eq(verb_answer(&state, VERB_BIND, &scratch), 200);
    cr_expect(slice_equal(scratch.result, SLICE("{\"Error\":\"" NODE_POLICY_TESTED "\"}")), "%.*s",
              SLICE_ARG(scratch.result));
}

/* A call about so many nodes that the verdict needs more memory than reading it. */
static void put_large_call(struct buf *body)
{
    buf_put(body, SLICE("{\"Pod\":" POD("tested", "free") ",\"NodeNames\":[\"node-0\""));
    for (int i = 1; i < 5000; i++)
        buf_printf(body, ",\"node-%d\"", i);
    buf_put(body, SLICE("]}"));
}

/* The memory of all calls is gone at some point of this call; then the pod is not to blame. */
Test(nodes, memory_that_other_calls_have_is_not_the_pods_fault)
{
    size_t refused = 0;

    for (size_t max = 0; max < 1 << 20; max += 8192) {
        struct quota quota = {.max_bytes = 8 << 20};
        struct scratch poor;
        scratch_init(&poor, BODY_BYTES_MAX, &quota);
        put_large_call(&poor.body);
        atomic_store(&quota.max_bytes, atomic_load(&quota.used_bytes) + max);
        (void)verb_answer(&state, VERB_FILTER, &poor);
        cr_expect_not(slice_has(poor.result, SLICE("needs too much memory")), "%zu", max);
        refused += slice_has(poor.result, SLICE("other requests take too much memory"));
        scratch_dispose(&poor);
    }
    cr_expect_gt(refused, 2);
    cr_expect_lt(refused, 100, "at last there is enough");
}
