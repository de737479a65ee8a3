/* The dry run of pods that never passed the API server: their priority is that of their
 * PriorityClass. db-0 holds the claim with priority 100. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/process.h"

#define CLASS(name, value, more) \
    "- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: " name \
    "}, value: " value more "}\n"
#define CLAIMED "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]"

/* The classes come last: they count whatever the order. */
#define CLUSTER \
    "apiVersion: v1\nkind: List\nitems:\n" \
    "- {apiVersion: v1, kind: Node, metadata: {name: node-1}}\n" \
    "- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: " \
    "[ReadWriteOncePod]}}\n" \
    "- {apiVersion: v1, kind: Pod, metadata: {name: db-0}, spec: {nodeName: node-1, priority: " \
    "100, " CLAIMED "}}\n"
#define CLASSES \
    CLASS("low", "10", "") \
    CLASS("high", "1000", "") CLASS("never", "1000", ", preemptionPolicy: Never")

static const char plain[] = CLUSTER CLASSES;
static const char with_default[] = CLUSTER CLASSES CLASS("usual", "500", ", globalDefault: true");
static const char with_timid_default[] =
    CLUSTER CLASSES CLASS("usual", "500", ", globalDefault: true, preemptionPolicy: Never");
static const char with_two_defaults[] = CLUSTER CLASS("usual", "500", ", globalDefault: true")
    CLASS("older", "50", ", globalDefault: true") CLASS("other", "5", ", globalDefault: false");
static const char without_classes[] = CLUSTER;

struct row {
    const char *name, *snapshot, *spec;
    bool helps; /* preemption */
    const char *warning;
};

static const struct row rows[] = {
    {"a class above the holder", plain, "priorityClassName: high, ", true, NULL},
    {"a class below the holder", plain, "priorityClassName: low, ", false, NULL},
    {"a class that never preempts", plain, "priorityClassName: never, ", false, NULL},
    {"a priority of its own", plain, "priority: 5, priorityClassName: high, ", false, NULL},
    {"a priority of its own, and a class that never preempts", plain,
     "priority: 1000, priorityClassName: never, ", false, NULL},
    {"a priority of 0", with_default, "priority: 0, ", false, NULL},
    {"no class and no default", plain, "", false, NULL},
    {"the default", with_default, "", true, NULL},
    {"a default that never preempts", with_timid_default, "", false, NULL},
    {"a class beside the default", with_default, "priorityClassName: low, ", false, NULL},
    {"the lowest of two defaults", with_two_defaults, "", false, NULL},
    {"a system class", without_classes, "priorityClassName: system-cluster-critical, ", true, NULL},
    {"the other system class", without_classes, "priorityClassName: system-node-critical, ", true,
     NULL},
    {"a class that is not there", plain, "priorityClassName: gone, ", false,
     "there is no PriorityClass \"gone\" in the snapshot: priority 0 is assumed"},
    {"a class that is not there, and a default", with_default, "priorityClassName: gone, ", false,
     "there is no PriorityClass \"gone\" in the snapshot: priority 0 is assumed"},
    {"a class that is not there, and a priority", plain,
     "priority: 1000, priorityClassName: gone, ", true, NULL},
};

static void write_temporary(char *path, const char *text)
{
    int fd = mkstemp(path);

    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

struct run {
    char *out, *err;
    json_t *result;
};

/* A dry run of the snapshot; pod: NS/NAME, or the text of a manifest. */
static struct run dry_run(const char *snapshot, const char *pod, const char *format)
{
    char cluster[] = "/tmp/priorities-XXXXXX", manifest[] = "/tmp/priorities-XXXXXX";
    bool is_manifest = strchr(pod, '{') != NULL;
    struct run run;

    write_temporary(cluster, snapshot);
    if (is_manifest)
        write_temporary(manifest, pod);
    const char *arguments[] = {"dry-run", "-s",   cluster, "--pod", is_manifest ? manifest : pod,
                               "-o",      format, NULL};
    int status = process_run(arguments, NULL, &run.out, &run.err);
    cr_expect_eq(status, 1, "%d: %s", status, run.err);
    run.result = json_loads(run.out, 0, NULL);
    (void)unlink(cluster);
    if (is_manifest)
        (void)unlink(manifest);
    return run;
}

static void run_free(struct run *run)
{
    json_decref(run->result);
    free(run->out);
    free(run->err);
}

static bool helps(const struct run *run)
{
    return json_is_true(json_object_get(json_object_get(run->result, "preemption"), "helps"));
}

/* The pod's own comes first. */
static const char *warning(const struct run *run)
{
    const json_t *warnings = json_object_get(run->result, "warnings");

    cr_expect_not_null(warnings);
    return json_string_value(json_array_get(warnings, 0));
}

static void expect_warning(const struct run *run, const char *want, const char *name)
{
    const char *got = warning(run);

    if (want == NULL)
        cr_expect_null(got, "%s: %s", name, got);
    else
        cr_expect(got != NULL && strcmp(got, want) == 0, "%s: %s", name, got);
}

Test(priorities, a_manifest_has_the_priority_of_its_class)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char manifest[512];
        (void)snprintf(manifest, sizeof manifest,
                       "{apiVersion: v1, kind: Pod, metadata: {name: me}, spec: {%s" CLAIMED "}}",
                       rows[i].spec);
        struct run run = dry_run(rows[i].snapshot, manifest, "json");
        cr_expect_eq(helps(&run), rows[i].helps, "%s: %s", rows[i].name, run.out);
        expect_warning(&run, rows[i].warning, rows[i].name);
        run_free(&run);
    }
}

