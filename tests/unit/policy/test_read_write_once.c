/* ReadWriteOnce, beside the rows of tests/cases: pods that are being bound, many nodes and pods,
 * `preempt`, what a pod waits for, and what runs out. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "cache/cluster/reservation.h"
#include "policy/policy.h"
#include "support/load.h"

#define VOLUME \
    "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"CSIDriver\",\"metadata\":{\"name\":\"d\"}}" \
    "\n---\n" \
    "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv\"}," \
    "\"spec\":{" \
    "\"accessModes\":[\"ReadWriteOnce\"],\"csi\":{\"driver\":\"d\"},\"claimRef\":{\"namespace\":" \
    "\"default\",\"name\":\"data\"}}}\n---\n" \
    "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"data\"}," \
    "\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"volumeName\":\"pv\"},\"status\":{\"phase\":" \
    "\"Bound\"}}\n"

static struct cluster cluster;
static struct config config;
static struct arena arena;
static struct claim_reference data = {.name = {"data", 4}};
static struct verdict verdict;

static void setup(void)
{
    config = plain_config;
    config.read_write_once.mode = MODE_ENFORCE;
    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    load_text(&cluster, VOLUME);
}

static void teardown(void)
{
    arena_dispose(&arena);
    cluster_dispose(&cluster);
}

TestSuite(one_node, .init = setup, .fini = teardown);

static struct pod_object pod_of(const char *name, const char *uid, const char *node)
{
    return (struct pod_object){
        .meta = {.ns = SLICE("default"), .name = slice_of(name), .uid = slice_of(uid)},
        .node = slice_of(node),
        .claims = &data,
        .claim_count = 1};
}

static void add_pod(const char *name, const char *uid, const char *node)
{
    struct object object = {.kind = KIND_POD, .pod = pod_of(name, uid, node)};
    struct error err = {0};

    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0, "%s", err.message);
}

/* So many pods, on so many nodes in turn. */
static void add_pods(unsigned count, unsigned nodes)
{
    char name[16], node[16];

    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "p%05u", i);
        (void)snprintf(node, sizeof node, "n%05u", i * 7 % nodes);
        add_pod(name, name, node);
    }
}

static void reserve(const struct pod_object *pod, bool binds)
{
    struct error err = {0};

    cr_assert_eq(reservation_take(&cluster, pod, NULL, binds, 1000, &err), 0);
}

static enum verdict_code judge(struct arena *memory)
{
    struct pod_object me = pod_of("me", "u-me", "");
    struct view view = {.cluster = &cluster, .config = &config};

    policy_prefilter(&view, &me, memory, &verdict);
    return verdict.code;
}

/* Why the pod is rejected on the node; empty: it passes. */
static struct slice rejection(const char *node)
{
    struct slice reason;

    cr_assert_eq(judge(&arena), CODE_SUCCESS);
    return policy_filter(&verdict, slice_of(node), &arena, &reason) == NULL ? SLICE("") : reason;
}

static void expect_text(struct slice got, const char *want)
{
    cr_expect(slice_equal(got, slice_of(want)), "%.*s", SLICE_ARG(got));
}

/* ---- pods that are being bound ---- */

Test(one_node, a_pod_that_is_being_bound_holds_the_claim_on_its_node)
{
    struct pod_object other = pod_of("other", "u-other", "node-2");

    reserve(&other, true);
    expect_text(rejection("node-2"), "");
    expect_text(rejection("node-1"),
                "claim default/data (ReadWriteOnce) is in use on node-2 by pod "
                "default/other (node-2 is not ready)");
    reservation_doubt(&cluster, &cluster.reservations->uid, 2000);
    cr_expect_neq(rejection("node-1").len, 0, "its Binding may still be applied");
    reservation_end(&cluster, cluster.in_doubt);
    expect_text(rejection("node-1"), "");
}

