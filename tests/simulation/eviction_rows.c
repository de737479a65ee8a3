/*
 * When claimguard evicts, a row each: only for a pod about which the scheduler has asked lately;
 * what was evicted for a pod is kept for it; and one eviction waits for no other.
 */
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
}

static void a_pod_whose_evictions_never_work_is_requeued_ever_more_rarely(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);

    world.trials_lie = true;
    wait_seconds(1000);
    expect(high->requeues >= 4 && high->requeues <= 8, "after 10 s, 20 s, 40 s, ...");
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

static unsigned attempts(enum preemption_result result)
{
    return (unsigned)world.replicas[0].state.metrics.preemptions[result];
}

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

/* ---- what was evicted for a pod is kept for it ---- */

/* The holder was asked to go, and claimguard's watch is late, which GETs do not make up for. */
static struct sim_pod *evict_unnoticed(struct sim_pod *low, unsigned gets_fail_seconds)
{
    struct sim_pod *high = create("high", 100, DATA);

    world_run(world.now_ns + 500 * MILLISECOND, NULL); /* of the scheduler's grace */
    world.replicas[0].is_watching[KIND_POD] = false;
    for (unsigned ms = 0; !is_asked_to_go(low) && ms < 5000; ms++)
        world_run(world.now_ns + MILLISECOND, NULL);
    expect(is_asked_to_go(low), "the holder is evicted");
    world.gets_fail_until_ns = world.now_ns + gets_fail_seconds * SECOND;
    return high;
}

static void resume_watch(void)
{
    world.replicas[0].is_watching[KIND_POD] = true;
    for (size_t i = 0; i < world.server.log_count; i++)
        if (world.server.log[i].kind == KIND_POD &&
            world.server.log[i].version > world.replicas[0].watched[KIND_POD])
            replica_told(&world.replicas[0], i);
}

/* The holder is gone, and a pod of lower priority is the first that the scheduler tries. */
static void race_for_the_claim(struct sim_pod *low, const struct sim_pod *high)
{
    scheduler_crash(&world.schedulers[0]);
    while (low->exists && world.failure[0] == '\0')
        world_run(world.now_ns + 100 * MILLISECOND, NULL);
    world.gets_fail_until_ns = 0;
    resume_watch();
    wait_seconds(1);
    const struct sim_pod *other = server_create_pod(
        "other", &(struct sim_pod){.priority = 50, .claims = DATA, .scheduler = 1});
    wait_seconds(5);
    expect(other->node < 0, "the claim is kept");
    scheduler_start(&world.schedulers[0]);
    wait_seconds(20);
    expect(high->node >= 0 && other->node < 0, "for the preemptor");
}

static void two_schedulers(void)
{
    world.scheduler_count = 2;
    world.ttl_ms = 1000;
}

static void a_look_that_fails_does_not_lose_the_claim(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = evict_unnoticed(low, 100);

    race_for_the_claim(low, high);
    expect(attempts(PREEMPTION_EVICTED) == 1 && attempts(PREEMPTION_FAILED) == 0,
           "nor is it a failure");
}

static void looks_that_fail_for_long_do_not_lose_the_claim(void)
{
    struct sim_pod *low = holder("low", 10, DATA);

    world.termination_seconds = 50;
    race_for_the_claim(low, evict_unnoticed(low, 100));
}

/* It may be that nobody knows any more whom the claim is kept for. */
static void looks_that_fail_for_minutes_do(void)
{
    struct sim_pod *low = holder("low", 10, DATA);

    world.termination_seconds = 120;
    (void)evict_unnoticed(low, 120);
    wait_seconds(110);
    expect(world.replicas[0].state.cluster.reservations == NULL, "nothing is reserved any more");
}

static void a_lost_answer_to_an_eviction_does_not_lose_the_claim(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high;

    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "/low/eviction", .fate = FATE_CUT};
    high = evict_unnoticed(low, 100);
    race_for_the_claim(low, high);
}

/* Its scheduler dies when filter has passed; with reservationTTL alone it would not last. */
static void the_claim_is_kept_until_the_scheduler_has_tried_again(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);
    const struct queued *queued = &world.schedulers[0].pods[high - world.server.pods];

    while (queued->queue != QUEUE_BINDING && world.failure[0] == '\0')
        world_run(world.now_ns + MILLISECOND, NULL);
    scheduler_crash(&world.schedulers[0]);
    wait_seconds(5);
    const struct sim_pod *other = server_create_pod(
        "other", &(struct sim_pod){.priority = 50, .claims = DATA, .scheduler = 1});
    wait_seconds(5);
    expect(low->preemption == 1 && other->node < 0, "the claim is kept");
}

