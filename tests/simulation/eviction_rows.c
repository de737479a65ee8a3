/*
 * When claimguard evicts, a row each: only for a pod about which the scheduler has asked lately;
 * and one eviction waits for no other.
 */
#include <stdio.h>

#include "simulation/rows.h"

enum { DATA = 1, LOGS = 2, BOTH = 3, MORE = 4 }; /* claims */

/* ---- the scheduler is to have asked lately ---- */

static bool nothing_is_wanted(void)
{
    return preemption_due_ns(world.replicas[0].state.preemption) == UINT64_MAX;
}

/* One that waits while a budget forbids it, and then no node is left for it. */
static struct sim_pod *wait_until_no_node_is_left(struct sim_pod **low)
{
    *low = create_protected("low", DATA);
    wait_seconds(2);
    server_set_budget(0);
    struct sim_pod *high = create("high", 100, DATA);
    wait_seconds(20);
    world.is_full = true;
    server_set_budget(1);
    return high;
}

static void nothing_is_evicted_before_the_scheduler_asks_again(void)
{
    struct sim_pod *low, *high = wait_until_no_node_is_left(&low);

    wait_seconds(60);
    expect(!is_asked_to_go(low), "no node is left: nobody is evicted");
    expect(high->requeues != 0, "the scheduler is asked to look again");
    world.is_full = false;
    server_touch(high); /* as an event of a node */
    wait_seconds(60);
    expect(low->preemption == 1 && high->node >= 0, "then it is evicted");
}

static void the_same_without_budgets_and_after_a_failure(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high;

    world.fault = (struct planned_fault){
        .count = 3, .method = "DELETE", .path = "/low", .fate = FATE_LOST, .status = 503};
    high = create("high", 100, DATA);
    wait_seconds(5);
    world.is_full = true;
    wait_seconds(60);
    expect(!is_asked_to_go(low), "no node is left: nobody is evicted");
    world.is_full = false;
    server_touch(high);
    wait_seconds(60);
    expect(low->preemption == 1 && high->node >= 0, "then it is deleted");
}

static void a_pod_that_no_node_takes_is_requeued_for_minutes_and_then_forgotten(void)
{
    struct sim_pod *low, *high = wait_until_no_node_is_left(&low);

    wait_seconds(700);
    expect(high->requeues != 0 && high->requeues <= 6, "it is requeued six times at most");
    expect(nothing_is_wanted(), "it is forgotten");
    expect(!is_asked_to_go(low), "nobody is evicted");
}

static void a_pod_that_a_budget_never_allows_is_not_requeued_and_is_forgotten(void)
{
    struct sim_pod *low = create_protected("low", DATA), *high;

    wait_seconds(2);
    server_set_budget(0);
    high = create("high", 100, DATA);
    wait_seconds(20);
    world.is_full = true;
    wait_seconds(400);
    expect(high->requeues == 0 && nothing_is_wanted() && !is_asked_to_go(low), "nothing is done");
    unsigned tries = (unsigned)attempts(PREEMPTION_FORBIDDEN);
    expect(tries >= 5 && tries <= 9, "after 10 s, 20 s, 40 s, 80 s, 80 s, ...");
}

static void a_pod_whose_evictions_never_work_is_requeued_ever_more_rarely(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);

    world.trials_lie = true;
    wait_seconds(1000);
    expect(high->requeues >= 4 && high->requeues <= 8, "after 10 s, 20 s, 40 s, ...");
    expect(attempts(PREEMPTION_FORBIDDEN) > 1 && world.failures == 1, "one Event says so");
    world.trials_lie = false;
    wait_seconds(400);
    expect(low->preemption == 1 && high->node >= 0, "when it works, it is evicted");
}

static void a_preempt_call_is_a_question_too(void)
{
    static const char *const nodes[] = {"node-0", "node-1", "node-2"};
    struct sim_pod *low = create_protected("low", DATA), *other, *high;

    wait_seconds(2);
    world.schedulers[0].is_up = false;
    other = create("other", 10, DATA);
    other->node = (low->node + 1) % NODES; /* somebody set it: now both have to go */
    server_touch(other);
    server_set_budget(0);
    high = create("high", 100, DATA);
    wait_seconds(1);
    expect(!preempt_keeps(high, nodes[low->node], low), "one is not enough");
    wait_seconds(20);
    server_set_budget(1);
    wait_seconds(20);
    expect(!is_asked_to_go(low) && !is_asked_to_go(other) && high->requeues != 0,
           "it is requeued first");
    high->asked_ns = world.now_ns;
    (void)preempt_keeps(high, nodes[low->node], low);
    wait_seconds(5);
    expect(low->preemption == 1 && other->preemption == 1, "both are evicted");
}

