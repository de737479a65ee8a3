/* What a rejected pod waits for, and no event says to the scheduler, or says before the cache has
 * it: a VolumeAttributesClass, a volume that is available, a StorageClass, a CSIDriver. The pod is
 * requeued when that appears, and for nothing else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/process.h"
#include "support/scenario.h"

#define REQUEUE "claimguard.io/requeue-requested"

enum { REQUEUED_MS = 5000 }; /* a few, unless the machine is busy */

static void put_class(const char *name, const char *driver)
{
    api_put("{\"kind\":\"VolumeAttributesClass\",\"metadata\":{\"name\":\"%s\"},\"driverName\":"
            "\"%s\"}",
            name, driver);
}

static void put_storage_class(const char *provisioner)
{
    api_put("{\"kind\":\"StorageClass\",\"metadata\":{\"name\":\"fast\"},\"provisioner\":\"%s\"}",
            provisioner);
}

/* Claim data, of class gold; status: its JSON. */
static void put_gold_claim(const char *volume, const char *status)
{
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"data\",\"uid\":\"8233afb8-19e2-4262-8666-fd543e24857d\"},\"spec\":{\"accessModes\":["
            "\"ReadWriteOnce\"],\"storageClassName\":\"fast\",\"volumeAttributesClassName\":"
            "\"gold\",\"volumeName\":\"%s\"},\"status\":%s}",
            volume, status);
}

static void put_volume(const char *name, const char *storage_class, const char *phase)
{
    api_put("{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"%s\"},\"spec\":{"
            "\"accessModes\":[\"ReadWriteOnce\"],\"storageClassName\":\"%s\","
            "\"volumeAttributesClassName\":\"gold\",\"csi\":{"
            "\"driver\":\"a.example.com\"}},\"status\":{\"phase\":\"%s\"}}",
            name, storage_class, phase);
}

static void put_waiting_pod(void)
{
    put_storage_class("a.example.com");
    put_gold_claim("", "{\"phase\":\"Pending\"}");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
}

/* An object was put, and there are `count` of its kind: nobody is requeued for it. */
static void expect_no_requeue(const struct guard *guard, const char *resource, double count)
{
    const char *metric = scenario_printf("claimguard_cache_objects{resource=\"%s\"}", resource);

    AWAIT(guard_metric(guard, metric) == count, resource);
    check(guard_metric(guard, "claimguard_requeues_total{") == 0, "nobody is requeued for it");
    check(guard_metric(guard, "claimguard_requeues_waiting ") == 1, "the pod waits");
}

/* An object was put: the pod is requeued, and passes. */
static void expect_requeue(const struct guard *guard)
{
    int64_t start = clock_ms();

    check(api_wait("PATCH", REQUEUE, 1), "the pod is requeued");
    check(clock_ms() - start < REQUEUED_MS, "after %d ms", (int)(clock_ms() - start));
    check(filter_passes(guard, "a"), "and passes");
    check(guard_metric(guard, "claimguard_requeues_waiting ") == 0, "it does not wait any more");
}

static void a_missing_class_appears(void)
{
    struct guard guard;

    put_waiting_pod();
    guard_start(&guard, "");
    check(!filter_passes(&guard, "a"), "there is no class gold");
    put_class("silver", "a.example.com");
    expect_no_requeue(&guard, "volumeattributesclasses", 1);
    put_class("gold", "a.example.com");
    expect_requeue(&guard);
    guard_stop(&guard);
}

static void a_class_of_another_driver_is_replaced(void)
{
    struct guard guard;

    put_class("gold", "b.example.com");
    put_waiting_pod();
    guard_start(&guard, "");
    check(!filter_passes(&guard, "a"), "class gold is for another driver");
    api_remove("volumeattributesclasses", "", "gold");
    check(api_wait("PATCH", REQUEUE, 1), "the pod is requeued");
    check(!filter_passes(&guard, "a"), "there is no class gold");
    put_class("gold", "a.example.com");
    check(api_wait("PATCH", REQUEUE, 2), "the pod is requeued");
    check(filter_passes(&guard, "a"), "the class is for its driver");
    guard_stop(&guard);
}

static void a_storage_class_is_replaced(void)
{
    struct guard guard;

    put_class("gold", "b.example.com");
    put_waiting_pod();
    guard_start(&guard, "");
    check(!filter_passes(&guard, "a"), "class gold is for another driver");
    put_storage_class("b.example.com");
    expect_requeue(&guard);
    guard_stop(&guard);
}

