/* Answers that no watch has confirmed, and what refutes them. */
#include <criterion/criterion.h>

#include "cache/cluster/unconfirmed.h"

#define UID "6d1a0d3e-3f0b-4a39-8a5c-000000000001"

static struct cluster cluster;

static void setup(void)
{
    cluster_init(&cluster);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
}

TestSuite(unconfirmed, .init = setup, .fini = teardown);

static const struct object_reference a = {
    KIND_POD, {"default", 7}, {"a", 1}, {UID, UID_TEXT_BYTES}};

static struct object pod_a(const char *version, const char *node)
{
    struct object object = {.kind = KIND_POD};

    object.meta = (struct meta){
        .ns = a.ns, .name = a.name, .uid = a.uid, .resource_version = slice_of(version)};
    object.pod.node = slice_of(node);
    return object;
}

/* A list or a watch says so. */
static void apply(const char *version, const char *node)
{
    struct object object = pod_a(version, node);
    struct error err = {0};
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0, "%s", err.message);
}

/* A GET that was sent at that time says so; the watch has come further. */
static void look(const char *version, const char *node, uint64_t asked_ns)
{
    struct object object = pod_a(version, node);
    struct error err = {0};
    cr_assert_eq(cluster_learn(&cluster, &object, 100, asked_ns, &err), 0, "%s", err.message);
}

static struct pod *find(void)
{
    return cluster_find_pod(&cluster, a.ns, a.name);
}

static bool is_on(const char *node)
{
    return find() != NULL && slice_equal(pod_node(find()), slice_of(node));
}

/* The list that was asked for at that time names the pod. */
static void list(const char *version, const char *node, uint64_t asked_ns)
{
    cluster_list_begin(&cluster, KIND_POD, false, asked_ns);
    apply(version, node);
    while (cluster_list_end(&cluster, KIND_POD, 100, NULL))
        continue;
}

static void bind(uint64_t now_ns)
{
    struct error err = {0};
    cr_assert_eq(cluster_learn_bound(&cluster, find(), SLICE("n"), now_ns, &err), 0);
}

Test(unconfirmed, what_is_asked_for_later_refutes_that_an_object_is_gone)
{
    apply("5", "n");
    cluster_learn_gone(&cluster, &a, 50);
    apply("6", "n");
    look("6", "n", 50);
    cr_expect(find() == NULL, "both may be behind");
    look("6", "n", 51);
    cr_expect(is_on("n") && cluster.unconfirmed == NULL);
    cluster_learn_gone(&cluster, &a, 60);
    list("6", "n", 60);
    cr_expect(find() == NULL, "the list may be behind");
    apply("7", "n");
    cr_expect(find() == NULL, "and so is the watch that continues from it");
    list("6", "n", 61);
    cr_expect(is_on("n") && cluster.unconfirmed == NULL);
}

Test(unconfirmed, a_later_list_that_does_not_name_an_object_proves_that_it_is_gone)
{
    apply("5", "n");
    cluster_learn_gone(&cluster, &a, 50);
    cluster_list_begin(&cluster, KIND_POD, false, 51);
    while (cluster_list_end(&cluster, KIND_POD, 10, NULL))
        continue;
    cr_expect(cluster.unconfirmed == NULL, "no watch speaks of it any more");
}

Test(unconfirmed, what_is_asked_for_later_refutes_that_a_pod_is_bound)
{
    apply("5", "");
    bind(50);
    apply("6", "");
    look("6", "", 50);
    cr_expect(is_on("n"), "both may be behind");
    look("6", "", 51);
    cr_expect(is_on("") && cluster.unconfirmed == NULL);
    bind(60);
    list("6", "", 60);
    cr_expect(is_on("n"), "the list may be behind");
    list("6", "", 61);
    cr_expect(is_on(""));
}

Test(unconfirmed, nobody_takes_a_node_back_that_the_api_server_has_shown)
{
    apply("5", "");
    bind(50);
    look("6", "n", 51);
    cr_expect(cluster.unconfirmed == NULL, "it is so");
    look("7", "", 52);
    list("8", "", 53);
    cr_expect(is_on("n"));
}

