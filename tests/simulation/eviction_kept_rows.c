/* What was evicted for a pod is kept for it, a row each. */
#include "simulation/rows.h"

enum { DATA = 1, LOGS = 2, BOTH = 3 }; /* claims */

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
            replica_notified(&world.replicas[0], i);
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

/* Unlike one without an answer: it may have no effect. */
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

int main(int argc, char **argv)
{
    static const struct row rows[] = {
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
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
