/* What is needed is watched, and what no policy in force needs is not, also after a reload. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/process.h"
#include "support/scenario.h"

#define OFF \
    "readWriteOncePod: {preemption: Disabled}\nreadWriteOnce: {mode: Off}\n" \
    "volumeAttributesClasses: {mode: Off}\n"
#define ALL_OFF OFF "csiVolumes: {mode: Off}\n"
#define CSI_ON  OFF "csiVolumes: {mode: Enforce, missingCSINode: Reject}\n"
#define DEFERS \
    ALL_OFF "deferFSMount: {apply: Annotation, entries: [{storageClass: fast-storage, " \
            "runtimeClass: microvm}]}\n"

enum { CSI_NODES = 300, FLIPS = 40 };

static const char *const always[] = {"pods", "nodes", "persistentvolumeclaims"};
static const char *const optional[] = {
    "persistentvolumes", "storageclasses",          "csidrivers",
    "csinodes",          "volumeattributesclasses", "poddisruptionbudgets"};
enum { ALWAYS = sizeof always / sizeof *always, OPTIONAL = sizeof optional / sizeof *optional };

/* ---- what can be seen ---- */

/* Lists and watches of the resource so far. */
static size_t requests_for(const char *resource)
{
    return api_count("GET", scenario_printf("/%s?", resource));
}

static bool is_measured(const struct guard *guard, const char *resource)
{
    return guard_page_has(guard, "/metrics",
                          scenario_printf("claimguard_cache_objects{resource=\"%s\"}", resource));
}

static double objects_of(const struct guard *guard, const char *resource)
{
    return guard_metric(guard, scenario_printf("claimguard_cache_objects{resource=\"%s\"}", //
                                               resource));
}

static bool is_synced(const struct guard *guard, const char *resource)
{
    return guard_metric(guard, scenario_printf("claimguard_cache_synced{resource=\"%s\"}", //
                                               resource)) == 1;
}

static size_t reloads(const struct guard *guard)
{
    char *log = read_file(guard->log);
    size_t count = 0;

    for (const char *at = log; (at = strstr(at, "configuration reloaded")) != NULL; at++)
        count++;
    free(log);
    return count;
}

/* Writes the configuration; does not wait until it is in force. */
static void reconfigure(const struct guard *guard, const char *config)
{
    FILE *file = fopen(guard->config, "we");

    check(file != NULL &&
              fprintf(file, "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n%s",
                      config) > 0 &&
              fclose(file) == 0,
          "the configuration is written");
    (void)kill(guard->pid, SIGHUP);
}

static void reload(const struct guard *guard, const char *config)
{
    size_t before = reloads(guard);

    reconfigure(guard, config);
    AWAIT(reloads(guard) > before, "the configuration is in force");
}

static void put_csi_nodes(int from, int to)
{
    for (int i = from; i < to; i++)
        api_put("{\"kind\":\"CSINode\",\"metadata\":{\"name\":\"node-%d\"},\"spec\":{\"drivers\":[{"
                "\"name\":\"plugin1.example.com\",\"nodeID\":\"n\"}]}}",
                i);
}

/* ---- at the start ---- */

static void what_is_off_costs_no_request_and_has_no_sample(void)
{
    struct guard guard;

    put_csi_nodes(0, 2);
    put_claim("data");
    guard_start(&guard, ALL_OFF);
    sleep_ms(1500); /* the informer looks at all kinds every second */
    for (size_t i = 0; i < ALWAYS; i++) {
        check(requests_for(always[i]) != 0, "%s are listed", always[i]);
        check(is_synced(&guard, always[i]), "%s are synced", always[i]);
        check(guard_page_has(&guard, "/readyz?verbose", always[i]), "%s count", always[i]);
    }
    for (size_t i = 0; i < OPTIONAL; i++) {
        check(requests_for(optional[i]) == 0, "%s are asked for", optional[i]);
        check(!guard_page_has(&guard, "/metrics", scenario_printf("resource=\"%s\"", optional[i])),
              "%s have a sample", optional[i]);
        check(!guard_page_has(&guard, "/readyz?verbose", optional[i]), "%s count", optional[i]);
        check(!guard_page_has(&guard, "/statusz", optional[i]), "%s are shown", optional[i]);
    }
    guard_stop(&guard);
}

