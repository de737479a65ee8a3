/* The CSI drivers of nodes come and go while pods are offered nodes, preempt and are bound; and
 * what claimguard knows of a node may be late. */
#include <stdlib.h>
#include <string.h>

#include "adversity/preemptors.h"

#define DRIVER  "plugin1.example.com" /* of the claims of put_claim, too */
#define REQUEUE "claimguard.io/requeue-requested"

static unsigned csi_nodes; /* CSINodes that were put */

/* driver: NULL: the node has none. */
static void put_csi_node(const char *node, const char *driver)
{
    csi_nodes += api_text("csinodes", "", node, "metadata.name")[0] == '\0';
    api_put("{\"kind\":\"CSINode\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"drivers\":[%s]}}",
            node, driver == NULL ? "" : scenario_printf("{\"name\":\"%s\"}", driver));
}

/* Waits until claimguard knows the CSINodes that were put, by one more. */
static void await_csi_nodes(const struct guard *guard)
{
    static const char metric[] = "claimguard_cache_objects{resource=\"csinodes\"}";

    put_csi_node(scenario_printf("last-%u", csi_nodes), NULL);
    AWAIT(guard_metric(guard, metric) == csi_nodes, "the CSINodes are known");
}

/* A pod that is pending, with an inline volume. */
static void put_inline_pod(const char *name)
{
    put_pod(&(struct test_pod){
        .name = name,
        .more_spec = ",\"volumes\":[{\"name\":\"v\",\"csi\":{\"driver\":\"" DRIVER "\"}}]"});
}

static void put_inline_driver(void)
{
    api_put("{\"kind\":\"CSIDriver\",\"metadata\":{\"name\":\"" DRIVER "\"},\"spec\":{"
            "\"volumeLifecycleModes\":[\"Ephemeral\",\"Persistent\"]}}");
}

/* Whether the pod passes if that node alone is offered. */
static bool passes_on(const struct guard *guard, const char *pod, const char *node)
{
    char *answer = guard_call(guard, "/filter",
                              scenario_printf("{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[\"%s\"]}",
                                              api_object("pods", "default", pod), node));
    bool passes = strstr(answer, scenario_printf("\"NodeNames\":[\"%s\"]", node)) != NULL;

    printf("filter %s on %s: %s\n", pod, node, answer);
    free(answer);
    return passes;
}

static bool is_evicted(const char *pod)
{
    return api_text("pods", "default", pod, "metadata.deletionTimestamp")[0] != '\0';
}

/* ---- preemption ---- */

static void a_preemptor_keeps_its_claim_when_no_node_of_an_offer_suits_it(void)
{
    struct guard guard;

    put_csi_node("node-1", NULL);
    put_csi_node("node-2", DRIVER);
    start_with_a_preemptor(&guard, quick);
    put_pod(&(struct test_pod){.name = "middle", .claim = "data", .priority = 50});
    AWAIT(sees(&guard, 3), "it is seen");
    check(!filter_passes(&guard, "high-data"), "the claim is held");
    AWAIT(is_evicted("low-data"), "the holder is evicted: node-2 suits");
    api_remove("pods", "default", "low-data");
    AWAIT(sees(&guard, 2), "it is gone");
    check(!passes_on(&guard, "high-data", "node-1"), "there is no driver");
    check(guard_metric(&guard, "claimguard_reservations ") == 1, "the claim stays reserved");
    check(!passes_on(&guard, "middle", "node-2"), "for the preemptor");
    check(passes_on(&guard, "high-data", "node-2"), "which gets it");
    check(api_count("POST", "/eviction") == 1, "one pod was evicted for it");
    guard_stop(&guard);
}

/* A claim that needs no driver: it is not bound. Another pod's preemption, which begins later,
 * shows that there was time for the first one. */
static void put_witnesses(void)
{
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"plain\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"]}}");
    put_pod(&(struct test_pod){
        .name = "low-plain", .claim = "plain", .node = "node-1", .priority = 10});
    put_pod(&(struct test_pod){.name = "high-plain", .claim = "plain", .priority = 100});
}

