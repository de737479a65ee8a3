/* The command line: exit statuses, messages, output forms. The real program. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "integration/cli_run.h"

#define EXAMPLE      SOURCE_DIR "/docs/example/snapshot.yaml"
#define EXAMPLE_JSON TESTS_DIR "/fixtures/example.json"
#define NOTHING      TESTS_DIR "/fixtures/no-kind-that-counts.yaml"

static const struct {
    const char *arguments[8];
    int status;
    const char *err; /* how stderr begins */
} usage_rows[] = {
    {{NULL}, 2, "claimguard protects"},
    {{"frobnicate"}, 2, "claimguard: unknown command frobnicate"},
    {{"dry-run"}, 2, "claimguard: dry-run: --snapshot is missing"},
    {{"dry-run", "--snapshot", EXAMPLE}, 2, "claimguard: dry-run: give --pod or --all-pending"},
    {{"dry-run", "--snapshot", EXAMPLE, "--all-pending", "-o", "xml"},
     2,
     "claimguard: dry-run: --output: expected table, wide, json or yaml"},
    {{"dry-run", "--snapshto", EXAMPLE}, 2, "claimguard: dry-run: unknown option --snapshto"},
    {{"dry-run", "--snapshot"}, 2, "claimguard: dry-run: no value for --snapshot"},
    {{"dry-run", "--snapshot", EXAMPLE, "--pod", "default/none"},
     2,
     "claimguard: --pod default/none: no pod of the snapshot (NS/NAME, such as default/web-0; or "
     "NAME with --namespace) and no file has this name"},
    {{"dry-run", "--snapshot", EXAMPLE, "--pod", "default/db-1", "--all-pending"},
     2,
     "claimguard: dry-run: --pod and --all-pending: give only one of them"},
    {{"dry-run", "--snapshot", EXAMPLE, "--pod", "/dev/null"},
     2,
     "claimguard: /dev/null: contains no Pod (for a Deployment or a Job, give its template as a "
     "Pod)"},
    {{"dry-run", "--snapshot", "/nonexistent", "--all-pending"},
     2,
     "claimguard: /nonexistent: No such file or directory"},
    {{"dry-run", "--snapshot", EXAMPLE, "--pod", "default/db-1", "--node", "nope"},
     2,
     "claimguard: --node nope: no such node"},
    {{"dry-run", "--snapshot", EXAMPLE, "--all-pending", "--config", "/nonexistent"},
     2,
     "claimguard: /nonexistent: No such file"},
    {{"dry-run", "--snapshot", "/dev/null", "--all-pending"},
     2,
     "claimguard: /dev/null: contains no Kubernetes object"},
    {{"dry-run", "--snapshot", "-", "--all-pending"},
     2,
     "claimguard: <stdin>: contains no Kubernetes object"},
    {{"dry-run", "--snapshot", NOTHING, "--all-pending"},
     2,
     "claimguard: " NOTHING ": contains only objects of kinds that claimguard does not use (1)"},
    {{"serve", "--snapshot", "/dev/null", "--listen", "localhost:1"},
     2,
     "claimguard: /dev/null: contains no Kubernetes object"},
    {{"serve"}, 2, "claimguard: no cluster: give --kubeconfig"},
    {{"serve", "--kubeconfig", "/nowhere"}, 2, "claimguard: /nowhere: No such file"},
    {{"serve", "--kubeconfig", "x", "--snapshot", "y"},
     2,
     "claimguard: serve: --kubeconfig and --snapshot"},
    {{"serve", "--snapshot", EXAMPLE, "--context", "c", "--listen", "127.0.0.1:99999"},
     2,
     "claimguard: serve: --context and --snapshot"},
    {{"dry-run", "--snapshot", TESTS_DIR "/fixtures/no-nodes.yaml", "-a", "--node", "made-up"},
     2,
     "claimguard: --node made-up: no such node"},
    {{"snapshot", "--kubeconfig", "/nowhere"}, 2, "claimguard: /nowhere: No such file"},
    {{"serve", "--snapshot", EXAMPLE, "--listen", "localhost:1"}, 2, NULL},
    {{"serve", "--snapshot", EXAMPLE, "--log-level", "loud"}, 2, "claimguard: --log-level loud"},
    {{"check-config"}, 2, "claimguard: check-config: missing argument FILE"},
    {{"check-config", EXAMPLE}, 2, "claimguard: " EXAMPLE ":"},
    {{"certificates", "-o", "json"}, 2, "claimguard: certificates: --output is a path, no format"},
    {{"snapshot", "-oyaml"}, 2, "claimguard: snapshot: --output is a path, no format"},
    {{"-n", "default", "who", "data"},
     2,
     "claimguard: the command comes first: claimguard who -n ... "},
    {{"dry-run", "-s", EXAMPLE, "-p", "default/web-1", "-n", "shop"},
     2,
     "claimguard: --pod default/web-1 is not in --namespace shop"},
    {{"doctor", "--scheduler-config", "/nowhere"}, 2, "claimguard: /nowhere: No such file"},
    {{"doctor", "--scheduler-config", EXAMPLE}, 2, "claimguard: " EXAMPLE ":"},
    {{"doctor", "--config", EXAMPLE}, 2, "claimguard: " EXAMPLE ":"},
    {{"doctor", "--snapshot", EXAMPLE, "--kubeconfig", "x"},
     2,
     "claimguard: --snapshot and --kube"},
    {{"doctor", "--snapshot", EXAMPLE, "-o", "wide"}, 2, "claimguard: doctor: --output: expected"},
    {{"doctor", "--explain", "CG9"},
     2,
     "claimguard: --explain CG9: there is no such rule (--explain all lists them)"},
    {{"version", "-o", "wide"}, 2, "claimguard: version: --output: expected table, json or yaml"},
    {{"version", "now"}, 2, "claimguard: version: unexpected argument now"},
    {{"dryrun"}, 2, "claimguard: unknown command dryrun; did you mean dry-run? (see"},
    {{"dry-run", "--snapshto=x"},
     2,
     "claimguard: dry-run: unknown option --snapshto=x; did you mean --snapshot? (see"},
    {{"help", "sevre"}, 2, "claimguard: unknown command sevre; did you mean serve? (see"},
};

