/* The rules of the preemption that claimguard starts itself, a row each. */
#include <stdio.h>
#include <string.h>

#include "simulation/rows.h"

enum { DATA = 1, LOGS = 2, BOTH = 3 }; /* claims */

/* ---- the rows ---- */

static void a_holder_of_lower_priority_is_evicted_and_the_preemptor_bound(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);

    wait_seconds(4);
    expect(is_asked_to_go(low), "the holder is evicted");
    wait_seconds(60);
    expect(high->node >= 0 && low->preemption == 1, "the preemptor is bound, after one eviction");
}

static void the_scheduler_has_its_grace(void)
{
    struct sim_pod *low = holder("low", 10, DATA);

    (void)create("high", 100, DATA);
    world_run(world.now_ns + 900 * MILLISECOND, NULL);
    expect(!is_asked_to_go(low), "the grace is not over");
}

static void a_scheduler_that_preempts_is_left_to_it(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);

    world.schedulers[0].preempts = true;
    wait_seconds(60);
    expect(!low->exists && low->preemption == 0 && high->node >= 0, "the scheduler deleted it");
}

static void a_scheduler_that_was_not_heard_is_not_left_to_it_for_ever(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);

    world.schedulers[0].preempts = true;
    world.lost_preempts = 100;
    wait_seconds(8);
    expect(!is_asked_to_go(low), "it has its time");
    wait_seconds(30);
    expect(low->preemption == 1 && high->node >= 0, "then the holder is evicted");
}

static void preemption_disabled_evicts_nobody(void)
{
    struct sim_pod *low = holder("low", 10, DATA);

    (void)create("high", 100, DATA); /* any eviction is an error: see check_eviction */
    wait_seconds(60);
    expect(!is_asked_to_go(low), "nobody is evicted");
}

static void a_pod_that_never_preempts_evicts_nobody(void)
{
    struct sim_pod *low = holder("low", 10, DATA);

    (void)server_create_pod(
        "never",
        &(struct sim_pod){.priority = 100, .never = true, .claims = DATA, .is_protected = false});
    wait_seconds(60);
    expect(!is_asked_to_go(low), "nobody is evicted");
}

static void a_pod_of_a_scheduling_group_evicts_nobody(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high;

    (void)server_create_pod("member",
                            &(struct sim_pod){.priority = 100, .is_grouped = true, .claims = DATA});
    wait_seconds(60);
    expect(!is_asked_to_go(low), "nobody is evicted");
    high = create("high", 100, DATA);
    wait_seconds(60);
    expect(low->preemption == 1 && high->node >= 0, "it is for a pod without a group");
}

/* As a group whose quorum never fits is tried: its members pass, and are not bound. */
static void a_scheduling_group_that_is_tried_again_and_again_keeps_no_claim(void)
{
    struct sim_pod *member, *other;

    world.schedulers[0].is_up = false;
    member = server_create_pod(
        "member", &(struct sim_pod){.priority = 100, .is_grouped = true, .claims = DATA});
    other = create("other", 100, DATA);
    wait_seconds(1);
    expect(filter_passes(member), "the claim is free");
    for (unsigned tries = 0; tries < 15 && !filter_passes(other); tries++) {
        (void)filter_passes(member);
        wait_seconds(1);
    }
    expect(filter_passes(other), "it gets its turn");
}

static void equal_priority_evicts_nobody(void)
{
    struct sim_pod *first = holder("first", 100, DATA);

    (void)create("second", 100, DATA);
    wait_seconds(60);
    expect(!is_asked_to_go(first), "nobody is evicted");
}

static void one_conflict_that_stays_saves_the_other_holder(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *equal = holder("equal", 100, LOGS);

    (void)create("high", 100, BOTH);
    wait_seconds(60);
    expect(!is_asked_to_go(low) && !is_asked_to_go(equal), "nobody is evicted");
}

static void nothing_is_evicted_for_a_pod_that_is_gone(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);

    world_run(world.now_ns + 500 * MILLISECOND, NULL);
    server_terminate(high, 0);
    wait_seconds(60);
    expect(!is_asked_to_go(low), "nobody is evicted");
}

/* The watch is late: only the API server knows that the pod is gone. */
static void nothing_is_evicted_for_a_pod_of_which_only_the_api_server_knows_that_it_is_gone(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);

    world_run(world.now_ns + 500 * MILLISECOND, NULL);
    world.replicas[0].is_watching[KIND_POD] = false;
    server_terminate(high, 0);
    wait_seconds(60);
    expect(!is_asked_to_go(low), "nobody is evicted");
}

static void nothing_is_evicted_for_a_pod_that_is_bound(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);

    world_run(world.now_ns + 500 * MILLISECOND, NULL);
    high->node = 0; /* someone set it */
    server_touch(high);
    wait_seconds(60);
    expect(!is_asked_to_go(low), "nobody is evicted");
}

