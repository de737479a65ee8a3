#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/serving/metrics/metrics.h"

static struct metrics metrics;

static void setup(void)
{
    metrics_init(&metrics);
}

static void teardown(void)
{
    metrics_dispose(&metrics);
}

TestSuite(metrics, .init = setup, .fini = teardown);

static void decide(const char *uid, enum verdict_code code)
{
    struct pod_object pod = {.meta = {.uid = slice_of(uid)}};

    metrics_count_verdict(&metrics, &(struct verdict){.code = code, .decided_by = policies[0]},
                          &pod);
}

Test(metrics, a_pod_counts_as_rejected_until_it_passes_or_goes)
{
    decide("a", CODE_UNSCHEDULABLE);
    decide("a", CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    decide("b", CODE_UNSCHEDULABLE);
    decide("c", CODE_UNSCHEDULABLE);
    cr_expect_eq(metrics.rejected_counts[0], 3);
    decide("a", CODE_SUCCESS);
    metrics_forget_pod(&metrics, SLICE("b"));
    metrics_forget_pod(&metrics, SLICE("unknown"));
    cr_expect_eq(metrics.rejected_counts[0], 1);
}

/* The missing claim appears, and is not exclusive. */
Test(metrics, a_pod_that_is_no_business_of_the_policy_is_not_rejected)
{
    decide("a", CODE_UNSCHEDULABLE);
    decide("a", CODE_SKIP);
    cr_expect_eq(metrics.rejected_counts[0], 0);
}

Test(metrics, warnings_count_for_their_policy)
{
    metrics_count_warning(&metrics, policies[0]);
    metrics_count_warning(&metrics, policies[0]);
    cr_expect_eq(metrics.warnings[0], 2);
    cr_expect_eq(metrics.warnings[1], 0);
}

Test(metrics, deferrals_of_too_many_classes_are_not_counted)
{
    size_t count = 0;
    char class[32];

    for (int i = 0; i < DEFERRED_TALLIES_MAX + 10; i++) {
        (void)snprintf(class, sizeof class, "class-%d", i);
        metrics_count_deferral(&metrics, slice_of(class), SLICE("microvm"));
        metrics_count_deferral(&metrics, SLICE("class-0"), SLICE("microvm"));
    }
    for (const struct deferred_tally *tally = metrics.deferred; tally != NULL; tally = tally->next)
        count += tally->count;
    cr_expect_eq(count, 2 * DEFERRED_TALLIES_MAX + 10);
}

Test(metrics, of_too_many_rejected_pods_the_oldest_is_forgotten)
{
    char uid[32];

    for (int i = 0; i < REJECTED_PODS_MAX + 10; i++) {
        (void)snprintf(uid, sizeof uid, "%d", i);
        decide(uid, CODE_UNSCHEDULABLE);
    }
    cr_expect_eq(metrics.rejected_counts[0], REJECTED_PODS_MAX);
    metrics_forget_pod(&metrics, SLICE("9"));
    cr_expect_eq(metrics.rejected_counts[0], REJECTED_PODS_MAX, "it was forgotten");
    metrics_forget_pod(&metrics, slice_of(uid));
    cr_expect_eq(metrics.rejected_counts[0], REJECTED_PODS_MAX - 1);
}
