#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/cluster/reservation.h"
#include "policy/policy.h"
#include "support/load.h"

#define UID(n_) "6d1a0d3e-3f0b-4a39-8a5c-00000000000" #n_

static struct cluster cluster;
static struct arena arena;

static void apply_claim(const char *name, bool is_rwop)
{
    struct object object = {.kind = KIND_CLAIM};
    struct error err = {0};

    object.meta = (struct meta){.ns = SLICE("default"), .name = slice_of(name)};
    object.claim.is_rwop = is_rwop;
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
}

static void setup(void)
{
    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    apply_claim("data", true);
    apply_claim("logs", true);
    apply_claim("shared", false);
}

static void teardown(void)
{
    cluster_dispose(&cluster);
    arena_dispose(&arena);
}

TestSuite(assumed, .init = setup, .fini = teardown);

static struct claim_reference both[] = {{.name = {"data", 4}}, {.name = {"logs", 4}}};
static struct claim_reference shared[] = {{.name = {"shared", 6}}};

/* A pending pod that names `data`, or both exclusive claims. */
static struct pod_object pod_of(const char *name, const char *uid, int64_t priority, size_t claims)
{
    return (struct pod_object){.meta = {.ns = SLICE("default"),
                                        .name = slice_of(name),
                                        .uid = slice_of(uid),
                                        .resource_version = SLICE("5")},
                               .priority = priority,
                               .claims = both,
                               .claim_count = claims};
}

static void reserve(const struct pod_object *pod, bool binds, uint64_t expires_ns)
{
    struct error err = {0};
    cr_assert_eq(reservation_take(&cluster, pod, NULL, binds, expires_ns, &err), 0, "%s",
                 err.message);
}

static struct verdict evaluate(const struct pod_object *pod)
{
    const struct policy *decided_by;
    struct verdict verdict;

    struct view view = {&cluster, &plain_config};
    policy_prefilter(&view, pod, &arena, &verdict, &decided_by);
    return verdict;
}

static unsigned count(void)
{
    return cluster.reserved.count;
}

static void apply_pod(const struct pod_object *pod, const char *node, const char *version)
{
    struct object object = {.kind = KIND_POD, .pod = *pod};
    struct error err = {0};

    object.pod.node = slice_of(node);
    object.meta.resource_version = slice_of(version);
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
}

static void delete_pod(const struct pod_object *pod)
{
    struct object object = {.kind = KIND_POD, .pod = *pod};
    object.meta.resource_version = SLICE("99");
    cluster_delete(&cluster, &object);
}

Test(assumed, a_reservation_is_a_holder_for_pods_of_no_higher_priority)
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

Test(assumed, a_pod_of_higher_priority_takes_over_a_reservation_and_not_a_bind)
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

Test(assumed, all_exclusive_claims_are_reserved_or_none)
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

Test(assumed, a_bind_counts_on_the_claims_that_it_shares_and_no_longer)
{
    struct pod_object plain = pod_of("plain", UID(1), 0, 1);
    const struct claim *claim = cluster_find_claim(&cluster, SLICE("default"), SLICE("shared"));

    plain.claims = shared;
    reserve(&plain, true, 100);
    cr_expect_eq(claim->sharers, 1);
    reservation_end(&cluster, reservation_expired(&cluster, 100));
    cr_expect_eq(claim->sharers, 0);
}

Test(assumed, asked_again_it_ends_later)
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

Test(assumed, one_that_is_being_bound_does_not_keep_others_from_expiring)
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

Test(assumed, one_that_lasts_longer_does_not_keep_others_from_expiring)
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

Test(assumed, asked_again_it_ends_no_sooner)
{
    struct pod_object pod = pod_of("first", UID(1), 0, 1);

    reserve(&pod, false, 200); /* of a preemptor */
    reserve(&pod, false, 110); /* filter */
    cr_expect_null(reservation_expired(&cluster, 199));
    cr_expect_not_null(reservation_expired(&cluster, 200));
}

Test(assumed, a_binding_in_doubt_keeps_its_claims_whatever_comes_of_the_next_bind)
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
    cr_expect(reservation_expired(&cluster, 299) == NULL &&
              reservation_expired(&cluster, 300) != NULL);
    cr_expect_eq(cluster.doubtful, 1);
    reservation_release(&cluster, &uid);
    cr_expect_eq(cluster.doubtful, 0);
    reserve(&pod, true, 400);
    cr_expect(reservation_undo(&cluster, &uid));
    cr_expect_eq(count(), 0);
}

Test(assumed, it_ends_when_the_pod_is_bound_finished_or_gone)
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

    reserve(&pod, false, 100); /* the watch has not told the pod yet */
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

Test(assumed, a_bound_pod_holds_its_claims_though_the_watch_is_behind)
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

Test(assumed, a_claim_that_comes_and_goes_takes_nothing_with_it)
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

/* A call that was on its way while the pod was bound: the simulation found it. */
Test(assumed, a_pod_that_is_bound_reserves_nothing)
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
Test(assumed, a_bind_stays_one_when_its_pod_is_judged_or_bound_again)
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
Test(assumed, what_a_bind_has_taken_no_other_call_changes)
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

Test(assumed, the_absence_of_another_name_ends_no_reservation)
{
    struct pod_object pod = pod_of("first", UID(1), 10, 1);

    reserve(&pod, true, 100);
    cluster_learn_gone(
        &cluster,
        &(struct object_reference){KIND_POD, SLICE("default"), SLICE("other"), SLICE(UID(1))}, 1);
    cluster_learn_gone(
        &cluster,
        &(struct object_reference){KIND_POD, SLICE("elsewhere"), SLICE("first"), SLICE(UID(1))}, 1);
    cr_expect_eq(count(), 1, "whoever asked has said that UID");
    cluster_learn_gone(
        &cluster,
        &(struct object_reference){KIND_POD, SLICE("default"), SLICE("first"), SLICE(UID(1))}, 1);
    cr_expect_eq(count(), 0);
}

Test(assumed, what_has_lost_all_its_claims_ends_and_is_told)
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

Test(assumed, what_has_ended_early_may_be_reserved_again_before_it_is_told)
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

Test(assumed, of_too_many_the_one_that_expires_first_ends)
{
    char name[32], uid[48] = "";
    struct claim_reference claim = {.name = {name, 0}};
    struct pod_object first = pod_of("first", UID(1), 1, 1), pod = pod_of("p", uid, 1, 1);

    reserve(&first, true, 5); /* is being bound: stays */
    pod.claims = &claim;
    for (int i = 0; i <= RESERVATIONS_MAX + 1; i++) {
        claim.name.len = (size_t)snprintf(name, sizeof name, "claim-%d", i);
        apply_claim(name, true);
        (void)snprintf(uid, sizeof uid, "6d1a0d3e-3f0b-4a39-8a5c-1%011d", i);
        pod.meta.uid = slice_of(uid);
        reserve(&pod, false, 10 + (uint64_t)i);
    }
    cr_expect_eq(cluster.reserved.count, RESERVATIONS_MAX);
    cr_expect(uid_is(&cluster.reservations->uid, slice_of(UID(1))), "it is being bound");
    struct reservation *ended = reservation_expired(&cluster, 0);
    cr_assert_not_null(ended);
    cr_expect(ended->expires_ns <= 12);
}
