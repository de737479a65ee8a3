/* What policies warn of is reported when a pod is bound, once; and a pod that no node takes has
 * nobody evicted. With the policies of support/node_policy.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scenario.h"

#define WARNINGS "claimguard_policy_warnings_total{policy=\"Warned\"}"
#define EVENT    "\"reason\":\"VolumeWarning\""

static void a_bound_pod_has_an_event_and_counts(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "doomed"});
    guard_start(&guard, "");
    check(filter_passes(&guard, "doomed"), "it is only warned of");
    check(guard_metric(&guard, WARNINGS) == 0, "it is not bound");
    check(bind_succeeds(&guard, "doomed", "node-1"), "it is bound");
    check(guard_metric(&guard, WARNINGS) == 1, "that counts");
    check(api_wait("POST", EVENT, 1), "an Event");
    check(api_count("POST", "\"type\":\"Warning\",\"reason\":\"VolumeWarning\"") == 1, "a Warning");
    check(api_count("POST", "\"message\":\"the pod is doomed\"") == 1, "which says why");
    check(api_count("POST", "\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
                            "\"namespace\":\"default\",\"name\":\"doomed\"") == 1,
          "of the pod");
    guard_stop(&guard);
}

static void each_warning_has_an_event(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "doomed",
                               .more_spec =
                                   ",\"volumes\":[{\"name\":\"v\",\"csi\":{\"driver\":\"d\"}}]"});
    guard_start(&guard, "");
    check(bind_succeeds(&guard, "doomed", "node-1"), "it is bound");
    check(api_wait("POST", EVENT, 2), "two Events");
    check(api_count("POST", "\"message\":\"the pod has an inline volume\"") == 1,
          "a bind knows the inline volumes");
    check(guard_metric(&guard, WARNINGS) == 2, "both count");
    guard_stop(&guard);
}

static void a_bind_reports_what_is_wrong_with_its_node(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "warned-1"});
    put_pod(&(struct test_pod){.name = "warned-2"});
    guard_start(&guard, "");
    check(bind_succeeds(&guard, "warned-1", "node-1"), "on the right node");
    check(bind_succeeds(&guard, "warned-2", "node-2"), "on another one");
    check(api_wait("POST", EVENT, 1), "an Event");
    check(guard_metric(&guard, WARNINGS) == 1, "of the second");
    check(api_count("POST", "\"message\":\"the pod is for node-1\"") == 1, "with the reason");
    guard_stop(&guard);
}

static void a_repeated_bind_reports_nothing_again(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "doomed"});
    guard_start(&guard, "");
    api_hold("pods");
    check(bind_succeeds(&guard, "doomed", "node-1"), "it is bound");
    check(bind_succeeds(&guard, "doomed", "node-1"), "it is bound already");
    api_release("pods");
    check(!bind_succeeds(&guard, "doomed", "node-2"), "to another node");
    check(guard_metric(&guard, WARNINGS) == 1, "once");
    check(api_count("POST", EVENT) == 1, "one Event");
    guard_stop(&guard);
}

/* Another replica, or the scheduler itself, has bound it: the API server says so. */
static void a_pod_that_another_one_has_bound_is_not_reported(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "doomed"});
    guard_start(&guard, "");
    api_hold("pods");
    put_pod(&(struct test_pod){.name = "doomed", .node = "node-1"});
    check(bind_succeeds(&guard, "doomed", "node-1"), "it is bound as asked");
    check(api_count("POST", "/binding") == 1, "its Binding was refused");
    check(guard_metric(&guard, WARNINGS) == 0, "it is not ours");
    check(api_count("POST", EVENT) == 0, "no Event");
    guard_stop(&guard);
}

/* The bind has decided, and asks about a claim that the pod shares. */
static void a_pod_that_is_bound_while_the_bind_asks_is_not_reported(void)
{
    struct guard guard;
    struct beside bind;

    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"shared\"},\"spec\":{\"accessModes\":[\"ReadWriteMany\"]}}");
    put_pod(&(struct test_pod){.name = "other", .claim = "shared", .node = "node-1"});
    put_pod(&(struct test_pod){.name = "doomed", .claim = "shared"});
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "GET",
                                  .path = "/persistentvolumeclaims/shared",
                                  .is_applied = true,
                                  .late_ms = 400});
    bind_beside(&bind, &guard, "doomed", "node-1");
    check(api_wait("GET", "/persistentvolumeclaims/shared", 1), "it asks");
    put_pod(&(struct test_pod){.name = "doomed", .claim = "shared", .node = "node-1"});
    check(beside_end(&bind), "it is bound as asked");
    check(api_count("POST", "/binding") == 0, "by another one");
    check(guard_metric(&guard, WARNINGS) == 0, "it is not ours");
    guard_stop(&guard);
}

