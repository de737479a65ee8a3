/* Reservations of pods that are being bound, or were bound. */
#include "unit/cache/reservation_bench.h"

TestSuite(reservation_binds, .init = setup, .fini = teardown);

Test(reservation_binds, a_bind_counts_on_the_claims_that_it_shares_and_no_longer)
{
    struct pod_object plain = pod_of("plain", UID(1), 0, 1);
    const struct claim *claim = cluster_find_claim(&cluster, SLICE("default"), SLICE("shared"));

    plain.claims = shared;
    reserve(&plain, true, 100);
    cr_expect_eq(claim->sharers, 1);
    reservation_end(&cluster, reservation_expired(&cluster, 100));
    cr_expect_eq(claim->sharers, 0);
}

Test(reservation_binds, one_that_is_being_bound_does_not_keep_others_from_expiring)
{
    struct pod_object first = pod_of("first", UID(1), 0, 1),
                      second = pod_of("second", UID(2), 0, 1);

    second.claims = &both[1];
    reserve(&first, true, 200);
    reserve(&second, false, 110);
    cr_expect(reservation_expired(&cluster, 109) == NULL);
    const struct reservation *expired = reservation_expired(&cluster, 110);
    cr_assert(expired != NULL);
    cr_expect(slice_equal(name_slice(expired->name), SLICE("second")));
}

Test(reservation_binds, a_binding_in_doubt_keeps_its_claims_whatever_comes_of_the_next_bind)
{
    struct pod_object pod = pod_of("first", UID(1), 0, 1), higher = pod_of("higher", UID(2), 10, 1);

    reserve(&pod, true, 100);
    struct uid uid = cluster.reservations->uid;
    reservation_doubt(&cluster, &uid, 200);
    reservation_doubt(&cluster, &uid, 200); /* of another bind of the pod */
    cr_expect_eq(cluster.doubtful, 1);
    reserve(&pod, false, 110); /* filter, once more */
    cr_expect_eq(evaluate(&higher).code, CODE_UNSCHEDULABLE, "it is not taken over");
    cr_expect(reservation_expired(&cluster, 199) == NULL, "nor does it end sooner");
    reserve(&pod, true, 300);
    cr_expect(!reservation_undo(&cluster, &uid), "the first Binding may still be applied");
    cr_expect_null(reservation_next_doubtful(&cluster, NULL, 299));
    cr_expect(reservation_next_doubtful(&cluster, NULL, 300) != NULL &&
              reservation_expired(&cluster, 300) == NULL);
    reservation_settle(&cluster, &uid, 299);
    cr_expect_null(reservation_expired(&cluster, 300), "its pod was read too early");
    reservation_settle(&cluster, &uid, 300);
    cr_expect(reservation_expired(&cluster, 299) == NULL &&
              reservation_expired(&cluster, 300) != NULL);
    cr_expect_eq(cluster.doubtful, 0);
    reservation_release(&cluster, &uid);
    reserve(&pod, true, 400);
    cr_expect(reservation_undo(&cluster, &uid));
    cr_expect_eq(count(), 0);
}