Test(priorities, a_table_has_its_warnings_on_stderr)
{
    struct run run = dry_run(plain,
                             "{apiVersion: v1, kind: Pod, metadata: {name: me}, spec: "
                             "{priorityClassName: gone, " CLAIMED "}}",
                             "table");

    cr_expect_not_null(strstr(run.err, "claimguard: default/me: there is no PriorityClass \"gone\" "
                                       "in the snapshot: priority 0 is assumed\n"),
                       "%s", run.err);
    cr_expect_null(strstr(run.out, "PriorityClass"));
    run_free(&run);
}

/* What the answer for a pod rests on may be a guess about others. */
Test(priorities, what_is_assumed_of_a_holder_is_a_warning_too)
{
    struct run run =
        dry_run("apiVersion: v1\nkind: List\nitems:\n"
                "- {apiVersion: v1, kind: Node, metadata: {name: node-1}}\n"
                "- {apiVersion: v1, kind: Pod, metadata: {name: db-1}, spec: {nodeName: node-1, "
                "priorityClassName: gone, volumes: [{name: v, persistentVolumeClaim: {claimName: "
                "logs}}]}}\n",
                "{apiVersion: v1, kind: Pod, metadata: {name: me}, spec: {volumes: [{name: v, "
                "persistentVolumeClaim: {claimName: logs}}]}}",
                "json");
    const json_t *warnings = json_object_get(run.result, "warnings");

    cr_assert_eq(json_array_size(warnings), 2, "%s", run.out);
    cr_expect_str_eq(json_string_value(json_array_get(warnings, 0)),
                     "the snapshot has no PersistentVolumeClaims: add pvc to kubectl get");
    cr_expect_str_eq(json_string_value(json_array_get(warnings, 1)),
                     "pods name PriorityClasses that the snapshot does not have; priority 0 is "
                     "assumed: add priorityclasses to kubectl get");
    run_free(&run);
}

#define WAITING(name, spec) \
    "- {apiVersion: v1, kind: Pod, metadata: {name: " name "}, spec: {" spec CLAIMED "}}\n"

Test(priorities, pods_of_a_snapshot_that_was_written_by_hand_have_them_too)
{
    static const struct {
        const char *pod, *snapshot;
        bool helps;
        const char *warning;
    } hand_written[] = {
        {"default/me", CLUSTER WAITING("me", "priorityClassName: high, ") CLASSES, true, NULL},
        {"default/me", CLUSTER WAITING("me", "priorityClassName: never, ") CLASSES, false, NULL},
        {"default/me", CLUSTER WAITING("me", "") CLASS("usual", "500", ", globalDefault: true"),
         true, NULL},
        {"default/me", CLUSTER WAITING("me", "priorityClassName: gone, ") CLASSES, false,
         "its PriorityClass is not in the snapshot: priority 0 is assumed"},
    };

    for (size_t i = 0; i < sizeof hand_written / sizeof *hand_written; i++) {
        struct run run = dry_run(hand_written[i].snapshot, hand_written[i].pod, "json");
        cr_expect_eq(helps(&run), hand_written[i].helps, "%zu: %s", i, run.out);
        expect_warning(&run, hand_written[i].warning, hand_written[i].pod);
        cr_expect_eq(strstr(run.err, "pods name PriorityClasses that the snapshot does not have") !=
                         NULL,
                     hand_written[i].warning != NULL, "%s", run.err);
        run_free(&run);
    }
}

Test(priorities, a_holder_has_the_priority_of_its_class)
{
    static const char snapshot[] =
        "apiVersion: v1\nkind: List\nitems:\n" CLASSES
        "- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: "
        "{accessModes: [ReadWriteOncePod]}}\n"
        "- {apiVersion: v1, kind: Pod, metadata: {name: db-0}, spec: {nodeName: node-1, "
        "priorityClassName: high, " CLAIMED "}}\n" WAITING("me", "priority: 500, ");
    struct run run = dry_run(snapshot, "default/me", "json");

    cr_expect_not(helps(&run), "%s", run.out);
    run_free(&run);
}
