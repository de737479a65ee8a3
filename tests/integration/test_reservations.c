/* Reservations over HTTP: filter, another filter, bind; what comes of each. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/http.h"
#include "support/process.h"

static struct daemon server;
static char folder[] = "/tmp/reservations-XXXXXX";

static const char snapshot[] =
    "apiVersion: v1\nkind: List\nitems:\n"
    "- {apiVersion: v1, kind: Node, metadata: {name: node-1}}\n"
    "- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: d, uid: c}, "
    "spec: {accessModes: [ReadWriteOncePod]}}\n"
    "- {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: d, uid: ua}, spec: {volumes: "
    "[{name: v, "
    "persistentVolumeClaim: {claimName: data}}]}}\n"
    "- {apiVersion: v1, kind: Pod, metadata: {name: b, namespace: d, uid: ub}, spec: {volumes: "
    "[{name: v, "
    "persistentVolumeClaim: {claimName: data}}]}}\n"
    "- {apiVersion: v1, kind: Pod, metadata: {name: h, namespace: d, uid: uh}, spec: {priority: "
    "10, volumes: [{name: v, "
    "persistentVolumeClaim: {claimName: data}}]}}\n";

static void write_to(const char *name, const char *text, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void setup(void)
{
    char config[64], cluster[64];

    cr_assert(mkdtemp(folder) != NULL);
    write_to("config.yaml",
             "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n"
             "server: {debugEndpoints: true}\nreadWriteOncePod: {reservationTTL: 10s}\n",
             config, sizeof config);
    write_to("cluster.yaml", snapshot, cluster, sizeof cluster);
    cr_assert(daemon_start(&server,
                           (const char *const[]){"--snapshot", cluster, "--config", config, NULL}));
}

static void teardown(void)
{
    char command[64];

    cr_expect_eq(daemon_stop(&server), 0);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(reservations, .init = setup, .fini = teardown);

/* Whether the answer to a call has the text. */
static bool answers(const char *path, const char *body, const char *text)
{
    struct response response;

    http_call(server.port, body == NULL ? "GET" : "POST", path, body, &response);
    bool has_text = strstr(response.body, text) != NULL;
    if (!has_text)
        (void)fprintf(stderr, "%s: %s\n", path, response.body);
    response_free(&response);
    return has_text;
}

static bool filters(const char *pod, int priority, const char *text)
{
    char body[512];

    (void)snprintf(
        body, sizeof body,
        "{\"NodeNames\":[\"node-1\"],\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\","
        "\"uid\":\"u%s\"},\"spec\":{\"priority\":%d,\"volumes\":[{\"name\":\"v\","
        "\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}}",
        pod, pod, priority);
    return answers("/filter", body, text);
}

static bool binds(const char *pod, const char *text)
{
    char body[256];

    (void)snprintf(
        body, sizeof body,
        "{\"PodName\":\"%s\",\"PodNamespace\":\"d\",\"PodUID\":\"u%s\",\"Node\":\"node-1\"}", pod,
        pod);
    return answers("/bind", body, text);
}

/* Whether the dry run of /debug/snapshot as it is now shows the text about the pod. */
static bool dry_runs(const char *pod, const char *text)
{
    struct response response;
    char path[64], name[16], *out, *err;

    http_call(server.metrics_port, "GET", "/debug/snapshot", NULL, &response);
    cr_expect_eq(response.status, 200);
    write_to("snapshot.json", response.body, path, sizeof path);
    (void)snprintf(name, sizeof name, "d/%s", pod);
    (void)process_run(
        (const char *const[]){"dry-run", "--snapshot", path, "--pod", name, "-o", "json", NULL},
        NULL, &out, &err);
    bool has_text = strstr(out, text) != NULL;
    if (!has_text)
        (void)fprintf(stderr, "%s: %s%s\n%s\n", pod, out, err, response.body);
    response_free(&response);
    free(out);
    free(err);
    return has_text;
}

#define PASSES   "\"NodeNames\":[\"node-1\"]"
#define RESERVED "claim d/data is reserved for pod d/a"

Test(reservations, between_filter_and_bind_the_claim_is_taken)
{
    cr_expect(filters("a", 0, PASSES));
    cr_expect(answers("/debug/cache", NULL, "\"as\": \"Reserved\""));
    cr_expect(filters("b", 0, RESERVED));
    cr_expect(filters("a", 0, PASSES), "the pod itself is asked about again");
    cr_expect(binds("b", RESERVED));
    cr_expect(binds("a", "{\"Error\":\"\"}"));
    cr_expect(binds("a", "{\"Error\":\"\"}"), "idempotent");
    cr_expect(filters("b", 0, "claim d/data is in use by pod d/a on node-1"));
    cr_expect(answers("/debug/cache", NULL, "\"reservations\": []"));
}