static void a_binding_whose_answer_was_lost_is_reported(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "doomed"});
    guard_start(&guard, "");
    api_hold("pods");
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/binding", .times = 1, .is_applied = true, .ending = API_CLOSE});
    check(bind_succeeds(&guard, "doomed", "node-1"), "it is seen bound");
    check(guard_metric(&guard, WARNINGS) == 1, "it counts");
    guard_stop(&guard);
}

static void a_binding_that_is_refused_is_not_reported(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "doomed"});
    guard_start(&guard, "");
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .times = 1, .status = 403});
    check(!bind_succeeds(&guard, "doomed", "node-1"), "it is refused");
    check(guard_metric(&guard, WARNINGS) == 0, "it is not bound");
    check(bind_succeeds(&guard, "doomed", "node-1"), "the next one is not");
    check(guard_metric(&guard, WARNINGS) == 1, "now it is");
    check(api_wait("POST", EVENT, 1) && api_count("POST", EVENT) == 1, "one Event");
    guard_stop(&guard);
}

static void a_mode_is_reloaded(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "doomed"});
    guard_start(&guard, "");
    guard_reload(&guard, "readWriteOnce: {mode: Enforce}\n");
    check(!filter_passes(&guard, "doomed"), "it is rejected");
    check(!bind_succeeds(&guard, "doomed", "node-1"), "and not bound");
    check(guard_metric(&guard, WARNINGS) == 0, "nobody is warned");
    guard_stop(&guard);
}

/* ---- preemption ---- */

#define EVICTED "claimguard_preemption_attempts_total{result=\"evicted\"}"
#define AT_ONCE "readWriteOncePod: {preemptionGrace: 10ms}\nreadWriteOnce: {mode: Enforce}\n"

static void start_with_a_low_holder(struct guard *guard, const char *waiter)
{
    put_claim("data");
    put_claim("logs");
    put_pod(&(struct test_pod){.name = "low", .claim = "data", .node = "node-1", .priority = 10});
    put_pod(&(struct test_pod){.name = "other", .claim = "logs", .node = "node-1", .priority = 10});
    put_pod(&(struct test_pod){.name = waiter, .claim = "data", .priority = 100});
    put_pod(&(struct test_pod){.name = "high", .claim = "logs", .priority = 50});
    guard_start(guard, AT_ONCE);
}

/* Another pod's preemption, which begins later, shows that there was time for this one. */
static void nobody_is_evicted_for_a_pod_that_no_node_takes(void)
{
    struct guard guard;

    start_with_a_low_holder(&guard, "listed-and-warned");
    check(!filter_passes(&guard, "listed-and-warned"), "node-1 and node-2 are rejected");
    check(!filter_passes(&guard, "high"), "other has its claim");
    AWAIT(guard_metric(&guard, EVICTED) == 1, "other is evicted");
    check(api_count("POST", "/pods/low/eviction") == 0, "low is not");
    guard_stop(&guard);
}

static void a_holder_is_evicted_where_a_node_takes_the_pod(void)
{
    struct guard guard;

    start_with_a_low_holder(&guard, "warned");
    check(!filter_passes(&guard, "warned"), "low has its claim");
    AWAIT(api_count("POST", "/pods/low/eviction") == 1, "low is evicted: node-1 is good");
    guard_stop(&guard);
}

static void preempt_on_a_node_that_is_rejected_evicts_nobody(void)
{
    struct guard guard;

    start_with_a_low_holder(&guard, "warned");
    free(guard_call(&guard, "/preempt", preempt_body("warned", "node-2", "")));
    check(!filter_passes(&guard, "high"), "other has its claim");
    AWAIT(guard_metric(&guard, EVICTED) == 1, "other is evicted");
    check(api_count("POST", "/pods/low/eviction") == 0, "low is not");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_bound_pod_has_an_event_and_counts),
        SCENARIO(each_warning_has_an_event),
        SCENARIO(a_bind_reports_what_is_wrong_with_its_node),
        SCENARIO(a_repeated_bind_reports_nothing_again),
        SCENARIO(a_pod_that_another_one_has_bound_is_not_reported),
        SCENARIO(a_pod_that_is_bound_while_the_bind_asks_is_not_reported),
        SCENARIO(a_binding_whose_answer_was_lost_is_reported),
        SCENARIO(a_binding_that_is_refused_is_not_reported),
        SCENARIO(a_mode_is_reloaded),
        SCENARIO(nobody_is_evicted_for_a_pod_that_no_node_takes),
        SCENARIO(a_holder_is_evicted_where_a_node_takes_the_pod),
        SCENARIO(preempt_on_a_node_that_is_rejected_evicts_nobody),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
