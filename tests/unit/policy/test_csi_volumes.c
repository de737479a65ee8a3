/* CSI volumes, beside the rows of tests/cases: where no node is checked, what a pod waits for, and
 * what runs out. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "policy/policy.h"
#include "support/load.h"

enum { INLINE_MAX = 40 };

static struct cluster cluster;
static struct config config;
static struct arena arena;
static struct verdict verdict;
static struct pod_volume volumes[INLINE_MAX];
static struct pod_mounts mounts;
static struct claim_reference claims[3];
static struct pod_object pod;

static void setup(void)
{
    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    config = plain_config;
    config.csi_volumes.mode = MODE_ENFORCE;
    mounts = (struct pod_mounts){.volumes = volumes};
    pod = (struct pod_object){
        .meta = {.ns = SLICE("default"), .name = SLICE("me")}, .claims = claims, .mounts = &mounts};
}

static void teardown(void)
{
    arena_dispose(&arena);
    cluster_dispose(&cluster);
}

TestSuite(csi_volumes, .init = setup, .fini = teardown);

static void apply(const struct object *object)
{
    struct error err = {0};
    cr_assert_eq(cluster_apply(&cluster, object, &err), 0, "%s", err.message);
}

static struct object resource_of(enum kind kind, const char *name)
{
    struct object object = {.kind = kind};

    object.meta.name = slice_of(name);
    return object;
}

static void put_node(const char *name)
{
    struct object object = resource_of(KIND_NODE, name);
    apply(&object);
}

static void put_csi_node(const char *name, const char *drivers)
{
    struct object object = resource_of(KIND_CSI_NODE, name);

    object.resource.attributes[CSI_NODE_DRIVERS] = slice_of(drivers);
    apply(&object);
}

static void put_driver(const char *name, const char *modes)
{
    struct object object = resource_of(KIND_CSI_DRIVER, name);

    object.resource.attributes[CSI_DRIVER_LIFECYCLE_MODES] = slice_of(modes);
    apply(&object);
}

/* A claim of the pod, bound to a volume of the driver or of the in-tree plug-in. */
static void add_claim(const char *name, const char *driver, const char *plugin)
{
    struct object claim = resource_of(KIND_CLAIM, name), volume = resource_of(KIND_VOLUME, name);

    claim.meta.ns = SLICE("default");
    claim.claim.volume = slice_of(name);
    claim.claim.phase = SLICE("Bound");
    volume.resource.attributes[VOLUME_DRIVER] = slice_of(driver);
    volume.resource.attributes[VOLUME_IN_TREE] = slice_of(plugin);
    apply(&claim);
    apply(&volume);
    claims[pod.claim_count++].name = slice_of(name);
    volumes[mounts.volume_count++] = (struct pod_volume){
        .name = slice_of(name), .source = VOLUME_SOURCE_CLAIM, .claim = slice_of(name)};
}

static void add_inline(const char *name, const char *driver)
{
    volumes[mounts.volume_count++] = (struct pod_volume){
        .name = slice_of(name), .source = VOLUME_SOURCE_CSI, .driver = slice_of(driver)};
}

static void ask(void)
{
    csi_volumes.prefilter(&(struct view){.cluster = &cluster, .config = &config}, &pod, &arena,
                          &verdict);
}

/* Why the pod does not pass on the node; empty: it passes. */
static struct slice reason_on(const char *node)
{
    struct slice reason;
    bool passes = policy_filter(&verdict, slice_of(node), &arena, &reason) == NULL;

    return passes ? SLICE("") : reason;
}

static void expect_awaited(size_t index, enum kind kind, const char *name)
{
    struct object_reference wanted = {.kind = kind, .name = slice_of(name)};

    cr_assert_lt(index, verdict.awaited_count);
    cr_expect(object_reference_equal(&verdict.awaited[index], &wanted));
}

/* ---- where no node is checked ---- */

Test(csi_volumes, no_node_is_checked_where_each_has_the_driver)
{
    add_claim("data", "d", "");
    put_node("n");
    put_node("m");
    put_csi_node("n", "c,d");
    put_csi_node("m", "d");
    ask();
    cr_expect(verdict.code == CODE_SUCCESS && verdict.nodes == NULL && verdict.awaited_count == 0);
}

Test(csi_volumes, nodes_without_a_csi_node_are_not_checked_if_they_pass)
{
    add_claim("data", "d", "");
    put_node("n");
    put_node("m");
    put_csi_node("n", "d");
    ask();
    cr_expect(verdict.code == CODE_SUCCESS && verdict.nodes == NULL);
    config.csi_volumes.missing_csi_node = MISSING_CSI_NODE_REJECT;
    ask();
    cr_expect(verdict.code == CODE_SUCCESS && verdict.nodes != NULL);
    cr_expect_eq(reason_on("n").len, 0);
}