Test(reservations, a_snapshot_has_them)
{
    cr_expect(filters("a", 0, PASSES));
    cr_expect(filters("b", 0, RESERVED));
    cr_expect(dry_runs("b", RESERVED));
    cr_expect(dry_runs("b", "\"as\": \"Reserved\""));
    cr_expect(dry_runs("a", "\"code\": \"Success\""), "the pod itself");
    cr_expect(dry_runs("h", "\"code\": \"Success\""), "a higher priority would take over");
    cr_expect(filters("h", 10, PASSES));
    cr_expect(dry_runs("a", "claim d/data is reserved for pod d/h"));
    cr_expect(binds("h", "{\"Error\":\"\"}"));
    cr_expect(dry_runs("a", "claim d/data is in use by pod d/h on node-1"));
}

Test(reservations, one_that_comes_to_nothing_ends_by_itself)
{
    cr_expect(filters("a", 0, PASSES));
    cr_expect(filters("b", 0, RESERVED));
    (void)usleep(10100000);
    cr_expect(filters("b", 0, PASSES));
    cr_expect(binds("a", "claim d/data is reserved for pod d/b"), "its time is over");
    cr_expect(binds("b", "{\"Error\":\"\"}"));
}

Test(reservations, a_higher_priority_takes_over)
{
    cr_expect(filters("a", 0, PASSES));
    cr_expect(filters("h", 10, PASSES));
    cr_expect(binds("a", "claim d/data is reserved for pod d/h"));
    cr_expect(binds("h", "{\"Error\":\"\"}"));
}

Test(reservations, prefilter_reserves_nothing)
{
    cr_expect(answers("/prefilter",
                      "{\"Pod\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\"},"
                      "\"spec\":{\"volumes\":"
                      "[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}}}",
                      "\"code\":\"Success\""));
    cr_expect(filters("b", 0, PASSES));
}

/* ---- bad input, and calls about no node ---- */

/* The status of a filter call of pod a with this node list; the claim is free, or held by b. */
static int filter_status(const char *nodes, const char *text)
{
    struct response response;
    char body[512];

    (void)snprintf(body, sizeof body,
                   "{%s,\"Pod\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\"},"
                   "\"spec\":{\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{"
                   "\"claimName\":\"data\"}}]}}}",
                   nodes);
    http_call(server.port, "POST", "/filter", body, &response);
    int status = response.status;
    cr_expect_not_null(strstr(response.body, text), "%s: %s", nodes, response.body);
    response_free(&response);
    return status;
}

static const struct {
    const char *nodes, *error;
} bad_nodes[] = {
    {"\"Nodes\":{\"items\":7}", "Nodes.items: expected an array"},
    {"\"Nodes\":{\"items\":{}}", "Nodes.items: expected an array"},
    {"\"Nodes\":{\"items\":\"node-1\"}", "Nodes.items: expected an array"},
    {"\"Nodes\":{\"items\":[\"node-1\"]}", "Nodes.items[0]: expected an object"},
    {"\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"node-1\"}},7]}",
     "Nodes.items[1]: expected an object"},
    {"\"Nodes\":{\"items\":[{\"metadata\":{\"name\":7}}]}",
     "Nodes.items[0].metadata.name: expected a string"},
    {"\"Nodes\":[]", "Nodes: expected an object"},
    {"\"NodeNames\":[7]", "NodeNames: expected a string"},
    {"\"NodeNames\":\"node-1\"", "NodeNames: expected an array"},
};

Test(reservations, bad_node_lists_are_refused_and_reserve_nothing)
{
    for (size_t i = 0; i < sizeof bad_nodes / sizeof *bad_nodes; i++)
        cr_expect_eq(filter_status(bad_nodes[i].nodes, bad_nodes[i].error), 400, "%s",
                     bad_nodes[i].nodes);
    cr_expect(answers("/debug/cache", NULL, "\"reservations\": []"));
    cr_expect(binds("b", "{\"Error\":\"\"}"));
    for (size_t i = 0; i < sizeof bad_nodes / sizeof *bad_nodes; i++)
        cr_expect_eq(filter_status(bad_nodes[i].nodes, bad_nodes[i].error), 400, "%s, held",
                     bad_nodes[i].nodes);
}

Test(reservations, a_call_about_no_node_reserves_nothing)
{
    static const char *const none[] = {"\"NodeNames\":[]", "\"Nodes\":{\"items\":[]}",
                                       "\"Nodes\":{\"items\":null}", "\"Nodes\":{}"};

    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        cr_expect_eq(filter_status(none[i], "\"FailedNodes\":{}"), 200, "%s", none[i]);
    cr_expect(answers("/debug/cache", NULL, "\"reservations\": []"));
    cr_expect(filters("b", 0, PASSES));
}