static void by_default_each_of_them_is_watched(void)
{
    struct guard guard;

    put_csi_nodes(0, 2);
    guard_start(&guard, "");
    for (size_t i = 0; i < OPTIONAL; i++) {
        check(requests_for(optional[i]) != 0, "%s are listed", optional[i]);
        check(is_synced(&guard, optional[i]), "%s are synced", optional[i]);
        check(guard_page_has(&guard, "/readyz?verbose", optional[i]), "%s count", optional[i]);
        check(guard_page_has(&guard, "/statusz", optional[i]), "%s are shown", optional[i]);
    }
    check(requests_for("runtimeclasses") == 0 && requests_for("priorityclasses") == 0,
          "nothing reads these");
    guard_stop(&guard);
}

static void readiness_waits_for_what_is_needed_and_for_nothing_else(void)
{
    struct guard with, without;

    api_fault(&(struct api_fault){.path = "/csinodes", .status = 403});
    put_pair("node-1");
    guard_start(&without, ALL_OFF);
    check(guard_logs(&without, "the cache is synced"), "what it needs is synced");
    check(!filter_passes(&without, "b"), "its claim is held");
    guard_launch(&with, CSI_ON);
    AWAIT(api_count("GET", "/csinodes?") >= 3, "it asks for them");
    check(!guard_is_ready(&with), "they are needed");
    char *answer = guard_call(&with, "/filter", filter_body("b"));
    check(strstr(answer, "csinodes") != NULL, "the Error names them: %s", answer);
    free(answer);
    /* nothing is decided yet, so a configuration that needs less is in force at once */
    reload(&with, ALL_OFF);
    guard_await_ready(&with);
    check(guard_logs(&with, "the cache is synced"), "for the first time");
    check(!filter_passes(&with, "b"), "its claim is held");
    guard_stop(&with);
    guard_stop(&without);
}

/* ---- a reload ---- */

static void what_is_turned_off_is_not_watched_and_forgotten(void)
{
    struct guard guard;

    put_csi_nodes(0, CSI_NODES);
    guard_start(&guard, CSI_ON);
    check(objects_of(&guard, "csinodes") == CSI_NODES, "they are known");
    AWAIT(api_watches("csinodes") == 1, "they are watched");
    reload(&guard, ALL_OFF);
    AWAIT(api_watches("csinodes") == 0, "they are not watched any more");
    AWAIT(api_watches("csidrivers") == 0 && api_watches("persistentvolumes") == 0 &&
              api_watches("storageclasses") == 0,
          "what else this policy needs is not, either");
    check(!is_measured(&guard, "csinodes"), "they have no sample");
    check(guard_logs(&guard, "resource=csinodes"), "the log says so");
    check(guard_is_ready(&guard), "readiness does not wait for them");
    size_t before = requests_for("csinodes");
    /* whether they are forgotten is seen while the next list is late */
    api_fault(&(struct api_fault){.path = "/csinodes?", .ending = API_HANG});
    reconfigure(&guard, CSI_ON);
    AWAIT(requests_for("csinodes") > before, "they are listed again");
    check(is_measured(&guard, "csinodes"), "they are watched again");
    check(objects_of(&guard, "csinodes") == 0, "%g were kept", objects_of(&guard, "csinodes"));
    api_heal();
    api_let_go();
    AWAIT(objects_of(&guard, "csinodes") == CSI_NODES, "they are known again");
    guard_stop(&guard);
}

static void watches_that_stay_are_not_disturbed(void)
{
    struct guard guard;

    put_pair("node-1");
    put_csi_nodes(0, 2);
    guard_start(&guard, CSI_ON);
    AWAIT(api_watches("pods") == 1, "pods are watched");
    size_t before = requests_for("pods") + requests_for("persistentvolumeclaims");
    reload(&guard, ALL_OFF);
    AWAIT(api_watches("csinodes") == 0, "CSINodes are not watched any more");
    reload(&guard, CSI_ON);
    AWAIT(is_synced(&guard, "csinodes"), "they are");
    check(requests_for("pods") + requests_for("persistentvolumeclaims") == before,
          "pods and claims are listed again");
    check(!filter_passes(&guard, "b"), "its claim is held");
    guard_stop(&guard);
}

