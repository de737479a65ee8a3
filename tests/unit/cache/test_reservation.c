/* Reservations: who gets a claim, and when a reservation ends. */
#include "unit/cache/reservation_bench.h"

TestSuite(reservation, .init = setup, .fini = teardown);

Test(reservation, a_reservation_is_a_holder_for_pods_of_no_higher_priority)
{
    struct pod_object first = pod_of("first", UID(1), 10, 1),
                      equal = pod_of("equal", UID(2), 10, 1), lower = pod_of("lower", UID(3), 5, 2),
                      higher = pod_of("higher", UID(4), 11, 1);

    reserve(&first, false, 100);
    struct verdict verdict = evaluate(&equal);
    cr_expect_eq(verdict.code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    cr_expect(slice_equal(verdict.reasons[0],
                          SLICE("claim default/data is reserved for pod default/first")));
    cr_expect(slice_equal(verdict.reserved_for, SLICE(UID(1))));
    cr_expect(slice_equal(verdict.causes[0].uid, SLICE(UID(1))), "it can be asked about");
    cr_expect_eq(evaluate(&lower).code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    cr_expect_eq(evaluate(&higher).code, CODE_SUCCESS, "it may take the claim over");
    cr_expect_eq(evaluate(&first).code, CODE_SUCCESS, "a pod is never in its own way");
}

Test(reservation, a_pod_of_higher_priority_takes_over_a_reservation_and_not_a_bind)
{
    struct pod_object first = pod_of("first", UID(1), 10, 2),
                      higher = pod_of("higher", UID(2), 20, 1);

    reserve(&first, true, 100);
    struct verdict verdict = evaluate(&higher);
    cr_expect_eq(verdict.code, CODE_UNSCHEDULABLE);
    cr_expect_eq(verdict.victim_count, 0, "nothing can be evicted: it will be bound, or not");
    struct uid uid = cluster.reservations->uid;
    cr_expect(reservation_undo(&cluster, &uid));
    reserve(&first, false, 100);
    cr_expect_eq(evaluate(&higher).code, CODE_SUCCESS);
    reserve(&higher, false, 100);
    cr_expect_eq(evaluate(&first).code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
                 "its bind will be refused");
    struct pod_object third = pod_of("third", UID(3), 10, 2);
    third.claims = &both[1];
    third.claim_count = 1;
    cr_expect_eq(evaluate(&third).code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
                 "the claim that was not taken over is still reserved");
}

Test(reservation, all_exclusive_claims_are_reserved_or_none)
{
    struct pod_object first = pod_of("first", UID(1), 0, 2), other = pod_of("other", UID(2), 0, 1);

    reserve(&first, false, 100);
    cr_expect_eq(cluster.reservations->claim_count, 2);
    other.claims = &both[1];
    cr_expect_eq(evaluate(&other).code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    struct pod_object plain = pod_of("plain", UID(3), 0, 1);
    plain.claims = shared;
    reserve(&plain, false, 100);
    cr_expect_eq(count(), 1, "a pod without exclusive claims reserves nothing");
}

Test(reservation, asked_again_it_ends_later)
{
    struct pod_object first = pod_of("first", UID(1), 0, 1),
                      second = pod_of("second", UID(2), 0, 1);

    second.claims = &both[1];
    reserve(&first, false, 100);
    reserve(&second, false, 110);
    cr_expect(reservation_expired(&cluster, 99) == NULL);
    reserve(&first, false, 120);
    cr_expect_eq(count(), 2);
    cr_expect(reservation_expired(&cluster, 100) == NULL);
    const struct reservation *expired = reservation_expired(&cluster, 115);
    cr_assert(expired != NULL);
    cr_expect(slice_equal(name_slice(expired->name), SLICE("second")));
    struct uid uid = expired->uid;
    reservation_release(&cluster, &uid);
    cr_expect(reservation_expired(&cluster, 115) == NULL);
    cr_expect(reservation_expired(&cluster, 120) != NULL);
}

Test(reservation, one_that_lasts_longer_does_not_keep_others_from_expiring)
{
    struct pod_object pods[] = {pod_of("first", UID(1), 0, 1), pod_of("second", UID(2), 0, 1),
                                pod_of("third", UID(3), 10, 1)};
    struct claim_reference more = {.name = {"more", 4}};

    apply_claim("more", true);
    reserve(&pods[0], false, 200);
    pods[1].claims = &both[1];
    reserve(&pods[1], false, 110);
    cr_expect_null(reservation_expired(&cluster, 109));
    cr_assert_not_null(reservation_expired(&cluster, 110));
    pods[2].claims = &more;
    reserve(&pods[2], false, 120);
    reservation_release(&cluster, &reservation_expired(&cluster, 110)->uid);
    cr_assert_not_null(reservation_expired(&cluster, 120));
    reservation_release(&cluster, &reservation_expired(&cluster, 120)->uid);
    cr_expect_null(reservation_expired(&cluster, 199));
    cr_expect_not_null(reservation_expired(&cluster, 200));
}

Test(reservation, asked_again_it_ends_no_sooner)
{
    struct pod_object pod = pod_of("first", UID(1), 0, 1);

    reserve(&pod, false, 200); /* of a preemptor */
    reserve(&pod, false, 110); /* filter */
    cr_expect_null(reservation_expired(&cluster, 199));
    cr_expect_not_null(reservation_expired(&cluster, 200));
}

Test(reservation, it_ends_when_the_pod_is_bound_finished_or_gone)
{
    struct pod_object pod = pod_of("first", UID(1), 0, 1);

    apply_pod(&pod, "", "5");
    reserve(&pod, false, 100);
    apply_pod(&pod, "", "6");
    cr_expect_eq(count(), 1, "any other change does not matter");
    apply_pod(&pod, "node-1", "7");
    cr_expect_eq(count(), 0);
    delete_pod(&pod);

    apply_pod(&pod, "", "100");
    reserve(&pod, false, 100);
    delete_pod(&pod);
    cr_expect_eq(count(), 0);

    reserve(&pod, false, 100); /* the watch has not sent the pod yet */
    cluster_learn_gone(
        &cluster,
        &(struct object_reference){KIND_POD, SLICE("default"), SLICE("first"), SLICE(UID(1))}, 1);
    cr_expect_eq(count(), 0);

    apply_pod(&pod, "", "200");
    reserve(&pod, false, 100);
    struct pod_object successor = pod_of("first", UID(2), 0, 1);
    apply_pod(&successor, "", "201");
    cr_expect_eq(count(), 0, "another pod has its name: it is gone");

    reserve(&successor, false, 100);
    successor.phase = SLICE("Succeeded");
    apply_pod(&successor, "", "202");
    cr_expect_eq(count(), 0);
}

Test(reservation, a_claim_that_comes_and_goes_takes_nothing_with_it)
{
    struct pod_object pod = pod_of("first", UID(1), 0, 1), other = pod_of("other", UID(2), 0, 1);
    struct object claim = {.kind = KIND_CLAIM};

    reserve(&pod, false, 100);
    claim.meta = (struct meta){
        .ns = SLICE("default"), .name = SLICE("data"), .resource_version = SLICE("99")};
    cluster_delete(&cluster, &claim);
    cr_expect_eq(evaluate(&other).code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, "it does not exist");
    apply_claim("data", true);
    cr_expect_eq(evaluate(&other).code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
                 "it is still reserved");
    reservation_release(&cluster, &cluster.reservations->uid);
    cr_expect_eq(evaluate(&other).code, CODE_SUCCESS);
    cluster_delete(&cluster, &claim);
    cr_expect_eq(cluster.claims.count, 2, "no record is left over");
}

Test(reservation, the_absence_of_another_name_ends_no_reservation)
{
    struct pod_object pod = pod_of("first", UID(1), 10, 1);

    apply_pod(&pod, "", "5");
    reserve(&pod, true, 100);
    cluster_learn_gone(
        &cluster,
        &(struct object_reference){KIND_POD, SLICE("default"), SLICE("other"), SLICE(UID(1))}, 1);
    cluster_learn_gone(
        &cluster,
        &(struct object_reference){KIND_POD, SLICE("elsewhere"), SLICE("first"), SLICE(UID(1))}, 1);
    cr_expect_eq(count(), 1, "the caller has given that UID");
    cluster_learn_gone(
        &cluster,
        &(struct object_reference){KIND_POD, SLICE("default"), SLICE("first"), SLICE(UID(1))}, 1);
    cr_expect_eq(count(), 0);
}

Test(reservation, what_has_lost_all_its_claims_ends_and_is_reported)
{
    struct pod_object low = pod_of("low", UID(1), 1, 2), high = pod_of("high", UID(2), 2, 1);

    reserve(&low, false, 1000);
    reserve(&high, false, 1000);
    cr_expect_null(reservation_expired(&cluster, 0), "it still has a claim");
    high.claim_count = 2;
    reserve(&high, false, 1000);
    cr_expect_eq(cluster.reserved.count, 1);
    struct reservation *ended = reservation_expired(&cluster, 0);
    cr_assert(ended != NULL && uid_is(&ended->uid, slice_of(UID(1))));
    reservation_end(&cluster, ended);
    cr_expect_null(reservation_expired(&cluster, 0));
}

Test(reservation, what_has_ended_early_may_be_reserved_again_before_it_is_reported)
{
    struct pod_object low = pod_of("low", UID(1), 1, 1), high = pod_of("high", UID(2), 2, 1);

    reserve(&low, false, 1000);
    reserve(&high, false, 1000);
    low.priority = 3;
    reserve(&low, false, 1000);
    cr_expect_eq(cluster.reserved.count, 1);
    for (int i = 0; i < 2; i++) {
        struct reservation *ended = reservation_expired(&cluster, 0);
        cr_assert_not_null(ended);
        reservation_end(&cluster, ended);
    }
    cr_expect_null(reservation_expired(&cluster, 0));
    cr_expect(uid_is(&cluster.reservations->uid, slice_of(UID(1))));
}

/* Each for a claim of its own; the n-th one expires at 10 + n. */
static void reserve_claims(int count)
{
    char name[32], uid[48] = "";
    struct claim_reference claim = {.name = {name, 0}};
    struct pod_object pod = pod_of("p", uid, 1, 1);

    pod.claims = &claim;
    for (int i = 0; i < count; i++) {
        claim.name.len = (size_t)snprintf(name, sizeof name, "claim-%d", i);
        apply_claim(name, true);
        (void)snprintf(uid, sizeof uid, "6d1a0d3e-3f0b-4a39-8a5c-1%011d", i);
        pod.meta.uid = slice_of(uid);
        reserve(&pod, false, 10 + (uint64_t)i);
    }
}

Test(reservation, of_too_many_the_one_that_expires_first_ends)
{
    struct pod_object first = pod_of("first", UID(1), 1, 1);

    reserve(&first, true, 5); /* is being bound: stays */
    reserve_claims(RESERVATIONS_MAX + 2);
    cr_expect_eq(cluster.reserved.count, RESERVATIONS_MAX + 1, "and those that are created");
    cr_expect(uid_is(&cluster.reservations->uid, slice_of(UID(1))), "it is being bound");
    struct reservation *ended = reservation_expired(&cluster, 0);
    cr_assert_not_null(ended);
    cr_expect(ended->expires_ns <= 12);
}

Test(reservation, of_too_many_one_of_the_namespace_that_has_most_ends)
{
    struct claim_reference claim = {.name = SLICE("data")};
    struct pod_object pod = pod_of("p", UID(1), 1, 1);

    pod.claims = &claim;
    pod.meta.ns = SLICE("quiet");
    apply_claim_in("quiet", "data", true);
    reserve(&pod, false, 5); /* it expires first of all */
    reserve_claims(RESERVATIONS_MAX);
    cr_expect_eq(cluster.reserved.count, RESERVATIONS_MAX);
    cr_expect(uid_is(&cluster.reservations->uid, slice_of(UID(1))), "it stays");
}
