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
    cr_expect_null(reservation_next_doubtful(&cluster, NULL, 199));
    cr_expect(reservation_next_doubtful(&cluster, NULL, 200) != NULL, "and no longer for that");
    cr_expect_null(reservation_expired(&cluster, 200));
    reservation_settle(&cluster, &uid, 199);
    cr_expect_null(reservation_expired(&cluster, 200), "its pod was read too early");
    reservation_settle(&cluster, &uid, 200);
    cr_expect(reservation_expired(&cluster, 199) == NULL &&
              reservation_expired(&cluster, 200) != NULL);
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

/* kube-scheduler clears the nomination of a pod whose bind fails. */
Test(reservation_binds, a_nominated_pod_keeps_what_is_exclusive_until_its_refused_bind_would_expire)
{
    struct claim_reference claims[] = {{.name = {"data", 4}}, {.name = {"shared", 6}}};
    struct pod_object pod = pod_of("first", UID(1), 10, 2), equal = pod_of("equal", UID(2), 10, 1),
                      higher = pod_of("higher", UID(3), 20, 1);
    const struct claim *claim = cluster_find_claim(&cluster, SLICE("default"), SLICE("shared"));
    struct object node = {.kind = KIND_NODE, .meta = {.name = SLICE("node-1")}};
    struct error err = {0};

    cr_assert_eq(cluster_apply(&cluster, &node, &err), 0);
    pod.claims = claims;
    pod.nominated_node = SLICE("node-1");
    apply_pod(&pod, "", "5");
    reserve(&pod, true, 100);
    struct uid uid = cluster.reservations->uid;
    cr_expect_eq(claim->sharers, 1);
    cr_expect(reservation_undo(&cluster, &uid), "a more important pod may get them now");
    cr_expect_eq(claim->sharers, 0, "and others what is shared");
    pod.nominated_node = SLICE("");
    apply_pod(&pod, "", "6");
    cr_expect_eq(evaluate(&equal).code, CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
    cr_expect_eq(evaluate(&higher).code, CODE_SUCCESS);
    reserve(&pod, false, 120);
    cr_expect(reservation_expired(&cluster, 100) != NULL, "filter does not extend it");
    reserve(&pod, true, 200);
    cr_expect_eq(claim->sharers, 1);
    cr_expect_null(reservation_expired(&cluster, 199), "a bind may take its time");
    cr_expect(reservation_undo(&cluster, &uid));
    struct reservation *expired = reservation_expired(&cluster, 100);
    cr_assert_not_null(expired, "but the next refusal does not extend it either");
    reservation_end(&cluster, expired);
    cr_expect_eq(evaluate(&equal).code, CODE_SUCCESS);
}

Test(reservation_binds, a_nomination_to_a_node_that_is_gone_keeps_nothing)
{
    struct pod_object pod = pod_of("first", UID(1), 10, 2), equal = pod_of("equal", UID(2), 10, 1);

    pod.nominated_node = SLICE("gone");
    apply_pod(&pod, "", "5");
    reserve(&pod, true, 100);
    struct uid uid = cluster.reservations->uid;
    cr_expect(reservation_undo(&cluster, &uid));
    cr_expect_eq(evaluate(&equal).code, CODE_SUCCESS);
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

static int take_creation(const char *ns, unsigned i)
{
    struct error err = {0};
    char uid[40];

    (void)snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012u", i);
    struct pod_object pod = pod_of("first", uid, 0, 1);
    pod.claims = shared;
    pod.meta.ns = slice_of(ns);
    return reservation_take(&cluster, &pod, NULL, true, 100, &err);
}

enum { ALONE = CREATIONS_MAX / 2 };

static void take_creations(const char *ns, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        cr_assert_eq(take_creation(ns, i), 0, "%s %u", ns, i);
}

static void apply_shared(const char *ns)
{
    struct object object = {.kind = KIND_CLAIM};
    struct error err = {0};

    object.meta = (struct meta){.ns = slice_of(ns), .name = SLICE("shared")};
    cr_assert_eq(cluster_apply(&cluster, &object, &err), 0);
}

Test(reservation_binds, pods_that_are_being_created_are_bounded)
{
    apply_shared("other");
    apply_shared("third");
    take_creations("default", 0, ALONE);
    cr_expect_eq(take_creation("default", ALONE), ERROR_UNAVAILABLE, "of one namespace, half");
    cr_expect_eq(take_creation("default", 0), 0, "one that is counted already");
    take_creations("other", CREATIONS_MAX, ALONE / 2);
    cr_expect_eq(take_creation("other", 2 * CREATIONS_MAX), ERROR_UNAVAILABLE, "half of the rest");
    cr_expect_eq(take_creation("third", 3 * CREATIONS_MAX), 0, "something is always left");
    cr_expect_eq(count(), ALONE + ALONE / 2 + 1);
    while (cluster.reservations != NULL)
        reservation_end(&cluster, cluster.reservations);
    take_creations("default", 0, ALONE);
}

/* A pod with a generic ephemeral volume: its claim `first-v` is created after it. */
static struct pod_object creation_of(const char *name, const char *uid)
{
    static struct claim_reference future[] = {{.name = {"first-v", 7}, .is_ephemeral = true}};
    struct pod_object pod = pod_of(name, uid, 0, 1);

    pod.claims = future;
    return pod;
}

Test(reservation_binds, the_claim_that_is_created_after_its_pod_is_reserved_for_it)
{
    static struct claim_reference by_name[] = {{.name = {"first-v", 7}}};
    struct pod_object first = creation_of("first", UID(1)), again = creation_of("first", UID(2)),
                      other = pod_of("other", UID(3), 10, 1);

    other.claims = by_name;
    reserve(&first, true, 100);
    cr_expect_eq(count(), 1);
    reserve(&again, true, 100);
    cr_expect_eq(count(), 1, "the claim is for one pod: the API server has one of that name");
    reserve(&first, true, 100);
    apply_claim("first-v", true);
    cr_expect_eq(evaluate(&other).code, CODE_UNSCHEDULABLE, "first has it");
    cr_expect(slice_equal(evaluate(&other).reasons[0],
                          SLICE("claim default/first-v is reserved for pod default/first")));
    apply_pod(&first, "node-1", "6");
    cr_expect_eq(count(), 0);
    cr_expect(slice_equal(evaluate(&other).reasons[0],
                          SLICE("claim default/first-v is in use by pod default/first on node-1")));
    delete_pod(&first);
    cr_expect_eq(evaluate(&other).code, CODE_SUCCESS);
}

/* That its pod was never created leaves no trace of the claim. */
Test(reservation_binds, a_claim_that_is_never_created_is_forgotten)
{
    struct pod_object first = creation_of("first", UID(1));
    uint32_t claims = cluster.claims.count;

    reserve(&first, true, 100);
    cr_expect_eq(cluster.claims.count, claims + 1);
    struct uid uid = cluster.reservations->uid;
    reservation_admit(&cluster, &uid, 200);
    reservation_settle(&cluster, &uid, 200);
    reservation_end(&cluster, reservation_expired(&cluster, 200));
    cr_expect_eq(cluster.claims.count, claims);
}

/* Those that a filter call may walk through. */
static size_t count_walked(void)
{
    size_t count = 0;

    for (const struct reservation *at = cluster.reservations; at != NULL; at = at->next)
        count++;
    return count;
}

/* Each filter call looks for reservations that have expired. */
Test(reservation_binds, those_in_doubt_cost_a_filter_call_nothing)
{
    struct pod_object waiting = pod_of("waiting", UID(1), 0, 1);
    char text[40];

    reserve(&waiting, false, 300);
    take_creations("default", 100, ALONE);
    for (unsigned i = 0; i < ALONE; i++) {
        struct uid uid;
        (void)snprintf(text, sizeof text, "00000000-0000-4000-8000-%012u", 100 + i);
        cr_assert(uid_find(&cluster.names, slice_of(text), &uid));
        reservation_admit(&cluster, &uid, 50);
    }
    cr_assert_null(reservation_expired(&cluster, 100));
    cr_expect_eq(count_walked(), 1, "%zu", count_walked());
    const struct reservation *due = reservation_next_doubtful(&cluster, NULL, 100);
    cr_assert_not_null(due);
    struct uid uid = due->uid;
    reservation_settle(&cluster, &uid, 100);
    cr_assert_not_null(reservation_expired(&cluster, 100), "though it was made after `waiting`");
    cr_expect_eq(memcmp(&reservation_expired(&cluster, 100)->uid, &uid, sizeof uid), 0);
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