static void a_volume_of_the_class_is_available(void)
{
    struct guard guard;

    put_waiting_pod();
    guard_start(&guard, "");
    check(!filter_passes(&guard, "a"), "there is no class gold");
    put_volume("pv-1", "slow", "Available");
    put_volume("pv-2", "fast", "Pending");
    expect_no_requeue(&guard, "persistentvolumes", 2);
    put_volume("pv-2", "fast", "Available");
    expect_requeue(&guard);
    guard_stop(&guard);
}

static void a_csi_driver_appears(void)
{
    struct guard guard;

    put_pod(&(struct test_pod){.name = "a",
                               .more_spec = ",\"volumes\":[{\"name\":\"v\",\"csi\":{\"driver\":"
                                            "\"a.example.com\"}}]"});
    guard_start(&guard, "");
    check(!filter_passes(&guard, "a"), "there is no CSIDriver");
    api_put("{\"kind\":\"CSIDriver\",\"metadata\":{\"name\":\"b.example.com\"},\"spec\":{"
            "\"volumeLifecycleModes\":[\"Ephemeral\"]}}");
    expect_no_requeue(&guard, "csidrivers", 1);
    api_put("{\"kind\":\"CSIDriver\",\"metadata\":{\"name\":\"a.example.com\"},\"spec\":{"
            "\"volumeLifecycleModes\":[\"Ephemeral\"]}}");
    expect_requeue(&guard);
    guard_stop(&guard);
}

/* The scheduler knows that the claim is bound, and the cache does not. */
static void a_claim_that_was_bound_is_not_rejected(void)
{
    struct guard guard;

    put_waiting_pod();
    guard_start(&guard, "");
    api_hold("persistentvolumeclaims");
    put_gold_claim("pv-1", "{\"phase\":\"Bound\",\"currentVolumeAttributesClassName\":\"gold\"}");
    check(filter_passes(&guard, "a"), "its class has no part in it any more");
    check(api_count("GET", "/persistentvolumeclaims/data") == 1, "the API server was asked");
    guard_stop(&guard);
}

/* The same for a change of its class, which is over. */
static void a_change_that_is_over_is_not_waited_for(void)
{
    struct guard guard;

    put_class("gold", "a.example.com");
    put_waiting_pod();
    put_gold_claim("pv-1", "{\"phase\":\"Bound\",\"modifyVolumeStatus\":{\"status\":\"InProgress\","
                           "\"targetVolumeAttributesClassName\":\"gold\"}}");
    guard_start(&guard, "volumeAttributesClasses: {waitForModify: true}\n");
    check(!filter_passes(&guard, "a"), "it is being changed");
    api_hold("persistentvolumeclaims");
    put_gold_claim("pv-1", "{\"phase\":\"Bound\",\"currentVolumeAttributesClassName\":\"gold\"}");
    check(filter_passes(&guard, "a"), "it is over");
    guard_stop(&guard);
}

/* It may have classes in v1beta1. */
static void an_api_server_that_does_not_serve_classes_lacks_none(void)
{
    struct guard guard;

    api_fault(&(struct api_fault){.path = "/volumeattributesclasses", .status = 404});
    put_waiting_pod();
    guard_start(&guard, "");
    check(filter_passes(&guard, "a"), "nobody knows whether there is a class");
    guard_stop(&guard);
}

/* Nothing changes but what claimguard thinks of it. */
static void a_policy_that_is_off_after_a_reload_keeps_no_pod_waiting(void)
{
    struct guard guard;

    put_waiting_pod();
    guard_start(&guard, "");
    check(!filter_passes(&guard, "a"), "there is no class gold");
    guard_reload(&guard, "volumeAttributesClasses: {mode: Warn}\n");
    check(api_wait("PATCH", REQUEUE, 1), "the pod is requeued");
    check(filter_passes(&guard, "a"), "and passes");
    guard_stop(&guard);
}

/* The same where the former configuration waits for a claim. */
static void a_reload_ends_the_wait_for_a_change(void)
{
    struct guard guard;

    put_class("gold", "a.example.com");
    put_waiting_pod();
    put_gold_claim("pv-1", "{\"phase\":\"Bound\",\"modifyVolumeStatus\":{\"status\":\"InProgress\","
                           "\"targetVolumeAttributesClassName\":\"gold\"}}");
    guard_start(&guard, "volumeAttributesClasses: {waitForModify: true}\n");
    check(!filter_passes(&guard, "a"), "it is being changed");
    guard_reload(&guard, "volumeAttributesClasses: {waitForModify: false}\n");
    check(api_wait("PATCH", REQUEUE, 1), "the pod is requeued");
    check(filter_passes(&guard, "a"), "and passes");
    guard_stop(&guard);
}

