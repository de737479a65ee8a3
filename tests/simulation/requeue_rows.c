/*
 * Pods that a scheduler would not try again before its flush after five minutes, a row each: they
 * have to be bound long before.
 */
#include "simulation/rows.h"

enum { DATA = 1, LOGS = 2 }; /* claims */

static void two_schedulers(void)
{
    world.scheduler_count = 2;
}

static struct replica *replica(void)
{
    return &world.replicas[0];
}

/* A pod of the second scheduler that is rejected for what the first one's pod has reserved; and the
 * first scheduler is gone before it binds that. */
static struct sim_pod *create_behind_a_reservation(void)
{
    struct sim_pod *behind;

    (void)create("first", 10, DATA);
    for (unsigned ms = 0; replica()->state.cluster.reservations == NULL && ms < 1000; ms++)
        world_run(world.now_ns + MILLISECOND, NULL);
    scheduler_crash(&world.schedulers[0]);
    behind = server_create_pod("behind",
                               &(struct sim_pod){.priority = 10, .claims = DATA, .scheduler = 1});
    wait_seconds(3);
    expect(world.rejected != 0 && behind->node < 0, "it waits for the reservation");
    return behind;
}

/* The API server cannot be asked, and claimguard's watch is late, when the holder goes; the
 * scheduler's is not. */
static struct sim_pod *create_behind_a_holder_that_went_unnoticed(void)
{
    struct sim_pod *gone = holder("gone", 10, DATA), *behind = create("behind", 10, DATA);

    wait_seconds(20); /* so that its back-off is over */
    replica()->is_watching[KIND_POD] = false;
    world.api_down_until_ns = world.now_ns + 5 * SECOND;
    server_terminate(gone, 0);
    wait_seconds(15);
    expect(behind->node < 0, "what the cache has decides");
    return behind;
}

static void resume_watch(void)
{
    replica()->is_watching[KIND_POD] = true;
    for (size_t i = 0; i < world.server.log_count; i++)
        if (world.server.log[i].kind == KIND_POD &&
            world.server.log[i].version > replica()->watched[KIND_POD])
            replica_notified(replica(), i);
}

/* ---- the rows ---- */

static void a_reservation_that_ends_without_a_binding(void)
{
    struct sim_pod *behind = create_behind_a_reservation();

    wait_seconds(20);
    expect(behind->node >= 0, "it is requeued, and bound");
}

static void a_requeue_that_is_lost_is_sent_again(void)
{
    struct sim_pod *behind = create_behind_a_reservation();

    world.api_down_until_ns = world.now_ns + 8 * SECOND; /* the reservation ends in between */
    wait_seconds(40);
    expect(behind->node >= 0, "it is requeued again, and bound");
}

static void a_reservation_of_a_claimguard_that_is_gone(void)
{
    struct sim_pod *behind = create_behind_a_reservation();

    replica_crash(replica());
    replica_start(replica());
    wait_seconds(20);
    expect(behind->node >= 0, "the next claimguard requeues it");
}

static void a_preemption_of_a_claimguard_that_is_gone(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);

    world_run(world.now_ns + 500 * MILLISECOND, NULL); /* the scheduler's grace is not over */
    replica_crash(replica());
    expect(low->preemption == 0, "nobody is evicted yet");
    replica_start(replica());
    wait_seconds(20);
    expect(low->preemption == 1 && high->node >= 0, "the next claimguard requeues the preemptor");
}

/* A pod of the first scheduler that is nominated, and that scheduler is gone; and one of the second
 * that waits for it. */
static struct sim_pod *create_behind_a_nomination(struct sim_pod **nominee)
{
    struct sim_pod *behind;

    world.schedulers[0].is_up = false;
    *nominee = create("nominee", 10, DATA);
    (*nominee)->nominated = 1;
    server_touch(*nominee);
    wait_seconds(1);
    behind = server_create_pod("behind",
                               &(struct sim_pod){.priority = 10, .claims = DATA, .scheduler = 1});
    wait_seconds(40);
    expect(behind->node < 0, "it waits for the nomination, on all nodes");
    return behind;
}

static void a_nomination_that_nobody_clears(void)
{
    struct sim_pod *nominee, *behind = create_behind_a_nomination(&nominee);

    wait_seconds(35);
    expect(behind->node >= 0, "it lapses, and the pod is requeued, and bound");
}

static void a_nomination_that_is_cleared_for_a_pod_of_another_scheduler(void)
{
    struct sim_pod *nominee, *behind = create_behind_a_nomination(&nominee);

    nominee->nominated = -1;
    server_touch(nominee);
    wait_seconds(5);
    expect(behind->node >= 0, "it is requeued, and bound");
}

static void an_unconfirmed_rejection_that_a_list_makes_up_for(void)
{
    struct sim_pod *behind = create_behind_a_holder_that_went_unnoticed();

    replica_relist(replica(), KIND_POD);
    wait_seconds(15);
    expect(behind->node >= 0, "it is requeued, and bound");
}

static void an_unconfirmed_rejection_for_a_pod_that_a_list_replaces(void)
{
    struct sim_pod *behind = create_behind_a_holder_that_went_unnoticed();

    (void)server_create_pod("gone", &(struct sim_pod){.scheduler = 1}); /* that is not there */
    replica_relist(replica(), KIND_POD);
    wait_seconds(15);
    expect(behind->node >= 0, "it is requeued, and bound");
}

