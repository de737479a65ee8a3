/* Which locks of other pods are remembered. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/serving/live/seen_locks.h"

enum { PATIENCE_MS = 3600 * 1000 };

static struct state state;
static struct seen_locks seen;

static void setup(void)
{
    cr_assert_eq(pthread_rwlock_init(&state.lock, NULL), 0);
    state.seen_locks = &seen;
}

static void teardown(void)
{
    seen_locks_dispose(&seen);
    (void)pthread_rwlock_destroy(&state.lock);
}

TestSuite(seen_locks, .init = setup, .fini = teardown);

static bool see(const char *ns, unsigned i, bool is_there)
{
    char key[64];

    (void)snprintf(key, sizeof key, "%s/claim-%u/uid/7", ns, i);
    struct pod_answer answer = {is_there, monotonic_ns()};
    return seen_locks_is_old(&state, slice_of(key), PATIENCE_MS, &answer);
}

static void see_many(const char *ns, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        cr_assert(!see(ns, i, true), "%s %u is new", ns, i);
}

/* That the pod of a lock has gone counts only if it was seen before. */
static bool is_remembered(const char *ns, unsigned i)
{
    return see(ns, i, false);
}

Test(seen_locks, one_namespace_does_not_make_others_forgotten)
{
    see_many("quiet", 1);
    see_many("noisy", 2 * LOCKS_SEEN_MAX);
    cr_expect(is_remembered("quiet", 0));
    cr_expect(is_remembered("noisy", 2 * LOCKS_SEEN_MAX - 1));
    cr_expect(is_remembered("noisy", 2 * LOCKS_SEEN_MAX - NAMESPACE_LOCKS_MAX));
    cr_expect(!is_remembered("noisy", 2 * LOCKS_SEEN_MAX - NAMESPACE_LOCKS_MAX - 1));
}

/* `a` is no part of `ab`. */
Test(seen_locks, of_too_many_in_all_the_oldest_is_forgotten)
{
    see_many("a", NAMESPACE_LOCKS_MAX);
    see_many("ab", NAMESPACE_LOCKS_MAX);
    see_many("b", 1);
    cr_expect(is_remembered("b", 0) && is_remembered("ab", 0) && is_remembered("a", 1));
    cr_expect(!is_remembered("a", 0));
}

/* ---- what the watches see ---- */

#define UID_1 "00000000-0000-4000-8000-000000000001"
#define UID_2 "00000000-0000-4000-8000-000000000002"

static const struct meta pod_1 = {.ns = {"ns", 2}, .name = {"p", 1}, .uid = {UID_1, 36}};

static void see_claim(const char *holder, const char *admitted)
{
    struct claim_object claim = {.meta = {.ns = SLICE("ns"), .name = SLICE("c")},
                                 .holder = slice_of(holder),
                                 .admitted = slice_of(admitted)};

    seen_locks_see_claim(&state, &claim);
}

static bool is_over(const char *key)
{
    return seen_locks_is_old(&state, slice_of(key), PATIENCE_MS,
                             &(struct pod_answer){.asked_ns = monotonic_ns()});
}

Test(seen_locks, a_pod_that_was_seen_after_its_lock_is_over_when_it_is_gone)
{
    see_claim(UID_1 "/p", "created");
    see_claim(UID_2 "/p", "created");
    seen_locks_see_pod(&state, &pod_1, true);
    cr_expect_not(is_over("ns/" UID_1 "/p"), "that it does not exist proves nothing");
    seen_locks_see_pod(&state, &pod_1, false);
    cr_expect(is_over("ns/" UID_1 "/p"));
    cr_expect_not(is_over("ns/" UID_2 "/p"), "the other one is still to come");
}

