/* Requests to the API server: how often they are sent, what is known when there is no answer, and
 * which requests wait for others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scenario.h"

enum { CALLERS = 64, CLAIMS_EACH = 15, AT_ONCE_MAX = 32 + 8 + 16 /* reads, messages, watches */ };

/* A claim that a pod holds, another pod that needs it, and claimguard. */
static void start_with_a_conflict(struct guard *guard, const char *config)
{
    put_claim("held");
    put_pod(&(struct test_pod){.name = "holder", .claim = "held", .node = "node-1"});
    put_pod(&(struct test_pod){.name = "rejected", .claim = "held"});
    guard_start(guard, config);
}

/* Leaves a connection open that was just used. */
static void warm_up(const struct guard *guard)
{
    check(!filter_passes(guard, "rejected"), "its claim is held");
}

/* ---- requests that are sent twice ---- */

static void a_binding_is_sent_once_when_its_connection_dies(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    start_with_a_conflict(&guard, "");
    warm_up(&guard);
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/binding", .times = 1, .is_applied = true, .ending = API_CLOSE});
    check(bind_succeeds(&guard, "a", "node-1"), "a GET shows that it is bound");
    check(api_count("POST", "/binding") == 1, "%zu Bindings were sent",
          api_count("POST", "/binding"));
    guard_stop(&guard);
}

static void a_lock_is_sent_once_when_its_connection_dies(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    start_with_a_conflict(&guard, "readWriteOncePod: {claimLock: Annotation}\n");
    warm_up(&guard);
    api_fault(&(struct api_fault){.method = "PATCH",
                                  .path = "persistentvolumeclaims/data",
                                  .times = 1,
                                  .is_applied = true,
                                  .ending = API_CLOSE});
    check(!bind_succeeds(&guard, "a", "node-1"), "whether the claim is locked is unknown");
    check(api_count("PATCH", "persistentvolumeclaims/data") == 1, "it was sent again");
    check(bind_succeeds(&guard, "a", "node-1"), "the lock is the pod's own");
    guard_stop(&guard);
}

static void an_event_is_sent_once_when_its_connection_dies(void)
{
    struct guard guard;

    start_with_a_conflict(&guard, "");
    warm_up(&guard);
    api_fault(&(struct api_fault){.method = "POST", .path = "/events", .ending = API_CLOSE});
    put_pod(&(struct test_pod){.name = "second", .claim = "held", .node = "node-2"});
    check(api_wait("POST", "/events", 1), "an Event says that two pods hold the claim");
    check(guard_logs(&guard, "the API server did not take a request"), "its answer is lost");
    check(api_count("POST", "/events") == 1, "%zu were sent", api_count("POST", "/events"));
    guard_stop(&guard);
}

static void a_deletion_is_sent_once_when_its_connection_dies(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "low", .claim = "data", .node = "node-1", .priority = 1});
    put_pod(&(struct test_pod){.name = "high", .claim = "data", .priority = 2});
    start_with_a_conflict(&guard, "readWriteOncePod: {respectPodDisruptionBudgets: false}\n");
    api_fault(&(struct api_fault){.method = "DELETE", .ending = API_CLOSE});
    check(!filter_passes(&guard, "high"), "its claim is held");
    check(api_wait("DELETE", "/pods/low", 1), "the holder is deleted");
    sleep_ms(500);
    check(api_count("DELETE", "/pods/low") == 1, "%zu were sent", api_count("DELETE", "/pods/low"));
    guard_stop(&guard);
}

static void a_get_is_sent_again_when_its_connection_dies(void)
{
    struct guard guard;

    start_with_a_conflict(&guard, "");
    warm_up(&guard);
    api_fault(&(struct api_fault){
        .method = "GET", .path = "/pods/holder", .times = 1, .ending = API_CLOSE});
    warm_up(&guard);
    check(guard_metric(&guard, "claimguard_confirmations_total{result=\"unknown\"}") == 0,
          "the rejection is confirmed");
    guard_stop(&guard);
}

