/* To which node a pod is nominated that passes on none of those that the scheduler has shown, and
 * when that is sent. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "unit/extender/nomination_bench.h"

TestSuite(nomination, .init = bench_setup, .fini = bench_teardown, .timeout = 60);

static const struct slice names[] = {
    {"gone", 4}, {"node-1", 6}, {"node-2", 6}, {"node-3", 6}, {"node-4", 6}};

static struct slice choose(struct verdict *verdict)
{
    struct view view = state_view(&state);

    return nomination_choose(&view, &waiting, verdict, &arena);
}

static void expect_choice(const char *want, struct verdict verdict, struct node_filter filter)
{
    verdict.nodes = &filter;
    struct slice node = choose(&verdict);
    cr_expect(slice_equal(node, slice_of(want)), "%.*s", SLICE_ARG(node));
}

static const struct node_filter nominating = {.names = names, .count = 5, .nominates = true};
static const struct verdict passes = {.code = CODE_SUCCESS};

Test(nomination, the_first_node_that_exists_is_ready_and_schedulable)
{
    expect_choice("node-3", passes, nominating);
}

Test(nomination, none_of_a_filter_that_does_not_nominate_or_only_warns)
{
    struct node_filter other = nominating;

    other.nominates = false;
    expect_choice("", passes, other);
    other = nominating;
    other.warns = true;
    expect_choice("", passes, other);
}

Test(nomination, none_where_no_node_can_take_it)
{
    struct node_filter unusable = nominating;

    unusable.count = 3;
    expect_choice("", passes, unusable);
    unusable.count = 0;
    expect_choice("", passes, unusable);
}

Test(nomination, none_of_a_pod_that_is_rejected_itself)
{
    expect_choice("", (struct verdict){.code = CODE_UNSCHEDULABLE}, nominating);
    expect_choice("", (struct verdict){.code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE}, nominating);
}

Test(nomination, not_to_a_node_that_another_filter_rejects)
{
    struct node_filter second = {.names = &names[4], .count = 1, .reason = SLICE("no")};
    struct node_filter first = nominating;

    first.next = &second;
    expect_choice("node-4", passes, first);
    second.warns = true;
    expect_choice("node-3", passes, first);
}

Test(nomination, none_of_a_pod_that_is_nominated_already)
{
    put_pod("node-4", "2");
    expect_choice("", passes, nominating);
}

Test(nomination, none_of_a_pod_that_the_cache_does_not_know)
{
    struct object pod = {.kind = KIND_POD, .pod = waiting};

    cluster_delete(&state.cluster, &pod);
    expect_choice("", passes, nominating);
}

Test(nomination, none_of_a_pod_that_is_being_deleted)
{
    struct object pod = {.kind = KIND_POD, .pod = waiting};
    struct error err = {0};

    pod.meta.deletion_timestamp = SLICE("2026-09-14T07:00:00Z");
    pod.meta.resource_version = SLICE("2");
    cr_assert_eq(cluster_apply(&state.cluster, &pod, &err), 0);
    expect_choice("", passes, nominating);
}

/* It would hold the claim against other pods. */
Test(nomination, none_of_a_pod_with_an_exclusive_claim)
{
    struct claim_reference claims[] = {{.name = {"shared", 6}}, {.name = {"own", 3}}};
    const bool is_shared[] = {false, false}, is_own[] = {false, true};
    struct verdict verdict = passes;

    waiting.claims = claims;
    waiting.claim_count = 2;
    verdict.exclusive = is_shared;
    expect_choice("node-3", verdict, nominating);
    verdict.exclusive = is_own;
    expect_choice("", verdict, nominating);
    waiting.claim_count = 0;
}

/* ---- requests ---- */

Test(nomination, it_is_sent_when_the_pod_was_not_rejected_for_a_while)
{
    want("node-4");
    pass_ms(NOMINATION_QUIET_MS - 1);
    expect_sent(0);
    want("node-4");
    pass_ms(NOMINATION_QUIET_MS - 1);
    expect_sent(0);
    pass_ms(1);
    expect_sent(1);
    cr_expect_str_eq(last_body, "{\"metadata\":{\"uid\":\"" UID
                                "\"},\"status\":{\"nominatedNodeName\":\"node-4\"}}");
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(0);
    expect_count(NOMINATION_SENT, 1);
    expect_known(1);
}

Test(nomination, one_of_a_pod_that_passes_after_all_is_not_sent)
{
    want("node-4");
    nomination_unwant(state.nominations, waiting.meta.uid);
    expect_sent_in(10, 0);
    nomination_unwant(state.nominations, SLICE("20000000-0000-4000-8000-000000000001"));
    send_to("node-4"); /* it was rejected again */
    nomination_unwant(state.nominations, waiting.meta.uid);
    expect_sent_in(60, 0); /* that one failed, and is not repeated */
}