Test(unconfirmed, a_pod_that_goes_takes_what_was_answered_with_it)
{
    struct object object = pod_a("9", "");
    struct error err = {0};

    apply("5", "");
    bind(50);
    cluster_delete(&cluster, &object);
    cr_expect(cluster.unconfirmed == NULL);
    apply("10", "");
    bind(60);
    object.meta.uid = SLICE("6d1a0d3e-3f0b-4a39-8a5c-000000000002");
    object.meta.resource_version = SLICE("11");
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    cr_expect(cluster.unconfirmed == NULL, "another one has its name");
}

Test(unconfirmed, a_pod_whose_name_a_get_found_on_another_one_is_gone_for_the_watch)
{
    struct object successor = pod_a("200", "n");
    struct error err = {0};

    apply("5", "");
    successor.meta.uid = SLICE("6d1a0d3e-3f0b-4a39-8a5c-000000000002");
    cr_assert_eq(cluster_learn(&cluster, &successor, 100, 50, &err), 0);
    cluster_learn_gone(&cluster,
                       &(struct object_reference){KIND_POD, a.ns, a.name, successor.meta.uid}, 60);
    apply("6", "n");
    cr_expect(find() == NULL, "the watch is behind: it sends the first one");
    look("210", "n", 70);
    cr_expect(is_on("n"), "but for a later answer");
}

static struct object claim_a(const char *version, const char *uid)
{
    struct object object = {.kind = KIND_CLAIM};

    object.meta = (struct meta){
        .ns = a.ns, .name = a.name, .uid = slice_of(uid), .resource_version = slice_of(version)};
    return object;
}

Test(unconfirmed, a_claim_whose_name_a_get_found_on_another_one_is_gone_for_the_watch)
{
    struct object first = claim_a("5", UID),
                  second = claim_a("200", "6d1a0d3e-3f0b-4a39-8a5c-000000000002");
    struct error err = {0};

    cr_assert_eq(cluster_apply(&cluster, &first, &err), 0);
    cr_assert_eq(cluster_learn(&cluster, &second, 100, 50, &err), 0);
    cluster_learn_gone(&cluster,
                       &(struct object_reference){KIND_CLAIM, a.ns, a.name, second.meta.uid}, 60);
    first.meta.resource_version = SLICE("6");
    cr_assert_eq(cluster_apply(&cluster, &first, &err), 0);
    cr_expect(cluster_find_claim(&cluster, a.ns, a.name) == NULL);
}

Test(unconfirmed, an_answer_in_doubt_is_asked_about_again_and_forgotten_at_last)
{
    struct kept_reference *doubt = NULL;
    uint64_t now_ns = 50;
    struct arena arena;
    int times = 0;

    arena_init(&arena, 4096);
    apply("5", "n");
    cluster_learn_gone(&cluster, &a, now_ns);
    cr_expect_not(cluster_next_unconfirmed(&cluster, now_ns, &doubt, &arena));
    while (cluster.unconfirmed != NULL && times < 100) {
        now_ns += UNCONFIRMED_CHECK_MS * UINT64_C(1000000);
        cr_assert(cluster_next_unconfirmed(&cluster, now_ns, &doubt, &arena));
        cr_expect(object_reference_equal(&doubt->reference, &a));
        cr_expect_not(cluster_next_unconfirmed(&cluster, now_ns, &doubt, &arena),
                      "it is under way");
        cluster_learn_gone(&cluster, &a, now_ns);
        times++;
    }
    cr_expect_eq(times, UNCONFIRMED_LIFE_MS / UNCONFIRMED_CHECK_MS + 1);
    arena_dispose(&arena);
}

/* Evictors and binds that look at one pod get as many answers within a millisecond. */
Test(unconfirmed, many_answers_at_once_are_one)
{
    apply("5", "n");
    for (uint64_t now_ns = 50; now_ns < 150; now_ns++)
        cluster_learn_gone(&cluster, &a, now_ns);
    cr_expect_not_null(unconfirmed_find(&cluster, a.uid));
}
