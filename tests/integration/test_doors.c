/* Every row of the ReadWriteOncePod table, through the dry run and through HTTP: the real program.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cases/cases.h"
#include "support/http.h"
#include "support/process.h"

struct row {
    char cluster[512], pod[512], want_path[512];
    json_t *want;
};

static struct row open_row(const char *name)
{
    struct row row;

    (void)snprintf(row.cluster, sizeof row.cluster, TESTS_DIR "/cases/%s/cluster.yaml", name);
    (void)snprintf(row.pod, sizeof row.pod, TESTS_DIR "/cases/%s/pod.json", name);
    (void)snprintf(row.want_path, sizeof row.want_path, TESTS_DIR "/cases/%s/want.json", name);
    row.want = json_load_file(row.want_path, 0, NULL);
    cr_assert_not_null(row.want, "%s", row.want_path);
    return row;
}

static bool is_schedulable(const struct row *row)
{
    return json_is_true(json_object_get(row->want, "schedulable"));
}

static void check_dry_run(const char *name)
{
    struct row row = open_row(name);
    char *out, *err, *want = read_file(row.want_path);
    const char *arguments[] = {"dry-run", "--snapshot", row.cluster, "--pod",
                               row.pod,   "-o",         "json",      NULL};

    int status = process_run(arguments, NULL, &out, &err);
    cr_expect_eq(status, is_schedulable(&row) ? 0 : 1, "exit status %d: %s", status, err);
    json_t *got = json_loads(out, 0, NULL);
    cr_expect(json_equal(got, row.want), "got %s", out);
    json_decref(got);
    json_decref(row.want);
    free(out);
    free(err);
    free(want);
}

static void expect_member(const json_t *got, const json_t *want, const char *key)
{
    cr_expect(json_equal(json_object_get(got, key), json_object_get(want, key)), "%s differs", key);
}

/* {"Pod": ..., "NodeNames": [...]} */
static char *filter_body(const struct row *row)
{
    char *pod = read_file(row->pod), *body = NULL;

    cr_assert_gt(
        asprintf(&body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[\"node-1\",\"node-2\"]}", pod),
        0);
    free(pod);
    return body;
}

static void expect_failed(const json_t *answer, const char *key, const char *reason)
{
    const json_t *failed = json_object_get(answer, key);

    cr_expect_eq(json_object_size(failed), reason == NULL ? 0 : 2, "%s", key);
    if (reason == NULL)
        return;
    cr_expect_str_eq(json_string_value(json_object_get(failed, "node-1")), reason);
    cr_expect_str_eq(json_string_value(json_object_get(failed, "node-2")), reason);
}

static void expect_filter(const struct row *row, const json_t *answer)
{
    const json_t *prefilter = json_object_get(row->want, "preFilter");
    const char *code = json_string_value(json_object_get(prefilter, "code"));
    const json_t *reasons = json_object_get(prefilter, "reasons");
    char joined[1024] = "";
    size_t i;
    json_t *reason;

    json_array_foreach (reasons, i, reason)
        (void)snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%s",
                       i == 0 ? "" : "; ", json_string_value(reason));
    cr_expect_eq(json_array_size(json_object_get(answer, "NodeNames")),
                 is_schedulable(row) ? 2 : 0);
    expect_failed(answer, "FailedNodes", strcmp(code, "Unschedulable") == 0 ? joined : NULL);
    expect_failed(answer, "FailedAndUnresolvableNodes",
                  strcmp(code, "UnschedulableAndUnresolvable") == 0 ? joined : NULL);
    cr_expect_str_eq(json_string_value(json_object_get(answer, "Error")), "");
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

static void check_http(const char *name)
{
    struct row row = open_row(name);
    struct daemon daemon;
    char *body = filter_body(&row);

    cr_assert(daemon_start(&daemon, (const char *const[]){"--snapshot", row.cluster, NULL}));
    json_t *prefilter = ask(&daemon, "/prefilter", body);
    expect_member(prefilter, json_object_get(row.want, "preFilter"), "code");
    expect_member(prefilter, json_object_get(row.want, "preFilter"), "reasons");
    expect_member(prefilter, row.want, "claims");
    expect_member(prefilter, row.want, "deferFSMount");
    json_t *filter = ask(&daemon, "/filter", body);
    expect_filter(&row, filter);
    json_decref(prefilter);
    json_decref(filter);
    json_decref(row.want);
    free(body);
    cr_expect_eq(daemon_stop(&daemon), 0);
}

#define CASE(name) \
    Test(dry_run, name) \
    { \
        check_dry_run(#name); \
    } \
    Test(http, name) \
    { \
        check_http(#name); \
    }
ALL_CASES(CASE)
