/* What the program says of itself: its version, its help, what completes a command line. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "integration/cli_run.h"

#define EXAMPLE SOURCE_DIR "/docs/example/snapshot.yaml"

/* Scripts read it: docs/versioning.md. */
Test(cli_about, the_version_is_a_line_json_or_yaml)
{
    struct run line = RUN("version"), json = RUN("version", "-o", "json");
    struct run yaml = RUN("version", "-o", "yaml");
    json_t *value = json_loads(json.out, 0, NULL);
    const char *version, *revision, *configuration;
    char want[128];

    cr_assert_eq(json_unpack(value, "{s:s, s:s, s:s !}", "version", &version, "revision", &revision,
                             "configuration", &configuration),
                 0, "%s", json.out);
    (void)snprintf(want, sizeof want, "claimguard %s (%s)\n", version, revision);
    cr_expect_str_eq(line.out, want);
    cr_expect_str_eq(configuration, "claimguard.io/v1alpha1");
    (void)snprintf(want, sizeof want, "version: \"%s\"\n", version);
    cr_expect_not_null(strstr(yaml.out, want), "%s", yaml.out);
    json_decref(value);
    run_free(&line);
    run_free(&json);
    run_free(&yaml);
}

Test(cli_about, what_a_full_disk_does_not_take_is_an_error)
{
    static const char *const commands[] = {"version", "version -o json", "--version", "--help",
                                           "check-config " TESTS_DIR "/fixtures/debug-config.yaml"};
    char line[1024];

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        (void)snprintf(line, sizeof line,
                       "text=$('%s' %s 2>&1 >/dev/full); status=$?; "
                       "[ \"$text\" = 'claimguard: standard output: No space left on device' ] && "
                       "exit $status",
                       getenv("CLAIMGUARD_BINARY"), commands[i]);
        int status = system(line); /* NOLINT(cert-env33-c): a fixed command */
        cr_expect_eq(WEXITSTATUS(status), 2, "%s: %d", commands[i], status);
    }
}

static const struct {
    const char *words[8], *want;
} completion_rows[] = {
    {{"__complete"}, NULL},
    {{"__complete", "check-"},
     "check-config\tcheck a configuration, and print it with its defaults\n:4\n"},
    {{"__complete", "nothing-like-it"}, ":4\n"},
    {{"__complete", "nothing-like-it", ""}, ":4\n"},
    {{"__complete", "version", ""}, ":4\n"},
    {{"__complete", "check-config", ""}, ":0\n"},
    {{"__complete", "help", "vers"}, "version\tprint the version\n:4\n"},
    {{"__complete", "man", "vers"}, "version\tprint the version\n:4\n"},
    {{"__complete", "dry-run", "--output="},
     "--output=table\n--output=wide\n--output=json\n--output=yaml\n:4\n"},
    {{"__complete", "dry-run", "--output=w"}, "--output=wide\n:4\n"},
    {{"__complete", "dry-run", "--nothing=w"}, ":4\n"},
    {{"__complete", "dry-run", "--config="}, ":0\n"},
    {{"__complete", "dry-run", "-o", "y"}, "yaml\n:4\n"},
    {{"__complete", "dry-run", "-x", ""}, ":4\n"},
    {{"__complete", "dry-run", "--all-p"},
     "--all-pending\tcheck each pod of the snapshot that is not assigned to a node\n:4\n"},
    {{"__complete", "dry-run", "--all-pending", ""}, ":4\n"},
    {{"__complete", "dry-run", "-s", EXAMPLE, "--node", ""}, "node-1\nnode-2\n:4\n"},
    {{"__complete", "dry-run", "-s" EXAMPLE, "--node", "node-2"}, "node-2\n:4\n"},
    {{"__complete", "dry-run", "--snapshot=" EXAMPLE, "-p", "default/w"}, "default/web-1\n:0\n"},
    {{"__complete", "dry-run", "--snapshot=/nowhere", "-p", ""}, ":0\n"},
    {{"__complete", "serve", "--kubeconfig", "/nowhere", "--context", ""}, ":4\n"},
};

Test(cli_about, completion_offers_what_may_stand_there)
{
    for (size_t i = 0; i < sizeof completion_rows / sizeof *completion_rows; i++) {
        struct run run = run_with(NULL, completion_rows[i].words);
        cr_expect_eq(run.status, 0);
        if (completion_rows[i].want != NULL)
            cr_expect_str_eq(run.out, completion_rows[i].want, "row %zu: %s", i, run.out);
        cr_expect_str_eq(run.err, "", "row %zu: %s", i, run.err);
        run_free(&run);
    }
}

static size_t widest_line(const char *text)
{
    size_t widest = 0;

    for (size_t len; *text != '\0'; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        widest = len > widest ? len : widest;
    }
    return widest;
}

static void check_help_of(const char *command)
{
    struct run run = RUN(command, "--help"), helped = RUN("help", command);

    cr_expect_eq(run.status, 0);
    cr_expect_not_null(strstr(run.out, "  -h, --help  "));
    cr_expect_null(strstr(run.out, " \n"), "a blank at the end of a line");
    cr_expect_null(strstr(run.out, "\n\n\n"), "two empty lines");
    cr_expect_leq(widest_line(run.out), 100, "%s: %zu columns", command, widest_line(run.out));
    cr_expect_str_eq(helped.out, run.out);
    run_free(&helped);
    run_free(&run);
}

Test(cli_about, help_has_a_page_for_each_command)
{
    struct run help = RUN("--help"), helped = RUN("help", "help");
    char command[32];
    int count = 0;

    for (const char *line = strstr(help.out, "\n  "); line != NULL;
         line = strstr(line + 1, "\n  ")) {
        cr_assert_eq(sscanf(line, "%31s", command), 1);
        check_help_of(command);
        count++;
    }
    cr_expect_geq(count, 6);
    cr_expect_leq(widest_line(help.out), 100);
    cr_expect_str_eq(helped.out, help.out);
    run_free(&helped);
    run_free(&help);
}