Test(csi_volumes, no_node_is_checked_where_no_plug_in_is_migrated)
{
    add_claim("data", "", "kubernetes.io/aws-ebs");
    put_node("n");
    put_csi_node("n", "c");
    config.csi_volumes.missing_csi_node = MISSING_CSI_NODE_REJECT;
    ask();
    cr_expect(verdict.code == CODE_SUCCESS && verdict.nodes == NULL);
    put_node("m");
    ask();
    cr_expect(verdict.code == CODE_SUCCESS && verdict.nodes == NULL);
    put_csi_node("m", "kubernetes.io/aws-ebs");
    ask();
    cr_expect(verdict.nodes != NULL && reason_on("n").len == 0 && reason_on("m").len != 0);
}

Test(csi_volumes, a_cluster_without_nodes_rejects_nothing)
{
    add_claim("data", "d", "");
    ask();
    cr_expect(verdict.code == CODE_SUCCESS && verdict.nodes == NULL);
}

/* ---- nodes ---- */

Test(csi_volumes, where_nodes_are_checked_an_unknown_one_is_one_without_a_csi_node)
{
    add_claim("data", "d", "");
    put_node("n");
    put_csi_node("n", "");
    ask();
    cr_expect_eq(reason_on("new").len, 0);
    config.csi_volumes.missing_csi_node = MISSING_CSI_NODE_REJECT;
    ask();
    cr_expect(slice_equal(reason_on("new"), SLICE("the node has no CSINode object")));
    cr_expect(slice_equal(reason_on("n"), SLICE("CSI driver d of claim default/data is not "
                                                "registered on the node")));
}

/* In a bind, the node is the only one in question. */
static struct slice reason_in_a_bind_to(const char *node)
{
    struct view view = {.cluster = &cluster, .config = &config, .node = slice_of(node)};

    csi_volumes.prefilter(&view, &pod, &arena, &verdict);
    return reason_on(node);
}

/* To look up each name would only cost time: every node that is known passes. */
Test(csi_volumes, where_no_node_is_checked_an_unknown_one_is_rejected_alone)
{
    add_claim("data", "d", "");
    put_node("n");
    put_csi_node("n", "d");
    put_csi_node("new", "d");
    cr_expect_eq(reason_in_a_bind_to("new").len, 0, "Allow");
    config.csi_volumes.missing_csi_node = MISSING_CSI_NODE_REJECT;
    ask();
    cr_expect(verdict.code == CODE_SUCCESS && verdict.nodes == NULL, "of many nodes");
    cr_expect(slice_equal(reason_in_a_bind_to("new"), SLICE("the node has no CSINode object")));
    cr_expect_eq(verdict.awaited_count, 0);
    cr_expect_eq(reason_in_a_bind_to("n").len, 0);
    cr_expect_null(verdict.nodes);
    put_node("new");
    cr_expect_eq(reason_in_a_bind_to("new").len, 0, "it is known");
}

Test(csi_volumes, no_csi_node_of_an_unknown_node_says_that_a_plug_in_is_migrated)
{
    add_claim("data", "", "kubernetes.io/aws-ebs");
    put_node("n");
    put_csi_node("n", "ebs.csi.aws.com,kubernetes.io/aws-ebs");
    config.csi_volumes.missing_csi_node = MISSING_CSI_NODE_REJECT;
    cr_expect_eq(reason_in_a_bind_to("new").len, 0);
}

Test(csi_volumes, a_pod_passes_somewhere_if_one_node_has_the_driver)
{
    add_claim("data", "d", "");
    ask();
    cr_expect(policy_passes_somewhere(&(struct view){.cluster = &cluster, .config = &config},
                                      &verdict, &arena),
              "no node is checked");
    put_node("n");
    put_csi_node("n", "c");
    put_csi_node("gone", "d");
    ask();
    cr_expect_not(policy_passes_somewhere(&(struct view){.cluster = &cluster, .config = &config},
                                          &verdict, &arena));
    put_node("m");
    put_csi_node("m", "d");
    ask();
    cr_expect(policy_passes_somewhere(&(struct view){.cluster = &cluster, .config = &config},
                                      &verdict, &arena));
}

Test(csi_volumes, texts_are_made_once_and_not_for_each_node)
{
    static const char *const names[] = {"k", "l", "m", "n"};

    add_claim("data", "d", "");
    for (size_t i = 0; i < 4; i++) {
        put_node(names[i]);
        put_csi_node(names[i], i < 2 ? "b" : "c");
    }
    ask();
    size_t used = arena.used_bytes;
    const char *text = reason_on("k").ptr;
    for (size_t i = 0; i < 4; i++)
        cr_expect_eq(reason_on(names[i]).ptr, text);
    cr_expect_eq(arena.used_bytes, used);
}

Test(csi_volumes, an_in_tree_volume_and_a_csi_volume_of_one_driver_are_two_needs)
{
    add_claim("old", "", "kubernetes.io/aws-ebs");
    add_claim("new", "ebs.csi.aws.com", "");
    put_node("n");
    put_node("m");
    put_csi_node("n", "c");
    put_csi_node("m", "c,kubernetes.io/aws-ebs");
    ask();
    cr_expect(slice_has(reason_on("n"), SLICE("claim default/new")), "it needs no plug-in");
    cr_expect(slice_has(reason_on("m"), SLICE("claim default/old")), "it is the pod's first");
}

