/* What claimguards agree on: each transition. */
#include <stdlib.h>

#include "unit/extender/agreement_bench.h"

TestSuite(agreement, .init = agreement_setup, .fini = agreement_teardown);

/* ---- one kind of lock ---- */

Test(agreement, the_first_local_is_in_force_at_once)
{
    struct replica *one = replica(CLAIM_LOCK_LOCAL, "fast");

    (void)tick(one);
    IS("claimLock.Local", "in force");
    cr_expect(may_bind(one));
    cr_expect_eq(json_object_size(data), 1, "Local locks nothing, and announces no class");
    free(one);
}

Test(agreement, the_first_annotation_is_in_force_when_it_was_announced_for_its_time)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, NULL);

    (void)tick(one);
    IS("claimLock.Annotation", "announced");
    ticks(one, AGREED_SECONDS - 1);
    IS("claimLock.Annotation", "announced");
    cr_expect(!may_bind(one));
    ticks(one, 1);
    IS("claimLock.Annotation", "in force");
    cr_expect(may_bind(one));
    free(one);
}

Test(agreement, what_is_in_force_needs_no_wait_at_a_start)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");
    struct replica *two = replica(CLAIM_LOCK_ANNOTATION, "fast");

    (void)tick(one);
    ticks(one, AGREED_SECONDS);
    cr_expect(!may_bind(two), "not before it was read");
    cr_expect(!tick(two), "there is nothing to write");
    cr_expect(may_bind(two));
    cr_expect(!see_class(two, "fast").is_announced);
    free(one);
    free(two);
}

Test(agreement, another_replica_puts_in_force_what_one_that_is_gone_has_announced)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");
    struct replica *two = replica(CLAIM_LOCK_ANNOTATION, "fast");

    (void)tick(one);
    now_ns += 80 * SECOND;
    (void)tick(two);
    ticks(two, AGREED_SECONDS - 1);
    IS("exclusive.fast", "announced");
    ticks(two, 1);
    IS("exclusive.fast", "in force");
    IS("claimLock.Annotation", "in force");
    free(one);
    free(two);
}

Test(agreement, an_announcement_that_was_removed_and_written_again_begins_again)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");

    (void)tick(one);
    ticks(one, AGREED_SECONDS - 1);
    (void)json_object_set_new(data, "exclusive.fast", json_string("announced at 7"));
    version++;
    ticks(one, AGREED_SECONDS);
    IS("exclusive.fast", "announced");
    ticks(one, 1);
    IS("exclusive.fast", "in force");
    free(one);
}

/* ---- classes ---- */

Test(agreement, a_class_of_another_replica_is_locked_from_the_first_read_on)
{
    struct replica *with = replica(CLAIM_LOCK_ANNOTATION, "fast");
    struct replica *without = replica(CLAIM_LOCK_ANNOTATION, NULL);

    (void)tick(without);
    cr_expect(!see_class(without, "fast").is_locked);
    (void)tick(with);
    cr_expect(see_class(with, "fast").is_locked && see_class(with, "fast").is_announced);
    (void)tick(without);
    cr_expect(see_class(without, "fast").is_locked);
    cr_expect(!see_class(without, "slow").is_locked);
    ticks(without, AGREED_SECONDS);
    IS("exclusive.fast", "announced"); /* it is not this one's */
    ticks(with, AGREED_SECONDS);
    IS("exclusive.fast", "in force");
    cr_expect(see_class(with, "fast").is_locked && !see_class(with, "fast").is_announced);
    free(with);
    free(without);
}

Test(agreement, an_entry_that_says_allow_changes_nothing_for_a_class_of_another_replica)
{
    struct replica *with = replica(CLAIM_LOCK_ANNOTATION, "fast");
    struct replica *allow = replica(CLAIM_LOCK_ANNOTATION, "fast");

    allow->entries[0].non_exclusive_claims = allow->entries[1].non_exclusive_claims =
        NON_EXCLUSIVE_ALLOW;
    (void)tick(allow);
    cr_expect_eq(json_object_size(data), 1, "it announces none");
    (void)tick(with);
    (void)tick(allow);
    cr_expect(see_class(allow, "fast").is_locked && see_class(allow, "fast").is_announced);
    free(with);
    free(allow);
}

Test(agreement, a_class_stays_when_its_entry_is_gone)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");

    (void)tick(one);
    ticks(one, AGREED_SECONDS);
    one->config.defer_fs_mount.entry_count = 0;
    ticks(one, 2 * DISPLACED_SECONDS);
    IS("exclusive.fast", "in force");
    cr_expect(see_class(one, "fast").is_locked);
    (void)json_object_del(data, "exclusive.fast"); /* the operator */
    version++;
    cr_expect(!tick(one));
    cr_expect(!see_class(one, "fast").is_locked);
    free(one);
}

Test(agreement, an_announced_class_that_no_configuration_has_any_more_is_removed)
{
    for (int kind = CLAIM_LOCK_LOCAL; kind <= CLAIM_LOCK_ANNOTATION; kind++) {
        struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");
        struct replica *other = replica(kind, NULL);
        (void)tick(one);
        ticks(one, AGREED_SECONDS - 1);
        free(one);
        (void)tick(other);
        ticks(other, DISPLACED_SECONDS - 1);
        IS("exclusive.fast", "announced");
        ticks(other, 1);
        IS("exclusive.fast", "");
        cr_expect(!see_class(other, "fast").is_exclusive);
        free(other);
    }
}