static void nobody_is_evicted_for_a_pod_whose_last_node_has_lost_the_driver(void)
{
    struct guard guard;

    put_csi_node("node-1", NULL);
    put_csi_node("node-2", DRIVER);
    start_with_a_preemptor(&guard, "readWriteOncePod: {preemptionGrace: 2s}\n");
    put_witnesses();
    AWAIT(sees(&guard, 4), "all are seen");
    check(!filter_passes(&guard, "high-data"), "the claim is held");
    put_csi_node("node-2", NULL);
    await_csi_nodes(&guard);
    check(!filter_passes(&guard, "high-plain"), "the claim is held");
    AWAIT(is_evicted("low-plain"), "its holder is evicted");
    check(!is_evicted("low-data"), "that of a claim without a node is not");
    put_csi_node("node-2", DRIVER);
    check(api_wait("PATCH", REQUEUE, 1), "the driver is back: the preemptor is requeued");
    check(!filter_passes(&guard, "high-data"), "node-2 suits, and the claim is held");
    AWAIT(is_evicted("low-data"), "now its holder is evicted");
    guard_stop(&guard);
}

/* ---- what is known late ---- */

/* The scheduler knows it already, and its CSINode is here before it is. */
static void a_pod_that_was_rejected_on_an_unknown_node_is_requeued_when_it_is_known(void)
{
    struct guard guard;

    put_claim("data");
    put_csi_node("node-1", NULL);
    guard_start(&guard, "csiVolumes: {missingCSINode: Reject}\n");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    AWAIT(sees(&guard, 1), "the pod is seen");
    api_hold("nodes");
    api_put("{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-3\"}}");
    put_csi_node("node-3", DRIVER);
    await_csi_nodes(&guard);
    check(!passes_on(&guard, "a", "node-3"), "the cache has no node-3");
    check(api_count("PATCH", REQUEUE) == 0, "the pod waits");
    api_release("nodes");
    check(api_wait("PATCH", REQUEUE, 1), "node-3 is known: the pod is requeued");
    check(passes_on(&guard, "a", "node-3"), "and passes");
    check(!passes_on(&guard, "a", "node-1"), "it waits for the driver again");
    api_put("{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-3\",\"uid\":\"%s\",\"labels\":{"
            "\"a\":\"b\"}}}",
            api_text("nodes", "", "node-3", "metadata.uid"));
    api_put("{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-4\"}}");
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"nodes\"}") == 4, "later");
    check(api_count("PATCH", REQUEUE) == 1, "a change of a known node requeues nobody");
    guard_stop(&guard);
}

static void a_csi_node_that_lists_no_other_driver_requeues_nobody(void)
{
    struct guard guard;

    put_claim("data");
    put_csi_node("node-1", NULL);
    put_csi_node("node-2", DRIVER);
    guard_start(&guard, "");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    AWAIT(sees(&guard, 1), "the pod is seen");
    check(!passes_on(&guard, "a", "node-1"), "there is no driver");
    put_csi_node("node-2", DRIVER);
    await_csi_nodes(&guard);
    check(api_count("PATCH", REQUEUE) == 0, "node-2 had it before");
    put_csi_node("node-2", NULL);
    await_csi_nodes(&guard);
    check(api_count("PATCH", REQUEUE) == 0, "it has it no more");
    put_csi_node("node-2", DRIVER);
    check(api_wait("PATCH", REQUEUE, 1), "it has it again");
    guard_stop(&guard);
}

/* The scheduler knows that a volume is available that needs no driver, and then the cache, too. */
static void a_pod_whose_claim_can_be_bound_to_a_volume_is_requeued(void)
{
    struct guard guard;

    put_csi_node("node-1", NULL);
    put_csi_node("node-2", NULL);
    put_inline_driver();
    api_put("{\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"fast\"},\"provisioner\":\"" DRIVER
            "\"}");
    api_put(
        "{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
        "\"data\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],\"storageClassName\":\"fast\"},"
        "\"status\":{\"phase\":\"Pending\"}}");
    guard_start(&guard, "");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    AWAIT(sees(&guard, 1), "the pod is seen");
    check(!filter_passes(&guard, "a"), "no node has the provisioner's driver");
    api_put("{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv-1\"},\"spec\":{"
            "\"accessModes\":[\"ReadWriteOnce\"],\"storageClassName\":\"fast\",\"local\":{"
            "\"path\":\"/mnt\"}},\"status\":{\"phase\":\"Available\"}}");
    check(api_wait("PATCH", REQUEUE, 1), "a volume is available: the pod is requeued");
    check(filter_passes(&guard, "a"), "and passes");
    guard_stop(&guard);
}

