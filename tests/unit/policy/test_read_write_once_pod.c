/* ReadWriteOncePod, beside the rows of tests/cases: `preempt`, nominated pods, and what runs out.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "policy/holders.h"
#include "policy/policy.h"
#include "support/load.h"

/* ---- the preempt verb's rows, per candidate node ---- */

/* db-0 on node-2 and other-0 on node-1 hold the claims; the preemptor has priority 100. */
static const char cluster_text[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":["
    "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"data\"},"
    "\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}},"
    "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"high\"},"
    "\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}},"
    "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"twice\"},"
    "\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}},"
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"db-0\",\"uid\":\"u-db-0\"},"
    "\"spec\":{\"nodeName\":\"node-2\",\"priority\":10,\"volumes\":[{\"name\":\"v\","
    "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}},"
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"hi-0\",\"uid\":\"u-hi-0\"},"
    "\"spec\":{\"nodeName\":\"node-2\",\"priority\":1000,\"volumes\":[{\"name\":\"v\","
    "\"persistentVolumeClaim\":{\"claimName\":\"high\"}}]}},"
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"t-0\",\"labels\":{\"app\":"
    "\"t\"},\"uid\":\"u-t-0\"},"
    "\"spec\":{\"nodeName\":\"node-2\",\"priority\":10,\"volumes\":[{\"name\":\"v\","
    "\"persistentVolumeClaim\":{\"claimName\":\"twice\"}}]}},"
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"t-1\",\"labels\":{\"app\":"
    "\"t\"},\"uid\":\"u-t-1\"},"
    "\"spec\":{\"nodeName\":\"node-2\",\"priority\":10,\"volumes\":[{\"name\":\"v\","
    "\"persistentVolumeClaim\":{\"claimName\":\"twice\"}}]}}"
    ",{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"left\"},"
    "\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}"
    ",{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"l-0\",\"uid\":\"u-l-0\","
    "\"deletionTimestamp\":\"2026-11-20T19:37:44Z\"},\"spec\":{\"nodeName\":\"node-2\","
    "\"priority\":10,"
    "\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"left\"}}]}}"
    ",{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":\"t\"},"
    "\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"t\"}}},\"status\":{\"disruptionsAllowed\":"
    "1}}"
    /* e-0 is being evicted: the API server has counted it */
    ",{\"apiVersion\":\"policy/v1\",\"kind\":\"PodDisruptionBudget\",\"metadata\":{\"name\":\"e\"},"
    "\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"e\"}}},\"status\":{\"disruptionsAllowed\":"
    "0,"
    "\"disruptedPods\":{\"e\":\"2026-11-21T10:00:00Z\",\"e-0\":\"2026-11-21T10:00:00Z\"}}}"
    ",{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"evicted\"}"
    ","
    "\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}"
    ",{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"both\"},"
    "\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}"
    ",{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"e-0\",\"labels\":{\"app\":"
    "\"e\"},\"uid\":\"u-e-0\"},\"spec\":{\"nodeName\":\"node-2\",\"priority\":10,\"volumes\":[{"
    "\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"evicted\"}}]}}"
    ",{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"e-1\",\"labels\":{\"app\":"
    "\"e\"},\"uid\":\"u-e-1\"},\"spec\":{\"nodeName\":\"node-2\",\"priority\":10,\"volumes\":[{"
    "\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"both\"}},{\"name\":\"w\","
    "\"persistentVolumeClaim\":{\"claimName\":\"evicted\"}}]}}"
    "]}";

struct candidate_row {
    const char *claim, *node, *offered; /* offered: one UID or NULL */
    bool keeps_node;
    size_t added, violations;
};

static void check_candidate(const struct candidate_row *row)
{
    struct cluster cluster;
    struct arena arena;
    struct verdict verdict;
    struct claim_reference claim = {.name = slice_of(row->claim)};
    struct pod_object pod = {
        .meta = {.ns = SLICE("default"), .name = SLICE("me"), .uid = SLICE("u-me")},
        .priority = 100,
        .claims = &claim,
        .claim_count = 1,
    };
    struct slice offered = slice_of(row->offered);
    struct candidate candidate = {
        .node = slice_of(row->node),
        .offered = &offered,
        .offered_count = row->offered != NULL,
    };

    cluster_init(&cluster);
    load_text(&cluster, cluster_text);
    arena_init(&arena, 1 << 20);
    struct view view = {.cluster = &cluster, .config = &plain_config};
    policy_prefilter(&view, &pod, &arena, &verdict);
    verdict.decided_by->preempt(&view, &pod, &verdict, &arena, &candidate, 1);
    cr_expect_eq(candidate.keeps_node, row->keeps_node);
    if (candidate.keeps_node)
        cr_expect_eq(candidate.added_count, row->added);
    if (candidate.keeps_node)
        cr_expect_eq(candidate.added_violations, row->violations);
    arena_dispose(&arena);
    cluster_dispose(&cluster);
}

#define CANDIDATE(name, ...) \
    Test(preempt, name) \
    { \
        check_candidate(&(struct candidate_row){__VA_ARGS__}); \
    }
CANDIDATE(the_offered_victim_frees_the_claim, "data", "node-2", "u-db-0", true, 0, 0)
CANDIDATE(a_holder_on_the_node_of_lower_priority_is_added, "data", "node-2", NULL, true, 1, 0)
CANDIDATE(a_holder_elsewhere_drops_the_node, "data", "node-1", NULL, false, 0, 0)
CANDIDATE(a_holder_that_is_not_lower_drops_the_node, "high", "node-2", NULL, false, 0, 0)
/* the budget allows one, which is the offered one */
CANDIDATE(counts_decide_not_a_set, "twice", "node-2", "u-t-0", true, 1, 1)
CANDIDATE(added_victims_that_break_a_budget_are_counted, "twice", "node-2", NULL, true, 2, 1)
/* e-0 is among the budget's disruptedPods, and so is its namesake "e" */
CANDIDATE(a_victim_that_its_budget_has_counted_breaks_nothing, "evicted", "node-2", "u-e-1", true,
          1, 0)
CANDIDATE(a_victim_beside_one_that_its_budget_has_counted_does, "evicted", "node-2", NULL, true, 2,
          1)
CANDIDATE(a_name_that_is_longer_than_the_counted_one_is_another, "both", "node-2", NULL, true, 1, 1)
CANDIDATE(a_terminating_holder_on_the_node_needs_no_eviction, "left", "node-2", "u-db-0", true, 0,
          0)
CANDIDATE(a_terminating_holder_elsewhere_drops_the_node, "left", "node-1", "u-db-0", false, 0, 0)
CANDIDATE(a_missing_claim_drops_the_node, "gone", "node-2", "u-db-0", false, 0, 0)

/* Without memory for a reason, a row must not seem not to apply: the next rows would let the pod
 * pass. */
Test(read_write_once_pod, a_rejection_without_memory_is_an_error_and_never_a_pass)
{
    static const char *const names[] = {"gone", "data", "high"};

    for (size_t n = 0; n < 3; n++) {
        for (size_t bytes = 0; bytes < 1024; bytes += 16) {
            struct cluster cluster;
            struct arena arena;
            struct verdict verdict;
            struct claim_reference claim = {.name = slice_of(names[n])};
            struct pod_object pod = {
                .meta = {.ns = SLICE("default"), .name = SLICE("me"), .uid = SLICE("u-me")},
                .priority = 100,
                .claims = &claim,
                .claim_count = 1,
            };
            cluster_init(&cluster);
            load_text(&cluster, cluster_text);
            arena_init(&arena, bytes);
            struct view view = {.cluster = &cluster, .config = &plain_config};
            policy_prefilter(&view, &pod, &arena, &verdict);
            cr_expect(code_is_rejection(verdict.code), "%s with %zu bytes: %s", names[n], bytes,
                      code_text(verdict.code));
            arena_dispose(&arena);
            cluster_dispose(&cluster);
        }
    }
}

/* ---- nominated pods ---- */

/* Texts that are no time of the API server's are no age. */
static const char *const ages[] = {"2026-11-21T09:59:59Z", "2026-11-21T10:00:00Z", "", "yesterday"};

enum { NOMINEES = 16 };

static void put_nominee(struct cluster *cluster, int i, struct pod_object *out,
                        struct claim_reference *claim, char name[8], char uid[UID_TEXT_BYTES + 1])
{
    struct error err = {0};

    (void)snprintf(name, 8, "n-%d", i);
    (void)snprintf(uid, UID_TEXT_BYTES + 1, "00000000-0000-4000-8000-%012d", NOMINEES - i);
    struct object object = {.kind = KIND_POD};
    object.pod = (struct pod_object){
        .meta = {.ns = SLICE("default"),
                 .name = slice_of(name),
                 .uid = i % 8 < 6 ? slice_of(uid) : SLICE("")}, /* hand-written ones have none */
        .created = slice_of(ages[i % 4]),
        .nominated_node = i < 8 ? SLICE("node-1") : SLICE("node-2"),
        .priority = 100,
        .claims = claim,
        .claim_count = 1,
    };
    *out = object.pod;
    cr_assert_eq(cluster_apply(cluster, &object, &err), 0);
}

static void put_node(struct cluster *cluster, const char *name)
{
    struct object node = {.kind = KIND_NODE};
    struct error err = {0};

    node.meta.name = slice_of(name);
    cr_assert_eq(cluster_apply(cluster, &node, &err), 0);
}

Test(nominated, of_any_two_pods_exactly_one_is_in_the_others_way)
{
    static char names[NOMINEES][8], uids[NOMINEES][UID_TEXT_BYTES + 1];
    struct pod_object pods[NOMINEES];
    struct claim_reference claim = {.name = SLICE("data")};
    struct cluster cluster;
    int first = 0;

    cluster_init(&cluster);
    put_node(&cluster, "node-1");
    put_node(&cluster, "node-2");
    for (int i = 0; i < NOMINEES; i++)
        put_nominee(&cluster, i, &pods[i], &claim, names[i], uids[i]);
    for (int i = 0; i < NOMINEES; i++) {
        int waits = 0;
        for (int j = 0; j < NOMINEES; j++) {
            const struct pod *a = cluster_find_pod(&cluster, SLICE("default"), pods[i].meta.name),
                             *b = cluster_find_pod(&cluster, SLICE("default"), pods[j].meta.name);
            bool waits_for = hold_against(&cluster, b, &pods[i]) != HOLD_NONE;
            bool is_in_the_way = hold_against(&cluster, a, &pods[j]) != HOLD_NONE;
            cr_expect_eq(waits_for + is_in_the_way, i != j, "%d and %d", i, j);
            waits += waits_for;
        }
        first += waits == 0;
    }
    cr_expect_eq(first, 1, "one can pass");
    cluster_dispose(&cluster);
}

Test(nominated, a_nomination_that_only_the_cache_knows_counts)
{
    char names[2][8], uids[2][UID_TEXT_BYTES + 1];
    struct pod_object older, younger;
    struct claim_reference claim = {.name = SLICE("data")};
    struct cluster cluster;

    cluster_init(&cluster);
    put_node(&cluster, "node-1");
    put_nominee(&cluster, 0, &older, &claim, names[0], uids[0]);
    put_nominee(&cluster, 1, &younger, &claim, names[1], uids[1]);
    const struct pod *other = cluster_find_pod(&cluster, SLICE("default"), younger.meta.name);
    older.nominated_node = SLICE(""); /* what the scheduler sent is older */
    older.created = SLICE("");
    cr_expect_eq(hold_against(&cluster, other, &older), HOLD_NONE);
    older.meta.uid = SLICE("another pod of the name");
    cr_expect_eq(hold_against(&cluster, other, &older), HOLD_NOMINATED);
    cluster_dispose(&cluster);
}

Test(nominated, a_node_that_comes_and_goes_takes_the_nomination_with_it)
{
    char name[8], uid[UID_TEXT_BYTES + 1];
    struct pod_object nominee, pod = {.meta = {.name = SLICE("me"), .uid = SLICE("u-me")}};
    struct claim_reference claim = {.name = SLICE("data")};
    struct object node = {.kind = KIND_NODE};
    struct cluster cluster;

    cluster_init(&cluster);
    put_nominee(&cluster, 0, &nominee, &claim, name, uid);
    const struct pod *holder = cluster_find_pod(&cluster, SLICE("default"), nominee.meta.name);
    cr_expect_eq(hold_against(&cluster, holder, &pod), HOLD_NONE);
    put_node(&cluster, "node-1");
    cr_expect_eq(hold_against(&cluster, holder, &pod), HOLD_NOMINATED);
    node.meta.name = SLICE("node-1");
    cluster_delete(&cluster, &node);
    cr_expect_eq(hold_against(&cluster, holder, &pod), HOLD_NONE);
    cluster_dispose(&cluster);
}

Test(deleted, a_pending_pod_that_only_the_cache_knows_to_be_deleted_is_refused)
{
    struct claim_reference claim = {.name = SLICE("free")};
    struct object known = {.kind = KIND_POD};
    struct cluster cluster;
    struct arena arena;
    struct verdict verdict;
    struct error err = {0};
    struct pod_object pod = {
        .meta = {.ns = SLICE("default"), .name = SLICE("me"), .uid = SLICE("u-me")},
        .claims = &claim,
        .claim_count = 1,
    };

    cluster_init(&cluster);
    load_text(&cluster, "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{"
                        "\"name\":\"free\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}");
    known.pod = pod;
    known.pod.meta.deletion_timestamp = SLICE("2026-11-21T10:00:00Z");
    cr_assert_eq(cluster_apply(&cluster, &known, &err), 0);
    arena_init(&arena, 1 << 20);
    struct view view = {.cluster = &cluster, .config = &plain_config};
    policy_prefilter(&view, &pod, &arena, &verdict);
    cr_expect_eq(verdict.code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    pod.meta.uid = SLICE("another");
    policy_prefilter(&view, &pod, &arena, &verdict);
    cr_expect_eq(verdict.code, CODE_SUCCESS, "another pod of the name");
    arena_dispose(&arena);
    cluster_dispose(&cluster);
}

/* Pods that name their node get past every scheduler: anyone who may create pods can do this. */
Test(read_write_once_pod, of_very_many_holders_the_first_by_name_are_named)
{
    enum { HOLDERS = 20000 };
    struct cluster cluster;
    struct verdict verdict;
    struct arena arena;
    struct error err = {0};
    char name[16], uid[40];
    struct claim_reference claim = {.name = SLICE("data")};
    struct object object = {.kind = KIND_CLAIM};

    cluster_init(&cluster);
    arena_init(&arena, 16 << 20);
    object.meta = (struct meta){
        .ns = SLICE("d"), .name = SLICE("data"), .uid = SLICE("u"), .resource_version = SLICE("1")};
    object.claim = (struct claim_object){.meta = object.meta, .is_rwop = true};
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    for (int i = HOLDERS; i-- > 0;) {
        (void)snprintf(name, sizeof name, "p%06d", i);
        (void)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012d", i);
        object = (struct object){.kind = KIND_POD};
        object.meta = (struct meta){.ns = SLICE("d"),
                                    .name = slice_of(name),
                                    .uid = slice_of(uid),
                                    .resource_version = SLICE("2")};
        object.pod = (struct pod_object){
            .meta = object.meta, .node = SLICE("node-1"), .claims = &claim, .claim_count = 1};
        cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    }
    struct pod_object pod = {.priority = 1, .claims = &claim, .claim_count = 1};
    pod.meta = (struct meta){.ns = SLICE("d"), .name = SLICE("w"), .uid = SLICE("w")};
    struct view view = {.cluster = &cluster, .config = &plain_config};
    policy_prefilter(&view, &pod, &arena, &verdict);
    cr_expect_eq(verdict.code, CODE_UNSCHEDULABLE);
    cr_expect_eq(verdict.victim_count, VERDICT_VICTIMS_MAX);
    cr_expect(slice_equal(pod_name(verdict.victims[0]), SLICE("p000000")));
    cr_expect(slice_equal(verdict.reasons[0],
                          SLICE("claim d/data is in use by pod d/p000000 on node-1")));
    arena_dispose(&arena);
    cluster_dispose(&cluster);
}
