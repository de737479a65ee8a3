/* /debug/snapshot of a live claimguard: the dry run on it has the verdicts that claimguard has now,
 * and nothing is in it that no verdict needs. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adversity/preemptors.h"
#include "support/process.h"

#define DEBUG "server: {debugEndpoints: true}\n"

/* The page as it is now. */
static char *take(const struct guard *guard)
{
    int status;
    char *text = guard_get(guard, "/debug/snapshot", &status);

    check(status == 200, "status %d", status);
    return text;
}

/* The dry run of the pod on that text. Ownership: the caller's. */
static json_t *dry_run(const char *snapshot, const char *pod)
{
    char path[128], name[64], *out, *err;

    (void)snprintf(path, sizeof path, "%s/debug.json", scenario_folder());
    (void)snprintf(name, sizeof name, "default/%s", pod);
    FILE *file = fopen(path, "we");
    check(file != NULL && fputs(snapshot, file) >= 0 && fclose(file) == 0, "%s", path);
    (void)process_run(
        (const char *const[]){"dry-run", "--snapshot", path, "--pod", name, "-o", "json", NULL},
        NULL, &out, &err);
    json_t *result = json_loads(out, 0, NULL);
    check(result != NULL, "%s%s", out, err);
    free(out);
    free(err);
    return result;
}

static void expect_equal(const json_t *got, const json_t *want, const char *pod, const char *what)
{
    char *text = json_dumps(got, JSON_ENCODE_ANY), *wanted = json_dumps(want, JSON_ENCODE_ANY);

    check(json_equal(got, want), "%s, %s: %s, not %s", pod, what, text, wanted);
    free(text);
    free(wanted);
}

/* The pod has the same verdict here and there. A filter call that passes reserves. */
static void expect_same(const struct guard *guard, const char *pod)
{
    static const char *const members[] = {"code", "reasons"};
    char *snapshot = take(guard), *answer = guard_call(guard, "/prefilter", filter_body(pod));
    json_t *there = dry_run(snapshot, pod), *here = json_loads(answer, 0, NULL);

    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        expect_equal(json_object_get(json_object_get(there, "preFilter"), members[i]),
                     json_object_get(here, members[i]), pod, members[i]);
    expect_equal(json_object_get(there, "claims"), json_object_get(here, "claims"), pod, "claims");
    expect_equal(json_object_get(there, "warnings"), json_object_get(here, "warnings"), pod,
                 "warnings");
    check(filter_passes(guard, pod) == json_is_true(json_object_get(there, "schedulable")), "%s",
          snapshot);
    json_decref(there);
    json_decref(here);
    free(snapshot);
    free(answer);
}

static void start(struct guard *guard, unsigned pods)
{
    guard_start(guard, DEBUG);
    AWAIT(sees(guard, pods), "the pods are seen");
}

static void a_pod_behind_a_holder_and_a_pod_behind_a_reservation(void)
{
    struct guard guard;

    put_pair("node-1");
    put_claim("free");
    put_pod(&(struct test_pod){.name = "first", .claim = "free"});
    put_pod(&(struct test_pod){.name = "second", .claim = "free"});
    put_pod(&(struct test_pod){.name = "urgent", .claim = "data", .priority = 5});
    put_pod(&(struct test_pod){.name = "lost", .claim = "none"});
    put_pod(&(struct test_pod){.name = "plain"});
    start(&guard, 7);
    check(filter_passes(&guard, "first"), "its claim is free");
    expect_same(&guard, "second");
    char *snapshot = take(&guard);
    check(strstr(snapshot, "\"kind\":\"Reservation\"") != NULL, "%s", snapshot);
    free(snapshot);
    expect_same(&guard, "first");
    expect_same(&guard, "b");
    expect_same(&guard, "urgent");
    expect_same(&guard, "lost");
    expect_same(&guard, "plain");
    guard_stop(&guard);
}

static void a_pod_behind_a_bind_in_doubt(void)
{
    struct guard guard;

    put_pair(NULL);
    put_pod(&(struct test_pod){.name = "urgent", .claim = "data", .priority = 5});
    start(&guard, 3);
    check(filter_passes(&guard, "a"), "its claim is free");
    api_fault(&(struct api_fault){.method = "POST", .path = "/binding", .times = 1, .status = 500});
    check(!bind_succeeds(&guard, "a", "node-1"), "the outcome is unknown");
    expect_same(&guard, "b");
    expect_same(&guard, "urgent"); /* nobody takes over what is being bound */
    guard_stop(&guard);
}

