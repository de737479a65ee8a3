/* When a nomination is cleared, and when a pod is forgotten. */
#include "unit/extender/nomination_bench.h"

TestSuite(nomination_end, .init = bench_setup, .fini = bench_teardown, .timeout = 60);

Test(nomination_end, it_stays_while_the_node_is_all_that_the_pod_waits_for)
{
    nominate("node-4");
    expect_sent(0);
}

Test(nomination_end, it_is_cleared_once_when_the_node_is_cordoned)
{
    nominate("node-4");
    put_node("node-4", NODE_IS_UNSCHEDULABLE);
    expect_sent(1);
    cr_expect_str_eq(last_body, "{\"metadata\":{\"uid\":\"" UID "\",\"resourceVersion\":\"2\"},"
                                "\"status\":{\"nominatedNodeName\":null}}");
    expect_sent(0);
    expect_count(NOMINATION_CLEARED, 1);
    put_pod("node-4", "3"); /* the pod has changed in between: that request was refused */
    expect_sent(1);
}

Test(nomination_end, another_one_s_is_not_cleared)
{
    nominate("node-4");
    put_node("node-4", NODE_IS_UNSCHEDULABLE);
    put_pod("node-1", "3");
    expect_sent(0);
}

Test(nomination_end, one_that_the_scheduler_has_made_for_the_same_node_is_not_cleared)
{
    want("node-4");
    put_pod("node-4", "2"); /* before ours was sent */
    put_node("node-4", NODE_IS_UNSCHEDULABLE);
    expect_sent_in(3600, 0);
}

Test(nomination_end, a_clear_that_failed_is_repeated)
{
    nominate("node-4");
    put_node("node-4", NODE_IS_UNSCHEDULABLE);
    expect_sent(1); /* the API server answers 503: the pod does not change */
    expect_sent_in(3, 0);
    expect_sent_in(1, 1);
    expect_sent_in(7, 0);
    expect_sent_in(1, 1);
    expect_sent_in(3600, 4 + 13);
    put_pod("", "3");
    expect_sent_in(3600, 0);
}

Test(nomination_end, a_clear_that_failed_is_not_repeated_if_the_reason_is_back)
{
    nominate("node-4");
    put_node("node-4", NODE_IS_UNSCHEDULABLE);
    expect_sent(1);
    put_node("node-4", 0);
    expect_sent_in(60, 0);
}

Test(nomination_end, one_that_arrives_when_another_node_is_wanted_is_cleared)
{
    put_node("node-2", 0);
    send_to("node-4");
    want("node-2"); /* the pod is rejected again before the watch shows it */
    put_pod("node-4", "2");
    put_node("node-4", NODE_IS_UNSCHEDULABLE);
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(1);
    cr_expect_neq(strstr(last_body, "null"), NULL);
    put_pod("", "3");
    expect_sent(1);
    cr_expect_neq(strstr(last_body, "node-2"), NULL);
    put_pod("node-4", "4"); /* a late one */
    expect_sent(1);
    put_pod("node-2", "5");
    expect_sent(0);
}

Test(nomination_end, another_node_waits_until_the_first_one_has_arrived_or_failed)
{
    put_node("node-2", 0);
    send_to("node-4");
    want("node-2");
    expect_sent_in(3, 0);
    expect_sent_in(1, 1);
    cr_expect_neq(strstr(last_body, "node-2"), NULL);
}

Test(nomination_end, it_stays_while_no_verdict_can_be_made)
{
    nominate("node-4");
    is_error = true;
    expect_sent_in(60, 0);
    has_no_memory = true;
    expect_sent_in(60, 0);
    put_node("node-4", NODE_IS_UNSCHEDULABLE); /* no verdict is needed */
    expect_sent(1);
}

/* The pod's record is gone after the next tick. */
static void expect_forgotten(void)
{
    expect_known(1);
    nomination_tick(&state);
    expect_known(0);
    cr_expect_eq(sent, 0);
}

Test(nomination_end, a_pod_that_is_bound_is_forgotten)
{
    struct object pod = {.kind = KIND_POD, .pod = waiting};
    struct error err = {0};

    want("node-4");
    pod.pod.node = SLICE("node-4");
    cr_assert_eq(cluster_apply(&state.cluster, &pod, &err), 0);
    expect_forgotten();
}

Test(nomination_end, a_pod_that_is_gone_is_forgotten)
{
    struct object pod = {.kind = KIND_POD, .pod = waiting};

    want("node-4");
    nomination_tick(&state);
    cluster_delete(&state.cluster, &pod);
    expect_forgotten();
}