/* The API server had no such pod; then it was stored, and the watch has reported it. */
Test(seen_locks, a_pod_that_was_seen_after_the_api_server_was_asked_is_not_gone)
{
    struct pod_answer answer = {.asked_ns = monotonic_ns()};

    see_claim(UID_1 "/p", "created");
    seen_locks_see_pod(&state, &pod_1, false);
    cr_expect_not(seen_locks_is_old(&state, SLICE("ns/" UID_1 "/p"), PATIENCE_MS, &answer));
    answer.asked_ns = monotonic_ns();
    cr_expect(seen_locks_is_old(&state, SLICE("ns/" UID_1 "/p"), PATIENCE_MS, &answer));
}

Test(seen_locks, a_pod_that_was_seen_before_its_lock_is_over_when_it_is_gone)
{
    struct object object = {.kind = KIND_POD, .pod = {.meta = pod_1, .node = SLICE("node-1")}};
    struct error err = {0};

    cluster_init(&state.cluster);
    cr_assert_eq(cluster_apply(&state.cluster, &object, &err), 0);
    see_claim(UID_1 "/p", "created");
    see_claim(UID_2 "/p", "created");
    cr_expect(is_over("ns/" UID_1 "/p"));
    cr_expect_not(is_over("ns/" UID_2 "/p"));
    cluster_dispose(&state.cluster);
}

Test(seen_locks, only_locks_of_creations_are_noted)
{
    static const char *const holders[] = {"", "/", UID_1, UID_1 "/", "/p", UID_1 "/P", "a b/p"};

    cluster_init(&state.cluster);
    see_claim(UID_1 "/p", "true");
    see_claim(UID_1 "/p", "");
    for (size_t i = 0; i < sizeof holders / sizeof *holders; i++)
        see_claim(holders[i], "created");
    cr_expect_null(seen.first);
    cluster_dispose(&state.cluster);
}

/* ---- Bindings of a pod that may be applied ---- */

static const struct object_reference passing = {KIND_POD, {"ns", 2}, {"p", 1}, {UID_1, 36}};

Test(seen_locks, a_pod_that_is_bound_or_gone_is_forgotten)
{
    seen_locks_pass(&state, &passing);
    seen_locks_pass(&state, &passing);
    cr_expect_eq(seen_locks_gives_way_ms(&state, &passing), 0, "it is too early");
    cr_expect_not_null(seen.passed);
    seen_locks_see_pod(&state, &pod_1, false);
    cr_expect_null(seen.passed);
    seen_locks_pass(&state, &passing);
    seen_locks_see_pod(&state, &pod_1, true);
    cr_expect_null(seen.passed);
}

/* One that is tried again is the newest. */
Test(seen_locks, of_too_many_pods_the_one_that_was_not_tried_for_longest_is_forgotten)
{
    struct object_reference other = passing;
    struct meta gone = pod_1;
    char name[32];

    seen_locks_pass(&state, &passing);
    for (unsigned i = 0; i < 3 * LOCKS_SEEN_MAX; i++) {
        (void)snprintf(name, sizeof name, "p-%u", i);
        other.name = slice_of(name);
        seen_locks_pass(&state, &other);
        seen_locks_pass(&state, &passing);
    }
    for (unsigned i = 0; i < 3 * LOCKS_SEEN_MAX; i++) {
        (void)snprintf(name, sizeof name, "p-%u", i);
        gone.name = slice_of(name);
        seen_locks_see_pod(&state, &gone, true);
    }
    cr_expect_not_null(seen.passed, "it was remembered");
    seen_locks_see_pod(&state, &pod_1, true);
    cr_expect_null(seen.passed, "and it alone");
}

/* A tenant has several namespaces, and may write any holder on its claims. */
static void write_holders(const char *ns, unsigned count)
{
    char holder[64];

    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(holder, sizeof holder, "00000000-0000-4000-8000-%012u/p-%u", i, i);
        struct claim_object claim = {.meta = {.ns = slice_of(ns), .name = SLICE("c")},
                                     .holder = slice_of(holder),
                                     .admitted = SLICE(CLAIM_ADMITTED_CREATION)};
        seen_locks_see_claim(&state, &claim); /* one claim, patched so often */
    }
}

