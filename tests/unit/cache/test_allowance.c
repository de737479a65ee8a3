/* What namespaces may take; what is stored of one that takes more, and when it is stored again. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/cluster/allowance.h"
#include "cache/cluster/reservation.h"
#include "config/base/clock.h"
#include "support/load.h"

enum { LARGE_BYTES = 2000, FREE_BYTES = 512, IN_ONE = 5, IN_ALL = 8 }; /* so many large objects */

static struct cluster cluster;
static uint64_t version = 1;

static void setup(void)
{
    cluster_init(&cluster);
    cluster.allowance_limits = (struct allowance_limits){
        .free_bytes = FREE_BYTES,
        .namespace_bytes = (size_t)IN_ONE * LARGE_BYTES,
        .total_bytes = (size_t)IN_ALL * LARGE_BYTES,
    };
}

static void teardown(void)
{
    cluster_dispose(&cluster);
}

TestSuite(allowance, .init = setup, .fini = teardown);

static void put(const char *ns, const char *name, size_t label_bytes)
{
    char *label = calloc(1, label_bytes + 1), text[8192];

    memset(label, 'x', label_bytes);
    (void)snprintf(text, sizeof text,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"%s\","
                   "\"name\":\"%s\",\"uid\":\"%s-%s\",\"resourceVersion\":\"%llu\",\"labels\":{"
                   "\"%s\":\"%s\"}},\"spec\":{\"nodeName\":\"node-1\",\"volumes\":[{\"name\":\"v\","
                   "\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}]}}",
                   ns, name, ns, name, (unsigned long long)version++, name, label, name);
    load_text(&cluster, text);
    free(label);
}

/* A pod that is charged with about LARGE_BYTES, with its claim. */
static void put_large(const char *ns, unsigned number)
{
    size_t others = sizeof(struct pod) + sizeof(struct use) + CLAIM_BYTES + 36; /* and names */
    char name[16];

    (void)snprintf(name, sizeof name, "large-%u", number);
    put(ns, name, LARGE_BYTES + FREE_BYTES - others);
}

static void put_usual(const char *ns, const char *name)
{
    put(ns, name, 10);
}

static void put_without_claim(const char *ns, const char *name)
{
    char text[256];

    (void)snprintf(text, sizeof text,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"%s\","
                   "\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%llu\"}}",
                   ns, name, name, (unsigned long long)version++);
    load_text(&cluster, text);
}

static bool has(const char *ns, const char *name)
{
    return cluster_find_pod(&cluster, slice_of(ns), slice_of(name)) != NULL;
}

static bool is_over(const char *ns)
{
    return allowance_is_over(&cluster, slice_of(ns));
}

/* Changes of others; each of them removes some objects of a namespace that is given up. */
static void pass(void)
{
    for (int i = 0; i < 20; i++)
        put_usual("quiet", "changes");
}

static void begin(enum kind kind)
{
    cluster_list_begin(&cluster, kind, false, UINT64_MAX / 2); /* long after */
}

static void end(enum kind kind)
{
    while (cluster_list_end(&cluster, kind, version++, NULL)) {
    }
}

Test(allowance, a_namespace_that_takes_too_much_is_given_up_and_no_other)
{
    put_usual("shop", "web-0");
    for (unsigned i = 0; i <= IN_ONE; i++) {
        cr_expect_not(is_over("greedy"), "%u", i);
        put_large("greedy", i);
    }
    cr_expect(is_over("greedy") && !is_over("shop"));
    pass();
    cr_expect_eq(cluster.counts[KIND_POD], 2, "%zu", cluster.counts[KIND_POD]);
    put_large("greedy", 100);
    put_usual("greedy", "usual");
    cr_expect_not(has("greedy", "large-100") || has("greedy", "usual"), "nothing is stored");
    put_without_claim("greedy", "plain");
    cr_expect(has("greedy", "plain"), "every scheduler has to bind it");
    put_usual("shop", "web-1");
    cr_expect(has("shop", "web-0") && has("shop", "web-1"));
}

Test(allowance, of_all_namespaces_the_largest_is_given_up)
{
    for (unsigned i = 0; i < IN_ONE - 1; i++)
        put_large("greedy", i);
    for (unsigned i = 0; i < IN_ONE - 2; i++)
        put_large("also", i);
    put_large("shop", 0);
    cr_expect_not(is_over("greedy") || is_over("also") || is_over("shop"));
    put_large("shop", 1);
    cr_expect(is_over("greedy") && !is_over("also") && !is_over("shop"));
    pass();
    put_large("also", 10);
    cr_expect_not(is_over("also"), "there is room again");
}