/* A peer that closes idle connections sooner or later closes one while a write is sent over it. */
static void a_write_goes_over_no_connection_that_was_idle(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "a"});
    put_pod(&(struct test_pod){.name = "b"});
    /* then that is read every ten seconds, and not over these connections in between */
    api_fault(&(struct api_fault){.method = "GET", .path = "/configmaps/", .status = 404});
    start_with_a_conflict(&guard, "");
    size_t before = api_count("GET", "/configmaps/");
    AWAIT(api_count("GET", "/configmaps/") > before, "it was read just now");
    warm_up(&guard);
    before = api_connections_ever();
    check(bind_succeeds(&guard, "a", "node-1"), "nothing is in its way");
    check(api_connections_ever() == before, "one that was just used is used again");
    sleep_ms(6500);
    before = api_connections_ever();
    check(bind_succeeds(&guard, "b", "node-1"), "nothing is in its way");
    check(api_connections_ever() > before, "it went over an old connection");
    guard_stop(&guard);
}

/* ---- what is known without an answer ---- */

static void a_binding_that_was_not_sent_is_no_doubt(void)
{
    struct guard guard;

    put_pair(NULL);
    guard_start(&guard, "");
    api_go_down();
    check(!bind_succeeds(&guard, "a", "node-1"), "nobody listens");
    api_come_back();
    check(filter_passes(&guard, "b"), "the claim is free");
    check(bind_succeeds(&guard, "b", "node-2"), "the claim is free");
    guard_stop(&guard);
}

/* ---- which requests wait for others ---- */

/* Asks about an object whose GET hangs, until its caller gives up. */
static void be_unanswered(const struct guard *guard)
{
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/holder", .ending = API_HANG});
    check(!filter_passes(guard, "rejected"), "what the cache has decides");
    check(guard_metric(guard, "claimguard_confirmations_total{result=\"unknown\"}") == 1,
          "it was not confirmed");
}

static void one_unanswered_caller_does_not_stop_others(void)
{
    struct guard guard;

    put_pair("node-1");
    start_with_a_conflict(&guard, "");
    be_unanswered(&guard);
    api_hold("pods");
    api_remove("pods", "default", "a");
    int64_t give_up_ms = clock_ms() + 20000; /* a slow machine may need more than one GET */
    bool passes = filter_passes(&guard, "b");
    while (!passes && clock_ms() < give_up_ms)
        passes = filter_passes(&guard, "b");
    check(passes, "a is gone, says the API server");
    guard_stop(&guard);
}

static void a_look_after_a_binding_waits_while_others_are_unanswered(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    start_with_a_conflict(&guard, "");
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/binding", .is_applied = true, .ending = API_CLOSE});
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/a", .late_ms = 250});
    be_unanswered(&guard);
    api_hold("pods");
    check(bind_succeeds(&guard, "a", "node-1"), "a GET shows that it is bound");
    guard_stop(&guard);
}

static void a_silent_server_makes_callers_wait_less(void)
{
    struct guard guard;

    start_with_a_conflict(&guard, "");
    be_unanswered(&guard);
    int64_t took_ms = 600;
    for (int i = 0; i < 3 && took_ms >= 600; i++) { /* a slow machine may need more than one */
        sleep_ms(200);
        int64_t started_ms = clock_ms();
        check(!filter_passes(&guard, "rejected"), "what the cache has decides");
        took_ms = clock_ms() - started_ms;
    }
    check(took_ms < 600, "it took %lld ms", (long long)took_ms);
    api_heal();
    AWAIT(!filter_passes(&guard, "rejected") &&
              guard_metric(&guard, "claimguard_confirmations_total{result=\"stands\"}") != 0,
          "it is confirmed again");
    guard_stop(&guard);
}

/* ---- how many at once ---- */

