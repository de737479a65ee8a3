/* Until when a nomination counts. */
#include <criterion/criterion.h>

#include "cache/cluster/cluster.h"
#include "config/base/clock.h"

#define UID_1 "6d1a0d3e-3f0b-4a39-8a5c-000000000001"
#define UID_2 "6d1a0d3e-3f0b-4a39-8a5c-000000000002"

static struct cluster cluster;
static uint64_t now_ns;

static void apply(const struct object *object)
{
    struct error err = {0};

    cr_assert_eq(cluster_apply(&cluster, object, &err), 0, "%s", err.message);
}

static void setup(void)
{
    struct object claim = {.kind = KIND_CLAIM};

    now_ns = 1000 * NS_PER_SECOND;
    cluster_init(&cluster);
    claim.claim =
        (struct claim_object){.meta = {.ns = SLICE("d"), .name = SLICE("data")}, .is_rwop = true};
    apply(&claim);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
}

TestSuite(nominated_time, .init = setup, .fini = teardown);

static struct object describe(const char *name, const char *uid, const char *node,
                              const char *nominated)
{
    static struct claim_reference claim = {.name = {"data", 4}};
    struct object object = {.kind = KIND_POD};

    object.pod = (struct pod_object){
        .meta = {.ns = SLICE("d"), .name = slice_of(name), .uid = slice_of(uid)},
        .node = slice_of(node),
        .nominated_node = slice_of(nominated),
        .claims = &claim,
        .claim_count = 1,
    };
    return object;
}

static void put(const char *name, const char *uid, const char *node, const char *nominated)
{
    struct object object = describe(name, uid, node, nominated);

    apply(&object);
}

static void remove_pod(const char *name, const char *uid)
{
    struct object object = {.kind = KIND_POD};

    object.meta = (struct meta){.ns = SLICE("d"), .name = slice_of(name), .uid = slice_of(uid)};
    cluster_delete(&cluster, &object);
}

/* How many nominations lapse in so many seconds. */
static size_t lapse(unsigned seconds)
{
    size_t count = 0;

    for (unsigned i = 0; i < seconds; i++, now_ns += NS_PER_SECOND)
        while (nominated_is_due(&cluster, now_ns))
            count += nominated_check(&cluster, now_ns) != NULL;
    return count;
}

static bool has_lapsed(const char *name)
{
    const struct pod *pod = cluster_find_pod(&cluster, SLICE("d"), slice_of(name));

    return nomination_at(pod->nomination)->has_lapsed;
}

Test(nominated_time, a_nomination_lapses_a_minute_after_it_was_made)
{
    put("a", UID_1, "", "node-1");
    cr_expect_eq(lapse(60), 0);
    cr_expect(!has_lapsed("a"));
    cr_expect_eq(lapse(1), 1);
    cr_expect(has_lapsed("a"));
    cr_expect_eq(lapse(300), 0, "once");
}

Test(nominated_time, while_another_pod_holds_the_claim_it_counts_and_for_a_minute_after)
{
    put("victim", UID_2, "node-1", "");
    put("a", UID_1, "", "node-1");
    cr_expect_eq(lapse(300), 0);
    remove_pod("victim", UID_2);
    cr_expect_eq(lapse(50), 0);
    cr_expect_eq(lapse(11), 1);
}

Test(nominated_time, a_change_of_the_pod_does_not_prolong_it_and_another_node_does)
{
    put("a", UID_1, "", "node-1");
    cr_expect_eq(lapse(40), 0);
    put("a", UID_1, "", "node-1");
    cr_expect_eq(lapse(21), 1);
    put("a", UID_1, "", "node-1");
    cr_expect(has_lapsed("a"), "it stays so");
    put("a", UID_1, "", "node-2");
    cr_expect(!has_lapsed("a"));
    cr_expect_eq(lapse(60), 0);
    cr_expect_eq(lapse(1), 1);
}

Test(nominated_time, another_pod_of_the_name_has_a_nomination_of_its_own)
{
    put("a", UID_1, "", "node-1");
    cr_expect_eq(lapse(61), 1);
    put("a", UID_2, "", "node-1");
    cr_expect(!has_lapsed("a"));
}

Test(nominated_time, of_a_pod_that_is_bound_or_gone_none_is_checked_any_more)
{
    put("bound", UID_1, "", "node-1");
    put("gone", UID_2, "", "node-1");
    cr_expect_eq(lapse(5), 0);
    put("bound", UID_1, "node-1", "node-1");
    remove_pod("gone", UID_2);
    cr_expect_eq(lapse(300), 0);
    cr_expect_null(cluster.nominations);
}

Test(nominated_time, of_a_pod_that_is_not_bound_after_all_it_is_checked_again)
{
    struct object object = describe("a", UID_1, "", "node-1");
    struct error err = {0};

    apply(&object);
    struct pod *pod = cluster_find_pod(&cluster, SLICE("d"), SLICE("a"));
    cr_assert_eq(cluster_learn_bound(&cluster, pod, SLICE("node-1"), 1, &err), 0);
    cr_expect_eq(lapse(20), 0);
    cr_expect_null(cluster.nominations);
    cr_assert_eq(cluster_learn(&cluster, &object, 0, 2, &err), 0);
    cr_expect(!pod_is_assigned(cluster_find_pod(&cluster, SLICE("d"), SLICE("a"))));
    cr_expect_eq(lapse(60), 0);
    cr_expect_eq(lapse(1), 1);
}

Test(nominated_time, each_of_several_lapses_in_its_time)
{
    put("a", UID_1, "", "node-1");
    cr_expect_eq(lapse(30), 0);
    put("b", UID_2, "", "node-1");
    cr_expect_eq(lapse(31), 1);
    cr_expect(has_lapsed("a") && !has_lapsed("b"));
    cr_expect_eq(lapse(30), 1);
}