Test(allowance, usual_objects_do_not_count)
{
    char name[16];

    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "web-%u", i);
        put_usual("shop", name);
    }
    cr_expect_eq(cluster.charged_bytes, 0);
}

Test(allowance, what_is_gone_does_not_count_any_more)
{
    for (unsigned i = 0; i < 10 * IN_ONE; i++) {
        put_large("shop", 0);
        struct object gone = {.kind = KIND_POD};
        put_large("shop", 1);
        gone.meta = (struct meta){
            .ns = SLICE("shop"), .name = SLICE("large-1"), .uid = SLICE("shop-large-1")};
        cluster_delete(&cluster, &gone);
    }
    cr_expect_not(is_over("shop"));
    put_usual("shop", "large-0");
    cr_expect_eq(cluster.charged_bytes, 0, "%zu", cluster.charged_bytes);
    cr_expect_eq(cluster.allowances.count, 0);
}

static void give_up(const char *ns)
{
    for (unsigned i = 0; i <= IN_ONE; i++)
        put_large(ns, i);
    cr_assert(is_over(ns));
    pass();
}

Test(allowance, a_namespace_is_back_when_its_lists_are_whole)
{
    give_up("greedy");
    begin(KIND_POD);
    put_usual("greedy", "web-0");
    cr_expect(has("greedy", "web-0"), "it is stored from now on");
    end(KIND_POD);
    cr_expect(is_over("greedy"), "its claims may be missing");
    begin(KIND_CLAIM);
    cr_expect(is_over("greedy"));
    end(KIND_CLAIM);
    cr_expect_not(is_over("greedy"));
    cr_expect(has("greedy", "web-0"));
    cr_expect_eq(cluster.namespaces_given_up, 0);
    cr_expect_eq(cluster.allowances.count, 0);
}

Test(allowance, a_list_that_was_being_read_when_it_began_does_not_count)
{
    begin(KIND_CLAIM); /* some of its claims are left out of this one */
    give_up("greedy");
    begin(KIND_POD);
    end(KIND_POD);
    end(KIND_CLAIM);
    cr_expect(is_over("greedy"));
    begin(KIND_CLAIM);
    end(KIND_CLAIM);
    cr_expect_not(is_over("greedy"));
}

/* It may lack what a Binding that was under way then does. */
Test(allowance, a_list_that_was_requested_too_soon_does_not_count)
{
    give_up("greedy");
    cluster_list_begin(&cluster, KIND_POD, false, monotonic_ns());
    end(KIND_POD);
    cluster_list_begin(&cluster, KIND_CLAIM, false, monotonic_ns());
    end(KIND_CLAIM);
    cr_expect(is_over("greedy"));
}

Test(allowance, its_budgets_have_to_be_read_again_too)
{
    begin(KIND_POD_DISRUPTION_BUDGET); /* somebody watches them */
    end(KIND_POD_DISRUPTION_BUDGET);
    give_up("greedy");
    begin(KIND_POD);
    end(KIND_POD);
    begin(KIND_CLAIM);
    end(KIND_CLAIM);
    cr_expect(is_over("greedy"));
    begin(KIND_POD_DISRUPTION_BUDGET);
    end(KIND_POD_DISRUPTION_BUDGET);
    cr_expect_not(is_over("greedy"));
}

Test(allowance, a_list_with_an_object_that_cannot_be_read_does_not_count)
{
    give_up("greedy");
    begin(KIND_POD);
    cluster_list_keep(&cluster, KIND_POD, SLICE("greedy"), SLICE("unreadable"));
    end(KIND_POD);
    begin(KIND_CLAIM);
    end(KIND_CLAIM);
    cr_expect(is_over("greedy"));
    begin(KIND_POD);
    end(KIND_POD);
    cr_expect_not(is_over("greedy"));
}

