/* Which locks of other pods are remembered. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "extender/bind/seen_locks.h"

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
    return seen_locks_is_old(&state, slice_of(key), PATIENCE_MS, is_there);
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