/* A pod that needs many claims; each is held by another pod. */
static void put_pod_in_conflict(const char *name)
{
    char volumes[4096] = "", claim[64], holder[64];
    size_t len = 0;

    for (int i = 0; i < CLAIMS_EACH; i++) {
        (void)snprintf(claim, sizeof claim, "%s-%d", name, i);
        (void)snprintf(holder, sizeof holder, "%s-holder-%d", name, i);
        put_claim(claim);
        put_pod(&(struct test_pod){.name = holder, .claim = claim, .node = "node-1"});
        len += (size_t)snprintf(volumes + len, sizeof volumes - len,
                                "%s{\"name\":\"v%d\",\"persistentVolumeClaim\":{\"claimName\":"
                                "\"%s\"}}",
                                i == 0 ? ",\"volumes\":[" : ",", i, claim);
    }
    (void)snprintf(volumes + len, sizeof volumes - len, "]");
    put_pod(&(struct test_pod){.name = name, .more_spec = volumes});
}

static void many_callers_share_a_bounded_number_of_connections(void)
{
    static struct beside callers[CALLERS];
    struct guard guard;

    for (int i = 0; i < CALLERS; i++)
        put_pod_in_conflict(scenario_printf("p%d", i));
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "GET", .path = "-holder-", .delay_ms = 20});
    for (int i = 0; i < CALLERS; i++)
        filter_beside(&callers[i], &guard, scenario_printf("p%d", i));
    for (int i = 0; i < CALLERS; i++)
        (void)beside_end(&callers[i]);
    check(api_connections_max() <= AT_ONCE_MAX, "%zu connections", api_connections_max());
    guard_stop(&guard);
}

static size_t binding_place(const struct beside *bind)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/pods/%s/binding", bind->pod);
    return api_place("POST", path);
}

static int binds_in_flight(const struct guard *guard)
{
    return (int)guard_metric(guard, "claimguard_binds_in_flight ");
}

/* More Bindings than are sent at once: the last ones are sent last. */
static void requests_are_served_in_the_order_in_which_they_came(void)
{
    enum { BINDS = 64, AT_ONCE = 32, AT_A_TIME = 28 /* these may overtake each other */ };
    static struct beside binds[BINDS];
    struct guard guard;

    for (int i = 0; i < BINDS; i++)
        put_pod(&(struct test_pod){.name = scenario_printf("p%02d", i)});
    guard_start(&guard, "");
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/binding", .times = AT_ONCE, .delay_ms = 1500});
    for (int i = 0; i < BINDS; i++) {
        bind_beside(&binds[i], &guard, scenario_printf("p%02d", i), "node-1");
        int64_t give_up = clock_ms() + 500; /* the first ones may have ended */
        while (binds_in_flight(&guard) <= i && clock_ms() < give_up)
            sleep_ms(1); /* its thread may begin late, on a busy machine */
    }
    for (int i = 0; i < BINDS; i++)
        (void)beside_end(&binds[i]);
    int in_order = 0;
    for (int i = AT_A_TIME; i < BINDS; i++) {
        size_t place = binding_place(&binds[i]);
        size_t before = binding_place(&binds[i - AT_A_TIME]);
        if (place == SIZE_MAX || before == SIZE_MAX)
            continue; /* on a slow machine its time may be over before it is sent */
        check(place > before, "%s came out of order", binds[i].pod);
        in_order++;
    }
    check(in_order != 0, "some were sent");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_binding_is_sent_once_when_its_connection_dies),
        SCENARIO(a_lock_is_sent_once_when_its_connection_dies),
        SCENARIO(an_event_is_sent_once_when_its_connection_dies),
        SCENARIO(a_deletion_is_sent_once_when_its_connection_dies),
        SCENARIO(a_get_is_sent_again_when_its_connection_dies),
        SCENARIO(a_write_goes_over_no_connection_that_was_idle),
        SCENARIO(a_binding_that_was_not_sent_is_no_doubt),
        SCENARIO(one_unanswered_caller_does_not_stop_others),
        SCENARIO(a_look_after_a_binding_waits_while_others_are_unanswered),
        SCENARIO(a_silent_server_makes_callers_wait_less),
        SCENARIO(many_callers_share_a_bounded_number_of_connections),
        SCENARIO(requests_are_served_in_the_order_in_which_they_came),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