Test(cli, bad_usage_and_input_exit_with_2_and_one_line)
{
    for (size_t i = 0; i < sizeof usage_rows / sizeof *usage_rows; i++) {
        struct run run = run_with(NULL, usage_rows[i].arguments);
        cr_expect_eq(run.status, usage_rows[i].status, "row %zu: %d %s", i, run.status, run.err);
        if (usage_rows[i].err != NULL)
            cr_expect_eq(strncmp(run.err, usage_rows[i].err, strlen(usage_rows[i].err)), 0,
                         "row %zu: %s", i, run.err);
        cr_expect_str_eq(run.out, "");
        run_free(&run);
    }
}

Test(cli, exit_status_says_whether_the_pod_is_schedulable)
{
    struct run yes = RUN("dry-run", "--snapshot", EXAMPLE, "--pod", "default/web-1", "-o", "json");
    struct run no = RUN("dry-run", "--snapshot", EXAMPLE, "--pod", "default/db-1", "-o", "json");
    struct run all = RUN("dry-run", "--snapshot", EXAMPLE, "--all-pending", "-o", "json");

    cr_expect_eq(yes.status, 0);
    cr_expect_eq(no.status, 1);
    cr_expect_eq(all.status, 1);
    json_t *list = json_loads(all.out, 0, NULL);
    cr_expect_eq(json_array_size(list), 6);
    json_decref(list);
    run_free(&yes);
    run_free(&no);
    run_free(&all);
}

Test(cli, yaml_and_json_snapshots_of_one_cluster_give_identical_output)
{
    static const char *const formats[] = {"json", "yaml", "wide", "table"};

    for (size_t i = 0; i < 4; i++) {
        struct run yaml = RUN("dry-run", "-s", EXAMPLE, "-a", "-o", formats[i]);
        struct run json = RUN("dry-run", "-s", EXAMPLE_JSON, "-a", "-o", formats[i]);
        cr_expect_str_eq(yaml.out, json.out, "%s", formats[i]);
        cr_expect_gt(strlen(json.out), 100);
        run_free(&yaml);
        run_free(&json);
    }
}

