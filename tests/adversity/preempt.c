/* Preemption: the answers to /preempt, and the evictions that claimguard starts, in front of an API
 * server that is late, fails or hangs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adversity/preemptors.h"
#include "extender/serving/preemption/preemption.h"
#include "support/http.h"

static void replace_low(const char *node)
{
    api_remove("pods", "default", "low-data");
    put_pod(&(struct test_pod){.name = "low-data", .claim = "data", .node = node, .priority = 10});
}

static bool preempt_keeps(const struct guard *guard, const char *pod, const char *node,
                          const char *victim)
{
    char *answer = guard_call(guard, "/preempt", preempt_body(pod, node, victim));
    bool keeps = strstr(answer, node) != NULL;

    printf("preempt %s: %s\n", pod, answer);
    free(answer);
    return keeps;
}

static bool is_evicted(const char *pod)
{
    return api_text("pods", "default", pod, "metadata.deletionTimestamp")[0] != '\0';
}

static bool is_requeued(const char *pod)
{
    const char *when =
        api_text("pods", "default", pod, "metadata.annotations.claimguard~io/requeue-requested");

    return when[0] != '\0';
}

/* ---- /preempt and a late cache ---- */

static void preempt_keeps_a_right_candidate_while_the_watch_is_late(void)
{
    struct guard guard;

    start_with_a_preemptor(&guard, "");
    api_hold("pods");
    replace_low("node-2");
    check(preempt_keeps(&guard, "high-data", "node-2", "low-data"),
          "the holder is on node-2, says the API server");
    check(preempt_keeps(&guard, "high-data", "node-2", ""), "it is added where it is missing");
    api_release("pods");
    guard_stop(&guard);
}

static void preempt_asks_nobody_when_all_candidates_are_kept(void)
{
    struct guard guard;

    start_with_a_preemptor(&guard, "");
    size_t gets = api_count("GET", "/pods/");
    check(preempt_keeps(&guard, "high-data", "node-1", "low-data"), "a right candidate");
    check(api_count("GET", "/pods/") == gets, "no pod is asked about");
    guard_stop(&guard);
}

static void a_preemptor_whose_node_was_dropped_for_a_reservation_is_requeued_at_its_end(void)
{
    struct guard guard;

    put_claim("logs");
    start_with_a_preemptor(&guard,
                           "readWriteOncePod: {preemptionGrace: 10ms, reservationTTL: 10s}\n");
    put_pod(&(struct test_pod){.name = "first", .claim = "logs", .priority = 100});
    put_pod(&(struct test_pod){
        .name = "both", .priority = 100, .claim = "data", .second_claim = "logs"});
    check(filter_passes(&guard, "first"), "logs is reserved for it");
    check(!preempt_keeps(&guard, "both", "node-1", "low-data"), "logs is reserved");
    check(!is_requeued("both"), "not yet");
    AWAIT(is_requeued("both"), "the preemptor is requeued when the reservation ends");
    guard_stop(&guard);
}

static void a_preemptor_whose_node_was_dropped_unconfirmed_is_requeued_when_the_cache_knows(void)
{
    struct guard guard;

    start_with_a_preemptor(&guard, "");
    api_hold("pods");
    replace_low("node-2");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods/low-data", .status = 503});
    check(!preempt_keeps(&guard, "high-data", "node-2", "low-data"), "the cache knows no better");
    sleep_ms(500);
    check(!is_requeued("high-data"), "not yet");
    api_release("pods");
    AWAIT(is_requeued("high-data"), "the preemptor is requeued");
    guard_stop(&guard);
}

/* Two pods hold the claim, on two nodes: the scheduler would evict only one of them. */
static void a_preemptor_whose_holders_are_on_two_nodes_needs_no_filter_call(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "other", .claim = "data", .node = "node-2", .priority = 10});
    put_held_claim("data");
    guard_start(&guard, quick);
    put_preemptor("data");
    AWAIT(sees(&guard, 3), "the preemptor is seen");
    check(!preempt_keeps(&guard, "high-data", "node-1", "low-data"), "one is not enough");
    AWAIT(is_evicted("low-data") && is_evicted("other"), "both are evicted");
    guard_stop(&guard);
}

/* ---- evictions ---- */

static void nothing_is_evicted_before_the_scheduler_asks_again(void)
{
    struct guard guard;

    start_with_a_preemptor(&guard, quick);
    api_fault(&(struct api_fault){.method = "POST", .path = "/eviction", .status = 429});
    check(!filter_passes(&guard, "high-data"), "the claim is held");
    check(api_wait("POST", "/eviction", 1), "an eviction is tried");
    api_heal();
    for (int i = 0; i < 600 && !is_requeued("high-data"); i++)
        sleep_ms(100);
    sleep_ms(500);
    check(!is_evicted("low-data"), "nobody is evicted: the scheduler has not asked again");
    check(is_requeued("high-data"), "the pod is requeued");
    check(!filter_passes(&guard, "high-data"), "a node is offered, and the claim is held");
    AWAIT(is_evicted("low-data"), "now it is evicted");
    guard_stop(&guard);
}

