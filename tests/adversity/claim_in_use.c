/* The Event ClaimInUse, on pods that kube-scheduler's own VolumeRestrictions rejects: it says which
 * pod has the claim. Once for each holder, and on no other pod. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/process.h"
#include "support/scenario.h"

#define EVENT "\"reason\":\"ClaimInUse\""
#define REFUSED \
    "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with " \
    "ReadWriteOncePod access mode already in-use by another pod. preemption: 0/2 nodes are " \
    "available: 2 No preemption victims found for incoming pod."
#define REFUSED_BEFORE \
    "0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and " \
    "ReadWriteOncePod access mode."
#define OURS \
    "0/2 nodes are available: 2 claim default/data is in use by pod default/a on node-1, which " \
    "has ReadWriteOncePod access mode."

enum { QUIET_MS = 500 };

/* A pod that waits, as kube-scheduler's last try has left it. */
static void put_tried(const char *name, const char *volumes, int priority, const char *message)
{
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\",\"uid\":"
            "\"00000000-0000-4000-8000-0000000000%s\"},\"spec\":{\"priority\":%d,\"volumes\":[%s]},"
            "\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Initialized\","
            "\"status\":\"True\"},{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
            "\"Unschedulable\",\"message\":\"%s\"}]}}",
            name, name, priority, volumes, message);
}

#define DATA "{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}}"

static void put_holder(const char *name, int priority)
{
    put_pod(
        &(struct test_pod){.name = name, .claim = "data", .node = "node-1", .priority = priority});
}

/* So many Events so far, and no more. */
static void expect_events(size_t count)
{
    check(count == 0 || api_wait("POST", EVENT, count), "an Event is missing: %zu of %zu",
          api_count("POST", EVENT), count);
    sleep_ms(QUIET_MS);
    check(api_count("POST", EVENT) == count, "%zu Events", api_count("POST", EVENT));
}

static void a_pod_is_told_of_the_holder_once(void)
{
    struct guard guard;

    put_claim("data");
    put_holder("a", 10);
    guard_start(&guard, "");
    put_tried("b1", DATA, 10, REFUSED);
    expect_events(1);
    check(api_count("POST",
                    "\"message\":\"claim default/data is in use by pod default/a on node-1; "
                    "preemption cannot help: that pod's priority (10) is not lower than "
                    "this pod's (10)\"") == 1,
          "it says who");
    check(api_count("POST", "\"type\":\"Warning\",\"reason\":\"ClaimInUse\"") == 1, "a Warning");
    check(api_count("POST", "\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
                            "\"namespace\":\"default\",\"name\":\"b1\"") == 1,
          "on that pod");
    put_tried("b1", DATA, 10, REFUSED);
    put_tried("b1", DATA, 10, REFUSED_BEFORE);
    expect_events(1);
    guard_stop(&guard);
}

static void the_text_of_an_older_scheduler_counts_too(void)
{
    struct guard guard;

    put_claim("data");
    put_holder("a", 10);
    guard_start(&guard, "");
    put_tried("b1", DATA, 100, REFUSED_BEFORE);
    expect_events(1);
    check(api_count("POST", "; preemption can help: that pod's priority (10) is lower than this "
                            "pod's (100)\"") == 1,
          "what would help");
    guard_stop(&guard);
}

/* Its condition says the same, so kube-scheduler does not write it again. */
static void a_pod_is_told_of_each_new_holder(void)
{
    struct guard guard;

    put_claim("data");
    put_holder("a", 10);
    guard_start(&guard, "");
    put_tried("b1", DATA, 10, REFUSED);
    expect_events(1);
    api_remove("pods", "default", "a");
    put_pod(&(struct test_pod){.name = "c", .claim = "data", .priority = 10});
    expect_events(1);
    put_holder("c", 10);
    expect_events(2);
    check(api_count("POST", "in use by pod default/c on node-1") == 1, "the new one");
    guard_stop(&guard);
}

/* It is known before the watch reports it. */
static void a_pod_is_told_of_a_holder_that_claimguard_has_bound(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .priority = 10});
    guard_start(&guard, "");
    put_tried("b1", DATA, 10, REFUSED);
    expect_events(0);
    api_hold("pods");
    check(bind_succeeds(&guard, "a", "node-1"), "the claim is free");
    api_release("pods");
    expect_events(1);
    check(api_count("POST", "in use by pod default/a on node-1") == 1, "the new one");
    guard_stop(&guard);
}

/* The scheduler knew the holder before our watch did. */
static void a_pod_is_told_of_a_holder_that_is_seen_late(void)
{
    struct guard guard;

    put_claim("data");
    guard_start(&guard, "");
    put_tried("b1", DATA, 10, REFUSED);
    expect_events(0);
    put_holder("a", 10);
    expect_events(1);
    guard_stop(&guard);
}

static void a_pod_that_waits_since_before_the_start_is_told(void)
{
    struct guard guard;

    put_tried("b1", DATA, 10, REFUSED);
    put_claim("data");
    put_holder("a", 10);
    guard_start(&guard, "");
    expect_events(1);
    guard_stop(&guard);
}

static void a_terminating_holder_is_called_that(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a",
                               .claim = "data",
                               .node = "node-1",
                               .more_meta = ",\"deletionTimestamp\":\"2026-11-21T10:00:00Z\""});
    guard_start(&guard, "");
    put_tried("b1", DATA, 10, REFUSED);
    expect_events(1);
    check(api_count("POST", "default/a, terminating on node-1; the claim is free when that pod is "
                            "gone\"") == 1,
          "what it waits for");
    guard_stop(&guard);
}