Test(seen_locks, three_namespaces_do_not_make_others_forgotten)
{
    see_many("quiet", 1);
    write_holders("noisy-1", NAMESPACE_LOCKS_MAX - 1);
    write_holders("noisy-2", NAMESPACE_LOCKS_MAX - 1);
    write_holders("noisy-3", 2);
    cr_expect(is_remembered("quiet", 0), "its lock gets old, and can be taken over");
}

/* ---- claims that are gone ---- */

static void see_gone(const char *ns, const char *name, const char *holder, const char *locked_at)
{
    struct claim_object claim = {.meta = {.ns = slice_of(ns), .name = slice_of(name)},
                                 .holder = slice_of(holder),
                                 .admitted = SLICE("true"),
                                 .locked_at = slice_of(locked_at)};

    seen_locks_see_claim_gone(&state, &claim);
}

/* "HOLDER ADMITTED LOCKED_AT" of the claim that had that name; "": none. */
static const char *former_lock(const char *ns, const char *name)
{
    static char text[256];
    struct arena arena;

    arena_init(&arena, 4096);
    struct former_lock former = seen_locks_former(&state, slice_of(ns), slice_of(name), &arena);
    (void)snprintf(text, sizeof text, former.holder.len == 0 ? "" : "%.*s %.*s %.*s",
                   SLICE_ARG(former.holder), SLICE_ARG(former.admitted),
                   SLICE_ARG(former.locked_at));
    arena_dispose(&arena);
    return text;
}

Test(seen_locks, the_last_lock_of_a_claim_that_is_gone_is_remembered)
{
    char long_text[100] = "";

    memset(long_text, '1', sizeof long_text - 1);
    cluster_init(&state.cluster);
    see_gone("ns", "c", UID_1 "/p", "7");
    cr_expect_str_eq(former_lock("ns", "c"), UID_1 "/p true 7");
    see_gone("ns", "c", "", ""); /* the next one was not locked: p may still be bound */
    see_gone("ns", "c", "a b/p", "8");
    see_gone("ns", "c", UID_2 "/p", long_text);
    cr_expect_str_eq(former_lock("ns", "c"), UID_1 "/p true 7", "no claimguard wrote these");
    see_gone("ns", "c", UID_2 "/q", "9");
    cr_expect_str_eq(former_lock("ns", "c"), UID_2 "/q true 9");
    cr_expect_str_eq(former_lock("ns", "d"), "");
    cr_expect_str_eq(former_lock("other", "c"), "");
    cluster_dispose(&state.cluster);
}

/* It holds the next claim of that name, as the policies know. */
Test(seen_locks, the_last_lock_of_a_pod_that_is_bound_is_not_needed)
{
    struct object object = {.kind = KIND_POD, .pod = {.meta = pod_1, .node = SLICE("node-1")}};
    struct error err = {0};

    cluster_init(&state.cluster);
    cr_assert_eq(cluster_apply(&state.cluster, &object, &err), 0);
    see_gone("ns", "c", UID_1 "/p", "7");
    cr_expect_str_eq(former_lock("ns", "c"), "");
    cluster_dispose(&state.cluster);
}

Test(seen_locks, claims_of_one_namespace_that_are_gone_do_not_make_others_forgotten)
{
    char name[32];

    cluster_init(&state.cluster);
    see_gone("quiet", "c", UID_1 "/p", "7");
    for (unsigned i = 0; i < 2 * LOCKS_SEEN_MAX; i++) {
        (void)snprintf(name, sizeof name, "c-%u", i);
        see_gone("noisy", name, UID_1 "/p", "7");
    }
    cr_expect_str_eq(former_lock("quiet", "c"), UID_1 "/p true 7");
    cr_expect_str_eq(former_lock("noisy", name), UID_1 "/p true 7");
    cr_expect_str_eq(former_lock("noisy", "c-0"), "", "it has its share");
    cluster_dispose(&state.cluster);
}
