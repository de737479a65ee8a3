/* Every case of tests/cases (with NODE_CASES: of tests/node_cases), through the dry run and through
 * HTTP, with both forms of node lists: the real program. */
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

/* `name`: POLICY/ROW. answer: the file that has it. */
static struct files open_case(const char *name, const char *answer)
{
    struct files files;

    (void)snprintf(files.cluster, sizeof files.cluster, FOLDER "%s/cluster.yaml", name);
    (void)snprintf(files.pod, sizeof files.pod, FOLDER "%s/pod.json", name);
    (void)snprintf(files.config, sizeof files.config, FOLDER "%s/config.yaml", name);
    (void)snprintf(files.want_path, sizeof files.want_path, FOLDER "%s/%s", name, answer);
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
    struct files files = open_case(name, "want.json");
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

/* The two forms of a node list (nodeCacheCapable: true, and false). */
enum form { NAMES, OBJECTS, FORMS };

static json_t *make_list(enum form form, json_t *items)
{
    return form == NAMES
               ? json_pack("{s:n,s:o}", "Nodes", "NodeNames", items)
               : json_pack("{s:{s:{},s:o},s:n}", "Nodes", "metadata", "items", items, "NodeNames");
}

/* A whole Node has more than its name, which comes back as it came. */
static json_t *make_item(enum form form, const char *name)
{
    return form == NAMES ? json_string(name)
                         : json_pack("{s:{s:s,s:{s:s}},s:{s:[b]}}", "metadata", "name", name,
                                     "labels", "zone", "a", "spec", "more", 1);
}

/* ExtenderArgs: the case's pod, and the nodes of want.json. */
static char *filter_body(const struct files *files, enum form form)
{
    json_t *body = json_pack("{s:o}", "Pod", json_load_file(files->pod, 0, NULL));
    json_t *items = json_array(), *node;
    size_t i;

    json_array_foreach (json_object_get(files->want, "nodes"), i, node)
        (void)json_array_append_new(
            items, make_item(form, json_string_value(json_object_get(node, "name"))));
    cr_assert_eq(i, 2, "both nodes of the call are in want.json");
    json_t *list = make_list(form, items);
    (void)json_object_update(body, list);
    char *text = json_dumps(body, 0);
    json_decref(list);
    json_decref(body);
    return text;
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
static json_t *wanted_answer(const struct files *files, enum form form)
{
    json_t *items = json_array(), *failed = json_object(), *unresolvable = json_object(), *node;
    size_t i;

    json_array_foreach (json_object_get(files->want, "nodes"), i, node) {
        const char *name = json_string_value(json_object_get(node, "name"));
        const char *code = json_string_value(json_object_get(node, "code"));
        char joined[1024];
        join_reasons(node, joined, sizeof joined);
        if (strcmp(code, "Success") == 0)
            (void)json_array_append_new(items, make_item(form, name));
        else
            (void)json_object_set_new(strcmp(code, "Unschedulable") == 0 ? failed : unresolvable,
                                      name, json_string(joined));
    }
    json_t *want = make_list(form, items);
    (void)json_object_set_new(want, "FailedNodes", failed);
    (void)json_object_set_new(want, "FailedAndUnresolvableNodes", unresolvable);
    (void)json_object_set_new(want, "Error", json_string(""));
    return want;
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

static void check_prefilter(const struct files *files, const struct daemon *daemon,
                            const char *body)
{
    json_t *prefilter = ask(daemon, "/prefilter", body);

    expect_member(prefilter, json_object_get(files->want, "preFilter"), "code");
    expect_member(prefilter, json_object_get(files->want, "preFilter"), "reasons");
    expect_member(prefilter, files->want, "warnings");
    expect_member(prefilter, files->want, "claims");
    expect_member(prefilter, files->want, "deferFSMount");
    json_decref(prefilter);
}

static void check_filter(const struct files *files, const struct daemon *daemon, enum form form,
                         const char *body)
{
    json_t *want = wanted_answer(files, form), *filter = ask(daemon, "/filter", body);
    char *text = json_dumps(filter, 0);

    cr_expect(json_equal(filter, want), "%s: got %s", form == NAMES ? "names" : "objects", text);
    free(text);
    json_decref(want);
    json_decref(filter);
}

/* Where kube-scheduler's own plugins have rejected the pod before, filter.json has what the server
 * would answer. */
static const char *server_answer(const char *name)
{
    char path[512];

    (void)snprintf(path, sizeof path, FOLDER "%s/filter.json", name);
    return access(path, F_OK) == 0 ? "filter.json" : "want.json";
}

static void check_http(const char *name)
{
    struct files files = open_case(name, server_answer(name));
    struct daemon daemon;

    cr_assert(
        daemon_start(&daemon, (const char *const[]){"--snapshot", files.cluster,
                                                    files.config_option, files.config, NULL}));
    for (enum form form = NAMES; form < FORMS; form++) {
        char *body = filter_body(&files, form);
        check_prefilter(&files, &daemon, body);
        check_filter(&files, &daemon, form, body);
        free(body);
    }
    expect_volcano(&daemon, &files, "node-1");
    expect_volcano(&daemon, &files, "node-2");
    json_decref(files.want);
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