static void nothing_is_evicted_for_a_pod_whose_priority_has_changed(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);

    world_run(world.now_ns + 500 * MILLISECOND, NULL);
    world.schedulers[0].is_up = false; /* which would else ask again */
    high->priority = 50;
    server_touch(high);
    wait_seconds(60);
    expect(!is_asked_to_go(low), "nobody is evicted");
}

static void ignore(void *context, const char *answer)
{
    (void)context;
    expect(answer != NULL, "an answer");
}

static void nothing_is_evicted_when_no_node_was_offered(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high;

    world.schedulers[0].is_up = false;
    high = create("high", 100, DATA);
    char body[512];
    (void)snprintf(body, sizeof body,
                   "{\"Pod\":{\"metadata\":{\"name\":\"high\",\"namespace\":\"ns\",\"uid\":\"%s\"},"
                   "\"spec\":{\"priority\":100,\"volumes\":[{\"name\":\"v\","
                   "\"persistentVolumeClaim\":{\"claimName\":\"c0\"}}]}},\"NodeNames\":[]}",
                   high->uid);
    replica_call(0, VERB_FILTER, body, ignore, NULL);
    wait_seconds(60);
    expect(!is_asked_to_go(low), "nobody is evicted");
}

/* The holder goes, and comes again elsewhere, which only the API server knows; and one that waits,
 * of whom the scheduler asks only in preempt calls. */
static struct sim_pod *replace_holder_unnoticed(struct sim_pod **waiting)
{
    struct sim_pod *low = holder("low", 10, DATA);

    world.schedulers[0].is_up = false;
    *waiting = create("high", 100, DATA);
    wait_seconds(1);
    world.replicas[0].is_watching[KIND_POD] = false;
    server_terminate(low, 0);
    low = create("low", 10, DATA);
    low->node = (world.server.pods[0].node + 1) % NODES;
    server_touch(low);
    return low;
}

static void preempt_keeps_a_node_of_which_only_the_api_server_knows(void)
{
    static const char *const nodes[] = {"node-0", "node-1", "node-2"};
    struct sim_pod *high, *low = replace_holder_unnoticed(&high);

    expect(preempt_keeps(high, nodes[low->node], low), "the node is kept");
}

static void preempt_adds_a_victim_of_which_only_the_api_server_knows(void)
{
    static const char *const nodes[] = {"node-0", "node-1", "node-2"};
    struct sim_pod *high, *low = replace_holder_unnoticed(&high);

    expect(preempt_keeps(high, nodes[low->node], NULL) && strstr(call_answer(), low->uid) != NULL,
           "the node is kept, with its holder");
}

static void preempt_asks_nobody_when_it_keeps_all_nodes(void)
{
    static const char *const nodes[] = {"node-0", "node-1", "node-2"};
    struct sim_pod *low = holder("low", 10, DATA), *high;

    world.schedulers[0].is_up = false;
    high = create("high", 100, DATA);
    wait_seconds(1);
    unsigned requests = world.requests;
    expect(preempt_keeps(high, nodes[low->node], low), "the node is kept");
    expect(world.requests == requests, "nobody is asked");
}

static void a_budget_forbids_it_until_it_allows_one(void)
{
    struct sim_pod *low = create_protected("low", DATA), *high;

    wait_seconds(2);
    server_set_budget(0);
    high = create("high", 100, DATA);
    wait_seconds(30);
    expect(!is_asked_to_go(low), "nobody is evicted");
    expect(world.replicas[0].state.cluster.reserved.count == 0, "nothing is reserved");
    server_set_budget(1);
    wait_seconds(60);
    expect(low->preemption == 1 && high->node >= 0, "then it is evicted");
}

static void budgets_that_are_not_respected_do_not_matter(void)
{
    struct sim_pod *low = create_protected("low", DATA), *high;

    wait_seconds(2);
    server_set_budget(0);
    high = create("high", 100, DATA);
    wait_seconds(60);
    expect(low->preemption == 1 && high->node >= 0, "it is deleted");
}

static void two_holders_of_which_a_budget_allows_one_both_stay(void)
{
    struct sim_pod *one = create_protected("one", DATA);
    struct sim_pod *two = create_protected("two", LOGS);

    wait_seconds(2);
    server_set_budget(1);
    (void)create("high", 100, BOTH);
    wait_seconds(30);
    expect(!is_asked_to_go(one) && !is_asked_to_go(two), "nobody is evicted");
}

static void two_holders_are_evicted_together(void)
{
    struct sim_pod *one = holder("one", 10, DATA), *two = holder("two", 10, LOGS);
    struct sim_pod *high = create("high", 100, BOTH);

    wait_seconds(60);
    expect(one->preemption == 1 && two->preemption == 1 && high->node >= 0, "both, once");
}

static void a_terminating_holder_is_waited_for_and_not_evicted(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high;

    server_terminate(low, 40 * SECOND);
    high = create("high", 100, DATA);
    wait_seconds(60);
    expect(low->preemption == 0 && high->node >= 0, "it went by itself");
}

