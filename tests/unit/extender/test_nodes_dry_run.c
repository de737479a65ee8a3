/* Verdicts that differ from node to node, in the dry run. */
#include "support/explained.h"
#include "support/node_policy.h"
#include "unit/extender/nodes_bench.h"

TestSuite(nodes_dry_run, .init = nodes_setup, .fini = nodes_teardown, .timeout = 60);

static json_t *explain(const char *name, size_t count, bool are_listed)
{
    static const struct slice names[] = {{"node-1", 6}, {"node-2", 6}, {"node-3", 6}};
    struct pod_object pod = {.meta = {.ns = SLICE("ns"), .name = slice_of(name)}};
    struct explained_nodes nodes = {names, count, are_listed};
    struct view view = state_view(&state);
    struct arena arena;

    arena_init(&arena, 1 << 20);
    json_t *result = explained_json(&view, &pod, &nodes, &arena);
    arena_dispose(&arena);
    cr_assert_not_null(result);
    return result;
}

Test(nodes_dry_run, the_dry_run_says_of_each_node_what_is_wrong_with_it)
{
    json_t *result = explain("tested", 3, false);

    expect_equal(result, "nodes",
                 "[{\"name\":\"node-1\",\"code\":\"UnschedulableAndUnresolvable\",\"reasons\":"
                 "[\"" NODE_POLICY_TESTED "\"]},"
                 "{\"name\":\"node-2\",\"code\":\"Success\",\"reasons\":[]},"
                 "{\"name\":\"node-3\",\"code\":\"UnschedulableAndUnresolvable\",\"reasons\":"
                 "[\"" NODE_POLICY_TESTED "\"]}]");
    expect_equal(result, "schedulable", "true");
    json_decref(result);
}

Test(nodes_dry_run, the_dry_run_calls_a_pod_that_passes_on_no_node_unschedulable)
{
    json_t *result = explain("tested", 1, false);

    expect_equal(result, "schedulable", "false");
    json_decref(result);
}

Test(nodes_dry_run, the_dry_run_lists_nodes_that_are_all_alike_if_it_is_asked)
{
    json_t *result = explain("plain", 3, false);

    expect_equal(result, "nodes", "[]");
    expect_equal(result, "schedulable", "true");
    json_decref(result);
    result = explain("plain", 1, true);
    expect_equal(result, "nodes", "[{\"name\":\"node-1\",\"code\":\"Success\",\"reasons\":[]}]");
    json_decref(result);
}
