#include <criterion/criterion.h>
#include <stdio.h>

#include "cache/cluster/reservation.h"
#include "cache/cluster/unconfirmed.h"

#define UID(n_) "6d1a0d3e-3f0b-4a39-8a5c-00000000000" #n_

static struct cluster cluster;

static void setup(void)
{
    cluster_init(&cluster);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
}

TestSuite(cluster_lists, .init = setup, .fini = teardown);

static struct claim_reference data_claim = {.name = {"data", 4}};

static struct object object_of(enum kind kind, const char *name, const char *uid,
                               const char *version)
{
    struct object object = {.kind = kind};

    object.meta = (struct meta){.ns = SLICE("default"),
                                .name = slice_of(name),
                                .uid = slice_of(uid),
                                .resource_version = slice_of(version)};
    if (kind == KIND_POD) {
        object.pod.node = SLICE("node-1");
        object.pod.claims = &data_claim;
        object.pod.claim_count = 1;
    }
    if (kind == KIND_CLAIM)
        object.claim.is_rwop = true;
    return object;
}

static void apply(enum kind kind, const char *name, const char *uid, const char *version)
{
    struct object object = object_of(kind, name, uid, version);
    struct error err = {0};
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0, "%s", err.message);
}

static void learn(enum kind kind, const char *name, const char *uid, const char *version,
                  uint64_t watched)
{
    struct object object = object_of(kind, name, uid, version);
    struct error err = {0};
    cr_assert_eq(cluster_learn(&cluster, &object, watched, 0, &err), 0, "%s", err.message);
}

static bool has_pod(const char *name)
{
    return cluster_find_pod(&cluster, SLICE("default"), slice_of(name)) != NULL;
}

static uint32_t holders(void)
{
    const struct claim *claim = cluster_find_claim(&cluster, SLICE("default"), SLICE("data"));
    return claim == NULL ? 0 : claim->refs;
}

/* What a list's end reported last, and how often it reported. */
static struct reported {
    enum kind kind;
    char text[128];
    unsigned count;
} reported;

static void report(void *context, const struct object *object)
{
    struct reported *last = context;

    last->kind = object->kind;
    last->count++;
    (void)snprintf(last->text, sizeof last->text, "%.*s/%.*s %.*s", SLICE_ARG(object->meta.ns),
                   SLICE_ARG(object->meta.name), SLICE_ARG(object->meta.uid));
}

static const struct gone_listener listener = {&reported, report};

static void end_list(enum kind kind, uint64_t version, const struct gone_listener *gone)
{
    while (cluster_list_end(&cluster, kind, version, gone))
        continue;
}

Test(cluster_lists, what_a_list_does_not_name_is_gone_at_its_end_and_not_before)
{
    apply(KIND_CLAIM, "data", UID(1), "1");
    apply(KIND_POD, "old", UID(2), "2");
    apply(KIND_POD, "kept", UID(3), "3");
    cluster_list_begin(&cluster, KIND_POD, false, 0);
    cr_expect_eq(holders(), 2, "a held claim never looks free");
    apply(KIND_POD, "kept", UID(3), "3");
    apply(KIND_POD, "new", UID(4), "9");
    cr_expect(has_pod("old"));
    end_list(KIND_POD, 10, &listener);
    cr_expect(!has_pod("old") && has_pod("kept") && has_pod("new"));
    cr_expect(reported.count == 1 && reported.kind == KIND_POD);
    cr_expect_str_eq(reported.text, "default/old " UID(2));
    cr_expect_eq(holders(), 2);
    cr_expect_eq(cluster.counts[KIND_POD], 2);
}

Test(cluster_lists, every_kind_is_swept_by_itself)
{
    for (int kind = 0; kind < KIND_COUNT; kind++)
        for (char name[] = "a"; *name <= 'z'; ++*name)
            apply((enum kind)kind, name, "", "5");
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        cluster_list_begin(&cluster, (enum kind)kind, false, 0);
        apply((enum kind)kind, "m", "", "5");
        reported.count = 0;
        end_list((enum kind)kind, 10, &listener);
        cr_expect_eq(cluster.counts[kind], 1, "%s", kind_resource((enum kind)kind));
        cr_expect(reported.count == 25 && reported.kind == (enum kind)kind);
        for (int other = kind + 1; other < KIND_COUNT; other++)
            cr_expect_eq(cluster.counts[other], 26, "%s", kind_resource((enum kind)other));
    }
}