/* Of a GET that was answered meanwhile, nothing follows. */
Test(allowance, what_is_not_stored_is_not_gone)
{
    struct object object = {.kind = KIND_POD};
    struct claim_reference use = {.name = SLICE("large-0")};
    struct error err = {0};

    for (unsigned i = 0; i <= IN_ONE; i++)
        put_large("greedy", i);
    object.pod = (struct pod_object){.meta = {.ns = SLICE("greedy"),
                                              .name = SLICE("large-0"),
                                              .uid = SLICE("greedy-large-0"),
                                              .resource_version = SLICE("1000")},
                                     .claims = &use,
                                     .claim_count = 1};
    for (int i = 0; i < 20; i++)
        cr_expect_eq(cluster_learn(&cluster, &object, 0, monotonic_ns(), &err), 0);
    cr_expect_not(cluster_is_known_gone(&cluster, SLICE("greedy-large-0")));
}

/* Nothing of a pod without claims can be deferred. */
Test(allowance, pods_without_claims_cost_nothing)
{
    char text[8192];
    struct buf volumes;

    buf_init(&volumes, 4096);
    for (int i = 0; i < 100; i++)
        buf_printf(&volumes, "%s{\"name\":\"v-%d\",\"emptyDir\":{}}", i == 0 ? "" : ",", i);
    give_up("greedy");
    for (int i = 0; i < 100; i++) {
        (void)snprintf(text, sizeof text,
                       "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":"
                       "\"greedy\",\"name\":\"plain-%d\",\"uid\":\"plain-%d\"},\"spec\":{"
                       "\"runtimeClassName\":\"microvm\",\"volumes\":[%s]}}",
                       i, i, buf_text(&volumes));
        load_text(&cluster, text);
    }
    cr_expect(has("greedy", "plain-99"));
    cr_expect_eq(cluster.charged_bytes, 0, "%zu", cluster.charged_bytes);
    buf_dispose(&volumes);
}

Test(allowance, one_that_still_takes_too_much_is_given_up_again)
{
    give_up("greedy");
    begin(KIND_POD);
    give_up("greedy");
    end(KIND_POD);
    begin(KIND_CLAIM);
    end(KIND_CLAIM);
    cr_expect(is_over("greedy"));
    cr_expect_eq(cluster.namespaces_given_up, 1);
    cr_expect_not(has("greedy", "large-0"));
}

/* A Binding that is under way may be applied after the namespace is back. */
Test(allowance, reservations_stay)
{
    struct claim_reference use = {.name = SLICE("data")};
    struct pod_object pod = {
        .meta = {.ns = SLICE("greedy"), .name = SLICE("web-0"), .uid = SLICE("greedy-web-0")},
        .node = SLICE("node-1"),
        .claims = &use,
        .claim_count = 1};
    struct error err = {0};
    struct uid uid;

    load_text(&cluster, "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{"
                        "\"namespace\":\"greedy\",\"name\":\"data\",\"uid\":\"d\"},\"spec\":{"
                        "\"accessModes\":[\"ReadWriteOncePod\"]}}");
    put_without_claim("greedy", "web-0");
    cr_assert_eq(reservation_take(&cluster, &pod, NULL, true, UINT64_MAX, &err), 0);
    give_up("greedy");
    cr_assert(uid_find(&cluster.names, SLICE("greedy-web-0"), &uid));
    cr_expect_not_null(reservation_find(&cluster, &uid));
    cr_expect(allowance_is_over(&cluster, SLICE("greedy")));
}

Test(allowance, its_names_are_listed)
{
    struct table_walk walk = {.at = 0};

    cr_expect_null(allowance_next(&cluster, &walk).ptr);
    give_up("greedy");
    walk = (struct table_walk){.at = 0};
    cr_expect(slice_equal(allowance_next(&cluster, &walk), SLICE("greedy")));
    cr_expect_null(allowance_next(&cluster, &walk).ptr);
}

Test(allowance, a_limit_that_changes_counts_from_the_next_change_on)
{
    for (unsigned i = 0; i < IN_ONE; i++)
        put_large("greedy", i);
    cluster.allowance_limits.namespace_bytes = 0;
    allowance_limit(&cluster, LARGE_BYTES, SIZE_MAX);
    put_usual("shop", "web-0");
    cr_expect(is_over("greedy") && !is_over("shop"));
    allowance_limit(&cluster, SIZE_MAX, SIZE_MAX);
    pass();
    cr_expect(is_over("greedy"), "until it is read again");
    begin(KIND_POD);
    for (unsigned i = 0; i < 2 * IN_ALL; i++)
        put_large("greedy", i);
    end(KIND_POD);
    begin(KIND_CLAIM);
    end(KIND_CLAIM);
    begin(KIND_POD_DISRUPTION_BUDGET);
    end(KIND_POD_DISRUPTION_BUDGET);
    cr_expect_not(is_over("greedy"));
}

