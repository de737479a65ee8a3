/* The files of a repository that say how it is audited: comments of manifests, settings, and a
 * baseline. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "extender/commands/audit/baseline.h"
#include "extender/commands/audit/comments.h"
#include "extender/commands/audit/settings.h"

static char folder[] = "/tmp/claimguard-XXXXXX";
static char path[64];
static struct arena arena;
static struct error err;

static void begin(void)
{
    err = (struct error){0};
    arena_init(&arena, 64 << 20);
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/file", folder);
}

static void end(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
    arena_dispose(&arena);
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "we");

    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* ---- comments ---- */

TestSuite(comments, .init = begin, .fini = end);

static void check_comment(const char *text, const char *want, size_t line)
{
    struct comments comments;

    write_file(text);
    cr_assert_eq(comments_read(&comments, path, &arena, &err), 0, "%s", err.message);
    cr_expect_eq(comments.count, want == NULL ? 0 : 1, "%s", text);
    if (want == NULL || comments.count != 1)
        return;
    cr_expect(slice_equal(comments.items[0].entry, slice_of(want)), "%s: %.*s", text,
              SLICE_ARG(comments.items[0].entry));
    cr_expect_eq(comments.items[0].line, line, "%s: line %zu", text, comments.items[0].line);
}

Test(comments, are_of_their_line_or_of_the_next_one_of_the_document)
{
    check_comment("a: b # claimguard:ignore CG102 by hand\n", "CG102: by hand", 1);
    check_comment("# claimguard:ignore CG102: by hand; twice\n\n# more\na: b\n",
                  "CG102: by hand, twice", 4);
    check_comment("a: b\n# claimguard:ignore CG102\n---\nc: d\n", "CG102: ", 1);
    check_comment("a: b\n  #   claimguard:ignore   CG102,CG104  why\n", "CG102,CG104: why", 1);
    check_comment("# claimguard:ignore", ": ", 0);
    check_comment("a:\n- |\n  text\n# claimguard:ignore CG102 x\n- b\n", "CG102: x", 5);
    check_comment("it's: a # claimguard:ignore CG102 x\n", "CG102: x", 1);
}

Test(comments, are_none_in_texts)
{
    check_comment("a: \"b # claimguard:ignore CG102 x\"\n", NULL, 0);
    check_comment("a: 'it''s # claimguard:ignore CG102 x'\n", NULL, 0);
    check_comment("a: |-\n  # claimguard:ignore CG102 x\n\n  # claimguard:ignore CG102 x\nb: c\n",
                  NULL, 0);
    check_comment("- >2\n   # claimguard:ignore CG102 x\n", NULL, 0);
    check_comment("a: b# claimguard:ignore CG102 x\n", NULL, 0);
    check_comment("a: b # claimguard:ignored CG102 x\n", NULL, 0);
}

Test(comments, find_braces_outside_of_texts)
{
    static const struct {
        const char *text;
        bool has_braces;
    } rows[] = {
        {"a: {{ .Values.a }}\n", true},        {"{{- if .a }}\na: b\n", true},
        {"a: \"{{ $labels.pod }}\"\n", false}, {"a: '{{ x }}' # {{ y }}\n", false},
        {"a: |\n  {{ x }}\nb: c\n", false},    {"a: |\n  x\n{{- end }}\n", true},
        {"a: {b: {c: d}}\n", false},
    };
    struct comments comments;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_file(rows[i].text);
        cr_assert_eq(comments_read(&comments, path, &arena, &err), 0);
        cr_expect_eq(comments.has_braces, rows[i].has_braces, "%s", rows[i].text);
    }
}

Test(comments, of_what_is_no_file_are_none)
{
    struct comments comments;

    cr_expect_eq(comments_read(&comments, "/dev/zero", &arena, &err), 0);
    cr_expect_eq(comments.count, 0);
    cr_expect_eq(comments_read(&comments, "/nowhere/a.yaml", &arena, &err), 0);
    cr_expect_eq(comments.count, 0);
}

/* ---- settings ---- */

TestSuite(settings, .init = begin, .fini = end);

static int read_settings(struct audit_settings *settings, const char *text)
{
    *settings = (struct audit_settings){.exclude = SLICE(""), .fail_on = LEVEL_WARNING};
    write_file(text);
    return settings_read(settings, path, &arena, &err);
}

