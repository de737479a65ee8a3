/* PodDisruptionBudgets: of a hostile user, how the API server applies them, and a 429 that does not
 * come from a budget. */
#include <stdio.h>
#include <stdlib.h>

#include "support/scenario.h"

#define QUICK "readWriteOncePod: {preemptionGrace: 10ms, reservationTTL: 2s}\n"

/* Their product takes long. Few labels: the pods have to be confirmed in a second, on a slow
 * machine too; under TSan, which is ten times slower, of less. */
#ifdef __SANITIZE_THREAD__
enum { LABELS = 4000, REQUIREMENTS = 6000 };
#else
enum { LABELS = 15000, REQUIREMENTS = 80000 };
#endif

static const char overloaded[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":"
    "\"TooManyRequests\",\"code\":429,\"message\":\"the server has received too many requests and "
    "has asked us to try again later\",\"details\":{\"retryAfterSeconds\":1}}";
static const char by_a_budget[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":"
    "\"TooManyRequests\",\"code\":429,\"message\":\"Cannot evict pod as it would violate the pod's "
    "disruption budget.\",\"details\":{\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":"
    "\"The disruption budget b needs 2 healthy pods and has 1 currently\"}]}}";

/* A holder; labels and status: the members of its objects. */
static void put_low(const char *claim, const char *labels, const char *status)
{
    put_claim(claim);
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"default\",\"name\":\"low-%s\","
            "\"labels\":{%s}},\"spec\":{\"priority\":10,\"nodeName\":\"node-1\",\"volumes\":[{"
            "\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}]},\"status\":{%s}}",
            claim, labels, claim, status);
}

static void put_budget(int allowed, const char *more_spec, const char *selector)
{
    api_put("{\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"b\"},\"spec\":{\"selector\":{%s}%s},\"status\":{\"disruptionsAllowed\":%d}}",
            selector, more_spec, allowed);
}

/* A pod that needs both claims, and waits. */
static void start_with_a_preemptor_of_both(struct guard *guard)
{
    guard_start(guard, QUICK);
    put_pod(&(struct test_pod){
        .name = "high", .priority = 100, .claim = "data", .second_claim = "logs"});
    AWAIT(guard_metric(guard, "claimguard_cache_objects{resource=\"pods\"}") == 3, "all");
}

static double attempts(const struct guard *guard, const char *result)
{
    char prefix[96];

    (void)snprintf(prefix, sizeof prefix, "claimguard_preemption_attempts_total{result=\"%s",
                   result);
    return guard_metric(guard, prefix);
}

/* Asks again: no pod is evicted for a pod about which the scheduler does not ask any more. */
static bool ends(const struct guard *guard, const char *result)
{
    check(!filter_passes(guard, "high"), "its claims are held");
    return attempts(guard, result) != 0;
}

/* ---- how the API server applies them ---- */

static void evict_both(const char *status, int allowed, const char *more_spec)
{
    struct guard guard;

    put_low("data", "\"app\":\"x\"", status);
    put_low("logs", "\"app\":\"x\"", status);
    put_budget(allowed, more_spec, "\"matchLabels\":{\"app\":\"x\"}");
    start_with_a_preemptor_of_both(&guard);
    AWAIT(ends(&guard, ""), "an attempt");
    check(attempts(&guard, "forbidden") == 0, "the API server allows it: it is to be asked");
    AWAIT(ends(&guard, "evicted"), "both are evicted");
    guard_stop(&guard);
}

static void two_pods_that_do_not_run_yet_are_evicted_whatever_a_budget_says(void)
{
    evict_both("\"phase\":\"Pending\"", 1, "");
}

static void two_unready_pods_of_an_always_allow_budget_are_evicted(void)
{
    evict_both("\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]",
               0, ",\"unhealthyPodEvictionPolicy\":\"AlwaysAllow\"");
}

static void a_budget_that_allows_one_of_two_lets_both_stay(void)
{
    struct guard guard;

    put_low("data", "\"app\":\"x\"", "\"phase\":\"Running\"");
    put_low("logs", "\"app\":\"x\"", "\"phase\":\"Running\"");
    put_budget(1, "", "\"matchLabels\":{\"app\":\"x\"}");
    start_with_a_preemptor_of_both(&guard);
    AWAIT(ends(&guard, "forbidden"), "it is forbidden");
    check(api_count("POST", "/eviction") == 0, "no eviction is sent");
    guard_stop(&guard);
}

/* With this answer, the eviction counts as `result`, and not as `other`. */
static void be_refused(const char *answer, const char *result, const char *other)
{
    struct guard guard;

    put_low("data", "", "\"phase\":\"Running\"");
    put_low("logs", "", "\"phase\":\"Running\"");
    start_with_a_preemptor_of_both(&guard);
    api_fault(&(struct api_fault){
        .method = "POST", .path = "/eviction", .status = 429, .answer = answer});
    AWAIT(ends(&guard, ""), "an attempt");
    check(attempts(&guard, other) == 0, "it does not count as %s", other);
    check(attempts(&guard, result) != 0, "it counts as %s", result);
    guard_stop(&guard);
}

static void a_429_of_an_overloaded_api_server_is_no_budget(void)
{
    be_refused(overloaded, "failed", "forbidden");
}

static void a_429_of_a_budget_is_one(void)
{
    be_refused(by_a_budget, "forbidden", "failed");
}

/* ---- a hostile user ---- */

/* "a00000":"", ..., "z":"" */
static char *many_labels(void)
{
    char *text = malloc((size_t)LABELS * 16);
    size_t length = 0;

    check(text != NULL, "memory");
    for (int i = 0; i < LABELS; i++)
        length += (size_t)sprintf(text + length, "\"a%05d\":\"\",", i);
    (void)sprintf(text + length, "\"z\":\"\"");
    return text;
}

static char *many_requirements(void)
{
    char *text = malloc((size_t)REQUIREMENTS * 40 + 64);
    size_t length = (size_t)sprintf(text, "\"matchExpressions\":[");

    for (int i = 0; i < REQUIREMENTS; i++)
        length += (size_t)sprintf(text + length, "%s{\"key\":\"z\",\"operator\":\"Exists\"}",
                                  i == 0 ? "" : ",");
    (void)sprintf(text + length, "]");
    return text;
}

/* Labels times requirements take minutes, and no call would get the lock meanwhile. */
static void a_huge_selector_and_many_labels_delay_no_call(void)
{
    struct guard guard;
    char *labels = many_labels(), *selector = many_requirements();

    put_low("data", labels, "\"phase\":\"Running\"");
    put_low("logs", labels, "\"phase\":\"Running\"");
    put_budget(1, "", selector);
    start_with_a_preemptor_of_both(&guard);
    AWAIT(ends(&guard, "forbidden"), "an attempt ends");
    check(guard_is_ready(&guard), "claimguard serves");
    guard_stop(&guard);
    free(labels);
    free(selector);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(two_pods_that_do_not_run_yet_are_evicted_whatever_a_budget_says),
        SCENARIO(two_unready_pods_of_an_always_allow_budget_are_evicted),
        SCENARIO(a_budget_that_allows_one_of_two_lets_both_stay),
        SCENARIO(a_429_of_an_overloaded_api_server_is_no_budget),
        SCENARIO(a_429_of_a_budget_is_one),
        SCENARIO(a_huge_selector_and_many_labels_delay_no_call),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