static void an_eviction_without_an_answer_is_asked_about(void)
{
    struct sim_pod *low = holder("low", 10, DATA);

    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "/low/eviction", .fate = FATE_CUT};
    (void)evict_unnoticed(low, 0);
    wait_seconds(5);
    expect(attempts(PREEMPTION_EVICTED) == 1 && attempts(PREEMPTION_FAILED) == 0,
           "the holder goes: it was evicted");
}

/* Unlike one without an answer: nothing may come of it. */
static void an_eviction_that_was_never_sent_keeps_nothing(void)
{
    (void)holder("low", 10, DATA);
    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "/low/eviction", .fate = FATE_UNSENT};
    (void)create("high", 100, DATA);
    for (unsigned ms = 0; attempts(PREEMPTION_FAILED) == 0 && ms < 5000; ms++)
        world_run(world.now_ns + MILLISECOND, NULL);
    expect(attempts(PREEMPTION_FAILED) == 1, "it is a failure");
    expect(world.replicas[0].state.cluster.reservations == NULL, "nothing is reserved");
}

/* One of two holders goes, the other cannot be evicted for a while. */
static void a_part_of_what_a_pod_needs_is_kept_for_it(void)
{
    struct sim_pod *one = holder("one", 10, DATA), *two = holder("two", 10, LOGS);
    struct sim_pod *high = create("high", 100, BOTH);

    for (unsigned ms = 0; one->preemption == 0 && ms < 5000; ms++)
        world_run(world.now_ns + MILLISECOND, NULL);
    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "/two/eviction", .fate = FATE_LOST, .status = 403};
    scheduler_crash(&world.schedulers[0]);
    wait_seconds(25);
    expect(!one->exists && !is_asked_to_go(two), "one has gone, and the scheduler does not ask");
    const struct sim_pod *other = server_create_pod(
        "other", &(struct sim_pod){.priority = 50, .claims = DATA, .scheduler = 1});
    wait_seconds(5);
    expect(other->node < 0, "the claim is kept");
    scheduler_start(&world.schedulers[0]);
    wait_seconds(60);
    expect(high->node >= 0 && other->node < 0, "for the preemptor");
}

static void a_refusal_that_knows_nothing_of_the_eviction_does_not_lose_the_claim(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high;

    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "/low/eviction", .fate = FATE_DENIED, .status = 429};
    high = evict_unnoticed(low, 0);
    race_for_the_claim(low, high);
    expect(low->eviction_requests == 1, "it is not evicted again");
    expect(attempts(PREEMPTION_EVICTED) == 1 && attempts(PREEMPTION_FORBIDDEN) == 0,
           "it counts as evicted");
}

/* The refusal cannot be looked after, either. */
static void a_refusal_that_nobody_can_look_after_does_not_lose_the_claim(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high;

    world.termination_seconds = 8; /* less than the time until it is tried again */
    world.fault = (struct planned_fault){
        .count = 1, .method = "POST", .path = "/low/eviction", .fate = FATE_DENIED, .status = 429};
    high = evict_unnoticed(low, 7);
    race_for_the_claim(low, high);
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
        {ROW(a_preemption_of_the_scheduler_counts_as_its), NULL},
        {ROW(a_look_that_fails_does_not_lose_the_claim), two_schedulers},
        {ROW(looks_that_fail_for_long_do_not_lose_the_claim), two_schedulers},
        {ROW(looks_that_fail_for_minutes_do), two_schedulers},
        {ROW(the_claim_is_kept_until_the_scheduler_has_tried_again), two_schedulers},
        {ROW(an_eviction_without_an_answer_is_asked_about), NULL},
        {ROW(an_eviction_that_was_never_sent_keeps_nothing), NULL},
        {ROW(a_part_of_what_a_pod_needs_is_kept_for_it), two_schedulers},
        {ROW(a_lost_answer_to_an_eviction_does_not_lose_the_claim), two_schedulers},
        {ROW(a_refusal_that_knows_nothing_of_the_eviction_does_not_lose_the_claim), two_schedulers},
        {ROW(a_refusal_that_nobody_can_look_after_does_not_lose_the_claim), two_schedulers},
        {ROW(an_eviction_that_hangs_stops_no_other), NULL},
        {ROW(two_preemptors_of_one_pod_evict_it_once), NULL},
        {ROW(of_two_preemptors_that_share_a_budget_none_evicts_a_part), NULL},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