Test(reservation_binds, a_bound_pod_holds_its_claims_though_the_watch_is_behind)
{
    struct pod_object pod = pod_of("first", UID(1), 0, 1), other = pod_of("other", UID(2), 0, 1);
    struct error err = {0};

    apply_pod(&pod, "", "5");
    reserve(&pod, true, 100);
    cr_assert_eq(cluster_assign(&cluster,
                                cluster_find_pod(&cluster, SLICE("default"), SLICE("first")),
                                SLICE("node-1"), &err),
                 0);
    cr_expect_eq(count(), 0);
    apply_pod(&pod, "", "6"); /* a change of its status, from before the binding */
    cr_expect_eq(evaluate(&other).code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    cr_expect(slice_equal(evaluate(&other).reasons[0],
                          SLICE("claim default/data is in use by pod default/first on node-1")));
    apply_pod(&pod, "node-1", "7");
    delete_pod(&pod);
    cr_expect_eq(evaluate(&other).code, CODE_SUCCESS);
}

/* A call that was on its way while the pod was bound: the simulation found it. */
Test(reservation_binds, a_pod_that_is_bound_reserves_nothing)
{
    struct pod_object first = pod_of("first", UID(1), 10, 2);
    struct object object = {.kind = KIND_POD, .pod = first};
    struct error err = {0};

    object.pod.node = SLICE("node-1");
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
    reserve(&first, false, 100);
    cr_expect_eq(count(), 0);
}

/* A scheduler that was restarted asks about a pod whose bind is still under way. */
Test(reservation_binds, a_bind_stays_one_when_its_pod_is_evaluated_or_bound_again)
{
    struct pod_object first = pod_of("first", UID(1), 10, 2),
                      higher = pod_of("higher", UID(2), 20, 1);

    reserve(&first, true, 100);
    struct uid uid = cluster.reservations->uid;
    reserve(&first, false, 50);
    cr_expect_eq(evaluate(&higher).code, CODE_UNSCHEDULABLE, "nobody takes it over");
    cr_expect_null(reservation_expired(&cluster, 99), "it does not expire before the bind would");
    reserve(&first, true, 100);
    cr_expect_not(reservation_give_back(&cluster, &uid), "a preemption that fails ends no bind");
    cr_expect_not(reservation_undo(&cluster, &uid), "another bind of it is under way");
    cr_expect_eq(evaluate(&higher).code, CODE_UNSCHEDULABLE);
    cr_expect(reservation_undo(&cluster, &uid));
    cr_expect_eq(evaluate(&higher).code, CODE_SUCCESS);
}

/* Who reaches the scheduler's port and knows the pod's UID may say anything about it. */
Test(reservation_binds, what_a_bind_has_taken_no_other_call_changes)
{
    struct pod_object pod = pod_of("first", UID(1), 10, 2), other = pod_of("other", UID(2), 20, 1),
                      forged[4];

    reserve(&pod, true, 100);
    for (size_t i = 0; i < 4; i++)
        forged[i] = pod;
    forged[0].claims = shared;
    forged[0].claim_count = 1;
    forged[1].claim_count = 0;
    forged[2].meta.ns = SLICE("elsewhere");
    forged[2].meta.name = SLICE("else");
    forged[3].priority = -5;
    for (size_t i = 0; i < 4; i++) {
        reserve(&forged[i], false, 200);
        cr_expect_eq(evaluate(&other).code, CODE_UNSCHEDULABLE, "call %zu frees nothing", i);
        cr_expect_eq(cluster.reservations->claim_count, 2);
        cr_expect(slice_equal(name_slice(cluster.reservations->name), SLICE("first")));
        cr_expect_eq(cluster.reservations->priority, 10);
    }
    struct uid uid = cluster.reservations->uid;
    reservation_doubt(&cluster, &uid, 300);
    reserve(&forged[0], false, 200);
    cr_expect_eq(evaluate(&other).code, CODE_UNSCHEDULABLE, "nor when it is in doubt");
}

/* Of a pod that is created with its node: the API server does not have it yet. */
Test(reservation_binds, the_absence_of_a_pod_that_is_being_created_ends_no_reservation)
{
    struct pod_object pod = pod_of("first", UID(1), 10, 1);
    const struct object_reference reference = {KIND_POD, SLICE("default"), SLICE("first"),
                                               SLICE(UID(1))};

    reserve(&pod, true, 100);
    cr_expect_eq(cluster.creations, 1);
    cluster_learn_gone(&cluster, &reference, 1);
    reservation_admit(&cluster, &cluster.reservations->uid, 200);
    cluster_learn_gone(&cluster, &reference, 2);
    reserve(&pod, true, 150);
    cluster_learn_gone(&cluster, &reference, 3);
    cr_expect_eq(count(), 1, "it may be created any moment");
    cr_expect_eq(cluster.creations, 1, "it is the same one");
    apply_pod(&pod, "node-1", "5");
    cr_expect_eq(count(), 0, "the pod itself holds its claims");
    cr_expect_eq(cluster.creations, 0);
}

Test(reservation_binds, pods_that_are_being_created_are_bounded)
{
    struct error err = {0};
    char uid[40];
    int rc = 0;

    for (unsigned i = 0; i <= CREATIONS_MAX; i++) {
        cr_expect_eq(rc, 0, "%u: %s", i, err.message);
        (void)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012u", i);
        struct pod_object pod = pod_of("first", uid, 0, 1);
        pod.claims = shared;
        rc = reservation_take(&cluster, &pod, NULL, true, 100, &err);
    }
    cr_expect_eq(rc, ERROR_UNAVAILABLE);
    cr_expect_eq(count(), CREATIONS_MAX);
}

/* One that could not be read must not keep the others from being asked about. */
Test(reservation_binds, one_in_doubt_that_is_postponed_is_due_later)
{
    struct pod_object first = pod_of("first", UID(1), 10, 1);
    struct uid uid;

    reserve(&first, true, 100);
    uid = cluster.reservations->uid;
    reservation_admit(&cluster, &uid, 200);
    cr_expect_not_null(reservation_next_doubtful(&cluster, NULL, 200));
    reservation_postpone(&cluster, &uid, 300);
    cr_expect_null(reservation_next_doubtful(&cluster, NULL, 299));
    reservation_settle(&cluster, &uid, 299);
    cr_expect_not_null(reservation_next_doubtful(&cluster, NULL, 300), "it stays in doubt");
    reservation_settle(&cluster, &uid, 300);
    cr_expect_null(reservation_next_doubtful(&cluster, NULL, 300));
    reservation_postpone(&cluster, &uid, 400);
    cr_expect_not_null(reservation_expired(&cluster, 300), "one that is in no doubt is not moved");
}
