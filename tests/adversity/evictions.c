/* An API server whose answer to an eviction is false. */
#include <stdio.h>
#include <string.h>

#include "support/scenario.h"

#define QUICK "readWriteOncePod: {preemptionGrace: 10ms, reservationTTL: 2s"

static const char conflict[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"Conflict\","
    "\"code\":409,\"message\":\"admission webhook denies it\"}";
static const char not_found[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"NotFound\","
    "\"code\":404,\"message\":\"the server could not find the requested resource\"}";
static const char success[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Success\",\"code\":201}";

static void put_low(const char *claim)
{
    char low[32];

    (void)snprintf(low, sizeof low, "low-%s", claim);
    put_claim(claim);
    put_pod(&(struct test_pod){.name = low, .claim = claim, .node = "node-1", .priority = 10});
}

static bool is_left_alone(const char *pod)
{
    return strcmp(api_object("pods", "default", pod), "null") != 0 &&
           api_text("pods", "default", pod, "metadata.deletionTimestamp")[0] == '\0';
}

static double failed_attempts(const struct guard *guard)
{
    return guard_metric(guard, "claimguard_preemption_attempts_total{result=\"failed\"}");
}

/* An admission webhook may choose the status with which it denies. The holder stays. */
static void evict_in_vain(unsigned status, const char *answer)
{
    struct guard guard;

    put_low("data");
    guard_start(&guard, QUICK "}\n");
    put_pod(&(struct test_pod){.name = "high", .claim = "data", .priority = 100});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 2, "both");
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/eviction", .status = status, .answer = answer});
    check(!filter_passes(&guard, "high"), "its claim is held");
    AWAIT(failed_attempts(&guard) == 1, "it is a failure");
    check(api_wait("POST", "PreemptionFailed", 1), "an Event says so");
    sleep_ms(3000);
    check(api_count("POST", "/eviction") == 1, "it is not repeated at once");
    guard_stop(&guard);
}

static void a_conflict_at_an_eviction_is_no_proof_that_the_pod_has_gone(void)
{
    evict_in_vain(409, conflict);
}

static void a_404_at_an_eviction_is_no_proof_that_the_pod_has_gone(void)
{
    evict_in_vain(404, not_found);
}

static void an_eviction_that_did_nothing_is_not_sent_again_and_again(void)
{
    evict_in_vain(201, success);
}

/* high needs two claims; the holder of the first one cannot be evicted. */
static void spare_the_second(const char *config, const char *method)
{
    struct guard guard;

    put_low("data");
    put_low("logs");
    guard_start(&guard, config);
    put_pod(&(struct test_pod){
        .name = "high", .priority = 100, .claim = "data", .second_claim = "logs"});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 3, "all");
    api_fault(&(struct api_fault){
        .method = method, .path = "/pods/low-data", .status = 409, .answer = conflict});
    check(!filter_passes(&guard, "high"), "its claims are held");
    AWAIT(failed_attempts(&guard) >= 1, "it is a failure");
    check(is_left_alone("low-data") && is_left_alone("low-logs"), "no pod is evicted in vain");
    guard_stop(&guard);
}

static void where_one_holder_cannot_be_evicted_the_other_is_not(void)
{
    spare_the_second(QUICK "}\n", "POST");
}

static void where_one_holder_cannot_be_deleted_the_other_is_not(void)
{
    spare_the_second(QUICK ", respectPodDisruptionBudgets: false}\n", "DELETE");
}

/* All of them would have to go. */
static void a_pod_with_too_many_victims_says_so(void)
{
    struct guard guard;

    put_claim("data");
    for (int i = 0; i < 16; i++)
        put_pod(&(struct test_pod){.name = scenario_printf("low-%d", i),
                                   .claim = "data",
                                   .node = "node-1",
                                   .priority = 10});
    guard_start(&guard, QUICK "}\n");
    put_pod(&(struct test_pod){.name = "high", .claim = "data", .priority = 100});
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"pods\"}") == 17, "all");
    check(!filter_passes(&guard, "high"), "its claim is held");
    check(guard_logs(&guard, "over 15 pods would have to be evicted, so none is"), "the log");
    check(api_wait("POST", "PreemptionFailed", 1), "an Event says so");
    check(failed_attempts(&guard) == 1, "it is counted");
    check(api_count("POST", "/eviction") == 0, "nobody is evicted");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_conflict_at_an_eviction_is_no_proof_that_the_pod_has_gone),
        SCENARIO(a_404_at_an_eviction_is_no_proof_that_the_pod_has_gone),
        SCENARIO(an_eviction_that_did_nothing_is_not_sent_again_and_again),
        SCENARIO(where_one_holder_cannot_be_evicted_the_other_is_not),
        SCENARIO(where_one_holder_cannot_be_deleted_the_other_is_not),
        SCENARIO(a_pod_with_too_many_victims_says_so),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