/* The pod was rejected for a holder, which the API server has confirmed: it waits for no cause. */
static void a_reload_that_lets_a_confirmed_rejection_pass_requeues_the_pod(void)
{
    static const char config[] = "deferFSMount:\n  apply: Annotation\n  entries:\n"
                                 "  - {storageClass: fast, runtimeClass: vm, "
                                 "nonExclusiveClaims: %s}\n";
    struct guard guard;

    put_class("gold", "a.example.com");
    put_waiting_pod();
    put_gold_claim("pv-1", "{\"phase\":\"Bound\",\"currentVolumeAttributesClassName\":\"gold\"}");
    put_volume("pv-1", "fast", "Bound");
    put_pod(&(struct test_pod){
        .name = "a", .claim = "data", .more_spec = ",\"runtimeClassName\":\"vm\""});
    put_pod(&(struct test_pod){.name = "b", .claim = "data", .node = "node-1"});
    guard_start(&guard, scenario_printf(config, "Exclusive"));
    check(!filter_passes(&guard, "a"), "it would be deferred, and b has the claim");
    check(guard_metric(&guard, "claimguard_requeues_waiting ") == 0, "it waits for no cause");
    guard_reload(&guard, scenario_printf(config, "Allow"));
    expect_requeue(&guard);
    guard_stop(&guard);
}

/* What is captured gives the verdict that the live cluster gives. */
static void a_snapshot_gives_the_same_verdict(void)
{
    char kubeconfig[64], file[64], *out, *err;
    struct guard guard;

    put_class("gold", "b.example.com");
    put_waiting_pod();
    guard_start(&guard, "");
    char *answer = guard_call(&guard, "/filter", filter_body("a"));
    guard_user("{token: t}");
    (void)snprintf(kubeconfig, sizeof kubeconfig, "%s/kubeconfig", scenario_folder());
    (void)snprintf(file, sizeof file, "%s/snapshot.json", scenario_folder());
    const char *capture[] = {"snapshot", "--kubeconfig", kubeconfig, "-o", file, NULL};
    check(process_run(capture, NULL, &out, &err) == 0, "%s", err);
    free(out);
    free(err);
    const char *ask[] = {"dry-run", "--snapshot", file, "--pod", "default/a", NULL};
    check(process_run(ask, NULL, &out, &err) == 1, "%s%s", out, err);
    const char *reason = "VolumeAttributesClass gold is for driver b.example.com, claim "
                         "default/data is provisioned by a.example.com";
    check(strstr(answer, reason) != NULL && strstr(out, reason) != NULL, "%s\n%s", answer, out);
    free(out);
    free(err);
    free(answer);
    guard_stop(&guard);
}

/* The former claimguard has rejected the pod, and this one does not know it. */
static void a_class_that_appears_after_a_restart(void)
{
    struct guard guard;

    put_waiting_pod();
    guard_start(&guard, "");
    check(!filter_passes(&guard, "a"), "the class is missing");
    guard_stop(&guard);
    guard_start(&guard, "");
    AWAIT(guard_metric(&guard, "claimguard_requeues_waiting ") == 1, "it waits for the class");
    check(api_count("PATCH", REQUEUE) == 0, "nothing has changed so far");
    put_class("gold", "a.example.com");
    expect_requeue(&guard);
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_missing_class_appears),
        SCENARIO(a_class_of_another_driver_is_replaced),
        SCENARIO(a_storage_class_is_replaced),
        SCENARIO(a_volume_of_the_class_is_available),
        SCENARIO(a_csi_driver_appears),
        SCENARIO(a_claim_that_was_bound_is_not_rejected),
        SCENARIO(a_change_that_is_over_is_not_waited_for),
        SCENARIO(an_api_server_that_does_not_serve_classes_lacks_none),
        SCENARIO(a_policy_that_is_off_after_a_reload_keeps_no_pod_waiting),
        SCENARIO(a_reload_ends_the_wait_for_a_change),
        SCENARIO(a_reload_that_lets_a_confirmed_rejection_pass_requeues_the_pod),
        SCENARIO(a_snapshot_gives_the_same_verdict),
        SCENARIO(a_class_that_appears_after_a_restart),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
