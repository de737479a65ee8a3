/* To which node a pod is nominated that passes on none of those that the scheduler has shown, and
 * when that ends. With the policy `listed` of support/node_policy.h. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/cli/services.h"
#include "extender/live/nomination.h"

#define UID "20000000-0000-4000-8000-000000000000"

static struct state state;
static struct arena arena;

/* What is sent to the API server. */
static unsigned sent;
static char last_body[512];
static bool is_sending = true;

static uint64_t now_ns = 1000 * NS_PER_MS;

uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void)
{
    return now_ns;
}

static void pass_ms(uint64_t ms)
{
    now_ns += ms * NS_PER_MS;
}

bool __wrap_requests_send(struct requests *requests, const struct request *request);
bool __wrap_requests_send(struct requests *requests, const struct request *request)
{
    (void)requests;
    if (!is_sending)
        return false;
    cr_expect_str_eq(request->method, "PATCH");
    cr_expect_str_eq(request->suffix, "/status");
    cr_expect(slice_has(request->object.name, SLICE("web-listed")));
    (void)snprintf(last_body, sizeof last_body, "%.*s", SLICE_ARG(request->body));
    sent++;
    return true;
}

static void put_node(const char *name, int64_t flags)
{
    struct object node = {.kind = KIND_NODE};
    struct error err = {0};

    node.meta.name = slice_of(name);
    node.resource.number = flags;
    cr_assert_eq(cluster_apply(&state.cluster, &node, &err), 0);
}

static struct pod_object waiting = {
    .meta = {.ns = {"ns", 2}, .name = {"web-listed", 10}, .uid = {UID, 36}},
    .phase = {"Pending", 7}};

static void put_pod(const char *nominated, const char *version)
{
    struct object pod = {.kind = KIND_POD, .pod = waiting};
    struct error err = {0};

    pod.pod.nominated_node = slice_of(nominated);
    pod.meta.resource_version = slice_of(version);
    cr_assert_eq(cluster_apply(&state.cluster, &pod, &err), 0);
}

static void setup(void)
{
    struct config *config;
    struct error err = {0};

    cr_assert_eq(config_load(&config, NULL, &err), 0);
    cr_assert_eq(services_init(&state, config, &err), 0);
    state.api = (struct requests *)(void *)&sent; /* requests_send is ours */
    arena_init(&arena, 1 << 20);
    put_node("node-1", NODE_IS_NOT_READY);
    put_node("node-2", NODE_IS_UNSCHEDULABLE);
    put_node("node-3", 0);
    put_node("node-4", 0);
    put_pod("", "1");
}

static void teardown(void)
{
    arena_dispose(&arena);
    services_dispose(&state);
}

TestSuite(nomination, .init = setup, .fini = teardown, .timeout = 60);

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

/* ---- requests: the policy passes the pod on node-2 and node-4 ---- */

static void want(const char *node)
{
    nomination_want(state.nominations, &waiting.meta, slice_of(node));
}

/* At that tick, `more` requests are sent. */
static void expect_sent(unsigned more)
{
    unsigned before = sent;

    nomination_tick(&state);
    cr_expect_eq(sent, before + more, "%u sent", sent - before);
}

/* The pod is nominated, and the cache knows. */
static void nominate(const char *node)
{
    want(node);
    pass_ms(NOMINATION_QUIET_MS);
    expect_sent(1);
    put_pod(node, "2");
}

static void expect_count(enum nomination_result result, unsigned count)
{
    cr_expect_eq(atomic_load(&state.nominations->results[result]), count);
}

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
    cr_expect_eq(nomination_count(state.nominations), 1);
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
    for (unsigned i = 0; i < NOMINATIONS_SENT_MAX; i++) {
        nominate("node-4");
        expect_sent(0);
        put_pod("", "3");
    }
    want("node-4");
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(0);
    want("node-2"); /* another node is another matter, but it is cordoned */
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(0);
    put_node("node-2", 0);
    expect_sent(1);
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

Test(nomination, it_is_not_sent_to_a_pod_that_another_one_has_nominated)
{
    want("node-4");
    put_pod("node-1", "2");
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(0);
}

Test(nomination, there_is_room_for_so_many)
{
    char uid[UID_TEXT_BYTES + 1];
    struct meta pod = waiting.meta;

    pod.uid = (struct slice){uid, UID_TEXT_BYTES};
    for (unsigned i = 1; i <= NOMINATED_PODS_MAX + 3; i++) {
        (void)snprintf(uid, sizeof uid, "20000000-0000-4000-8000-%012u", i);
        nomination_want(state.nominations, &pod, SLICE("node-4"));
    }
    cr_expect_eq(nomination_count(state.nominations), NOMINATED_PODS_MAX);
    expect_count(NOMINATION_DROPPED, 3);
    nomination_tick(&state); /* they do not exist */
    cr_expect_eq(nomination_count(state.nominations), NOMINATED_PODS_MAX - NOMINATIONS_CHECKED);
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
    expect_sent(NOMINATIONS_PER_SECOND);
    pass_ms(1000);
    expect_sent(NOMINATIONS_PER_SECOND);
}

Test(nomination, nothing_is_sent_for_a_snapshot)
{
    state.api = NULL;
    want("node-4");
    pass_ms(NOMINATION_LATE_MS);
    expect_sent(0);
}

/* ---- its end ---- */

Test(nomination, it_stays_while_the_node_is_all_that_the_pod_waits_for)
{
    nominate("node-4");
    expect_sent(0);
}

Test(nomination, it_is_cleared_once_when_the_node_is_cordoned)
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

Test(nomination, another_one_s_is_not_cleared)
{
    nominate("node-4");
    put_node("node-4", NODE_IS_UNSCHEDULABLE);
    put_pod("node-1", "3");
    expect_sent(0);
}

Test(nomination, a_pod_that_is_bound_or_gone_is_forgotten)
{
    struct object pod = {.kind = KIND_POD, .pod = waiting};
    struct error err = {0};

    want("node-4");
    pod.pod.node = SLICE("node-4");
    cr_assert_eq(cluster_apply(&state.cluster, &pod, &err), 0);
    nomination_tick(&state);
    cr_expect_eq(nomination_count(state.nominations), 0);
    want("node-4");
    cluster_delete(&state.cluster, &pod);
    nomination_tick(&state);
    cr_expect_eq(nomination_count(state.nominations), 0);
    cr_expect_eq(sent, 0);
}