/* ---- what a pod waits for ---- */

Test(csi_volumes, a_rejected_pod_waits_for_the_csi_driver)
{
    add_inline("v", "d");
    add_claim("data", "e", "");
    put_driver("e", "Ephemeral");
    ask();
    cr_expect_eq(verdict.code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    cr_expect(verdict.reason_count == 2 && verdict.awaited_count == 2 && verdict.nodes == NULL);
    expect_awaited(0, KIND_CSI_DRIVER, "d");
    expect_awaited(1, KIND_CSI_DRIVER, "e");
}

Test(csi_volumes, a_restricted_pod_waits_for_the_drivers_that_nodes_lack)
{
    add_claim("a", "everywhere", "");
    add_claim("b", "d", "");
    add_claim("c", "e", "");
    put_node("n");
    put_node("m");
    put_csi_node("n", "d,everywhere");
    put_csi_node("m", "e,everywhere");
    ask();
    cr_expect(verdict.code == CODE_SUCCESS && verdict.awaited_count == 2);
    expect_awaited(0, KIND_CSI_NODE, "d");
    expect_awaited(1, KIND_CSI_NODE, "e");
}

/* ---- limits ---- */

Test(csi_volumes, without_mounts_the_claims_are_judged)
{
    add_inline("v", "gone");
    add_claim("data", "d", "");
    put_node("n");
    put_csi_node("n", "");
    pod.mounts = NULL;
    ask();
    cr_expect(verdict.code == CODE_SUCCESS && reason_on("n").len != 0);
}

static void add_many_inline(char names[INLINE_MAX][8])
{
    for (int i = 0; i < INLINE_MAX; i++) {
        (void)snprintf(names[i], 8, "d%02d", i);
        add_inline(names[i], names[i]);
    }
}

Test(csi_volumes, of_many_rejections_the_first_are_named)
{
    char names[INLINE_MAX][8];

    add_many_inline(names);
    ask();
    cr_expect(verdict.reason_count == VERDICT_REASONS_MAX + 1 &&
              verdict.awaited_count == VERDICT_REASONS_MAX);
}

Test(csi_volumes, drivers_beyond_the_maximum_are_not_judged)
{
    char names[INLINE_MAX][8];

    add_many_inline(names);
    for (int i = 0; i < INLINE_MAX; i++)
        put_driver(names[i], "Ephemeral");
    put_node("n");
    put_csi_node("n", "d00,d01,d02,d03,d04,d05,d06,d07,d08,d09,d10,d11,d12,d13,d14,d15,d16,d17,d18,"
                      "d19,d20,d21,d22,d23,d24,d25,d26,d27,d28,d29,d30");
    ask();
    cr_expect(slice_has(reason_on("n"), SLICE("CSI driver d31 ")), "the 32nd");
    put_csi_node("n", "d00,d01,d02,d03,d04,d05,d06,d07,d08,d09,d10,d11,d12,d13,d14,d15,d16,d17,d18,"
                      "d19,d20,d21,d22,d23,d24,d25,d26,d27,d28,d29,d30,d31");
    ask();
    cr_expect(verdict.code == CODE_SUCCESS && verdict.nodes == NULL);
}

/* A reason for which there is no memory is an error, and not a row that does not apply. */
Test(csi_volumes, without_memory_no_pod_passes_that_does_not_pass_with_it)
{
    add_claim("data", "d", "");
    add_inline("v", "e");
    put_driver("e", "Ephemeral");
    put_node("n");
    put_csi_node("n", "");
    for (int wrong_mode = 0; wrong_mode < 2; wrong_mode++) {
        for (size_t bytes = 0; bytes < 4096; bytes += 16) {
            arena_dispose(&arena);
            arena_init(&arena, bytes);
            ask();
            struct slice reason;
            bool passes = !code_is_rejection(verdict.code) &&
                          policy_filter(&verdict, SLICE("n"), &arena, &reason) == NULL;
            cr_expect_not(passes, "with %zu bytes", bytes);
            cr_expect(bytes > 64 || verdict.code == CODE_ERROR);
        }
        put_driver("e", "Persistent");
    }
}

/* It takes more memory than all that is allocated behind it. */
Test(csi_volumes, without_memory_for_the_reason_of_a_node_the_verdict_is_an_error)
{
    char claim[254] = {0};

    memset(claim, 'c', sizeof claim - 1);
    add_claim(claim, "d", "");
    put_node("n");
    put_csi_node("n", "");
    for (size_t bytes = 0; bytes < 4096; bytes += 16) {
        arena_dispose(&arena);
        arena_init(&arena, bytes);
        ask();
        cr_expect(verdict.code == CODE_ERROR || reason_on("n").ptr != NULL, "%zu bytes", bytes);
    }
}