Test(nomination, it_is_sent_in_the_end_though_the_pod_is_rejected_all_the_time)
{
    for (unsigned passed = 0; passed < NOMINATION_LATE_MS; passed += NOMINATION_QUIET_MS / 2) {
        want("node-4");
        expect_sent(0);
        pass_ms(NOMINATION_QUIET_MS / 2);
    }
    expect_sent(1);
}

Test(nomination, one_that_the_scheduler_has_removed_is_sent_again_a_few_times)
{
    static const char *const nominated[] = {"12", "22", "32"}, *const removed[] = {"13", "23",
                                                                                   "33"};

    for (unsigned i = 0; i < NOMINATIONS_SENT_MAX; i++) {
        send_to("node-4");
        put_pod("node-4", nominated[i]);
        expect_sent(0);
        put_pod("", removed[i]);
    }
    want("node-4");
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(0);
    want("node-2"); /* another node is another matter, but it is cordoned */
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(0);
    put_node("node-2", 0);
    send_to("node-2");
}

Test(nomination, one_that_failed_is_repeated_and_does_not_count)
{
    send_to("node-4"); /* the API server answers 503: the pod does not change */
    want("node-4");
    expect_sent_in(3, 0);
    expect_sent_in(1, 1);
    expect_sent_in(7, 0);
    expect_sent_in(1, 1);
    expect_sent_in(3600, 4 + 13); /* after 16, 32, 64, 128 s, then each 256 s */
    put_pod("node-4", "2");
    put_pod("", "3"); /* by the scheduler */
    expect_sent_in(3600, 0);
    send_to("node-4");
    put_pod("node-4", "4");
    put_pod("", "5");
    send_to("node-4");
}

Test(nomination, one_that_failed_is_not_repeated_without_a_reason)
{
    send_to("node-4");
    put_node("node-4", NODE_IS_UNSCHEDULABLE);
    expect_sent_in(3600, 0);
    put_node("node-4", 0);
    expect_sent_in(3600, 0);
    send_to("node-4");
}

Test(nomination, what_cannot_be_sent_stays_due)
{
    is_sending = false;
    want("node-4");
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(0);
    expect_count(NOMINATION_SENT, 0);
    is_sending = true;
    expect_sent(1);
}

Test(nomination, it_is_not_sent_when_its_reason_has_gone)
{
    want("node-4");
    put_node("node-4", NODE_IS_UNSCHEDULABLE);
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(0);
}

Test(nomination, without_a_reason_no_policy_is_asked_until_it_is_wanted_again)
{
    want("node-3"); /* the policy does not pass the pod there */
    expect_sent_in(1, 0);
    cr_expect_eq(asked, 1);
    expect_sent_in(60, 0);
    cr_expect_eq(asked, 1);
    want("node-3");
    expect_sent_in(60, 0);
    cr_expect_eq(asked, 2);
}

Test(nomination, the_quiet_time_begins_anew_when_it_is_wanted_again)
{
    put_node("node-4", NODE_IS_UNSCHEDULABLE);
    want("node-4");
    expect_sent_in(60, 0);
    put_node("node-4", 0);
    want("node-4");
    expect_sent(0);
    pass_ms(NOMINATION_QUIET_MS);
    expect_sent(1);
}

Test(nomination, the_quiet_time_begins_anew_for_another_node)
{
    put_node("node-2", 0);
    want("node-4");
    pass_ms(NOMINATION_LATE_MS);
    want("node-2");
    expect_sent(0);
    pass_ms(NOMINATION_QUIET_MS);
    expect_sent(1);
}

Test(nomination, it_is_put_off_while_no_verdict_can_be_made)
{
    want("node-4");
    is_error = true;
    expect_sent_in(8, 0);
    cr_expect_eq(asked, 2);
    has_no_memory = true;
    expect_sent_in(8, 0);
    is_error = has_no_memory = false;
    expect_sent_in(NOMINATION_RETRY_MS / 1000, 1);
}

Test(nomination, it_is_not_sent_to_a_pod_that_another_one_has_nominated)
{
    want("node-4");
    put_pod("node-1", "2");
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(0);
}

/* ---- when ---- */

static void expect_tick_in(uint64_t ms)
{
    uint64_t left_ns = state.nominations->tick_ns - monotonic_ns();

    cr_expect_eq(left_ns, ms * NS_PER_MS, "%lu ms", (unsigned long)(left_ns / NS_PER_MS));
}

