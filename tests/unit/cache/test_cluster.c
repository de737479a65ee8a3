#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "cache/cluster/cluster.h"

static struct cluster cluster;

static void setup(void)
{
    cluster_init(&cluster);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
}

TestSuite(cluster, .init = setup, .fini = teardown);

static struct meta meta_of(const char *name, const char *uid, const char *version)
{
    return (struct meta){.ns = SLICE("default"),
                         .name = slice_of(name),
                         .uid = slice_of(uid),
                         .resource_version = slice_of(version)};
}

static void apply(const struct object *object)
{
    struct error err = {0};
    cr_assert_eq(cluster_apply(&cluster, object, &err), 0, "%s", err.message);
}

static struct claim_reference data_claim = {.name = {"data", 4}};

static void apply_pod(const char *name, const char *uid, const char *version, const char *node,
                      const char *phase)
{
    struct object object = {.kind = KIND_POD};

    object.pod.meta = meta_of(name, uid, version);
    object.pod.node = slice_of(node);
    object.pod.phase = slice_of(phase);
    object.pod.claims = &data_claim;
    object.pod.claim_count = 1;
    apply(&object);
}

static void apply_claim(const char *uid, const char *version, bool is_rwop)
{
    struct object object = {.kind = KIND_CLAIM};

    object.claim.meta = meta_of("data", uid, version);
    object.claim.is_rwop = is_rwop;
    apply(&object);
}

static void drop(enum kind kind, const char *name, const char *uid, const char *version)
{
    struct object object = {.kind = kind};

    object.meta = meta_of(name, uid, version);
    if (kind == KIND_NODE)
        object.meta.ns = (struct slice){NULL, 0};
    cluster_delete(&cluster, &object);
}

static void apply_node(const char *name, const char *version)
{
    struct object object = {.kind = KIND_NODE};

    object.meta = meta_of(name, "", version);
    object.meta.ns = (struct slice){NULL, 0};
    apply(&object);
}

static uint32_t refs(void)
{
    const struct claim *claim = cluster_find_claim(&cluster, SLICE("default"), SLICE("data"));
    return claim == NULL ? UINT32_MAX : claim->refs;
}

static uint32_t refs_on(const char *node_name)
{
    const struct claim *claim = cluster_find_claim(&cluster, SLICE("default"), SLICE("data"));
    const struct node *node = cluster_find_node(&cluster, slice_of(node_name));
    return node == NULL || claim == NULL ? 0 : refcount_get(&cluster.refs, node, claim);
}

Test(cluster, a_pod_before_its_claim)
{
    apply_node("n1", "1");
    apply_pod("p", "u1", "5", "n1", "Running");
    cr_expect_null(cluster_find_claim(&cluster, SLICE("default"), SLICE("data")));
    apply_claim("c1", "6", true);
    cr_expect_eq(refs(), 1);
    cr_expect_eq(refs_on("n1"), 1);
}

Test(cluster, a_pod_before_its_node)
{
    apply_claim("c1", "1", true);
    apply_pod("p", "u1", "5", "n1", "Running");
    cr_expect_eq(cluster.counts[KIND_NODE], 0);
    apply_node("n1", "6");
    cr_expect_eq(refs_on("n1"), 1);
    drop(KIND_NODE, "n1", "", "7");
    cr_expect_null(cluster_find_node(&cluster, SLICE("n1")));
    cr_expect_eq(refs(), 1, "the pod still holds");
}

Test(cluster, a_claim_deleted_and_recreated_under_another_uid)
{
    apply_node("n1", "1");
    apply_claim("c1", "2", true);
    apply_pod("p", "u1", "5", "n1", "Running");
    drop(KIND_CLAIM, "data", "c1", "6");
    cr_expect_null(cluster_find_claim(&cluster, SLICE("default"), SLICE("data")));
    apply_claim("c2", "7", false);
    cr_expect_eq(refs(), 1);
    drop(KIND_CLAIM, "data", "c1", "6"); /* once more, and late */
    cr_expect_eq(refs(), 1, "the new claim stays");
}