static void a_pod_that_waits_is_tried_again_when_its_policy_is_turned_off(void)
{
    struct guard guard;

    put_csi_nodes(3, 5); /* node-1 and node-2 have none */
    put_claim("free");
    guard_start(&guard, CSI_ON); /* it requeues the pods that wait already */
    put_pod(&(struct test_pod){.name = "c", .claim = "free"});
    AWAIT(objects_of(&guard, "pods") == 1, "c is seen");
    char *answer = guard_call(&guard, "/filter", filter_body("c"));
    check(strstr(answer, "the node has no CSINode object") != NULL, "it is rejected: %s", answer);
    free(answer);
    check(api_count("PATCH", "requeue-requested") == 0, "it waits");
    reload(&guard, ALL_OFF);
    check(api_wait("PATCH", "requeue-requested", 1), "the scheduler is to try it again");
    check(filter_passes(&guard, "c"), "nothing rejects it");
    /* and as before when the policy is in force again */
    reload(&guard, CSI_ON);
    answer = guard_call(&guard, "/filter", filter_body("c"));
    check(strstr(answer, "the node has no CSINode object") != NULL, "it is rejected: %s", answer);
    free(answer);
    put_csi_nodes(1, 2);
    AWAIT(objects_of(&guard, "csinodes") == 3, "node-1 has one");
    answer = guard_call(&guard, "/filter", filter_body("c"));
    check(strstr(answer, "\"NodeNames\":[\"node-1\"]") != NULL, "node-1 passes: %s", answer);
    free(answer);
    guard_stop(&guard);
}

static void put_microvm_pod(const char *name, const char *claim)
{
    put_claim(claim);
    put_pod(&(struct test_pod){
        .name = name, .claim = claim, .more_spec = ",\"runtimeClassName\":\"microvm\""});
}

static const char *deferred(const char *pod)
{
    return api_text("pods", "default", pod, "metadata.annotations.claimguard~io/defer-fs-mount");
}

static void a_new_configuration_decides_once_it_knows_enough(void)
{
    struct guard guard;

    put_pair("node-1");
    put_microvm_pod("early", "early");
    put_microvm_pod("late", "late");
    guard_start(&guard, ALL_OFF);
    api_fault(&(struct api_fault){.path = "/persistentvolumes?", .ending = API_HANG});
    reconfigure(&guard, DEFERS);
    check(api_wait("GET", "/persistentvolumes?", 1), "volumes are listed");
    check(guard_page_has(&guard, "/statusz", "waits for persistentvolumes\n"), "/statusz says so");
    check(guard_logs(&guard, "resources=persistentvolumes"), "the log says so");
    check(guard_is_ready(&guard), "the former configuration is in force");
    check(!filter_passes(&guard, "b"), "and decides");
    check(bind_succeeds(&guard, "early", "node-1"), "nothing is in its way");
    check(strcmp(deferred("early"), "") == 0, "%s is deferred", deferred("early"));
    check(reloads(&guard) == 0, "the new configuration is not in force");
    api_heal();
    api_let_go();
    AWAIT(reloads(&guard) == 1, "it is in force");
    check(!guard_page_has(&guard, "/statusz", "waits for"), "nothing waits");
    check(bind_succeeds(&guard, "late", "node-1"), "nothing is in its way");
    check(strcmp(deferred("late"), "v") == 0, "%s is deferred", deferred("late"));
    guard_stop(&guard);
}

