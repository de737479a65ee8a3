/* The rules of the preemption that claimguard starts itself, each in a small world of its own: one
 * scheduler that does not preempt, one replica, no faults. Prints each row with "ok" or what is
 * wrong. */
#include <stdio.h>
#include <string.h>

#include "config/base/log.h"
#include "simulation/fiber.h"
#include "simulation/world.h"

enum { DATA = 1, LOGS = 2, BOTH = 3 }; /* claims */

/* ---- words for the rows ---- */

static void wait_seconds(uint64_t seconds)
{
    world_run(world.now_ns + seconds * SECOND, NULL);
}

static void expect(bool is_so, const char *what)
{
    if (!is_so)
        broken("%s", what);
}

static struct sim_pod *create(const char *name, int priority, unsigned claims)
{
    return server_create_pod(name, priority, false, claims, false, 0);
}

/* A pod that is bound, before anyone else comes. */
static struct sim_pod *holder(const char *name, int priority, unsigned claims)
{
    struct sim_pod *pod = create(name, priority, claims);

    wait_seconds(2);
    expect(pod->node >= 0, "the holder is bound");
    return pod;
}

/* The victim is asked to go, and is gone when told: its kubelet takes its time. */
static bool is_asked_to_go(const struct sim_pod *pod)
{
    return pod->is_terminating || !pod->exists;
}

/* ---- the rows ---- */

static void a_holder_of_lower_priority_is_evicted_and_the_preemptor_bound(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high = create("high", 100, DATA);

    wait_seconds(4);
    expect(is_asked_to_go(low), "the holder is evicted");
    wait_seconds(60);
    expect(high->node >= 0 && low->evictions == 1, "the preemptor is bound, after one eviction");
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
    expect(!low->exists && low->evictions == 0 && high->node >= 0, "the scheduler deleted it");
}

static void preemption_disabled_evicts_nobody(void)
{
    struct sim_pod *low = holder("low", 10, DATA);

    (void)create("high", 100, DATA); /* what is sent all the same is broken: see check_eviction */
    wait_seconds(60);
    expect(!is_asked_to_go(low), "nobody is evicted");
}

static void a_pod_that_never_preempts_evicts_nobody(void)
{
    struct sim_pod *low = holder("low", 10, DATA);

    (void)server_create_pod("never", 100, true, DATA, false, 0);
    wait_seconds(60);
    expect(!is_asked_to_go(low), "nobody is evicted");
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

static void a_budget_forbids_it_until_it_allows_one(void)
{
    struct sim_pod *low = server_create_pod("low", 10, false, DATA, true, 0), *high;

    wait_seconds(2);
    server_set_budget(0);
    high = create("high", 100, DATA);
    wait_seconds(30);
    expect(!is_asked_to_go(low), "nobody is evicted");
    expect(HASH_COUNT(world.replicas[0].state.cluster.reservations) == 0, "nothing is reserved");
    server_set_budget(1);
    wait_seconds(60);
    expect(low->evictions == 1 && high->node >= 0, "then it is evicted");
}

static void budgets_that_are_not_respected_do_not_matter(void)
{
    struct sim_pod *low = server_create_pod("low", 10, false, DATA, true, 0), *high;

    wait_seconds(2);
    server_set_budget(0);
    high = create("high", 100, DATA);
    wait_seconds(60);
    expect(low->evictions == 1 && high->node >= 0, "it is deleted");
}

static void two_holders_of_which_a_budget_allows_one_both_stay(void)
{
    struct sim_pod *one = server_create_pod("one", 10, false, DATA, true, 0);
    struct sim_pod *two = server_create_pod("two", 10, false, LOGS, true, 0);

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
    expect(one->evictions == 1 && two->evictions == 1 && high->node >= 0, "both, once");
}

static void a_terminating_holder_is_waited_for_and_not_evicted(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high;

    server_terminate(low, 40 * SECOND);
    high = create("high", 100, DATA);
    wait_seconds(60);
    expect(low->evictions == 0 && high->node >= 0, "it went by itself");
}

static void the_claim_is_kept_for_the_preemptor(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *high, *other;

    server_terminate(low, 40 * SECOND); /* longer than the reservation lasts by itself */
    high = create("high", 100, DATA);
    wait_seconds(5);
    other = create("other", 50, DATA);
    wait_seconds(5);
    expect(strstr(other->condition, "reserved for pod ns/high") != NULL, "others are told so");
    wait_seconds(60);
    expect(high->node >= 0 && other->node < 0, "nobody else gets it");
}

static void the_higher_of_two_preemptors_gets_the_claim(void)
{
    struct sim_pod *low = holder("low", 10, DATA), *middle = create("middle", 50, DATA), *high;

    server_terminate(low, 40 * SECOND);
    wait_seconds(5);
    high = create("high", 100, DATA);
    wait_seconds(60);
    expect(high->node >= 0 && middle->evictions == 0, "after no further eviction");
}

/* ---- running them ---- */

struct row {
    const char *name;
    void (*run)(void);
    bool is_disabled, ignores_budgets;
};

#define ROW(function) #function, function

static bool run_row(const struct row *row)
{
    world_begin(1);
    world.replica_count = world.scheduler_count = 1;
    world.preempts = !row->is_disabled;
    world.respects_budgets = !row->ignores_budgets;
    world.ttl_ms = 5000;
    world_populate();
    wait_seconds(1);
    row->run();
    printf("%s %s%s%s\n", world.failure[0] == '\0' ? "ok    " : "FAILED", row->name,
           world.failure[0] == '\0' ? "" : ": ", world.failure);
    bool is_good = world.failure[0] == '\0';
    world_end();
    return is_good;
}

int main(int argc, char **argv)
{
    static const struct row rows[] = {
        {ROW(a_holder_of_lower_priority_is_evicted_and_the_preemptor_bound), false, false},
        {ROW(the_scheduler_has_its_grace), false, false},
        {ROW(a_scheduler_that_preempts_is_left_to_it), false, false},
        {ROW(preemption_disabled_evicts_nobody), true, false},
        {ROW(a_pod_that_never_preempts_evicts_nobody), false, false},
        {ROW(equal_priority_evicts_nobody), false, false},
        {ROW(one_conflict_that_stays_saves_the_other_holder), false, false},
        {ROW(nothing_is_evicted_for_a_pod_that_is_gone), false, false},
        {ROW(nothing_is_evicted_for_a_pod_of_which_only_the_api_server_knows_that_it_is_gone),
         false, false},
        {ROW(nothing_is_evicted_for_a_pod_that_is_bound), false, false},
        {ROW(nothing_is_evicted_for_a_pod_whose_priority_has_changed), false, false},
        {ROW(nothing_is_evicted_when_no_node_was_offered), false, false},
        {ROW(a_budget_forbids_it_until_it_allows_one), false, false},
        {ROW(budgets_that_are_not_respected_do_not_matter), false, true},
        {ROW(two_holders_of_which_a_budget_allows_one_both_stay), false, false},
        {ROW(two_holders_are_evicted_together), false, false},
        {ROW(a_terminating_holder_is_waited_for_and_not_evicted), false, false},
        {ROW(the_claim_is_kept_for_the_preemptor), false, false},
        {ROW(the_higher_of_two_preemptors_gets_the_claim), false, false},
    };
    size_t failed = 0;

    is_traced = argc > 1 && strcmp(argv[1], "--trace") == 0;
    log_configure(LOG_ERROR, LOG_TEXT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        failed += !run_row(&rows[i]);
    fibers_dispose();
    return failed != 0;
}