/* ---- what is counted ---- */

/* One attempt, with that result, has been made; waits for it. */
static void expect_one(enum preemption_result expected)
{
    for (unsigned ms = 0; attempts(expected) == 0 && ms < 8000; ms++)
        world_run(world.now_ns + MILLISECOND, NULL);
    for (int result = 0; result < PREEMPTION_COUNT; result++)
        expect(attempts((enum preemption_result)result) == (result == (int)expected),
               "it counts, and as nothing else");
    expect(world.replicas[0].state.metrics.victims == (expected == PREEMPTION_EVICTED),
           "victims are those that claimguard evicted");
}

static void an_eviction_counts_as_evicted(void)
{
    (void)holder("low", 10, DATA);
    (void)create("high", 100, DATA);
    expect_one(PREEMPTION_EVICTED);
}

static void a_refusal_by_a_budget_counts_as_forbidden(void)
{
    (void)create_protected("low", DATA);
    wait_seconds(2);
    server_set_budget(0);
    (void)create("high", 100, DATA);
    expect_one(PREEMPTION_FORBIDDEN);
}

/* Nobody is evicted where a budget spares one of them. */
static void a_budget_that_is_too_small_counts_as_forbidden(void)
{
    (void)create_protected("one", DATA);
    (void)create_protected("two", LOGS);
    wait_seconds(2);
    server_set_budget(1);
    (void)create("high", 100, BOTH);
    expect_one(PREEMPTION_FORBIDDEN);
}

/* Between the look at it and its eviction. */
static void a_holder_that_went_by_itself_counts_as_needless(void)
{
    struct sim_pod *low = holder("low", 10, DATA);

    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "/low/eviction", .fate = FATE_LOST, .status = 404};
    (void)create("high", 100, DATA);
    for (unsigned ms = 0; world.fault.count != 0 && ms < 5000; ms++)
        world_run(world.now_ns + MILLISECOND, NULL);
    expect(world.fault.count == 0, "it is to be evicted");
    server_terminate(low, SECOND);
    expect_one(PREEMPTION_NEEDLESS);
}

static void one_of_two_that_goes_without_an_answer_is_asked_about(void)
{
    (void)holder("one", 10, DATA);
    (void)holder("two", 10, LOGS);
    world.fault =
        (struct planned_fault){.count = 1, .method = "DELETE", .path = "/one", .fate = FATE_CUT};
    (void)create("high", 100, BOTH);
    wait_seconds(8);
    expect(world.fault.count == 0, "it is deleted, and the answer is lost");
    expect(attempts(PREEMPTION_EVICTED) == 1 && attempts(PREEMPTION_FAILED) == 0,
           "it goes, whatever the other does");
}

static void a_preemption_of_the_scheduler_counts_as_its(void)
{
    static const char *const nodes[] = {"node-0", "node-1", "node-2"};
    struct sim_pod *low = holder("low", 10, DATA), *high;

    world.schedulers[0].is_up = false;
    high = create("high", 100, DATA);
    wait_seconds(1);
    expect(preempt_keeps(high, nodes[low->node], low), "the node is kept");
    expect_one(PREEMPTION_LEFT);
}

/* ---- several at a time ---- */

static void an_eviction_that_hangs_stops_no_other(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *other = holder("other", 10, LOGS);

    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "/low/eviction", .fate = FATE_UNANSWERED};
    (void)create("high", 200, DATA);
    (void)create("middle", 100, LOGS);
    wait_seconds(3);
    expect(is_asked_to_go(low) && is_asked_to_go(other), "both are evicted");
}

