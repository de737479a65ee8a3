/* How the verdicts of several policies become one: with three policies whose verdicts a test
 * chooses, in place of the product's list. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "policy/policy.h"

enum { POLICIES = 3, TEXTS_MAX = 24 };

/* What a policy says, when it is asked. */
struct says {
    int mode; /* the default is Off */
    enum verdict_code code;
    const char *reasons[TEXTS_MAX], *warnings[TEXTS_MAX];
    bool has_victim, has_filter, awaits;
};

static struct says says[POLICIES];
static unsigned asked[POLICIES];
static struct arena arena;
static struct verdict verdict;

static void answer(unsigned index, struct verdict *out)
{
    static const struct pod *victims[1];
    static const struct slice drivers[POLICIES] = {{"d", 1}, {"e", 1}, {"f", 1}};
    const struct says *it = &says[index];
    struct object_reference awaited = {
        .kind = KIND_CSI_DRIVER, .ns = SLICE(""), .name = drivers[index], .uid = SLICE("")};

    asked[index]++;
    *out = (struct verdict){.code = it->code};
    for (size_t i = 0; i < TEXTS_MAX && it->reasons[i] != NULL; i++)
        cr_assert(verdict_add_reason(out, &arena, slice_of(it->reasons[i])));
    for (size_t i = 0; i < TEXTS_MAX && it->warnings[i] != NULL; i++)
        cr_assert(verdict_add_warning(out, &arena, slice_of(it->warnings[i])));
    if (it->has_victim) {
        out->victims = victims;
        out->victim_count = 1;
    }
    if (it->awaits)
        cr_assert(verdict_add_awaited(out, &arena, &awaited));
    if (it->has_filter) {
        out->nodes = arena_alloc(&arena, sizeof *out->nodes);
        *out->nodes = (struct node_filter){.reason = SLICE("no node")};
    }
}

#define POLICY(index_) \
    static int mode_##index_(const struct config *config) \
    { \
        (void)config; \
        return says[index_].mode; \
    } \
    static void prefilter_##index_(const struct view *view, const struct pod_object *pod, \
                                   struct arena *ours, struct verdict *out) \
    { \
        (void)view, (void)pod, (void)ours; \
        answer(index_, out); \
    } \
    static const struct policy policy_##index_ = { \
        .name = #index_, .mode = mode_##index_, .prefilter = prefilter_##index_};
POLICY(0)
POLICY(1)
POLICY(2)

const struct policy *const policies[] = {&policy_0, &policy_1, &policy_2, NULL};

static void setup(void)
{
    arena_init(&arena, 1 << 20);
}

static void teardown(void)
{
    arena_dispose(&arena);
}

TestSuite(policy, .init = setup, .fini = teardown);

static void evaluate(void)
{
    struct view view = {.cluster = NULL};
    struct pod_object pod = {.meta = {.ns = SLICE("ns"), .name = SLICE("p")}};

    policy_prefilter(&view, &pod, &arena, &verdict);
}

/* The reasons, as one message. */
static void expect_message(const char *want)
{
    struct slice got = verdict_message(&verdict, &arena);

    cr_expect(slice_equal(got, slice_of(want)), "%.*s", SLICE_ARG(got));
}

static void expect_warning(size_t index, const char *text, const struct policy *policy)
{
    cr_assert_lt(index, verdict.warning_count);
    cr_expect(slice_equal(verdict.warnings[index].text, slice_of(text)), "%zu: %.*s", index,
              SLICE_ARG(verdict.warnings[index].text));
    cr_expect_eq(verdict.warnings[index].policy, policy, "%zu", index);
}