Test(cluster, a_pod_that_moves_to_succeeded)
{
    apply_node("n1", "1");
    apply_claim("c1", "2", true);
    apply_pod("p", "u1", "5", "n1", "Running");
    apply_pod("p", "u1", "6", "n1", "Succeeded");
    cr_expect_eq(refs(), 0);
    cr_expect_eq(refs_on("n1"), 0);
}

Test(cluster, an_event_with_an_older_version_is_ignored)
{
    apply_node("n1", "1");
    apply_claim("c1", "2", true);
    apply_pod("p", "u1", "9", "n1", "Running");
    apply_pod("p", "u1", "8", "", "Pending");
    cr_expect_eq(refs(), 1);
    apply_claim("c1", "1", false);
    cr_expect(cluster_find_claim(&cluster, SLICE("default"), SLICE("data"))->is_rwop);
    apply_pod("p", "u1", "10", "n1", "Failed"); /* 10 is newer than 9: numbers, not texts */
    cr_expect_eq(refs(), 0);
}

Test(cluster, a_late_deletion_of_an_earlier_pod_is_ignored)
{
    apply_node("n1", "1");
    apply_claim("c1", "2", true);
    apply_pod("p", "u2", "9", "n1", "Running");
    drop(KIND_POD, "p", "u1", "8");
    cr_expect_eq(refs(), 1);
    drop(KIND_POD, "p", "u2", "8"); /* its own deletion is final, whatever the version says */
    cr_expect_eq(refs(), 0);
    cr_expect_eq(cluster.counts[KIND_POD], 0);
}

Test(cluster, several_pods_on_one_node_are_counted)
{
    apply_node("n1", "1");
    apply_claim("c1", "2", false);
    apply_pod("a", "u1", "5", "n1", "Running");
    apply_pod("b", "u2", "6", "n1", "Running");
    apply_pod("c", "u3", "7", "n2", "Running");
    cr_expect_eq(refs(), 3);
    cr_expect_eq(refs_on("n1"), 2);
    drop(KIND_POD, "a", "u1", "8");
    cr_expect_eq(refs_on("n1"), 1);
}

/* The most that the API server accepts. If the pod were refused, no list with it would end. */
Test(cluster, a_pod_may_have_three_mebibytes_of_labels)
{
    static char labels[3 << 20];
    struct object object = {.kind = KIND_POD};

    memset(labels, 'x', sizeof labels);
    object.pod.meta = meta_of("p", "u1", "5");
    object.pod.claims = &data_claim;
    object.pod.claim_count = 1;
    object.pod.labels = (struct slice){labels, sizeof labels};
    apply(&object);
    cr_expect_not_null(cluster_find_pod(&cluster, SLICE("default"), SLICE("p")));
}

Test(cluster, violations_follow_the_holders_and_the_mode)
{
    apply_pod("a", "u1", "5", "n1", "Running");
    apply_pod("b", "u2", "6", "n2", "Running");
    cr_expect_eq(cluster.violations, 0, "the claim is not known yet");
    apply_claim("c1", "7", true);
    cr_expect_eq(cluster.violations, 1);
    apply_claim("c1", "8", false);
    cr_expect_eq(cluster.violations, 0);
    apply_claim("c1", "9", true);
    drop(KIND_POD, "b", "u2", "10");
    cr_expect_eq(cluster.violations, 0);
}

Test(cluster, assigning_a_pod_makes_it_a_holder)
{
    struct error err = {0};

    apply_node("n1", "1");
    apply_claim("c1", "2", true);
    apply_pod("p", "u1", "5", "", "Pending");
    cr_expect_null(use_at(cluster_find_claim(&cluster, SLICE("default"), SLICE("data"))->uses));
    cr_assert_eq(cluster_assign(&cluster, cluster_find_pod(&cluster, SLICE("default"), SLICE("p")),
                                SLICE("n1"), &err),
                 0);
    cr_expect_eq(refs_on("n1"), 1);
    cr_expect_not_null(use_at(cluster_find_claim(&cluster, SLICE("default"), SLICE("data"))->uses));
}