static void a_configuration_that_waits_is_replaced_by_a_newer_one(void)
{
    struct guard guard;

    put_csi_nodes(0, 2);
    guard_start(&guard, ALL_OFF);
    api_fault(&(struct api_fault){.path = "/csinodes", .status = 403});
    reconfigure(&guard, CSI_ON);
    AWAIT(requests_for("csinodes") >= 3, "it is refused again and again");
    check(guard_is_ready(&guard), "the former configuration is in force");
    check(is_measured(&guard, "csinodes") && !is_synced(&guard, "csinodes"), "the metric says so");
    reconfigure(&guard, "nonsense: true\n");
    check(guard_logs(&guard, "the configuration is not reloaded"), "it is bad");
    check(!is_synced(&guard, "csinodes") && reloads(&guard) == 0, "the one before waits");
    reload(&guard, ALL_OFF "deferFSMount: {apply: Annotation}\n");
    AWAIT(!is_measured(&guard, "csinodes"), "they are not needed any more");
    sleep_ms(1500); /* one that is due is past */
    size_t before = requests_for("csinodes");
    sleep_ms(3000);
    check(requests_for("csinodes") == before, "nobody asks for them");
    reconfigure(&guard, CSI_ON);
    api_heal();
    AWAIT(reloads(&guard) == 2, "now they may be read");
    check(objects_of(&guard, "csinodes") == 2, "they are known");
    guard_stop(&guard);
}

static void what_is_not_served_delays_no_configuration(void)
{
    struct guard guard;

    api_fault(&(struct api_fault){.path = "/csinodes", .status = 404});
    guard_start(&guard, ALL_OFF);
    reload(&guard, CSI_ON);
    check(guard_page_has(&guard, "/readyz?verbose", "csinodes not served"), "it is known");
    check(guard_is_ready(&guard), "it is ready");
    reload(&guard, ALL_OFF);
    AWAIT(!guard_page_has(&guard, "/statusz", "csinodes"), "it is forgotten");
    api_heal();
    put_csi_nodes(0, 2);
    reload(&guard, CSI_ON); /* at once, and not after the ten minutes for what is not served */
    check(objects_of(&guard, "csinodes") == 2, "they are known");
    guard_stop(&guard);
}

/* Whether a pod passes whose driver is on node-1 and node-2 all the time; with the policy, and
 * without it. */
static void check_passes(const struct guard *guard, int ms)
{
    int64_t until_ms = clock_ms() + ms;

    do
        check(filter_passes(guard, "c"), "an object that exists was not known");
    while (clock_ms() < until_ms);
}

static void flip(const struct guard *guard, int from, int to)
{
    for (int i = from; i < to; i++) {
        reconfigure(guard, i % 2 == 0 ? ALL_OFF : CSI_ON);
        if (i % 8 == 0) { /* what changes while nobody watches is found by the next list */
            api_remove("csinodes", "", scenario_printf("node-%d", i));
            put_csi_nodes(CSI_NODES + i, CSI_NODES + i + 1);
        }
        check_passes(guard, i * 7919 % 400);
    }
}

static void reloads_back_and_forth_end_where_the_last_one_points(void)
{
    struct guard guard;

    put_csi_nodes(0, CSI_NODES);
    put_pair("node-1");
    put_claim("free");
    put_pod(&(struct test_pod){.name = "c", .claim = "free"});
    guard_start(&guard, CSI_ON);
    api_fault(&(struct api_fault){.path = "/csinodes?", .late_ms = 150});
    flip(&guard, 0, FLIPS);
    AWAIT(is_synced(&guard, "csinodes"), "the last one needs them");
    check(objects_of(&guard, "csinodes") == CSI_NODES, "%g are known",
          objects_of(&guard, "csinodes"));
    check(!filter_passes(&guard, "b"), "its claim is held");
    flip(&guard, FLIPS, 2 * FLIPS - 1);
    AWAIT(!is_measured(&guard, "csinodes") && api_watches("csinodes") == 0,
          "the last one does not need them");
    check(guard_is_ready(&guard), "it is ready");
    check(!filter_passes(&guard, "b"), "its claim is held");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(what_is_off_costs_no_request_and_has_no_sample),
        SCENARIO(by_default_each_of_them_is_watched),
        SCENARIO(readiness_waits_for_what_is_needed_and_for_nothing_else),
        SCENARIO(what_is_turned_off_is_not_watched_and_forgotten),
        SCENARIO(watches_that_stay_are_not_disturbed),
        SCENARIO(a_pod_that_waits_is_tried_again_when_its_policy_is_turned_off),
        SCENARIO(a_new_configuration_decides_once_it_knows_enough),
        SCENARIO(a_configuration_that_waits_is_replaced_by_a_newer_one),
        SCENARIO(what_is_not_served_delays_no_configuration),
        SCENARIO(reloads_back_and_forth_end_where_the_last_one_points),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