/* Every node that is known has the driver, so filter looks no node up. */
static void an_unknown_node_is_rejected_by_the_call_that_is_about_it_alone(void)
{
    static const char reason[] = "the node has no CSINode object";
    struct guard guard;

    put_claim("data");
    put_csi_node("node-1", DRIVER);
    put_csi_node("node-2", DRIVER);
    guard_start(&guard, "csiVolumes: {missingCSINode: Reject}\n");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    AWAIT(sees(&guard, 1), "the pod is seen");
    api_hold("nodes");
    api_put("{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-3\"}}");
    check(passes_on(&guard, "a", "node-3"), "filter lets it pass");
    char *answer = guard_call(&guard, "/bind", bind_body("a", "node-3"));
    check(strstr(answer, reason) != NULL, "%s", answer);
    free(answer);
    answer = guard_call(&guard, "/volcano/predicate",
                        scenario_printf("{\"task\":{\"Pod\":%s},\"node\":{\"Name\":\"node-3\"}}",
                                        api_object("pods", "default", "a")));
    check(strstr(answer, reason) != NULL, "%s", answer);
    free(answer);
    check(guard_metric(&guard, "claimguard_reservations ") == 0, "the claim is free");
    check(api_count("POST", "/binding") == 0, "nothing is bound");
    put_csi_node("node-3", DRIVER);
    await_csi_nodes(&guard);
    api_release("nodes");
    AWAIT(guard_metric(&guard, "claimguard_cache_objects{resource=\"nodes\"}") == 3, "it is known");
    check(passes_on(&guard, "a", "node-3") && bind_succeeds(&guard, "a", "node-3"), "it passes");
    guard_stop(&guard);
}

/* The former claimguard may have rejected it for what had changed already. */
static void a_pod_with_an_inline_volume_is_requeued_after_a_start(void)
{
    struct guard guard;

    put_inline_driver();
    put_csi_node("node-1", DRIVER);
    put_csi_node("node-2", NULL);
    put_inline_pod("a");
    put_pod(&(struct test_pod){.name = "plain", .more_spec = ",\"runtimeClassName\":\"vm\""});
    put_pod(&(struct test_pod){
        .name = "gated",
        .more_spec = ",\"schedulingGates\":[{\"name\":\"g\"}],\"volumes\":[{\"name\":\"v\","
                     "\"csi\":{\"driver\":\"" DRIVER "\"}}]"});
    guard_start(&guard, "");
    check(api_wait("PATCH", REQUEUE, 1), "a pod is requeued");
    check(api_count("PATCH", "/pods/a") == 1, "the one with the volume");
    check(api_count("PATCH", "/pods/plain") == 0, "and no other");
    check(guard_metric(&guard, "claimguard_requeues_waiting ") == 1, "nor will one be");
    guard_stop(&guard);
}

/* ---- bind ---- */

static void a_bind_is_refused_if_the_driver_of_an_inline_volume_has_left(void)
{
    struct guard guard;

    put_inline_driver();
    put_csi_node("node-1", DRIVER);
    guard_start(&guard, "");
    put_inline_pod("a");
    AWAIT(sees(&guard, 1), "the pod is seen");
    check(filter_passes(&guard, "a"), "node-1 has the driver");
    put_csi_node("node-1", NULL);
    await_csi_nodes(&guard);
    char *answer = guard_call(&guard, "/bind", bind_body("a", "node-1"));
    check(strstr(answer, "CSI driver " DRIVER " (volume v) is not registered on the node") != NULL,
          "%s", answer);
    free(answer);
    put_csi_node("node-1", DRIVER);
    await_csi_nodes(&guard);
    check(bind_succeeds(&guard, "a", "node-1"), "it is back");
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_preemptor_keeps_its_claim_when_no_node_of_an_offer_suits_it),
        SCENARIO(nobody_is_evicted_for_a_pod_whose_last_node_has_lost_the_driver),
        SCENARIO(a_pod_that_was_rejected_on_an_unknown_node_is_requeued_when_it_is_known),
        SCENARIO(a_csi_node_that_lists_no_other_driver_requeues_nobody),
        SCENARIO(a_pod_whose_claim_can_be_bound_to_a_volume_is_requeued),
        SCENARIO(an_unknown_node_is_rejected_by_the_call_that_is_about_it_alone),
        SCENARIO(a_pod_with_an_inline_volume_is_requeued_after_a_start),
        SCENARIO(a_bind_is_refused_if_the_driver_of_an_inline_volume_has_left),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