Test(policy, a_policy_that_is_off_is_not_asked)
{
    says[0] = (struct says){.mode = MODE_OFF,
                            .code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
                            .reasons = {"a"},
                            .warnings = {"b"}};
    says[1] = (struct says){.mode = MODE_ENFORCE, .code = CODE_SUCCESS};
    evaluate();
    cr_expect_eq(asked[0], 0);
    cr_expect_eq(asked[1], 1);
    cr_expect_eq(verdict.code, CODE_SUCCESS);
    cr_expect_eq(verdict.warning_count, 0);
    cr_expect_eq(verdict.decided_by, &policy_1);
}

/* Nobody is evicted for a pod that cannot run. */
Test(policy, an_unresolvable_verdict_behind_an_unschedulable_one_adds_its_reason)
{
    says[0] = (struct says){
        .mode = MODE_ENFORCE, .code = CODE_UNSCHEDULABLE, .reasons = {"held"}, .has_victim = true};
    says[2] = (struct says){.mode = MODE_ENFORCE,
                            .code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
                            .reasons = {"missing", "doomed"}};
    evaluate();
    cr_expect_eq(verdict.code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    expect_message("held; missing; doomed");
    cr_expect_eq(verdict.victim_count, 0);
    cr_expect_eq(verdict.decided_by, &policy_0);
}

Test(policy, a_policy_that_only_warns_leaves_an_unschedulable_verdict_alone)
{
    says[0] = (struct says){
        .mode = MODE_ENFORCE, .code = CODE_UNSCHEDULABLE, .reasons = {"held"}, .has_victim = true};
    says[1] = (struct says){
        .mode = MODE_WARN, .code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, .reasons = {"doomed"}};
    evaluate();
    cr_expect_eq(verdict.code, CODE_UNSCHEDULABLE);
    expect_message("held");
    cr_expect_eq(verdict.victim_count, 1);
    expect_warning(0, "doomed", &policy_1);
}

Test(policy, behind_an_unresolvable_verdict_no_policy_is_asked)
{
    says[0] = (struct says){
        .mode = MODE_ENFORCE, .code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, .reasons = {"first"}};
    says[1] = (struct says){
        .mode = MODE_ENFORCE, .code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, .reasons = {"second"}};
    evaluate();
    expect_message("first");
    cr_expect_eq(asked[1], 0);
    cr_expect_eq(verdict.decided_by, &policy_0);
}

Test(policy, an_error_stays_one_in_every_mode)
{
    says[0] = (struct says){.mode = MODE_WARN, .code = CODE_ERROR, .reasons = {"memory"}};
    says[1] = (struct says){.mode = MODE_ENFORCE, .code = CODE_SUCCESS};
    evaluate();
    cr_expect_eq(verdict.code, CODE_ERROR);
    expect_message("memory");
    cr_expect_eq(asked[1], 0);
}

Test(policy, an_error_behind_an_unschedulable_verdict_is_the_answer)
{
    says[0] = (struct says){
        .mode = MODE_ENFORCE, .code = CODE_UNSCHEDULABLE, .reasons = {"held"}, .has_victim = true};
    says[1] = (struct says){.mode = MODE_WARN, .code = CODE_ERROR, .reasons = {"memory"}};
    evaluate();
    cr_expect_eq(verdict.code, CODE_ERROR);
    expect_message("memory");
    cr_expect_eq(verdict.decided_by, &policy_1);
}

Test(policy, warnings_are_in_the_order_of_the_policies)
{
    says[0] =
        (struct says){.mode = MODE_ENFORCE, .code = CODE_SUCCESS, .warnings = {"own 1", "own 2"}};
    says[1] = (struct says){.mode = MODE_WARN,
                            .code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
                            .reasons = {"rejected 1", "rejected 2"},
                            .warnings = {"own 3"}};
    says[2] = (struct says){.mode = MODE_WARN, .code = CODE_SKIP, .warnings = {"own 4"}};
    evaluate();
    cr_expect_eq(verdict.code, CODE_SUCCESS);
    cr_expect_eq(verdict.reason_count, 0);
    cr_assert_eq(verdict.warning_count, 6);
    expect_warning(0, "own 1", &policy_0);
    expect_warning(1, "own 2", &policy_0);
    expect_warning(2, "own 3", &policy_1);
    expect_warning(3, "rejected 1", &policy_1);
    expect_warning(4, "rejected 2", &policy_1);
    expect_warning(5, "own 4", &policy_2);
}

/* The pod is rejected by the last: what the others warn of stays. */
Test(policy, a_rejection_keeps_the_warnings_before_it)
{
    says[0] = (struct says){
        .mode = MODE_WARN, .code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, .reasons = {"warned"}};
    says[1] = (struct says){
        .mode = MODE_ENFORCE, .code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, .reasons = {"rejected"}};
    evaluate();
    expect_message("rejected");
    cr_expect_eq(verdict.decided_by, &policy_1);
    cr_expect_eq(verdict.warning_count, 1);
    expect_warning(0, "warned", &policy_0);
}

Test(policy, there_are_no_more_warnings_than_the_limit)
{
    static char texts[POLICIES][10][16];

    for (unsigned i = 0; i < POLICIES; i++) {
        says[i] = (struct says){.mode = MODE_WARN, .code = CODE_SUCCESS};
        for (unsigned j = 0; j < 10; j++) {
            (void)snprintf(texts[i][j], sizeof texts[i][j], "%u of %u", j, i);
            says[i].warnings[j] = texts[i][j];
        }
    }
    evaluate();
    cr_assert_eq(verdict.warning_count, WARNINGS_MAX);
    expect_warning(9, "9 of 0", &policy_0);
    expect_warning(10, "0 of 1", &policy_1);
    expect_warning(15, "5 of 1", &policy_1);
}

Test(policy, one_policy_has_no_more_warnings_than_the_limit)
{
    says[0] = (struct says){.mode = MODE_WARN, .code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE};
    for (unsigned i = 0; i < TEXTS_MAX; i++)
        says[0].reasons[i] = "rejected";
    evaluate();
    cr_expect_eq(verdict.warning_count, WARNINGS_MAX);
    cr_expect_eq(verdict.code, CODE_SKIP);
}

/* Of a pod that passes on some nodes. */
Test(policy, what_a_pod_waits_for_stays_when_another_policy_decides)
{
    says[0] = (struct says){.mode = MODE_ENFORCE, .code = CODE_SKIP, .awaits = true};
    says[1] = (struct says){.mode = MODE_ENFORCE, .code = CODE_SUCCESS, .awaits = true};
    evaluate();
    cr_expect_eq(verdict.awaited_count, 2);
}

/* ---- nodes ---- */

Test(policy, a_filter_of_a_policy_that_warns_rejects_no_node)
{
    struct slice node = SLICE("node-1"), reason;

    says[1] = (struct says){.mode = MODE_WARN, .code = CODE_SUCCESS, .has_filter = true};
    evaluate();
    cr_expect_not(policy_filters_nodes(&verdict));
    cr_expect_null(policy_filter(&verdict, node, &arena, &reason));
    const struct node_filter *filter = policy_warn(&verdict, NULL, node, &arena, &reason);
    cr_assert_not_null(filter);
    cr_expect_eq(filter->policy, &policy_1);
    cr_expect(slice_equal(reason, SLICE("no node")));
    cr_expect_null(policy_warn(&verdict, filter, node, &arena, &reason));
}

Test(policy, filters_that_warn_are_passed_over_and_those_that_reject_found)
{
    struct slice node = SLICE("node-1"), reason;

    for (unsigned i = 0; i < POLICIES; i++)
        says[i] = (struct says){
            .mode = i == 1 ? MODE_ENFORCE : MODE_WARN, .code = CODE_SUCCESS, .has_filter = true};
    evaluate();
    cr_expect(policy_filters_nodes(&verdict));
    const struct node_filter *filter = policy_filter(&verdict, node, &arena, &reason);
    cr_assert_not_null(filter);
    cr_expect_eq(filter->policy, &policy_1);
    filter = policy_warn(&verdict, NULL, node, &arena, &reason);
    cr_expect_eq(filter->policy, &policy_0);
    filter = policy_warn(&verdict, filter, node, &arena, &reason);
    cr_expect_eq(filter->policy, &policy_2);
}

/* What a dry run says of the nodes of such a pod. */
Test(policy, a_rejection_keeps_the_filters_before_and_behind_it)
{
    struct slice node = SLICE("node-1"), reason;

    says[0] = (struct says){.mode = MODE_WARN, .code = CODE_SUCCESS, .has_filter = true};
    says[1] = (struct says){
        .mode = MODE_ENFORCE, .code = CODE_UNSCHEDULABLE, .reasons = {"held"}, .has_victim = true};
    says[2] = (struct says){.mode = MODE_WARN, .code = CODE_SUCCESS, .has_filter = true};
    evaluate();
    cr_expect_eq(verdict.decided_by, &policy_1);
    const struct node_filter *filter = policy_warn(&verdict, NULL, node, &arena, &reason);
    cr_assert_not_null(filter);
    cr_expect_eq(filter->policy, &policy_0);
    filter = policy_warn(&verdict, filter, node, &arena, &reason);
    cr_assert_not_null(filter);
    cr_expect_eq(filter->policy, &policy_2);
}

/* Nobody is evicted for it. */
Test(policy, nodes_that_an_earlier_policy_rejects_stay_rejected_when_evictions_would_help)
{
    struct slice node = SLICE("node-1"), reasons[1];

    says[0] = (struct says){.mode = MODE_ENFORCE, .code = CODE_SUCCESS, .has_filter = true};
    says[1] = (struct says){
        .mode = MODE_ENFORCE, .code = CODE_UNSCHEDULABLE, .reasons = {"held"}, .has_victim = true};
    evaluate();
    cr_expect_eq(policy_filter_nodes(&verdict, &node, 1, &arena, reasons), 1);
    cr_expect_eq(verdict.code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    cr_expect(verdict.is_by_nodes);
    cr_expect_eq(verdict.victim_count, 0);
}

Test(policy, a_pod_that_is_rejected_for_good_is_on_all_nodes_alike)
{
    says[0] = (struct says){.mode = MODE_ENFORCE, .code = CODE_SUCCESS, .has_filter = true};
    says[1] = (struct says){
        .mode = MODE_ENFORCE, .code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, .reasons = {"doomed"}};
    evaluate();
    cr_expect_not(policy_filters_nodes(&verdict));
}

Test(policy, of_many_objects_that_are_awaited_pods_come_first_and_each_once)
{
    struct object_reference driver = {
        .kind = KIND_CSI_DRIVER, .ns = SLICE(""), .name = SLICE("d"), .uid = SLICE("")};
    struct object_reference pod = {
        .kind = KIND_POD, .ns = SLICE("ns"), .name = SLICE("p"), .uid = SLICE("1")};
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                        "j", "k", "l", "m", "n", "o", "p", "q"};

    verdict = (struct verdict){.code = CODE_SUCCESS};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        driver.name = slice_of(names[i]);
        cr_assert(verdict_add_awaited(&verdict, &arena, &driver));
        cr_assert(verdict_add_awaited(&verdict, &arena, &driver));
    }
    cr_expect_eq(verdict.awaited_count, CAUSES_MAX);
    for (size_t i = 0; i < CAUSES_MAX + 1; i++) {
        pod.uid = slice_of(names[i]);
        cr_assert(verdict_add_awaited(&verdict, &arena, &pod));
        cr_expect_eq(verdict.awaited_count, CAUSES_MAX);
    }
    for (size_t i = 0; i < CAUSES_MAX; i++)
        cr_expect(verdict.awaited[i].kind == KIND_POD &&
                  slice_equal(verdict.awaited[i].uid, slice_of(names[i])));
}