Test(one_node, a_pod_that_only_passed_a_filter_call_holds_nothing)
{
    struct pod_object other = pod_of("other", "u-other", "node-2");

    reserve(&other, false);
    expect_text(rejection("node-1"), "");
}

Test(one_node, a_binding_in_doubt_keeps_the_pod_itself_on_its_node)
{
    struct pod_object me = pod_of("me", "u-me", "node-2");

    reserve(&me, true);
    reservation_doubt(&cluster, &cluster.reservations->uid, 2000);
    expect_text(rejection("node-2"), "");
    cr_expect_neq(rejection("node-1").len, 0);
}

/* ---- many ---- */

Test(one_node, of_many_pods_on_one_node_eight_are_named)
{
    struct slice more = SLICE("; and 1992 more");

    add_pods(2000, 1);
    expect_text(rejection("n00000"), "");
    struct slice reason = rejection("node-1");
    cr_expect(slice_ends_with(reason, more), "%.*s", SLICE_ARG(reason));
    cr_expect_eq(verdict.awaited_count, CAUSES_MAX);
}

Test(one_node, the_pod_itself_is_none_of_many)
{
    add_pods(7, 1);
    add_pod("me", "u-me", "node-9");
    cr_expect_neq(rejection("node-9").len, 0, "it alone is there");
    expect_text(rejection("n00000"), "");
    cr_expect_eq(verdict.awaited_count, 7);
}

Test(one_node, one_pod_elsewhere_is_found_behind_many)
{
    add_pod("first", "u-first", "node-9");
    add_pods(30, 1);
    expect_text(rejection("node-9"), "");
    expect_text(rejection("n00000"), "");
    cr_expect_neq(rejection("node-1").len, 0);
}

Test(one_node, pods_on_many_nodes_are_found_on_each)
{
    char node[16];

    add_pods(200, 50);
    for (unsigned i = 0; i < 50; i++) {
        (void)snprintf(node, sizeof node, "n%05u", i);
        expect_text(rejection(node), "");
        arena_reset(&arena);
    }
    struct slice reason = rejection("node-1");
    cr_expect(slice_ends_with(reason, SLICE("; and 192 more")), "%.*s", SLICE_ARG(reason));
    cr_assert_eq(verdict.nodes->count, 50);
    for (size_t i = 1; i < 50; i++)
        cr_expect_lt(slice_compare(verdict.nodes->names[i - 1], verdict.nodes->names[i]), 0);
}

/* ---- preempt ---- */

Test(one_node, preempt_drops_the_nodes_without_the_volume)
{
    struct candidate candidates[] = {{.node = SLICE("node-1")}, {.node = SLICE("node-2")}};
    struct pod_object me = pod_of("me", "u-me", "");
    struct view view = {.cluster = &cluster, .config = &config};

    add_pod("holder", "u-holder", "node-2");
    cr_assert_eq(judge(&arena), CODE_SUCCESS);
    policy_preempt(&view, &me, &verdict, &arena, candidates, 2);
    cr_expect_not(candidates[0].keeps_node);
    cr_expect(candidates[1].keeps_node);
    config.read_write_once.mode = MODE_WARN;
    cr_assert_eq(judge(&arena), CODE_SUCCESS);
    policy_preempt(&view, &me, &verdict, &arena, candidates, 2);
    cr_expect(candidates[0].keeps_node && candidates[1].keeps_node, "it only warns");
}

/* ---- what a pod waits for ---- */

Test(one_node, a_pod_waits_for_the_holders_unless_the_policy_only_warns)
{
    add_pod("holder", "u-holder", "node-2");
    cr_assert_eq(judge(&arena), CODE_SUCCESS);
    cr_assert_eq(verdict.awaited_count, 1);
    cr_expect_eq(verdict.awaited[0].kind, KIND_POD);
    expect_text(verdict.awaited[0].name, "holder");
    expect_text(verdict.awaited[0].uid, "u-holder");
    cr_expect(verdict.nodes->nominates);
    config.read_write_once.mode = MODE_WARN;
    cr_assert_eq(judge(&arena), CODE_SUCCESS);
    cr_expect_eq(verdict.awaited_count, 0);
}