Test(nomination, a_tick_is_due_when_the_quiet_time_ends)
{
    nomination_tick(&state);
    expect_tick_in(NOMINATION_TICK_MS);
    want("node-4");
    expect_tick_in(NOMINATION_QUIET_MS);
    pass_ms(NOMINATION_QUIET_MS / 2);
    want("node-4"); /* rejected again */
    expect_tick_in(NOMINATION_QUIET_MS / 2);
    pass_ms(NOMINATION_QUIET_MS / 2);
    expect_sent(0);
    expect_tick_in(NOMINATION_QUIET_MS / 2);
    pass_ms(NOMINATION_QUIET_MS / 2);
    expect_sent(1);
    expect_tick_in(NOMINATION_TICK_MS);
}

Test(nomination, what_cannot_be_sent_now_waits_for_the_next_tick)
{
    is_sending = false;
    want("node-4");
    pass_ms(NOMINATION_QUIET_MS);
    expect_sent(0);
    expect_tick_in(NOMINATION_TICK_MS);
}

static bool was_watched(const char *what)
{
    for (unsigned i = 0; i < WATCHDOG_SLOTS; i++) {
        const char *name = atomic_load(&state.watchdog.slots[i].what);
        if (name != NULL && strcmp(name, what) == 0)
            return true;
    }
    return false;
}

Test(nomination, the_thread_sends_what_is_due_and_the_watchdog_watches_it)
{
    struct error err = {0};

    cr_assert_eq(nomination_start(&state, &err), 0);
    want("node-4");
    pass_ms(NOMINATION_QUIET_MS);
    for (int i = 0; i < 1000 && sent == 0; i++)
        (void)usleep(10000);
    nomination_stop(&state);
    cr_expect_eq(atomic_load(&sent), 1);
    cr_expect(was_watched("nomination"));
}

/* ---- bounds ---- */

enum { ALONE = NOMINATED_PODS_MAX / 2 }; /* of one namespace */

Test(nomination, there_is_room_for_so_many)
{
    char uid[UID_TEXT_BYTES + 1];
    struct meta pod = waiting.meta;

    pod.uid = (struct slice){uid, UID_TEXT_BYTES};
    for (unsigned i = 1; i <= ALONE + 3; i++) {
        (void)snprintf(uid, sizeof uid, "20000000-0000-4000-8000-%012u", i);
        nomination_want(state.nominations, &pod, SLICE("node-4"));
    }
    expect_known(ALONE);
    expect_count(NOMINATION_DROPPED, 3);
    nomination_tick(&state); /* they do not exist */
    expect_known(ALONE - NOMINATIONS_CHECKED);
}

Test(nomination, there_is_a_bound_a_second)
{
    char name[32], uid[UID_TEXT_BYTES + 1];
    struct object pod = {.kind = KIND_POD, .pod = waiting};
    struct error err = {0};

    pod.pod.meta.uid = (struct slice){uid, UID_TEXT_BYTES};
    for (unsigned i = 0; i < 3 * NOMINATIONS_PER_SECOND; i++) {
        (void)snprintf(uid, sizeof uid, "20000000-0000-4000-8000-%012u", i);
        (void)snprintf(name, sizeof name, "web-listed-%u", i);
        pod.pod.meta.name = slice_of(name);
        cr_assert_eq(cluster_apply(&state.cluster, &pod, &err), 0);
        nomination_want(state.nominations, &pod.meta, SLICE("node-4"));
    }
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(NOMINATIONS_PER_SECOND / 4 * NOMINATIONS_SHARE); /* of one namespace */
    pass_ms(1000);
    expect_sent(NOMINATIONS_PER_SECOND / 4 * NOMINATIONS_SHARE);
}

Test(nomination, nothing_is_sent_for_a_snapshot)
{
    state.api = NULL;
    want("node-4");
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(0);
}

/* Pods of a tenant that wait for ever, and of which nothing is wanted any more. */
Test(nomination, pods_of_one_namespace_leave_room_for_those_of_others)
{
    char name[32], uid[UID_TEXT_BYTES + 1];
    struct object pod = {.kind = KIND_POD, .pod = waiting};
    struct error err = {0};

    pod.pod.meta.uid = (struct slice){uid, UID_TEXT_BYTES};
    pod.pod.meta.ns = SLICE("greedy");
    for (unsigned i = 0; i < NOMINATED_PODS_MAX; i++) {
        (void)snprintf(uid, sizeof uid, "30000000-0000-4000-8000-%012u", i);
        (void)snprintf(name, sizeof name, "web-listed-%u", i);
        pod.pod.meta.name = slice_of(name);
        cr_assert_eq(cluster_apply(&state.cluster, &pod, &err), 0);
        nomination_want(state.nominations, &pod.meta, SLICE("node-4"));
        nomination_unwant(state.nominations, pod.meta.uid); /* it is settled, and stays */
    }
    for (int i = 0; i < 40; i++)
        pass_ms(1000);
    want("node-4"); /* the pod of another namespace */
    expect_count(NOMINATION_DROPPED, ALONE);
}