Test(cluster_lists, a_list_that_starts_again_forgets_what_the_first_try_named)
{
    apply(KIND_POD, "a", UID(1), "1");
    cluster_list_begin(&cluster, KIND_POD, false, 0);
    apply(KIND_POD, "a", UID(1), "1");
    cluster_list_begin(&cluster, KIND_POD, false, 0);
    apply(KIND_POD, "b", UID(2), "12");
    end_list(KIND_POD, 20, NULL);
    cr_expect(!has_pod("a") && has_pod("b"));
}

static const struct object_reference asking = {
    KIND_POD, {"default", 7}, {"asking", 6}, {UID(9), 36}};

static bool may_have_former(const char *name, uint64_t since_ns)
{
    const struct claim *claim = cluster_find_claim(&cluster, SLICE("default"), slice_of(name));

    cr_assert_not_null(claim);
    return claim_may_have_former(&cluster, claim, &asking, since_ns);
}

/* Another pod names it. */
static void name_claim(struct claim_reference *claim, const char *pod)
{
    struct object object = object_of(KIND_POD, pod, "", "1");
    struct error err = {0};

    object.pod.node = SLICE("");
    object.pod.claims = claim;
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
}

static void list_claims(uint64_t now_ns, uint64_t version)
{
    end_list(KIND_CLAIM, version, NULL);
    cluster_list_ended(&cluster, KIND_CLAIM, version, now_ns);
}

Test(cluster_lists, what_was_before_a_claim_of_a_list_is_not_known_for_a_while)
{
    struct claim_reference listed = {.name = SLICE("listed")}, watched = {.name = SLICE("watched")};

    cluster_list_begin(&cluster, KIND_CLAIM, false, 1);
    apply(KIND_CLAIM, "listed", UID(1), "1");
    cr_expect(may_have_former("listed", 100), "while it is read");
    cluster_list_begin(&cluster, KIND_CLAIM, false, 2); /* again */
    apply(KIND_CLAIM, "listed", UID(1), "1");
    list_claims(50, 5);
    apply(KIND_CLAIM, "watched", UID(2), "6");
    apply(KIND_CLAIM, "listed", UID(1), "7"); /* an event of it changes nothing */
    cr_expect(!may_have_former("listed", 49), "no other pod names it");
    name_claim(&listed, "x");
    name_claim(&watched, "y");
    cr_expect(may_have_former("listed", 49) && !may_have_former("watched", 49));
    cr_expect(!may_have_former("listed", 50), "long ago");
}

Test(cluster_lists, a_later_list_is_about_what_is_new_in_it)
{
    cluster_list_begin(&cluster, KIND_CLAIM, false, 1);
    apply(KIND_CLAIM, "old", UID(1), "1");
    list_claims(50, 5);
    learn(KIND_CLAIM, "learned", UID(3), "8", 7);
    for (uint64_t i = 1; i < LIST_EPOCHS; i++) {
        cluster_list_begin(&cluster, KIND_CLAIM, false, 60);
        apply(KIND_CLAIM, "old", UID(1), "1");
        apply(KIND_CLAIM, "learned", UID(3), "8");
        list_claims(50 + 100 * i, 10 + i);
        cr_expect(!may_have_former("old", 50), "it was new in the first list");
        cr_expect(may_have_former("learned", 149), "no watch has reported what was before it");
        cr_expect(!may_have_former("learned", 150), "its list ended then");
    }
    cluster.pods_seen = 30;
    cr_expect(!may_have_former("learned", 149), "all pods are known, and none names it");
}