/* It counts as one that attaches, and may turn out not to. */
Test(one_node, a_pod_waits_for_a_driver_that_is_not_known)
{
    struct object driver = {.kind = KIND_CSI_DRIVER, .meta.name = SLICE("d")};

    cluster_delete(&cluster, &driver);
    cr_assert_eq(judge(&arena), CODE_SUCCESS);
    cr_expect_eq(verdict.awaited_count, 0, "the claim is free");
    add_pod("holder", "u-holder", "node-2");
    cr_assert_eq(judge(&arena), CODE_SUCCESS);
    cr_assert_eq(verdict.awaited_count, 2);
    expect_text(verdict.awaited[0].name, "holder");
    cr_expect_eq(verdict.awaited[1].kind, KIND_CSI_DRIVER);
    expect_text(verdict.awaited[1].name, "d");
}

#define SECOND_VOLUME \
    "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv2\"}," \
    "\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"csi\":{\"driver\":\"d\"},\"claimRef\":{" \
    "\"namespace\":\"default\",\"name\":\"logs\"}}}\n---\n" \
    "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"logs\"}," \
    "\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"volumeName\":\"pv2\"},\"status\":{\"phase\":" \
    "\"Bound\"}}\n"

/* When the only holder of its second claim goes, the pod passes where the first one is in use. */
Test(one_node, many_holders_of_one_claim_leave_room_for_those_of_another)
{
    static struct claim_reference both[2] = {{.name = {"data", 4}}, {.name = {"logs", 4}}};
    struct object other = {.kind = KIND_POD};
    struct pod_object me = pod_of("me", "u-me", "");
    struct view view = {.cluster = &cluster, .config = &config};
    struct error err = {0};

    load_text(&cluster, SECOND_VOLUME);
    add_pods(CAUSES_MAX, 1);
    other.pod = pod_of("other", "u-other", "node-9");
    other.pod.claims = &both[1];
    cr_assert_eq(cluster_apply(&cluster, &other, &err), 0);
    me.claims = both;
    me.claim_count = 2;
    policy_prefilter(&view, &me, &arena, &verdict);
    cr_assert_eq(verdict.nodes->count, 0);
    cr_assert_eq(verdict.awaited_count, CAUSES_MAX);
    expect_text(verdict.awaited[0].name, "p00000");
    expect_text(verdict.awaited[1].name, "other");
    expect_text(verdict.awaited[1].uid, "u-other");
    expect_text(verdict.awaited[2].name, "p00001");
    expect_text(verdict.awaited[CAUSES_MAX - 1].name, "p00014");
}

/* ---- memory ---- */

/* With any memory, the verdict lists all nodes, or is an Error. */
static void expect_all_nodes_or_error(size_t nodes)
{
    struct arena small;
    enum verdict_code code = CODE_ERROR;

    for (size_t bytes = 0; code == CODE_ERROR && bytes < 1 << 20; bytes += 16) {
        arena_init(&small, bytes);
        code = judge(&small);
        cr_assert(code == CODE_ERROR || (verdict.nodes != NULL && verdict.nodes->count == nodes),
                  "%zu bytes", bytes);
        arena_dispose(&small);
    }
    cr_expect_eq(code, CODE_SUCCESS);
}

Test(one_node, without_memory_there_is_no_verdict)
{
    add_pods(20, 20);
    expect_all_nodes_or_error(20);
}

/* It takes more memory than all that is allocated behind it. */
Test(one_node, without_memory_for_the_name_of_a_node_there_is_no_verdict)
{
    char node[254] = {0};

    memset(node, 'n', sizeof node - 1);
    add_pod("p", "u-p", node);
    expect_all_nodes_or_error(1);
}
