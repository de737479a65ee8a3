/* DeferFSMount through the real program and a snapshot: the dry run's answer, what a bind does, the
 * pages, and a configuration that changes (the KEP's stories 4 to 6). The whole way with an API
 * server is in tests/simulation/deferral_rows.c and tests/e2e. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/http.h"
#include "support/process.h"

#define HEAD "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n"
#define ENTRY \
    "deferFSMount:\n  entries:\n" \
    "  - {storageClass: fast-storage, runtimeClass: microvm, postMountConfig: {fsGroup: true, " \
    "fsGroupChangePolicies: [Always, OnRootMismatch], subPath: true}}\n"

static struct daemon server;
static char folder[] = "/tmp/deferral-XXXXXX";
static char config_path[64], cluster_path[64];

#define PVC(name_, pv_) \
    "- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: " name_ \
    ", namespace: d, uid: u" name_ "}, spec: {accessModes: [ReadWriteOncePod], " \
    "storageClassName: fast-storage, volumeName: " pv_ "}, status: {phase: Bound}}\n" \
    "- {apiVersion: v1, kind: PersistentVolume, metadata: {name: " pv_ \
    "}, spec: {claimRef: {namespace: d, name: " name_ "}, csi: {driver: plugin1.example.com}}}\n"
#define POD(name_, more_) \
    "- {apiVersion: v1, kind: Pod, metadata: {name: " name_ ", namespace: d, uid: u-" name_ more_ \
    ", runtimeClassName: microvm, securityContext: {fsGroup: 100, fsGroupChangePolicy: " \
    "OnRootMismatch}, containers: [{name: c, volumeMounts: [{name: data, subPath: x}]}], " \
    "volumes: [{name: data, persistentVolumeClaim: {claimName: " name_ "}}, {name: conf, " \
    "configMap: {name: c}}]}}\n"

static const char snapshot[] =
    "apiVersion: v1\nkind: List\nitems:\n"
    "- {apiVersion: v1, kind: Node, metadata: {name: node-1}}\n" PVC("a", "pv-a") PVC("b", "pv-b")
        POD("a", "}, spec: {x: y") POD("b", ", annotations: {claimguard.io/defer-fs-mount: data}}, "
                                            "spec: {nodeName: node-1");

static void write_to(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void setup(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    (void)snprintf(config_path, sizeof config_path, "%s/config.yaml", folder);
    (void)snprintf(cluster_path, sizeof cluster_path, "%s/cluster.yaml", folder);
    write_to(config_path, HEAD ENTRY);
    write_to(cluster_path, snapshot);
}

static void teardown(void)
{
    char command[64];

    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(deferral, .init = setup, .fini = teardown);

static void serve(void)
{
    cr_assert(daemon_start(
        &server, (const char *const[]){"--snapshot", cluster_path, "--config", config_path, NULL}));
}

static bool answers(uint16_t port, const char *path, const char *body, const char *text)
{
    struct response response;

    http_call(port, body == NULL ? "GET" : "POST", path, body, &response);
    bool has_text = strstr(response.body, text) != NULL;
    if (!has_text)
        (void)fprintf(stderr, "%s: %s\n", path, response.body);
    response_free(&response);
    return has_text;
}

/* What a dry run says, with that configuration. */
static void dry_run(const char *pod, const char *format, int status, const char *out_has,
                    const char *err_has)
{
    const char *arguments[] = {"dry-run", "--snapshot", cluster_path, "--config", config_path,
                               "--pod",   pod,          "-o",         format,     NULL};
    char *out, *err;

    cr_expect_eq(process_run(arguments, NULL, &out, &err), status, "%s", err);
    cr_expect(strstr(out, out_has) != NULL, "%s", out);
    cr_expect(strstr(err, err_has) != NULL, "%s", err);
    free(out);
    free(err);
}