Test(cluster_lists, counts_the_pods_that_name_a_claim)
{
    struct object object = object_of(KIND_POD, "a", UID(1), "1");
    const struct object_reference a = {KIND_POD, SLICE("default"), SLICE("a"), SLICE(UID(1))};
    struct error err = {0};

    object.pod.node = SLICE("");
    apply(KIND_CLAIM, "data", UID(3), "1");
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    cr_assert_eq(reservation_take(&cluster, &object.pod, NULL, false, 1, &err), 0);
    const struct claim *claim = cluster_find_claim(&cluster, SLICE("default"), SLICE("data"));
    cr_expect(!claim_is_named_by_others(&cluster, claim, &a), "it, and its own reservation");
    object.meta.name = SLICE("b");
    object.meta.uid = SLICE(UID(2));
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    cr_expect(claim_is_named_by_others(&cluster, claim, &a));
}

Test(cluster_lists, a_list_of_another_history_counts_whatever_is_known)
{
    apply(KIND_POD, "a", UID(1), "100");
    apply(KIND_POD, "b", UID(2), "101");
    cluster_list_begin(&cluster, KIND_POD, true, 0);
    apply(KIND_POD, "a", UID(1), "7");
    end_list(KIND_POD, 10, NULL);
    cr_expect_eq(cluster_find_pod(&cluster, SLICE("default"), SLICE("a"))->version, 7);
    cr_expect(!has_pod("b"), "though it is newer than the list");
    apply(KIND_POD, "a", UID(1), "6");
    cr_expect_eq(cluster_find_pod(&cluster, SLICE("default"), SLICE("a"))->version, 7,
                 "after the list, what is older is old again");
}

Test(cluster_lists, what_a_get_said_is_ignored_when_the_watch_was_there_already)
{
    apply(KIND_CLAIM, "data", UID(1), "1");
    learn(KIND_POD, "ghost", UID(2), "5", 9); /* the watch has deleted it between 5 and 9 */
    cr_expect(!has_pod("ghost"));
    learn(KIND_POD, "news", UID(3), "10", 9);
    cr_expect(has_pod("news"));
}

Test(cluster_lists, what_a_get_said_outlives_a_list_that_is_older)
{
    cluster_list_begin(&cluster, KIND_POD, false, 0);
    learn(KIND_POD, "newer", UID(1), "15", 0);
    learn(KIND_POD, "gone-since", UID(2), "8", 0);
    end_list(KIND_POD, 10, NULL);
    cr_expect(has_pod("newer"), "the watch from 10 on sends it");
    cr_expect(!has_pod("gone-since"), "it was deleted between 8 and 10");
}

Test(cluster_lists, what_a_list_named_is_not_lost_by_a_get_of_the_same)
{
    cluster_list_begin(&cluster, KIND_POD, false, 0);
    apply(KIND_POD, "a", UID(1), "8");
    learn(KIND_POD, "a", UID(1), "8", 0);
    learn(KIND_POD, "a", UID(1), "7", 0);
    end_list(KIND_POD, 10, NULL);
    cr_expect(has_pod("a"));
}

Test(cluster_lists, what_a_get_found_gone_stays_gone_while_the_watch_is_late)
{
    struct object object = object_of(KIND_POD, "a", UID(1), "5");

    apply(KIND_CLAIM, "data", UID(9), "1");
    apply(KIND_POD, "a", UID(1), "5");
    cluster_learn_gone(
        &cluster, &(struct object_reference){KIND_POD, SLICE("default"), SLICE("a"), SLICE(UID(2))},
        1);
    cr_expect(has_pod("a"), "another one was asked about");
    cluster_learn_gone(
        &cluster, &(struct object_reference){KIND_POD, SLICE("default"), SLICE("a"), SLICE(UID(1))},
        1);
    cr_expect(!has_pod("a") && holders() == 0);
    apply(KIND_POD, "a", UID(1), "6");
    cr_expect(!has_pod("a"), "the watch sends how it was before");
    apply(KIND_POD, "a", UID(3), "8");
    cr_expect(has_pod("a"), "a new pod of that name");
    object.meta.resource_version = SLICE("7");
    cluster_delete(&cluster, &object);
    cr_expect(has_pod("a"), "the deletion of the first one");
    cr_expect(cluster.unconfirmed == NULL, "the watch has caught up");
}