Test(settings, are_read)
{
    struct audit_settings settings;

    cr_assert_eq(read_settings(&settings, "exclude: [charts/old/, ./gen, \"*.gen.yaml\"]\n"
                                          "ignore: [\"CG103: one node\"]\nfailOn: error\n"
                                          "baseline: known.txt\n"),
                 0, "%s", err.message);
    cr_expect_eq(settings.fail_on, LEVEL_ERROR);
    cr_expect(slice_equal(settings.ignore, SLICE("CG103: one node\n")));
    cr_expect_eq(strncmp(settings.baseline, folder, strlen(folder)), 0, "from their folder");
    cr_expect(settings_exclude(&settings, "", "charts/old"));
    cr_expect(settings_exclude(&settings, "charts/", "old"));
    cr_expect(settings_exclude(&settings, "a/", "b/c.gen.yaml"));
    cr_expect(settings_exclude(&settings, "", "gen"));
    cr_expect_not(settings_exclude(&settings, "", "charts/older"));
    cr_expect_not(settings_exclude(&settings, "", "old"));
}

Test(settings, that_are_none_are_named)
{
    static const struct {
        const char *text, *problem;
    } rows[] = {
        {"- a\n", "expected exclude, ignore, failOn or baseline"},
        {"excludes: []\n", ":1:1: excludes: expected exclude"},
        {"exclude: a\n", "exclude: expected a list"},
        {"exclude: [\"a,b\"]\n", "without a comma"},
        {"exclude: [[a]]\n", "expected a text"},
        {"ignore: [CG103]\n", "codes of rules and a reason"},
        {"failOn: fatal\n", "expected error, warning, note or never"},
        {"baseline: ''\n", "expected a file"},
        {"a: [\n", ":"},
    };
    struct audit_settings settings;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_lt(read_settings(&settings, rows[i].text), 0, "%s", rows[i].text);
        cr_expect_not_null(strstr(err.message, rows[i].problem), "%s", err.message);
    }
}

/* Of a folder above it they count only up to the repository's root, or where the command runs. */
Test(settings, are_found_above_in_the_repository)
{
    char below[64], git[64];
    const char *found;

    (void)snprintf(below, sizeof below, "%s/deploy", folder);
    (void)snprintf(git, sizeof git, "%s/.git", folder);
    (void)snprintf(path, sizeof path, "%s/" SETTINGS_NAME, folder);
    write_file("exclude: []\n");
    cr_assert(mkdir(below, 0700) == 0);
    cr_expect(settings_find(&found, folder, &arena, &err) == 0 && found != NULL &&
              strcmp(found, path) == 0);
    cr_expect(settings_find(&found, below, &arena, &err) == 0 && found == NULL);
    cr_assert(mkdir(git, 0700) == 0);
    cr_expect(settings_find(&found, below, &arena, &err) == 0 && found != NULL &&
              strcmp(found, path) == 0);
    struct audit_settings settings = {.path = found};
    cr_expect_str_eq(settings_prefix(&settings, below, &arena), "deploy/");
    cr_expect_str_eq(settings_prefix(&settings, "/", &arena), "");
    cr_expect(settings_find(&found, "-", &arena, &err) == 0 && found == NULL);
    cr_assert(rmdir(git) == 0 && chdir(folder) == 0);
    cr_expect(settings_find(&found, "deploy", &arena, &err) == 0 && found != NULL &&
              strcmp(found, SETTINGS_NAME) == 0);
    (void)rmdir(below);
    cr_assert(chdir("/") == 0);
}

/* ---- baselines ---- */

TestSuite(baseline, .init = begin, .fini = end);

static int read_baseline(struct audit_report *report, const char *text)
{
    audit_report_init(report);
    write_file(text);
    return baseline_read(report, path, &err);
}

Test(baseline, lines_of_no_finding_are_counted_once)
{
    struct audit_report report;

    cr_expect_eq(read_baseline(&report, "# known\r\nCG103 Deployment shop/web data\r\n\n"
                                        "CG103 Deployment shop/web data\nCG102 Deployment a b"),
                 0, "%s", err.message);
    cr_expect_eq(report.findings.gaps.count, 1);
    cr_expect(slice_has(report.findings.gaps.items[0].text, SLICE(": 2; ")), "%.*s",
              SLICE_ARG(report.findings.gaps.items[0].text));
    audit_report_dispose(&report);
}

Test(baseline, that_is_none_is_named)
{
    static const char *const texts[] = {"CG103\n", "\nCG999 Deployment web\n", "a b\n",
                                        " CG103 a\n"};
    struct audit_report report;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cr_expect_eq(read_baseline(&report, texts[i]), ERROR_INVALID, "%s", texts[i]);
        cr_expect_not_null(strstr(err.message, "expected a rule and an object"), "%s", err.message);
        audit_report_dispose(&report);
    }
    audit_report_init(&report);
    cr_expect_lt(baseline_read(&report, "/dev/zero", &err), 0);
    cr_expect_not_null(strstr(err.message, "is not a regular file"), "%s", err.message);
    cr_expect_lt(baseline_read(&report, "/nowhere/known.txt", &err), 0);
    cr_expect_not_null(strstr(err.message, "--write-baseline"), "%s", err.message);
    audit_report_dispose(&report);
}