static void an_unconfirmed_rejection_that_the_watch_makes_up_for(void)
{
    struct sim_pod *behind = create_behind_a_holder_that_went_unnoticed();

    resume_watch();
    wait_seconds(15);
    expect(behind->node >= 0, "it is requeued, and bound");
}

static void a_claim_that_came_while_nobody_could_be_asked(void)
{
    server_remove_claim(0);
    struct sim_pod *early = create("early", 10, DATA);
    wait_seconds(20);
    replica()->is_watching[KIND_CLAIM] = false;
    world.api_down_until_ns = world.now_ns + 5 * SECOND;
    server_create_claim(0);
    wait_seconds(15);
    expect(early->node < 0, "what the cache has decides");
    replica_relist(replica(), KIND_CLAIM);
    wait_seconds(15);
    expect(early->node >= 0, "it is requeued, and bound");
}

/* Of two holders, the one that is named second goes unnoticed. */
static void an_unconfirmed_rejection_that_rests_on_two_holders(void)
{
    struct sim_pod *gone, *behind;

    (void)holder("stays", 10, DATA);
    gone = holder("gone", 100, LOGS);
    behind = create("behind", 100, DATA | LOGS); /* it may preempt one of them */
    wait_seconds(20);
    replica()->is_watching[KIND_POD] = false;
    world.api_down_until_ns = world.now_ns + 5 * SECOND;
    server_terminate(gone, 0);
    wait_seconds(15);
    expect(behind->node < 0, "what the cache has decides");
    replica_relist(replica(), KIND_POD);
    wait_seconds(60);
    expect(behind->node >= 0, "it is requeued, evicts the other one, and is bound");
}

/* The same where the scheduler asks only whether it may preempt. */
static void a_node_that_preempt_dropped_unconfirmed(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high;
    int node = low->node;

    world.schedulers[0].preempts = world.schedulers[0].sees_claims = true;
    replica()->is_watching[KIND_POD] = false;
    server_terminate(low, 0);
    low = server_create_pod("low", &(struct sim_pod){.priority = 10, .claims = DATA});
    low->node = (node + 1) % NODES;
    server_touch(low);
    wait_seconds(1);
    world.api_down_until_ns = world.now_ns + 5 * SECOND;
    high = create("high", 100, DATA);
    wait_seconds(15);
    expect(high->node < 0 && low->exists, "what the cache has decides");
    resume_watch();
    wait_seconds(40);
    expect(high->node >= 0, "it is requeued, and the scheduler preempts");
}

static void a_node_that_preempt_dropped_for_a_reservation(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *first, *high;

    first = create("first", 100, LOGS);
    for (unsigned ms = 0; replica()->state.cluster.reservations == NULL && ms < 1000; ms++)
        world_run(world.now_ns + MILLISECOND, NULL);
    scheduler_crash(&world.schedulers[0]);
    world.schedulers[1].preempts = world.schedulers[1].sees_claims = true;
    high = server_create_pod(
        "high", &(struct sim_pod){.priority = 100, .claims = DATA | LOGS, .scheduler = 1});
    wait_seconds(3);
    expect(first->node < 0 && high->node < 0 && low->exists, "it waits for the reservation");
    world.termination_seconds = 30;
    wait_seconds(60);
    expect(high->node >= 0, "it is requeued, and the scheduler preempts");
    expect(high->requeues == 1, "once: the scheduler has asked");
}

/* It is not requeued for ever: what it waits for now is not claimguard's business. */
static void a_pod_that_nobody_asks_about_again(void)
{
    (void)create_behind_a_reservation();
    scheduler_crash(&world.schedulers[1]);
    wait_seconds(330);
    uint64_t version = world.server.version;
    wait_seconds(330);
    expect(world.server.version == version, "it is left alone after five minutes");
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(a_reservation_that_ends_without_a_binding), two_schedulers},
        {ROW(a_requeue_that_is_lost_is_sent_again), two_schedulers},
        {ROW(a_reservation_of_a_claimguard_that_is_gone), two_schedulers},
        {ROW(a_preemption_of_a_claimguard_that_is_gone), NULL},
        {ROW(a_nomination_that_nobody_clears), two_schedulers},
        {ROW(a_nomination_that_is_cleared_for_a_pod_of_another_scheduler), two_schedulers},
        {ROW(an_unconfirmed_rejection_that_a_list_makes_up_for), NULL},
        {ROW(an_unconfirmed_rejection_for_a_pod_that_a_list_replaces), NULL},
        {ROW(an_unconfirmed_rejection_that_the_watch_makes_up_for), NULL},
        {ROW(a_claim_that_came_while_nobody_could_be_asked), NULL},
        {ROW(an_unconfirmed_rejection_that_rests_on_two_holders), NULL},
        {ROW(a_node_that_preempt_dropped_unconfirmed), NULL},
        {ROW(a_node_that_preempt_dropped_for_a_reservation), two_schedulers},
        {ROW(a_pod_that_nobody_asks_about_again), two_schedulers},
    };

    return rows_run(rows, sizeof rows / sizeof *rows, argc, argv);
}