static void a_pod_behind_a_preemptor(void)
{
    struct guard guard;

    start_with_a_preemptor(&guard, DEBUG "readWriteOncePod: {preemptionGrace: 10ms}\n");
    put_pod(&(struct test_pod){.name = "middle", .claim = "data", .priority = 50});
    check(!filter_passes(&guard, "high-data"), "its claim is held");
    AWAIT(api_text("pods", "default", "low-data", "metadata.deletionTimestamp")[0] != '\0',
          "the holder terminates");
    api_remove("pods", "default", "low-data");
    AWAIT(sees(&guard, 2), "it is gone");
    expect_same(&guard, "middle");
    expect_same(&guard, "high-data");
    guard_stop(&guard);
}

static void a_pod_with_a_class_that_the_api_server_does_not_serve(void)
{
    struct guard guard;

    api_fault(&(struct api_fault){.path = "/volumeattributesclasses", .status = 404});
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"data\",\"namespace\":"
            "\"default\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],"
            "\"volumeAttributesClassName\":\"gold\",\"storageClassName\":\"fast\"}}");
    put_pod(&(struct test_pod){.name = "a", .claim = "data"});
    start(&guard, 1);
    char *snapshot = take(&guard);
    check(strstr(snapshot, "\"kind\":\"UnservedResource\"") != NULL, "%s", snapshot);
    free(snapshot);
    expect_same(&guard, "a");
    guard_stop(&guard);
}

static void what_no_verdict_needs_is_not_there(void)
{
    struct guard guard;

    put_claim("data");
    put_pod(&(struct test_pod){
        .name = "a",
        .claim = "data",
        .more_meta = ",\"annotations\":{\"kubectl.kubernetes.io/last-applied\":\"planted\"}",
        .more_spec = ",\"containers\":[{\"name\":\"c\",\"command\":[\"planted\"],\"env\":[{"
                     "\"name\":\"PASSWORD\",\"value\":\"planted\"}]}]"});
    api_put("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"planted\",\"namespace\":\"default\"}}");
    start(&guard, 1);
    char *snapshot = take(&guard);
    check(strstr(snapshot, "\"name\":\"a\"") != NULL && strstr(snapshot, "planted") == NULL &&
              strstr(snapshot, "PASSWORD") == NULL,
          "%s", snapshot);
    free(snapshot);
    guard_stop(&guard);
}

enum { CHANGES = 200 };

static void *change(void *context)
{
    (void)context;
    for (int i = 0; i < CHANGES; i++) {
        const char *name = scenario_printf("p-%d", i % 7);
        put_pod(&(struct test_pod){
            .name = name, .claim = "data", .node = i % 3 == 0 ? "node-1" : NULL});
        if (i % 2 == 0)
            api_remove("pods", "default", name);
        sleep_ms(2);
    }
    return NULL;
}

/* Whatever changes meanwhile, it is a list of whole objects. */
static void a_cluster_that_changes(void)
{
    struct guard guard;
    pthread_t thread;

    put_pair(NULL);
    start(&guard, 2);
    check(pthread_create(&thread, NULL, change, NULL) == 0, "no thread");
    for (int i = 0; i < 50; i++) {
        (void)filter_passes(&guard, "a");
        char *snapshot = take(&guard);
        json_t *list = json_loads(snapshot, JSON_REJECT_DUPLICATES, NULL);
        check(list != NULL, "%s", snapshot);
        json_decref(list);
        json_decref(dry_run(snapshot, "b"));
        free(snapshot);
    }
    (void)pthread_join(thread, NULL);
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(a_pod_behind_a_holder_and_a_pod_behind_a_reservation),
        SCENARIO(a_pod_behind_a_bind_in_doubt),
        SCENARIO(a_pod_behind_a_preemptor),
        SCENARIO(a_pod_with_a_class_that_the_api_server_does_not_serve),
        SCENARIO(what_no_verdict_needs_is_not_there),
        SCENARIO(a_cluster_that_changes),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