Test(deferral, story_1_in_the_dry_run)
{
    dry_run("d/a", "yaml", 0,
            "deferFSMount:\n"
            "- volume: \"data\"\n"
            "  defer: true\n"
            "  entry: \"fast-storage/microvm\"\n"
            "  reason: \"the entry supports all that the pod needs\"\n"
            "- volume: \"conf\"\n"
            "  defer: false\n"
            "  entry: \"\"\n"
            "  reason: \"rule 1, source: it is no persistentVolumeClaim, ephemeral or csi "
            "volume\"\n",
            "");
    dry_run("d/a", "table", 0,
            "NAMESPACE  POD  VOLUME  DEFER  ENTRY                 REASON\n"
            "d          a    data    yes    fast-storage/microvm  the entry supports all that the "
            "pod needs\n",
            "");
}

Test(deferral, nothing_is_said_where_nobody_defers_anything)
{
    write_to(config_path, HEAD);
    dry_run("d/a", "yaml", 0, "deferFSMount: []\n", "");
}

Test(deferral, story_5_the_dry_run_names_what_is_to_be_drained)
{
    write_to(config_path, HEAD);
    dry_run("d/a", "json", 0, "\"deferFSMount\": []",
            "deferred volumes without an entry: 1; restart their pods "
            "before the CSI plugin is downgraded:\nd/b data\n");
}

#define BIND_A "{\"PodName\":\"a\",\"PodNamespace\":\"d\",\"PodUID\":\"u-a\",\"Node\":\"node-1\"}"

Test(deferral, a_bind_is_counted_and_prefilter_shows_the_decision)
{
    serve();
    cr_expect(answers(server.port, "/prefilter",
                      "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"d\"},\"spec\":{"
                      "\"runtimeClassName\":\"microvm\",\"volumes\":[{\"name\":\"data\","
                      "\"persistentVolumeClaim\":{\"claimName\":\"a\"}}]}}}",
                      "\"deferFSMount\":[{\"volume\":\"data\",\"defer\":true,\"entry\":"
                      "\"fast-storage/microvm\",\"reason\":\"the entry supports all that the pod "
                      "needs\"}]"));
    cr_expect(answers(server.port, "/bind", BIND_A, "{\"Error\":\"\"}"));
    cr_expect(answers(server.metrics_port, "/metrics", NULL,
                      "\nclaimguard_deferred_mounts_total{storage_class=\"fast-storage\",runtime_"
                      "class=\"microvm\"} 1\n"));
    cr_expect(answers(server.metrics_port, "/metrics", NULL,
                      "\nclaimguard_deferred_mounts_orphaned 0\n"));
    cr_expect_eq(daemon_stop(&server), 0);
}

Test(deferral, stories_4_to_6_entries_come_and_go_while_it_runs)
{
    write_to(config_path, HEAD);
    serve();
    cr_expect(answers(server.metrics_port, "/metrics", NULL,
                      "\nclaimguard_deferred_mounts_orphaned 1\n"));
    cr_expect(answers(server.metrics_port, "/statusz", NULL, "\ndeferFSMount "));
    cr_expect(answers(server.metrics_port, "/statusz", NULL,
                      "orphaned deferrals       1: pods whose entry is gone; restart them before a "
                      "downgrade\nd/b data\n"));
    write_to(config_path, HEAD ENTRY); /* the plugin is upgraded */
    (void)kill(server.pid, SIGHUP);
    cr_assert(daemon_wait_for(&server, "configuration reloaded"));
    cr_expect(answers(server.metrics_port, "/metrics", NULL,
                      "\nclaimguard_deferred_mounts_orphaned 0\n"));
    cr_expect(answers(server.port, "/bind", BIND_A, "{\"Error\":\"\"}"));
    write_to(config_path, HEAD); /* and downgraded */
    (void)kill(server.pid, SIGHUP);
    cr_assert(daemon_wait_for(&server, "configuration reloaded"));
    cr_expect(answers(server.metrics_port, "/metrics", NULL,
                      "\nclaimguard_deferred_mounts_orphaned 2\n"));
    cr_expect_eq(daemon_stop(&server), 0);
}