Test(cli, standard_input_is_a_snapshot_or_a_pod)
{
    struct run file = RUN("dry-run", "-s", EXAMPLE, "-a", "-o", "json");
    struct run input =
        run_with(EXAMPLE, (const char *const[]){"dry-run", "-s", "-", "-a", "-o", "json", NULL});
    struct run pod = run_with(
        TESTS_DIR "/cases/read_write_once_pod/every_holder_has_lower_priority/pod.json",
        (const char *const[]){
            "dry-run", "-s",
            TESTS_DIR "/cases/read_write_once_pod/every_holder_has_lower_priority/cluster.yaml",
            "-p", "-", "-o", "json", NULL});

    cr_expect_str_eq(input.out, file.out);
    cr_expect_eq(pod.status, 1);
    cr_expect_not_null(strstr(pod.out, "\"helps\": true"));
    run_free(&file);
    run_free(&input);
    run_free(&pod);
}

Test(cli, the_namespace_restricts_the_pods)
{
    struct run all = RUN("dry-run", "-s", EXAMPLE, "-a");
    struct run of_namespace = RUN("dry-run", "-s", EXAMPLE, "-a", "-n", "default");
    struct run of_another = RUN("dry-run", "-s", EXAMPLE, "-a", "-n", "other", "-o", "json");
    struct run named = RUN("dry-run", "-s", EXAMPLE, "-p", "web-1", "-n", "default");
    struct run whole = RUN("dry-run", "-s", EXAMPLE, "-p", "default/web-1");

    cr_expect_str_eq(all.out, of_namespace.out);
    cr_expect_str_eq(of_another.out, "[]\n");
    cr_expect_eq(of_another.status, 0);
    cr_expect_str_eq(named.out, whole.out);
    run_free(&all);
    run_free(&of_namespace);
    run_free(&of_another);
    run_free(&named);
    run_free(&whole);
}

Test(cli, node_restricts_the_nodes)
{
    struct run run =
        RUN("dry-run", "-s", EXAMPLE, "-p", "default/web-1", "--node", "node-2", "-o", "json");
    json_t *result = json_loads(run.out, 0, NULL);
    const json_t *nodes = json_object_get(result, "nodes");

    cr_expect_eq(json_array_size(nodes), 1);
    cr_expect_str_eq(json_string_value(json_object_get(json_array_get(nodes, 0), "name")),
                     "node-2");
    json_decref(result);
    run_free(&run);
}

Test(cli, table_is_aligned_and_names_the_policies)
{
    struct run run = RUN("dry-run", "-s", EXAMPLE, "-a");
    const char *heading = strstr(run.out, "VERDICT");
    const char *row = strstr(run.out, "\ndefault    db-1 ");

    cr_assert(heading != NULL && row != NULL);
    cr_expect_eq(strncmp(row + 1 + (heading - run.out), "UnschedulableAndUnresolvable", 28), 0);
    cr_expect_not_null(strstr(run.out, "6 pods: 3 schedulable, 3 not."));
    cr_expect_not_null(strstr(run.out, "not by the scheduler's own"));
    cr_expect_not_null(strstr(run.out, "if several want one free claim, only one gets it"));
    run_free(&run);
}

/* Whether a line of the text begins with that, however many spaces are between its words. */
static bool has_line(const char *text, const char *begin)
{
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        const char *at = line + (*line == '\n'), *want = begin;
        line = at;
        while (*want != '\0' && *at == *want) {
            want++;
            at++;
            while (*want != ' ' && *at == ' ' && at[-1] == ' ')
                at++;
        }
        if (*want == '\0')
            return true;
    }
    return false;
}