Test(cluster, nothing_is_left_when_all_is_deleted)
{
    apply_node("n1", "1");
    apply_claim("c1", "2", true);
    apply_pod("p", "not-a-uuid", "5", "n1", "Running");
    drop(KIND_NODE, "n1", "", "6");
    drop(KIND_CLAIM, "data", "c1", "6");
    cr_expect_eq(cluster.claims.count, 1, "the pod still names it");
    drop(KIND_POD, "p", "not-a-uuid", "7");
    cr_expect_eq(cluster.claims.count, 0);
    cr_expect_eq(cluster.pods.count, 0);
    cr_expect_eq(cluster.nodes.count, 0);
    cr_expect_eq(cluster.refs.count, 0);
    cr_expect_eq(cluster.names.table.count, 0, "%u names left", cluster.names.table.count);
}

Test(cluster, nothing_is_left_of_a_claim_with_all_that_few_claims_have)
{
    struct object object = {.kind = KIND_CLAIM};

    object.claim.meta = meta_of("data", "c1", "1");
    object.claim.meta.owner = (struct pod_owner){SLICE("owner"), SLICE("owner-uid")};
    object.claim.storage_class = SLICE("fast");
    object.claim.volume_attributes_class = SLICE("gold");
    object.claim.volume = SLICE("pv");
    object.claim.current_class = SLICE("silver");
    object.claim.target_class = SLICE("gold-2");
    object.claim.modify_status = SLICE("InProgress");
    apply(&object);
    object.claim.meta.resource_version = SLICE("2");
    object.claim.volume = SLICE("");
    object.claim.selector = SLICE("a=b");
    apply(&object);
    cr_expect_neq(cluster.names.table.count, 0);
    drop(KIND_CLAIM, "data", "c1", "3");
    cr_expect_eq(cluster.names.table.count, 0, "%u names left", cluster.names.table.count);
}

Test(uid, keeps_any_text)
{
    static const char *const texts[] = {
        "8233afb8-19e2-4262-8666-fd543e24857d", "00000000-0000-0000-8666-fd543e24857d",
        "8233AFB8-19E2-4262-8666-FD543E24857D", "u1",
        "8233afb8-19e2-4262-8666-fd543e24857",
    };
    struct pool pool = {.regions = NULL};
    struct names names = {.table.pool = &pool};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bool failed = false;
        char buffer[UID_TEXT_BYTES];
        struct uid uid = uid_take(&names, slice_of(texts[i]), &failed);
        cr_expect(slice_equal(uid_text(&uid, buffer), slice_of(texts[i])), "%s", texts[i]);
        cr_expect(uid_is(&uid, slice_of(texts[i])));
        cr_expect_not(uid_is(&uid, SLICE("another")));
        uid_release(&names, uid);
    }
    struct uid none = {{0}};
    cr_expect_not(uid_is(&none, SLICE("")), "no UID is equal to nothing");
    cr_expect_eq(names.table.count, 0);
    names_dispose(&names);
    pool_dispose(&pool);
}

static size_t tally(const char *storage_class, const char *attributes_class, uint64_t phase)
{
    struct table_walk walk = {.at = 0};

    for (const struct claim_tally *t; (t = table_next(&cluster.tallies, &walk)) != NULL;)
        if (slice_equal(name_slice(t->key.storage_class), slice_of(storage_class)) &&
            slice_equal(name_slice(t->key.volume_attributes_class), slice_of(attributes_class)) &&
            t->key.phase == phase)
            return t->count;
    return 0;
}

Test(cluster, claims_are_counted_by_classes_and_phase)
{
    struct object object = {.kind = KIND_CLAIM};
    struct error err = {0};

    object.meta = meta_of("a", "6d1a0d3e-3f0b-4a39-8a5c-000000000001", "1");
    object.claim.storage_class = SLICE("fast");
    object.claim.phase = SLICE("Pending");
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    object.meta.name = SLICE("b");
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    cr_expect_eq(tally("fast", "", CLAIM_PENDING), 2);
    object.claim.phase = SLICE("Bound");
    object.claim.volume_attributes_class = SLICE("gold");
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    cr_expect_eq(tally("fast", "", CLAIM_PENDING), 1);
    cr_expect_eq(tally("fast", "gold", CLAIM_BOUND), 1);
    cluster_delete(&cluster, &object);
    cr_expect_eq(tally("fast", "gold", CLAIM_BOUND), 0);
    cr_expect_eq(cluster.tallies.count, 1, "a count of nothing is none");
}