Test(cluster_lists, another_history_may_bring_back_what_was_gone)
{
    apply(KIND_POD, "a", UID(1), "5");
    cluster_learn_gone(
        &cluster, &(struct object_reference){KIND_POD, SLICE("default"), SLICE("a"), SLICE(UID(1))},
        1);
    cluster_list_begin(&cluster, KIND_POD, true, 0);
    apply(KIND_POD, "a", UID(1), "3");
    end_list(KIND_POD, 4, NULL);
    cr_expect(has_pod("a"));
}

Test(cluster_lists, no_more_is_remembered_of_the_gone_than_fits)
{
    for (unsigned i = 0; i < UNCONFIRMED_MAX + 10; i++) {
        char uid[48];
        (void)snprintf(uid, sizeof uid, "6d1a0d3e-3f0b-4a39-8a5c-%012x", i);
        apply(KIND_POD, "a", uid, "5");
        cluster_learn_gone(
            &cluster,
            &(struct object_reference){KIND_POD, SLICE("default"), SLICE("a"), slice_of(uid)}, 1);
    }
    cr_expect_eq(HASH_COUNT(cluster.unconfirmed), UNCONFIRMED_MAX);
}

/* ---- the steps of a list's end ---- */

static void apply_many(enum kind kind, unsigned first, unsigned count)
{
    char name[16], uid[48];

    for (unsigned i = first; i < first + count; i++) {
        (void)snprintf(name, sizeof name, "x%u", i);
        (void)snprintf(uid, sizeof uid, "6d1a0d3e-3f0b-4a39-8a5c-%012x", i);
        apply(kind, name, uid, "5");
    }
}

Test(cluster_lists, no_step_of_an_end_removes_many_and_what_is_left_counts)
{
    enum { MANY = 10000 };
    size_t left = MANY;

    apply(KIND_CLAIM, "data", UID(1), "1");
    apply_many(KIND_POD, 0, MANY);
    cluster_list_begin(&cluster, KIND_POD, false, 0);
    reported.count = 0;
    while (cluster_list_end(&cluster, KIND_POD, 10, &listener)) {
        cr_assert_leq(left - cluster.counts[KIND_POD], 32);
        left = cluster.counts[KIND_POD];
        cr_assert_eq(holders(), left, "a claim that is held never looks free");
    }
    cr_expect(left == 0 && reported.count == MANY);
}

/* Else the step would end before its page, and the next one would begin at the same place. */
Test(cluster_lists, what_stays_is_no_work_for_a_step)
{
    enum { MANY = 100 };

    for (int kind = 0; kind < KIND_COUNT; kind++) {
        unsigned steps = 0;
        cluster_list_begin(&cluster, (enum kind)kind, false, 0);
        apply_many((enum kind)kind, 0, MANY);
        while (cluster_list_end(&cluster, (enum kind)kind, 10, NULL))
            cr_assert_lt(steps++, MANY, "%s", kind_resource((enum kind)kind));
        cr_expect_eq(cluster.counts[kind], MANY, "%s", kind_resource((enum kind)kind));
    }
}

Test(cluster_lists, a_step_removes_fewer_pods_that_name_many_claims)
{
    enum { PODS = 100, CLAIMS = 200 };
    static struct claim_reference claims[CLAIMS];
    static char names[CLAIMS][16];
    struct error err = {0};
    size_t left = PODS;

    for (int c = 0; c < CLAIMS; c++) {
        (void)snprintf(names[c], sizeof names[c], "c%d", c);
        claims[c].name = slice_of(names[c]);
    }
    for (int p = 0; p < PODS; p++) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%d", p);
        struct object object = object_of(KIND_POD, name, UID(1), "5");
        object.pod.claims = claims;
        object.pod.claim_count = CLAIMS;
        cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    }
    cluster_list_begin(&cluster, KIND_POD, false, 0);
    while (cluster_list_end(&cluster, KIND_POD, 10, NULL)) {
        cr_assert_leq(left - cluster.counts[KIND_POD], 1);
        left = cluster.counts[KIND_POD];
    }
    cr_expect_eq(left, 0);
}