Test(cli, wide_table_has_nodes_and_claims)
{
    struct run run = RUN("dry-run", "-s", EXAMPLE, "-a", "-o", "wide");

    cr_expect(has_line(run.out, "default cache-1 yes Skip 2/2 shared - -"), "%s", run.out);
    cr_expect(has_line(run.out,
                       "default db-urgent no Unschedulable 0/2 db-data (exclusive, held by "
                       "db-0) evict db-0 claim default/db-data is in use"),
              "%s", run.out);
    cr_expect(has_line(run.out, "default report no UnschedulableAndUnresolvable 0/2 report-data "
                                "(missing) no help "),
              "%s", run.out);
    cr_expect(has_line(run.out, "default web-1 yes Success 2/2 web-data (exclusive, free) - -"),
              "%s", run.out);
    run_free(&run);
}

/* An API server takes any text for claimName; a person, or a terminal, must not take it for more
 * than a name. */
Test(cli, control_characters_of_a_cluster_do_not_reach_the_terminal)
{
    struct run run = run_with(TESTS_DIR "/fixtures/control-characters.yaml",
                              (const char *const[]){"dry-run", "-s", "-", "-a", NULL});

    cr_expect_not_null(strstr(run.out, "persistentvolumeclaim \"text-of-13-bytes/"), "%s", run.out);
    cr_expect(strchr(run.out, '\033') == NULL && strchr(run.out, '\r') == NULL);
    run_free(&run);
    run = RUN("dry-run", "-s", EXAMPLE, "--pod", "default/\033[2K");
    cr_expect_not_null(strstr(run.err, "--pod default/?[2K: no pod"), "%s", run.err);
    run_free(&run);
}

Test(cli, a_pod_about_which_no_scheduler_asks_is_named)
{
    struct run run = RUN("dry-run", "-s", EXAMPLE, "-p", "default/db-0");

    cr_expect_eq(run.status, 0);
    cr_expect_not_null(strstr(run.err, "default/db-0: it is on node node-"), "%s", run.err);
    run_free(&run);
    run = RUN("dry-run", "-s", TESTS_DIR "/fixtures/no-nodes.yaml", "-p", "t/done");
    cr_expect_not_null(strstr(run.err, "t/done: it is finished: no scheduler asks"), "%s", run.err);
    run_free(&run);
    run = RUN("dry-run", "-s", TESTS_DIR "/fixtures/no-nodes.yaml", "-a");
    cr_expect_not_null(strstr(run.err, "t/gated: it has scheduling gates"), "%s", run.err);
    run_free(&run);
}

/* The policies pass, and each node is rejected by itself. */
Test(cli, a_table_says_why_every_node_rejects_the_pod)
{
    struct run run =
        RUN("dry-run", "-s", TESTS_DIR "/cases/csi_volumes/no_node_lists_the_driver/cluster.yaml",
            "-p", TESTS_DIR "/cases/csi_volumes/no_node_lists_the_driver/pod.json");

    cr_expect_eq(run.status, 1);
    cr_expect_null(strstr(run.out, "Success"), "%s", run.out);
    cr_expect_not_null(strstr(run.out, " UnschedulableAndUnresolvable "), "%s", run.out);
    cr_expect_not_null(strstr(run.out, " is not registered on the node"), "%s", run.out);
    run_free(&run);
}

Test(cli, a_table_with_victims_says_that_budgets_are_not_checked)
{
    static const char *const text = "A PodDisruptionBudget may forbid an eviction";
    struct run evicts = RUN("dry-run", "-s", EXAMPLE, "-a");
    struct run passes = RUN("dry-run", "-s", EXAMPLE, "-p", "default/web-1");

    cr_expect_not_null(strstr(evicts.out, text), "%s", evicts.out);
    cr_expect_null(strstr(passes.out, text), "%s", passes.out);
    run_free(&evicts);
    run_free(&passes);
}

Test(cli, check_config_prints_what_it_accepts)
{
    struct run run = RUN("check-config", TESTS_DIR "/fixtures/debug-config.yaml");

    cr_expect_eq(run.status, 0);
    cr_expect_not_null(strstr(run.out, "  maxRequestBytes: 1Mi\n"));
    cr_expect_not_null(strstr(run.out, "  reservationTTL: 30s\n"));
    run_free(&run);
}