/* A scheduler without a node for the pod sends no node. */
static void nobody_is_evicted_for_a_pod_that_fits_on_no_node(void)
{
    char body[2048];
    struct guard guard;

    start_with_a_preemptor(&guard, quick);
    (void)snprintf(body, sizeof body, "{\"Pod\":%s,\"NodeNames\":[]}",
                   api_object("pods", "default", "high-data"));
    free(guard_call(&guard, "/filter", body));
    sleep_ms(1000);
    check(api_count("POST", "/eviction") == 0, "there is no node for it");
    check(!filter_passes(&guard, "high-data"), "now there is, and the claim is held");
    AWAIT(is_evicted("low-data"), "the holder is evicted");
    guard_stop(&guard);
}

/* The watch is late, too: only GETs would show that the holder terminates. */
static void a_failed_look_does_not_lose_the_claim_of_a_preemptor(void)
{
    struct guard guard;

    start_with_a_preemptor(&guard, quick);
    put_pod(&(struct test_pod){.name = "middle", .claim = "data", .priority = 50});
    AWAIT(sees(&guard, 3), "it is seen");
    api_hold("pods");
    api_fault(&(struct api_fault){.method = "GET",
                                  .path = "/pods/low-data",
                                  .skip = 2, /* that of /filter, and that before the eviction */
                                  .status = 503});
    check(!filter_passes(&guard, "high-data"), "the claim is held");
    AWAIT(is_evicted("low-data"), "the holder is evicted");
    sleep_ms(4000);
    api_heal();
    api_remove("pods", "default", "low-data");
    api_release("pods");
    sleep_ms(500);
    check(!filter_passes(&guard, "middle"), "the claim is kept for the preemptor");
    check(filter_passes(&guard, "high-data"), "which gets it");
    check(api_count("POST", "\"Preempting\"") == 1, "an Event says so");
    check(api_count("POST", "PreemptionFailed") == 0, "and none the contrary");
    guard_stop(&guard);
}

static void an_eviction_that_hangs_does_not_stop_others(void)
{
    struct guard guard;

    start_with_two_preemptors(&guard);
    api_fault(
        &(struct api_fault){.method = "POST", .path = "/low-data/eviction", .ending = API_HANG});
    check(!filter_passes(&guard, "high-data"), "its claim is held");
    check(api_wait("POST", "/low-data/eviction", 1), "its eviction is sent");
    check(!filter_passes(&guard, "high-logs"), "its claim is held, too");
    int64_t began_ms = clock_ms();
    AWAIT(is_evicted("low-logs"), "the other holder is evicted");
    check(clock_ms() - began_ms < 4500, "at once, not after %lld ms",
          (long long)(clock_ms() - began_ms));
    guard_stop(&guard);
}

/* A pod that only the scheduler knows so far needs the claim of low-data. */
static void ask_about_rival(const struct guard *guard, unsigned number)
{
    char body[512];

    (void)snprintf(body, sizeof body,
                   "{\"Pod\":{\"metadata\":{\"name\":\"rival-%u\",\"namespace\":\"default\","
                   "\"uid\":\"11111111-0000-4000-8000-%012u\"},\"spec\":{\"priority\":50,"
                   "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
                   "\"data\"}}]}},\"Nodes\":null,\"NodeNames\":[\"node-1\"]}",
                   number, number);
    free(guard_call(guard, "/filter", body));
}

static void a_full_queue_of_preemptors_yields_to_a_pod_of_higher_priority(void)
{
    struct guard guard;

    start_with_a_preemptor(&guard, "readWriteOncePod: {preemptionGrace: 5m}\n");
    for (unsigned i = 0; i < WANTED_MAX; i++)
        ask_about_rival(&guard, i);
    guard_reload(&guard, quick);
    check(!filter_passes(&guard, "high-data"), "its claim is held");
    AWAIT(is_evicted("low-data"), "the holder is evicted");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(preempt_keeps_a_right_candidate_while_the_watch_is_late),
        SCENARIO(preempt_asks_nobody_when_all_candidates_are_kept),
        SCENARIO(a_preemptor_whose_node_was_dropped_for_a_reservation_is_requeued_at_its_end),
        SCENARIO(a_preemptor_whose_node_was_dropped_unconfirmed_is_requeued_when_the_cache_knows),
        SCENARIO(a_preemptor_whose_holders_are_on_two_nodes_needs_no_filter_call),
        SCENARIO(nobody_is_evicted_for_a_pod_that_fits_on_no_node),
        SCENARIO(nothing_is_evicted_before_the_scheduler_asks_again),
        SCENARIO(a_failed_look_does_not_lose_the_claim_of_a_preemptor),
        SCENARIO(an_eviction_that_hangs_does_not_stop_others),
        SCENARIO(a_full_queue_of_preemptors_yields_to_a_pod_of_higher_priority),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
