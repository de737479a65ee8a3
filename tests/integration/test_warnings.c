/* The dry run's outputs for people, of pods that policies warn of and of nodes that they reject:
 * with the policies of support/node_policy.h. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/process.h"

static const char cluster[] =
    "apiVersion: v1\nkind: List\nitems:\n"
    "- {apiVersion: v1, kind: Node, metadata: {name: node-1}}\n"
    "- {apiVersion: v1, kind: Node, metadata: {name: node-2}}\n"
    "- {apiVersion: v1, kind: Node, metadata: {name: node-3}}\n"
    "- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: "
    "[ReadWriteOncePod]}}\n"
    "- {apiVersion: v1, kind: PriorityClass, metadata: {name: usual}, value: 10}\n";

static char *write_file(const char *text)
{
    char *path = strdup("/tmp/claimguard-warnings-XXXXXX");
    int file = mkstemp(path);

    cr_assert(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(file);
    return path;
}

/* The dry run's stdout for a pending pod of that name; without its last lines, which say what was
 * checked. Ownership: the caller's to free. */
static char *dry_run(const char *pod, const char *format, int want_status)
{
    char manifest[256], *out, *err, *snapshot = write_file(cluster);

    (void)snprintf(manifest, sizeof manifest,
                   "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {}}", pod);
    char *file = write_file(manifest);
    const char *arguments[] = {"dry-run", "--snapshot", snapshot, "--pod",
                               file,      "-o",         format,   NULL};
    int status = process_run(arguments, NULL, &out, &err);
    cr_expect_eq(status, want_status, "%d: %s", status, err);
    (void)unlink(snapshot);
    (void)unlink(file);
    free(snapshot);
    free(file);
    free(err);
    char *end = strstr(out, "\n1 pod: ");
    if (end != NULL)
        *end = '\0';
    return out;
}

static void expect_output(const char *pod, const char *format, int status, const char *want)
{
    char *out = dry_run(pod, format, status);

    cr_expect_str_eq(out, want, "%s", out);
    free(out);
}

Test(outputs, a_table_lists_the_warnings_about_a_pod_and_about_nodes)
{
    expect_output("doomed", "table", 0,
                  "NAMESPACE  POD     SCHEDULABLE  VERDICT  PREEMPTION  REASON\n"
                  "default    doomed  yes          Skip     -           -\n"
                  "\nWarnings of policies:\n\n"
                  "NAMESPACE  POD     NODES  WARNING\n"
                  "default    doomed  all    the pod is doomed\n");
    expect_output("warned", "wide", 0,
                  "NAMESPACE  POD     SCHEDULABLE  VERDICT  NODES  CLAIMS  PREEMPTION  REASON\n"
                  "default    warned  yes          Success  3/3    -       -           -\n"
                  "\nWarnings of policies:\n\n"
                  "NAMESPACE  POD     NODES   WARNING\n"
                  "default    warned  2 of 3  the pod is for node-1\n");
}

Test(outputs, a_table_says_why_nodes_are_rejected)
{
    expect_output("tested", "table", 0,
                  "NAMESPACE  POD     SCHEDULABLE  VERDICT  PREEMPTION  REASON\n"
                  "default    tested  yes          Success  -           the node is odd (on 2 of "
                  "3 nodes)\n");
}

Test(outputs, a_pod_that_passes_on_no_node_has_their_verdict)
{
    char *manifest = write_file("{apiVersion: v1, kind: Pod, metadata: {name: tested}, spec: {}}"),
         *snapshot = write_file(cluster), *out, *err;
    const char *arguments[] = {"dry-run", "--snapshot", snapshot, "--pod",  manifest,
                               "--node",  "node-1",     "--node", "node-3", NULL};

    cr_expect_eq(process_run(arguments, NULL, &out, &err), 1, "%s", err);
    cr_expect_not_null(strstr(out, "default    tested  no           UnschedulableAndUnresolvable  "
                                   "no help     the node is odd (on 2 of 2 nodes)\n"),
                       "%s", out);
    (void)unlink(manifest);
    (void)unlink(snapshot);
    free(manifest);
    free(snapshot);
    free(out);
    free(err);
}

Test(outputs, yaml_has_a_nodes_warnings_where_there_are_some)
{
    char *out = dry_run("warned", "yaml", 0);

    cr_expect_not_null(strstr(out, "warnings: []\n"
                                   "nodes:\n"
                                   "- name: \"node-1\"\n"
                                   "  code: \"Success\"\n"
                                   "  reasons: []\n"
                                   "- name: \"node-2\"\n"
                                   "  code: \"Success\"\n"
                                   "  reasons: []\n"
                                   "  warnings:\n"
                                   "  - \"the pod is for node-1\"\n"),
                       "%s", out);
    free(out);
    out = dry_run("doomed", "yaml", 0);
    cr_expect_not_null(strstr(out, "warnings:\n- \"the pod is doomed\"\n"), "%s", out);
    free(out);
}
