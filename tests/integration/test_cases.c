/* Every case of tests/cases (with NODE_CASES: of tests/node_cases), through the dry run and through
 * HTTP: the real program. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef NODE_CASES
#include "node_cases/cases.h"
#define FOLDER TESTS_DIR "/node_cases/"
#else
#include "cases/cases.h"
#define FOLDER TESTS_DIR "/cases/"
#endif
#include "support/http.h"
#include "support/process.h"

struct files {
    char cluster[512], pod[512], config[512], want_path[512];
    const char *config_option; /* --config, where the case has a config.yaml; NULL: it has none */
    json_t *want;
};

/* `name`: POLICY/ROW. */
static struct files open_case(const char *name)
{
    struct files files;

    (void)snprintf(files.cluster, sizeof files.cluster, FOLDER "%s/cluster.yaml", name);
    (void)snprintf(files.pod, sizeof files.pod, FOLDER "%s/pod.json", name);
    (void)snprintf(files.config, sizeof files.config, FOLDER "%s/config.yaml", name);
    (void)snprintf(files.want_path, sizeof files.want_path, FOLDER "%s/want.json", name);
    files.config_option = access(files.config, F_OK) == 0 ? "--config" : NULL;
    files.want = json_load_file(files.want_path, 0, NULL);
    cr_assert_not_null(files.want, "%s", files.want_path);
    return files;
}

static bool is_schedulable(const struct files *files)
{
    return json_is_true(json_object_get(files->want, "schedulable"));
}

static void check_dry_run(const char *name)
{
    struct files files = open_case(name);
    char *out, *err;
    const char *arguments[] = {"dry-run",    "--snapshot", files.cluster, "--pod",
                               files.pod,    "-o",         "json",        files.config_option,
                               files.config, NULL};

    int status = process_run(arguments, NULL, &out, &err);
    cr_expect_eq(status, is_schedulable(&files) ? 0 : 1, "exit status %d: %s", status, err);
    json_t *got = json_loads(out, 0, NULL);
    cr_expect(json_equal(got, files.want), "got %s", out);
    json_decref(got);
    json_decref(files.want);
    free(out);
    free(err);
}

static void expect_member(const json_t *got, const json_t *want, const char *key)
{
    cr_expect(json_equal(json_object_get(got, key), json_object_get(want, key)), "%s differs", key);
}

/* {"Pod": ..., "NodeNames": [...]} */
static char *filter_body(const struct files *files)
{
    char *pod = read_file(files->pod), *body = NULL;

    cr_assert_gt(
        asprintf(&body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[\"node-1\",\"node-2\"]}", pod),
        0);
    free(pod);
    return body;
}

/* "a; b" */
static void join_reasons(const json_t *node, char *out, size_t size)
{
    size_t i;
    json_t *reason;

    out[0] = '\0';
    json_array_foreach (json_object_get(node, "reasons"), i, reason)
        (void)snprintf(out + strlen(out), size - strlen(out), "%s%s", i == 0 ? "" : "; ",
                       json_string_value(reason));
}

/* The dry run's "nodes" as a filter answer has them. */
static void expect_filter(const struct files *files, const json_t *answer)
{
    json_t *names = json_array(), *failed = json_object(), *unresolvable = json_object(), *node;
    size_t i;

    json_array_foreach (json_object_get(files->want, "nodes"), i, node) {
        json_t *name = json_object_get(node, "name");
        const char *code = json_string_value(json_object_get(node, "code"));
        char joined[1024];
        join_reasons(node, joined, sizeof joined);
        if (strcmp(code, "Success") == 0)
            (void)json_array_append(names, name);
        else
            (void)json_object_set_new(strcmp(code, "Unschedulable") == 0 ? failed : unresolvable,
                                      json_string_value(name), json_string(joined));
    }
    cr_assert_eq(i, 2, "both nodes of the call are in want.json");
    cr_expect(json_equal(json_object_get(answer, "NodeNames"), names));
    cr_expect(json_equal(json_object_get(answer, "FailedNodes"), failed));
    cr_expect(json_equal(json_object_get(answer, "FailedAndUnresolvableNodes"), unresolvable));
    cr_expect_str_eq(json_string_value(json_object_get(answer, "Error")), "");
    json_decref(names);
    json_decref(failed);
    json_decref(unresolvable);
}

static json_t *ask(const struct daemon *daemon, const char *path, const char *body)
{
    struct response response;

    http_call(daemon->port, "POST", path, body, &response);
    cr_expect_eq(response.status, 200, "%s: %d %s", path, response.status, response.body);
    json_t *answer = json_loadb(response.body, response.body_len, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(answer);
    response_free(&response);
    return answer;
}

/* Volcano's call about a node has the verdict of filter with this node alone. */
static void expect_volcano(const struct daemon *daemon, const struct files *files, const char *node)
{
    static const char *const places[] = {"FailedNodes", "FailedAndUnresolvableNodes"};
    char *pod = read_file(files->pod), *body = NULL;
    const char *reason = NULL;

    cr_assert_gt(asprintf(&body, "{\"Pod\":%s,\"NodeNames\":[\"%s\"]}", pod, node), 0);
    json_t *filter = ask(daemon, "/filter", body);
    free(body);
    cr_assert_gt(asprintf(&body, "{\"task\":{\"Pod\":%s},\"node\":{\"Name\":\"%s\"}}", pod, node),
                 0);
    json_t *predicate = ask(daemon, "/volcano/predicate", body);
    for (size_t i = 0; i < 2 && reason == NULL; i++)
        reason = json_string_value(json_object_get(json_object_get(filter, places[i]), node));
    cr_expect_str_eq(json_string_value(json_object_get(predicate, "status")),
                     reason == NULL ? "" : reason);
    cr_expect_eq(json_integer_value(json_object_get(predicate, "code")), reason == NULL ? 0 : 3);
    json_decref(predicate);
    json_decref(filter);
    free(body);
    free(pod);
}

static void check_http(const char *name)
{
    struct files files = open_case(name);
    struct daemon daemon;
    char *body = filter_body(&files);

    cr_assert(
        daemon_start(&daemon, (const char *const[]){"--snapshot", files.cluster,
                                                    files.config_option, files.config, NULL}));
    json_t *prefilter = ask(&daemon, "/prefilter", body);
    expect_member(prefilter, json_object_get(files.want, "preFilter"), "code");
    expect_member(prefilter, json_object_get(files.want, "preFilter"), "reasons");
    expect_member(prefilter, files.want, "warnings");
    expect_member(prefilter, files.want, "claims");
    expect_member(prefilter, files.want, "deferFSMount");
    json_t *filter = ask(&daemon, "/filter", body);
    expect_filter(&files, filter);
    expect_volcano(&daemon, &files, "node-1");
    expect_volcano(&daemon, &files, "node-2");
    json_decref(prefilter);
    json_decref(filter);
    json_decref(files.want);
    free(body);
    cr_expect_eq(daemon_stop(&daemon), 0);
}

#define CASE(policy, row) \
    Test(dry_run, policy##_##row) \
    { \
        check_dry_run(#policy "/" #row); \
    } \
    Test(http, policy##_##row) \
    { \
        check_http(#policy "/" #row); \
    }
ALL_CASES(CASE)
