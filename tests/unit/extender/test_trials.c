/* What is remembered of confirmations while a pod is tried on one node after the other. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "config/base/clock.h"
#include "extender/serving/live/evaluate.h"

static struct trials trials;

static uint64_t now_ns = 1000 * NS_PER_SECOND;

uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void)
{
    return now_ns;
}

static void setup(void)
{
    trials_init(&trials);
}

static void teardown(void)
{
    trials_dispose(&trials);
}

TestSuite(trials, .init = setup, .fini = teardown, .timeout = 60);

static struct object_reference cause = {KIND_POD, {"ns", 2}, {"h", 1}, {"u", 1}};
static const struct verdict rejected = {
    .code = CODE_UNSCHEDULABLE, .causes = &cause, .cause_count = 1};
static const struct meta asking = {.ns = {"ns", 2}, .name = {"web", 3}, .uid = {"u-web", 5}};

Test(trials, a_confirmation_holds_for_a_second)
{
    enum confirmation confirmation;

    cr_expect(!trials_recall(&trials, &asking, &rejected, &confirmation));
    trials_note(&trials, &asking, &rejected, CONFIRMATION_UNKNOWN);
    now_ns += TRIAL_CONFIRMED_MS * NS_PER_MS - 1;
    cr_expect(trials_recall(&trials, &asking, &rejected, &confirmation));
    cr_expect_eq(confirmation, CONFIRMATION_UNKNOWN);
    now_ns += 1;
    cr_expect(!trials_recall(&trials, &asking, &rejected, &confirmation));
}

Test(trials, a_confirmation_is_for_its_pod_and_its_causes_only)
{
    enum confirmation confirmation;
    struct object_reference others[] = {cause,
                                        {KIND_POD, {"ns", 2}, {"h", 1}, {"v", 1}},
                                        {KIND_CLAIM, {"ns", 2}, {"h", 1}, {"u", 1}}};
    struct meta other = asking;

    trials_note(&trials, &asking, &rejected, CONFIRMATION_STANDS);
    other.uid = SLICE("u-new");
    cr_expect(!trials_recall(&trials, &other, &rejected, &confirmation), "another UID");
    trials_note(&trials, &asking, &rejected, CONFIRMATION_STANDS);
    for (size_t i = 1; i < 3; i++) {
        struct verdict verdict = {.causes = &others[i], .cause_count = 1};
        cr_expect(!trials_recall(&trials, &asking, &verdict, &confirmation), "cause %zu", i);
    }
    struct verdict more = {.causes = others, .cause_count = 2};
    cr_expect(!trials_recall(&trials, &asking, &more, &confirmation), "one more cause");
    cr_expect(trials_recall(&trials, &asking, &rejected, &confirmation));
}
