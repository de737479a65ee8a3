/* Reservations of pods that are rejected for good: they end at once, except where a bind is under
 * way or in doubt, and where the pod only waits for its victims. */
#include <stdlib.h>
#include <string.h>

#include "adversity/preemptors.h"

enum { LONG_TTL_MS = 30000 }; /* the default of reservationTTL */

static double reservations(const struct guard *guard)
{
    return guard_metric(guard, "claimguard_reservations ");
}

/* Pod a wants claims data and logs, b wants data. a passes; then b is rejected for its reservation,
 * and waits. */
static void start_with_a_reservation(struct guard *guard)
{
    put_claim("data");
    put_claim("logs");
    guard_start(guard, ""); /* one that starts requeues the pods that wait already */
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .second_claim = "logs"});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    AWAIT(sees(guard, 2), "the pods are seen");
    check(filter_passes(guard, "a"), "its claims are free");
    check(!filter_passes(guard, "b"), "data is reserved for a");
    check(api_count("PATCH", "claimguard.io/requeue-requested") == 0, "b waits");
}

static void remove_logs(const struct guard *guard)
{
    api_remove("persistentvolumeclaims", "default", "logs");
    AWAIT(guard_metric(guard, "claimguard_cache_objects{resource=\"persistentvolumeclaims\"}") == 1,
          "the claim is gone");
}

/* Within less than reservationTTL. */
static void expect_freed(const struct guard *guard, int64_t from)
{
    check(reservations(guard) == 0, "a has nothing reserved");
    check(api_wait("PATCH", "claimguard.io/requeue-requested", 1), "b is requeued");
    check(filter_passes(guard, "b"), "data is free");
    check(clock_ms() - from < LONG_TTL_MS / 2, "at once");
}

static void a_refused_bind_ends_the_reservation(void)
{
    struct guard guard;

    start_with_a_reservation(&guard);
    remove_logs(&guard);
    int64_t from = clock_ms();
    check(!bind_succeeds(&guard, "a", "node-1"), "its claim logs is gone");
    expect_freed(&guard, from);
    guard_stop(&guard);
}

static void a_rejection_for_good_ends_the_reservation(void)
{
    struct guard guard;

    start_with_a_reservation(&guard);
    remove_logs(&guard);
    int64_t from = clock_ms();
    check(!filter_passes(&guard, "a"), "its claim logs is gone");
    expect_freed(&guard, from);
    guard_stop(&guard);
}

/* A call has the UID of pod a and another name. */
static void a_rejection_of_a_forged_name_ends_no_reservation(void)
{
    struct guard guard;

    start_with_a_reservation(&guard);
    free(guard_call(
        &guard, "/filter",
        scenario_printf("{\"Pod\":{\"metadata\":{\"uid\":\"%s\",\"name\":\"z\",\"namespace\":"
                        "\"default\"},\"spec\":{\"volumes\":[{\"name\":\"v\","
                        "\"persistentVolumeClaim\":{\"claimName\":\"none\"}}]}},\"NodeNames\":["
                        "\"node-1\"]}",
                        api_text("pods", "default", "a", "metadata.uid"))));
    check(reservations(&guard) == 1, "the reservation is a's");
    check(!filter_passes(&guard, "b"), "data is reserved for a");
    guard_stop(&guard);
}

static void a_rejection_ends_no_bind_that_is_under_way(void)
{
    struct guard guard;
    struct beside bind;

    start_with_a_reservation(&guard);
    api_fault(&(struct api_fault){.method = "POST", .path = "/pods/a/binding", .delay_ms = 1500});
    bind_beside(&bind, &guard, "a", "node-1");
    check(api_wait("POST", "/pods/a/binding", 1), "the Binding is under way");
    remove_logs(&guard);
    check(!filter_passes(&guard, "a"), "its claim logs is gone");
    check(!bind_succeeds(&guard, "a", "node-1"), "the same");
    check(!filter_passes(&guard, "b"), "data is being bound");
    check(!bind_succeeds(&guard, "b", "node-2"), "data is being bound");
    check(beside_end(&bind) && node_of("b")[0] == '\0', "it is a's");
    guard_stop(&guard);
}

static void a_rejection_ends_no_bind_that_is_in_doubt(void)
{
    struct guard guard;

    start_with_a_reservation(&guard);
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .times = 1, .status = 500});
    check(!bind_succeeds(&guard, "a", "node-1"), "the outcome is unknown");
    remove_logs(&guard);
    check(!filter_passes(&guard, "a"), "its claim logs is gone");
    check(!bind_succeeds(&guard, "a", "node-1"), "the same");
    check(guard_metric(&guard, "claimguard_binds_in_doubt ") == 1, "a's is in doubt");
    check(!filter_passes(&guard, "b"), "it may be applied yet");
    guard_stop(&guard);
}

/* The rejection is Unschedulable: the pod passes when its victim is gone. */
static void a_preemptor_keeps_its_reservation_while_its_victim_terminates(void)
{
    struct guard guard;

    start_with_a_preemptor(&guard, "readWriteOncePod: {preemptionGrace: 10ms}\n");
    put_pod(&(struct test_pod){.name = "middle", .claim = "data", .priority = 50});
    check(!filter_passes(&guard, "high-data"), "its claim is held");
    AWAIT(api_text("pods", "default", "low-data", "metadata.deletionTimestamp")[0] != '\0',
          "the holder terminates");
    check(!filter_passes(&guard, "high-data"), "the holder is there yet");
    check(!bind_succeeds(&guard, "high-data", "node-1"), "the same");
    check(reservations(&guard) == 1, "the claim is reserved");
    api_remove("pods", "default", "low-data");
    AWAIT(sees(&guard, 2), "it is gone");
    check(!filter_passes(&guard, "middle"), "the claim is the preemptor's");
    check(filter_passes(&guard, "high-data"), "it passes");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_refused_bind_ends_the_reservation),
        SCENARIO(a_rejection_for_good_ends_the_reservation),
        SCENARIO(a_rejection_of_a_forged_name_ends_no_reservation),
        SCENARIO(a_rejection_ends_no_bind_that_is_under_way),
        SCENARIO(a_rejection_ends_no_bind_that_is_in_doubt),
        SCENARIO(a_preemptor_keeps_its_reservation_while_its_victim_terminates),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