Test(cluster_lists, what_a_get_says_between_the_steps_stays_in_another_history_too)
{
    for (int overrides = 0; overrides < 2; overrides++) {
        apply_many(KIND_POD, 0, 1000);
        cluster_list_begin(&cluster, KIND_POD, overrides != 0, 0);
        cr_assert(cluster_list_end(&cluster, KIND_POD, 10, NULL));
        learn(KIND_POD, "new", UID(1), "11", 10);
        learn(KIND_POD, "x7", UID(2), "12", 10); /* in the place of one that is gone */
        end_list(KIND_POD, 10, NULL);
        cr_expect(has_pod("new") && has_pod("x7") && cluster.counts[KIND_POD] == 2);
        cluster_list_begin(&cluster, KIND_POD, true, 0);
        end_list(KIND_POD, 20, NULL);
        cr_expect_eq(cluster.counts[KIND_POD], 0);
    }
}

Test(cluster_lists, a_list_may_start_again_while_the_former_one_ends)
{
    apply_many(KIND_POD, 0, 1000);
    cluster_list_begin(&cluster, KIND_POD, false, 0);
    cr_assert(cluster_list_end(&cluster, KIND_POD, 10, NULL));
    cluster_list_begin(&cluster, KIND_POD, false, 0);
    apply_many(KIND_POD, 0, 1000);
    end_list(KIND_POD, 10, NULL);
    cr_expect_eq(cluster.counts[KIND_POD], 1000);
}

Test(cluster_lists, memory_goes_back_after_a_list_of_a_hundredth)
{
    enum { MANY = 20000, FEW = MANY / 100 };

    for (int kind = 0; kind < KIND_COUNT; kind++)
        apply_many((enum kind)kind, 0, MANY);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        cluster_list_begin(&cluster, (enum kind)kind, false, 0);
        apply_many((enum kind)kind, 0, FEW);
        end_list((enum kind)kind, 10, NULL);
        cr_expect_eq(cluster.counts[kind], FEW);
        cr_expect_leq(cluster.resources[kind].page_count, FEW / 16);
    }
    cr_expect_leq(cluster.pods.page_count, FEW / 16);
    cr_expect_leq(cluster.claims.page_count, FEW / 16);
    cr_expect_leq(cluster.nodes.page_count, FEW / 16);
    cr_expect_leq(cluster.names.table.page_count, 4 * FEW / 16, "%u names",
                  cluster.names.table.count);
    const struct node *node = cluster_find_node(&cluster, SLICE("x1"));
    cr_assert_not_null(node);
}

static void list(const char *kept, const char *kept_namespace)
{
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        bool is_namespaced = kind_is_namespaced((enum kind)kind);
        cluster_list_begin(&cluster, (enum kind)kind, false, 0);
        if (kept != NULL)
            cluster_list_keep(&cluster, (enum kind)kind,
                              is_namespaced ? slice_of(kept_namespace) : SLICE(""), slice_of(kept));
        end_list((enum kind)kind, 20, NULL);
    }
}

static void apply_all(const char *name)
{
    struct error err = {0};

    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct object object = object_of((enum kind)kind, name, "", "5");
        if (!kind_is_namespaced((enum kind)kind))
            object.meta.ns = SLICE("");
        cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    }
}

Test(cluster_lists, keeps_what_a_list_names_and_nobody_can_read)
{
    apply_all("a");
    apply_all("b");
    list("a", "default");
    for (int kind = 0; kind < KIND_COUNT; kind++)
        cr_expect_eq(cluster.counts[kind], 1, "%s", kind_resource((enum kind)kind));
    cr_expect(has_pod("a") && !has_pod("b"));
    list("nobody-knows-it", "default");
    for (int kind = 0; kind < KIND_COUNT; kind++)
        cr_expect_eq(cluster.counts[kind], 0, "%s", kind_resource((enum kind)kind));
}

Test(cluster_lists, keeps_all_when_nobody_knows_which_object_a_list_names)
{
    apply_all("a");
    apply_all("b");
    list("", "");
    for (int kind = 0; kind < KIND_COUNT; kind++)
        cr_expect_eq(cluster.counts[kind], 2, "%s", kind_resource((enum kind)kind));
    list(NULL, NULL); /* the next list may be read */
    for (int kind = 0; kind < KIND_COUNT; kind++)
        cr_expect_eq(cluster.counts[kind], 0, "%s", kind_resource((enum kind)kind));
}
