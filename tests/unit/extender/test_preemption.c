/* Which preemptors are remembered when there are too many. Nothing is evicted here. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "extender/cli/services.h"
#include "extender/serving/preemption/preemption.h"
#include "extender/serving/state.h"

static struct state state;
static struct config *config;

static void setup(void)
{
    struct error err = {0};

    cr_assert_eq(config_load(&config, NULL, &err), 0);
    cr_assert_eq(services_init(&state, config, &err), 0);
    state.api = (struct requests *)(uintptr_t)8; /* never read */
}

static void teardown(void)
{
    services_dispose(&state);
}

TestSuite(preemption, .init = setup, .fini = teardown);

static struct slice uid_of(unsigned number)
{
    static char uid[40];

    (void)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012u", number);
    return slice_of(uid);
}

static void want(unsigned number, int64_t priority)
{
    struct slice uid = uid_of(number);

    preemption_want(&state,
                    &(struct pod_object){.meta = {.ns = SLICE("ns"), .name = uid, .uid = uid},
                                         .priority = priority});
}

/* Of the pods with numbers from `first` on, how many are remembered: a remembered pod that is left
 * to the scheduler is counted. */
static unsigned remembered(unsigned first, unsigned count)
{
    uint64_t before = atomic_load(&state.metrics.preemptions[PREEMPTION_LEFT]);

    for (unsigned i = first; i < first + count; i++)
        preemption_leave(&state, uid_of(i));
    return (unsigned)(atomic_load(&state.metrics.preemptions[PREEMPTION_LEFT]) - before);
}

enum { ALONE = WANTED_MAX / 2 }; /* of one namespace */

Test(preemption, a_pod_too_many_is_added_when_it_is_rejected_again)
{
    for (unsigned i = 0; i < ALONE + 10; i++)
        want(i, 0);
    cr_expect_eq(remembered(0, ALONE + 10), ALONE);
}

Test(preemption, a_pod_of_higher_priority_replaces_another)
{
    for (unsigned i = 0; i < ALONE; i++)
        want(i, 5);
    want(ALONE, 4);
    want(ALONE + 1, 6);
    cr_expect_eq(remembered(0, ALONE), ALONE - 1);
    cr_expect_eq(remembered(ALONE, 1), 0);
    cr_expect_eq(remembered(ALONE + 1, 1), 1);
}

Test(preemption, nobody_is_evicted_for_a_pod_without_a_uid_or_of_a_snapshot)
{
    preemption_want(&state, &(struct pod_object){.meta = {.ns = SLICE("ns"), .name = SLICE("p")}});
    cr_expect_eq(preemption_due_ns(state.preemption), UINT64_MAX);
    state.api = NULL;
    want(1, 0);
    cr_expect_eq(preemption_due_ns(state.preemption), UINT64_MAX);
}

Test(preemption, a_step_without_anything_to_do_does_nothing)
{
    preemption_step(&state);
    cr_expect_eq(preemption_due_ns(state.preemption), UINT64_MAX);
}

/* Whether a thread has worked under that name. */
static bool was_watched(const char *what)
{
    for (int i = 0; i < WATCHDOG_SLOTS; i++) {
        const char *name = atomic_load(&state.watchdog.slots[i].what);
        if (name != NULL && strcmp(name, what) == 0)
            return true;
    }
    return false;
}

Test(preemption, the_watchdog_watches_its_threads)
{
    struct error err = {0};
    struct slice uid = uid_of(1);
    struct object waits = {.kind = KIND_POD,
                           .pod.meta = {.ns = SLICE("ns"), .name = uid, .uid = uid}};

    config->read_write_once_pod.preemption_grace_ms = 0;
    cr_assert_eq(cluster_apply(&state.cluster, &waits, &err), 0);
    want(1, 0); /* its claims are free: nothing is asked */
    cr_assert_eq(preemption_start(&state, &err), 0);
    for (int i = 0; i < 1000 && !was_watched("preemption"); i++)
        (void)usleep(10000);
    preemption_stop(&state);
    cr_expect(was_watched("preemption"));
}

/* Holders of a tenant's that terminate for a day, or pods that its scheduler asks about once in
 * five minutes: an entry is no failure, and stays. */
Test(preemption, pods_of_one_namespace_leave_room_for_those_of_others)
{
    bool is_shared = share_of(SLICE("shop")) == share_of(SLICE("ns"));
    struct slice uid, other = is_shared ? SLICE("bank") : SLICE("shop");

    for (unsigned i = 0; i < WANTED_MAX; i++)
        want(i, 0);
    uid = uid_of(WANTED_MAX);
    preemption_want(&state, &(struct pod_object){.meta = {.ns = other, .name = uid, .uid = uid}});
    cr_expect_eq(remembered(WANTED_MAX, 1), 1);
}