static void the_claim_is_kept_for_the_preemptor(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high, *other;

    server_terminate(low, 40 * SECOND); /* longer than the reservation lasts by itself */
    high = create("high", 100, DATA);
    wait_seconds(5);
    other = create("other", 50, DATA);
    wait_seconds(5);
    expect(strstr(other->condition, "reserved for pod ns/high") != NULL, "others get this reason");
    wait_seconds(60);
    expect(high->node >= 0 && other->node < 0, "nobody else gets it");
}

/* Its scheduler does not ask again: the claim is kept for a while, and then no more. */
static void the_claim_is_kept_for_a_preemptor_whose_bind_is_refused(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *other;

    (void)create("high", 100, DATA);
    for (int seconds = 0; seconds < 60 && low->exists; seconds++)
        wait_seconds(1);
    world.fault = (struct planned_fault){
        .count = 1, .method = "PATCH", .path = "/c0", .fate = FATE_LOST, .status = 503};
    for (int seconds = 0; seconds < 60 && world.fault.count != 0; seconds++)
        wait_seconds(1);
    world.schedulers[0].is_up = false;
    other = create("other", 10, DATA);
    wait_seconds(1);
    expect(!filter_passes(other), "nobody else gets it");
    wait_seconds(80);
    expect(filter_passes(other), "nobody waits for ever");
}

/* Its scheduler tries again and again. */
static void a_preemptor_that_is_never_bound_does_not_keep_the_claim(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *other = NULL;
    bool passes = false;

    (void)create("high", 100, DATA);
    for (int seconds = 0; seconds < 60 && low->exists; seconds++)
        wait_seconds(1);
    world.fault = (struct planned_fault){
        .count = 10000, .method = "PATCH", .path = "/c0", .fate = FATE_LOST, .status = 503};
    other = server_create_pod("other",
                              &(struct sim_pod){.priority = 10, .claims = DATA, .scheduler = 1});
    for (int seconds = 0; seconds < 240 && !passes; seconds++)
        passes = filter_passes(other);
    expect(passes, "another gets its turn");
}

static void the_higher_of_two_preemptors_gets_the_claim(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *middle = create("middle", 50, DATA), *high;

    server_terminate(low, 40 * SECOND);
    wait_seconds(5);
    high = create("high", 100, DATA);
    wait_seconds(60);
    expect(high->node >= 0 && middle->preemption == 0, "after no further eviction");
}

static void lock_claims(void)
{
    world.is_annotation = true;
}

static void disable_preemption(void)
{
    world.preempts = false;
}

static void ignore_budgets(void)
{
    world.respects_budgets = false;
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(a_holder_of_lower_priority_is_evicted_and_the_preemptor_bound), NULL},
        {ROW(the_scheduler_has_its_grace), NULL},
        {ROW(a_scheduler_that_preempts_is_left_to_it), NULL},
        {ROW(a_scheduler_that_was_not_heard_is_not_left_to_it_for_ever), NULL},
        {ROW(preemption_disabled_evicts_nobody), disable_preemption},
        {ROW(a_pod_that_never_preempts_evicts_nobody), NULL},
        {ROW(a_pod_of_a_scheduling_group_evicts_nobody), NULL},
        {ROW(a_scheduling_group_that_is_tried_again_and_again_keeps_no_claim), NULL},
        {ROW(equal_priority_evicts_nobody), NULL},
        {ROW(one_conflict_that_stays_saves_the_other_holder), NULL},
        {ROW(nothing_is_evicted_for_a_pod_that_is_gone), NULL},
        {ROW(nothing_is_evicted_for_a_pod_of_which_only_the_api_server_knows_that_it_is_gone),
         NULL},
        {ROW(nothing_is_evicted_for_a_pod_that_is_bound), NULL},
        {ROW(nothing_is_evicted_for_a_pod_whose_priority_has_changed), NULL},
        {ROW(nothing_is_evicted_when_no_node_was_offered), NULL},
        {ROW(preempt_keeps_a_node_of_which_only_the_api_server_knows), disable_preemption},
        {ROW(preempt_adds_a_victim_of_which_only_the_api_server_knows), NULL},
        {ROW(preempt_asks_nobody_when_it_keeps_all_nodes), NULL},
        {ROW(a_budget_forbids_it_until_it_allows_one), NULL},
        {ROW(budgets_that_are_not_respected_do_not_matter), ignore_budgets},
        {ROW(two_holders_of_which_a_budget_allows_one_both_stay), NULL},
        {ROW(two_holders_are_evicted_together), NULL},
        {ROW(a_terminating_holder_is_waited_for_and_not_evicted), NULL},
        {ROW(the_claim_is_kept_for_the_preemptor), NULL},
        {ROW(the_claim_is_kept_for_a_preemptor_whose_bind_is_refused), lock_claims},
        {ROW(a_preemptor_that_is_never_bound_does_not_keep_the_claim), lock_claims},
        {ROW(the_higher_of_two_preemptors_gets_the_claim), NULL},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