/* Of a snapshot. */
Test(allowance, one_that_another_claimguard_has_given_up_is_stored_as_far_as_it_is_known)
{
    cluster.allowance_limits = (struct allowance_limits){0};
    cr_expect(allowance_restore(&cluster, SLICE("greedy")));
    cr_expect(allowance_restore(&cluster, SLICE("greedy")), "twice is once");
    put_usual("greedy", "web-0");
    pass();
    cr_expect(is_over("greedy") && has("greedy", "web-0"));
    cr_expect_eq(cluster.namespaces_given_up, 1);
}

Test(allowance, without_limits_nothing_is_given_up)
{
    cluster.allowance_limits = (struct allowance_limits){0};
    for (unsigned i = 0; i < 10 * IN_ALL; i++)
        put_large("greedy", i);
    cr_expect_not(is_over("greedy"));
    cr_expect_eq(cluster.charged_bytes, 0);
}

/* ---- many namespaces ---- */

enum { QUIET_PODS = 4000, NAMESPACES = 60 };

/* A tenant has many namespaces. What is removed of them begins again with each one that is given
 * up, at the first page of the pods, and never gets to the others. */
Test(allowance, what_is_given_up_is_removed_though_further_ones_are)
{
    char name[32];

    for (unsigned i = 0; i < QUIET_PODS; i++) {
        (void)snprintf(name, sizeof name, "web-%u", i);
        put_usual("shop", name);
    }
    for (unsigned i = 0; i < NAMESPACES; i++) {
        (void)snprintf(name, sizeof name, "greedy-%u", i);
        for (unsigned j = 0; j < IN_ONE; j++)
            put_large(name, j);
    }
    cr_expect_leq(cluster.charged_bytes, (size_t)IN_ALL * LARGE_BYTES,
                  "%zu bytes are stored, of which %d may be", cluster.charged_bytes,
                  IN_ALL * LARGE_BYTES);
}

/* In a namespace of its own, a tenant has a pod with 513 claims, which is in each list. */
Test(allowance, an_object_of_another_namespace_that_cannot_be_read_keeps_none_given_up)
{
    give_up("shop");
    for (int i = 0; i < 100 && is_over("shop"); i++) {
        begin(KIND_POD);
        cluster_list_keep(&cluster, KIND_POD, SLICE("greedy"), SLICE("unreadable"));
        end(KIND_POD);
        begin(KIND_CLAIM);
        end(KIND_CLAIM);
    }
    cr_expect_not(is_over("shop"), "after a hundred lists of all pods and claims");
}

/* Half an hour after half an hour: each time, a tenant gives one of its namespaces up just before.
 */
Test(allowance, another_one_that_is_given_up_just_before_keeps_none_given_up)
{
    char name[32];

    for (unsigned i = 0; i < QUIET_PODS; i++) {
        (void)snprintf(name, sizeof name, "web-%u", i);
        put_usual("quiet", name);
    }
    give_up("shop");
    for (int i = 0; i < 100; i++)
        pass(); /* all of it is removed */
    for (unsigned i = 0; i < 10 && is_over("shop"); i++) {
        (void)snprintf(name, sizeof name, "greedy-%u", i);
        for (unsigned j = 0; j <= IN_ONE; j++)
            put_large(name, j);
        begin(KIND_POD);
        begin(KIND_CLAIM);
        for (int j = 0; j < 100; j++)
            pass(); /* what the lists name */
        end(KIND_POD);
        end(KIND_CLAIM);
    }
    cr_expect_not(is_over("shop"), "after ten lists of all pods and claims");
}

enum { CHANGES = 3000 };

size_t __sanitizer_get_current_allocated_bytes(void); /* gcc has no header of it */

/* With ASan; else 0. */
static size_t allocated(void)
{
#ifdef __SANITIZE_ADDRESS__
    return __sanitizer_get_current_allocated_bytes();
#else
    return 0;
#endif
}

Test(allowance, changes_of_one_object_take_no_memory)
{
    put_large("greedy", 0);
    size_t before = allocated();
    for (int i = 0; i < CHANGES; i++)
        put_large("greedy", 0);
    cr_expect_leq(allocated(), before + CHANGES, "%zu bytes more", allocated() - before);
}
