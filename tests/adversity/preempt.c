/* Preemption: what the scheduler hears from /preempt, and the evictions that claimguard starts, in
 * front of an API server that is late, fails or hangs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scenario.h"

static const char quick[] = "readWriteOncePod: {preemptionGrace: 10ms, reservationTTL: 2s}\n";

/* A claim, and the pod that holds it on node-1: "low-CLAIM". */
static void put_held_claim(const char *claim)
{
    char low[32];

    (void)snprintf(low, sizeof low, "low-%s", claim);
    put_claim(claim);
    put_pod(&(struct test_pod){.name = low, .claim = claim, .node = "node-1", .priority = 10});
}

/* A pod that wants it: "high-CLAIM". Put when claimguard is there: one that starts requeues those
 * that wait already. */
static void put_preemptor(const char *claim)
{
    char high[32];

    (void)snprintf(high, sizeof high, "high-%s", claim);
    put_pod(&(struct test_pod){.name = high, .claim = claim, .priority = 100});
}

static bool sees(const struct guard *guard, unsigned pods)
{
    return guard_metric(guard, "claimguard_cache_objects{resource=\"pods\"}") == pods;
}

static void start_with_a_preemptor(struct guard *guard, const char *config)
{
    put_held_claim("data");
    guard_start(guard, config);
    put_preemptor("data");
    AWAIT(sees(guard, 2), "the preemptor is seen");
}

static void replace_low(const char *node)
{
    api_remove("pods", "default", "low-data");
    put_pod(&(struct test_pod){.name = "low-data", .claim = "data", .node = node, .priority = 10});
}

/* ExtenderPreemptionArgs: the pod, and one candidate node with one victim ("": with none). */
static const char *preempt_body(const char *pod, const char *node, const char *victim)
{
    static char body[8192];
    char meta[128] = "";

    if (victim[0] != '\0')
        (void)snprintf(meta, sizeof meta, "{\"UID\":\"%s\"}",
                       api_text("pods", "default", victim, "metadata.uid"));
    (void)snprintf(body, sizeof body,
                   "{\"Pod\":%s,\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{\"%s\":{"
                   "\"Pods\":[%s],\"NumPDBViolations\":0}}}",
                   api_object("pods", "default", pod), node, meta);
    return body;
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
        api_text("pods", "default", pod, "metadata.annotations.claimguard~io/nudged");

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
    start_with_a_preemptor(&guard, quick);
    put_pod(&(struct test_pod){.name = "first", .claim = "logs", .priority = 100});
    put_pod(&(struct test_pod){.name = "both",
                               .priority = 100,
                               .more_spec = ",\"volumes\":[{\"name\":\"v\","
                                            "\"persistentVolumeClaim\":{\"claimName\":\"data\"}},"
                                            "{\"name\":\"w\",\"persistentVolumeClaim\":{"
                                            "\"claimName\":\"logs\"}}]"});
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

/* Two pods hold the claim, on two nodes: the scheduler would evict one of them. */
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

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(preempt_keeps_a_right_candidate_while_the_watch_is_late),
        SCENARIO(preempt_asks_nobody_when_all_candidates_are_kept),
        SCENARIO(a_preemptor_whose_node_was_dropped_for_a_reservation_is_requeued_at_its_end),
        SCENARIO(a_preemptor_whose_node_was_dropped_unconfirmed_is_requeued_when_the_cache_knows),
        SCENARIO(a_preemptor_whose_holders_are_on_two_nodes_needs_no_filter_call),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