Test(agreement, an_announced_class_that_is_wanted_is_not_removed)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");

    (void)tick(one);
    now_ns += 2 * DISPLACED_SECONDS * SECOND; /* it was away */
    (void)tick(one);
    IS("exclusive.fast", "in force");
    free(one);
}

Test(agreement, with_apply_disabled_no_class_is_announced)
{
    struct replica *one = replica(CLAIM_LOCK_ANNOTATION, "fast");

    one->config.defer_fs_mount.apply = DEFER_DISABLED;
    (void)tick(one);
    cr_expect_eq(json_object_size(data), 1);
    free(one);
}

/* ---- two kinds of lock ---- */

Test(agreement, an_announcement_of_the_other_kind_stops_the_one_in_force)
{
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);

    (void)tick(local);
    (void)tick(annotation);
    cr_expect(may_bind(local), "it has not read it yet");
    cr_expect(!may_bind(annotation));
    (void)tick(local);
    cr_expect(!may_bind(local));
    ticks(annotation, AGREED_SECONDS);
    cr_expect(may_bind(annotation));
    IS("claimLock.Local", "");
    (void)tick(local);
    cr_expect(!may_bind(local));
    IS("claimLock.Local", ""); /* one that was there before does not come back at once */
    free(local);
    free(annotation);
}

Test(agreement, a_claimguard_that_starts_with_the_other_kind_announces_it)
{
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)tick(annotation);
    ticks(annotation, AGREED_SECONDS);
    (void)tick(local);
    IS("claimLock.Local", "announced");
    cr_expect(!may_bind(local));
    ticks(local, AGREED_SECONDS);
    IS("claimLock.Annotation", "");
    cr_expect(may_bind(local));
    free(local);
    free(annotation);
}

Test(agreement, a_new_configuration_announces_as_a_start_does)
{
    struct replica *one = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)tick(one);
    one->config.read_write_once_pod.claim_lock = CLAIM_LOCK_ANNOTATION;
    (void)tick(one);
    IS("claimLock.Annotation", "announced");
    IS("claimLock.Local", "in force");
    cr_expect(!may_bind(one));
    ticks(one, AGREED_SECONDS);
    cr_expect(may_bind(one));
    free(one);
}

Test(agreement, while_both_kinds_run_each_is_in_force_in_turn)
{
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);
    unsigned turns[2] = {0, 0};

    for (unsigned i = 0; i < 20 * DISPLACED_SECONDS; i++) {
        now_ns += SECOND;
        (void)tick(local);
        (void)tick(annotation);
        cr_assert(!(may_bind(local) && may_bind(annotation)));
        turns[0] += may_bind(local);
        turns[1] += may_bind(annotation);
    }
    cr_expect_gt(turns[0], 3 * DISPLACED_SECONDS);
    cr_expect_gt(turns[1], 3 * DISPLACED_SECONDS);
    free(local);
    free(annotation);
}

Test(agreement, an_announcement_that_nobody_puts_in_force_is_removed)
{
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);

    (void)tick(local);
    (void)tick(annotation);
    (void)tick(local);
    ticks(local, DISPLACED_SECONDS - 1);
    IS("claimLock.Annotation", "announced");
    ticks(local, 1);
    IS("claimLock.Annotation", "");
    cr_expect(may_bind(local));
    free(local);
    free(annotation);
}

Test(agreement, an_announcement_that_was_left_alone_gives_way_to_the_other_kind)
{
    struct replica *annotation = replica(CLAIM_LOCK_ANNOTATION, NULL);
    struct replica *local = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)tick(annotation);
    (void)tick(local);
    IS("claimLock.Local", "");
    ticks(local, DISPLACED_SECONDS);
    IS("claimLock.Annotation", "");
    IS("claimLock.Local", "announced");
    ticks(local, AGREED_SECONDS);
    cr_expect(may_bind(local));
    free(local);
    free(annotation);
}

Test(agreement, of_two_kinds_in_force_which_somebody_has_written_none_binds)
{
    struct replica *one = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)json_object_set_new(data, "claimLock.Local", json_string("in force"));
    (void)json_object_set_new(data, "claimLock.Annotation", json_string("in force"));
    (void)tick(one);
    IS("claimLock.Local", "announced");
    cr_expect(!may_bind(one));
    ticks(one, AGREED_SECONDS);
    IS("claimLock.Annotation", "");
    cr_expect(may_bind(one));
    free(one);
}

Test(agreement, one_that_goes_back_withdraws_its_announcement_at_once)
{
    struct replica *one = replica(CLAIM_LOCK_LOCAL, NULL);

    (void)tick(one);
    one->config.read_write_once_pod.claim_lock = CLAIM_LOCK_ANNOTATION;
    (void)tick(one);
    ticks(one, 3);
    one->config.read_write_once_pod.claim_lock = CLAIM_LOCK_LOCAL;
    (void)tick(one);
    IS("claimLock.Annotation", "");
    cr_expect(may_bind(one));
    free(one);
}