static void an_eviction_that_hangs_is_asked_about_after_five_seconds(void)
{
    (void)holder("low", 10, DATA);
    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "/low/eviction", .fate = FATE_UNANSWERED};
    (void)create("high", 100, DATA);
    for (unsigned ms = 0; world.fault.count != 0 && ms < 5000; ms++)
        world_run(world.now_ns + MILLISECOND, NULL);
    wait_seconds(4);
    expect(attempts(PREEMPTION_EVICTED) == 0, "its answer may still come");
    wait_seconds(2);
    expect(attempts(PREEMPTION_EVICTED) == 1, "the holder goes: it was evicted");
}

static void two_preemptors_of_one_pod_evict_it_once(void)
{
    struct sim_pod *low = holder("low", 10, DATA);

    (void)create("high", 200, DATA);
    (void)create("middle", 100, DATA);
    wait_seconds(60);
    expect(low->eviction_requests == 1, "one eviction is sent");
}

static void of_two_preemptors_that_share_a_budget_none_evicts_a_part(void)
{
    struct sim_pod *one = create_protected("one", DATA), *two = create_protected("two", LOGS);

    world.server.claims[2].is_rwop = true;
    (void)create_protected("three", MORE);
    wait_seconds(2);
    server_set_budget(2);
    (void)create("high", 200, BOTH);
    (void)create("middle", 100, MORE);
    wait_seconds(8);
    expect(is_asked_to_go(one) == is_asked_to_go(two), "all that it needs, or none");
}

/* So many pods of that priority, of which only the scheduler knows, need a holder to go. */
static void ask_about_others(unsigned first, unsigned count, int64_t priority)
{
    for (unsigned i = first; i < first + count; i++) {
        char uid[37];
        (void)snprintf(uid, sizeof uid, "11111111-0000-4000-8000-%012u", i);
        struct meta meta = {.ns = SLICE("ns"), .name = slice_of(uid), .uid = slice_of(uid)};
        preemption_want(&world.replicas[0].state,
                        &(struct pod_object){.meta = meta, .priority = priority});
    }
}

static void a_full_queue_keeps_the_pod_whose_holder_is_being_evicted(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high;

    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "/low/eviction", .fate = FATE_UNANSWERED};
    high = create("high", 50, DATA);
    for (unsigned ms = 0; world.fault.count != 0 && ms < 5000; ms++)
        world_run(world.now_ns + MILLISECOND, NULL);
    scheduler_crash(&world.schedulers[0]); /* it does not ask about the pod again */
    ask_about_others(0, WANTED_MAX - 1, 100);
    ask_about_others(WANTED_MAX, 1, 200);
    wait_seconds(10);
    scheduler_start(&world.schedulers[0]);
    wait_seconds(20);
    expect(low->preemption == 1 && high->node >= 0, "it gets its claim");
}

static void ignore_budgets(void)
{
    world.respects_budgets = false;
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(nothing_is_evicted_before_the_scheduler_asks_again), NULL},
        {ROW(the_same_without_budgets_and_after_a_failure), ignore_budgets},
        {ROW(a_pod_that_no_node_takes_is_requeued_for_minutes_and_then_forgotten), NULL},
        {ROW(a_pod_that_a_budget_never_allows_is_not_requeued_and_is_forgotten), NULL},
        {ROW(a_pod_whose_evictions_never_work_is_requeued_ever_more_rarely), NULL},
        {ROW(a_preempt_call_is_a_question_too), NULL},
        {ROW(an_eviction_counts_as_evicted), NULL},
        {ROW(a_refusal_by_a_budget_counts_as_forbidden), NULL},
        {ROW(a_budget_that_is_too_small_counts_as_forbidden), NULL},
        {ROW(a_holder_that_went_by_itself_counts_as_needless), NULL},
        {ROW(one_of_two_that_goes_without_an_answer_is_asked_about), ignore_budgets},
        {ROW(a_preemption_of_the_scheduler_counts_as_its), NULL},
        {ROW(an_eviction_that_hangs_stops_no_other), NULL},
        {ROW(an_eviction_that_hangs_is_asked_about_after_five_seconds), NULL},
        {ROW(two_preemptors_of_one_pod_evict_it_once), NULL},
        {ROW(of_two_preemptors_that_share_a_budget_none_evicts_a_part), NULL},
        {ROW(a_full_queue_keeps_the_pod_whose_holder_is_being_evicted), NULL},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