static void other_pods_are_told_nothing(void)
{
    struct guard guard;

    put_claim("data");
    put_claim("free");
    put_holder("a", 10);
    guard_start(&guard, "");
    put_tried("b1", DATA, 10, "0/2 nodes are available: 2 Insufficient cpu.");
    put_tried("b2", DATA, 10, OURS);
    put_tried("b3", "", 10, REFUSED);
    put_tried("b4", "{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"free\"}}", 10,
              REFUSED);
    put_pod(&(struct test_pod){.name = "b5", .claim = "data"});
    expect_events(0);
    put_tried("b1", DATA, 10, REFUSED); /* and now it is one of these */
    expect_events(1);
    put_tried("b1", DATA, 10, OURS); /* and no more */
    api_remove("pods", "default", "a");
    put_holder("c", 10);
    expect_events(1);
    guard_stop(&guard);
}

/* Both post the same Event, so the API server has it once. It refuses the second one with 409,
 * which is no failure. */
static void two_replicas_post_one_event(void)
{
    struct guard one, two;
    char name[160];

    put_claim("data");
    put_holder("a", 10);
    guard_start(&one, "");
    guard_start(&two, "");
    api_fault(&(struct api_fault){.method = "POST", .path = "/events", .skip = 1, .status = 409});
    put_tried("b1", DATA, 10, REFUSED);
    expect_events(2);
    (void)snprintf(name, sizeof name,
                   "\"name\":\"claimguard.00000000-0000-4000-8000-0000000000b1.%s.%s\"",
                   api_text("persistentvolumeclaims", "default", "data", "metadata.uid"),
                   api_text("pods", "default", "a", "metadata.uid"));
    check(api_count("POST", name) == 2, "of one name: %s", name);
    put_tried("b1", DATA, 10, REFUSED);
    expect_events(2);
    for (int i = 0; i < 2; i++) {
        char *log = read_file(i == 0 ? one.log : two.log);
        check(strstr(log, "did not take a request") == NULL, "%s", log);
        free(log);
    }
    guard_stop(&one);
    guard_stop(&two);
}

/* ---- another tenant ---- */

/* A pod of a tenant's that waits for its claim "hoard", as kube-scheduler's last try has left it.
 */
static void put_greedy(int number)
{
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"g-%d\",\"namespace\":\"greedy\",\"uid\":"
            "\"10000000-0000-4000-8000-%012d\"},\"spec\":{\"priority\":0,\"volumes\":[{\"name\":"
            "\"v\",\"persistentVolumeClaim\":{\"claimName\":\"hoard\"}}]},\"status\":{\"phase\":"
            "\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
            "\"reason\":\"Unschedulable\",\"message\":\"%s\"}]}}",
            number, number, REFUSED);
}

static void put_hoard(void)
{
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"greedy\","
            "\"name\":\"hoard\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],"
            "\"volumeName\":\"pv-hoard\"},\"status\":{\"phase\":\"Bound\"}}");
    api_put("{\"kind\":\"Pod\",\"metadata\":{\"name\":\"h\",\"namespace\":\"greedy\"},\"spec\":{"
            "\"nodeName\":\"node-1\",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{"
            "\"claimName\":\"hoard\"}}]},\"status\":{\"phase\":\"Running\"}}");
}

#define ON_B1 "\"namespace\":\"default\",\"name\":\"b1\""

/* The scheduler has rejected many pods of one namespace: a pod of another gets its Event as soon.
 */
static void a_namespace_with_many_such_pods_delays_no_other(void)
{
    struct guard guard;

    put_claim("data");
    put_holder("a", 10);
    put_hoard();
    guard_start(&guard, "");
    for (int i = 0; i < 150; i++)
        put_greedy(i);
    check(api_wait("POST", EVENT, 25), "those of greedy: %zu", api_count("POST", EVENT));
    sleep_ms(500);
    int64_t begun = clock_ms();
    put_tried("b1", DATA, 10, REFUSED);
    while (api_count("POST", ON_B1) == 0 && clock_ms() < begun + 90000)
        sleep_ms(20);
    check(clock_ms() < begun + 2000, "pod b1 gets its Event after %lld ms (%zu Events in all)",
          (long long)(clock_ms() - begun), api_count("POST", EVENT));
    guard_stop(&guard);
}

/* Pods of one namespace are remembered instead of those of another, which get no Event about a new
 * holder. */
static void a_namespace_with_many_such_pods_has_no_other_forgotten(void)
{
    struct guard guard;

    put_claim("data");
    guard_start(&guard, "");
    put_tried("b1", DATA, 10, REFUSED); /* its holder is seen late */
    expect_events(0);
    for (int i = 0; i < 1001; i++)
        put_greedy(i); /* their claim does not even exist */
    sleep_ms(2000);
    put_holder("a", 10);
    for (int i = 0; api_count("POST", ON_B1) == 0 && i < 1500; i++)
        sleep_ms(20);
    check(api_count("POST", ON_B1) == 1, "pod b1 gets no Event");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_pod_is_told_of_the_holder_once),
        SCENARIO(the_text_of_an_older_scheduler_counts_too),
        SCENARIO(a_pod_is_told_of_each_new_holder),
        SCENARIO(a_pod_is_told_of_a_holder_that_is_seen_late),
        SCENARIO(a_pod_that_waits_since_before_the_start_is_told),
        SCENARIO(a_pod_is_told_of_a_holder_that_claimguard_has_bound),
        SCENARIO(a_terminating_holder_is_called_that),
        SCENARIO(other_pods_are_told_nothing),
        SCENARIO(two_replicas_post_one_event),
        SCENARIO(a_namespace_with_many_such_pods_delays_no_other),
        SCENARIO(a_namespace_with_many_such_pods_has_no_other_forgotten),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
