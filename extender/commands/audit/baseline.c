#include "extender/commands/audit/baseline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/base/text.h"

enum { BASELINE_BYTES_MAX = 16 << 20 };

/* Lines of the file, or of the findings. */
struct baseline {
    const char **lines;
    size_t count;
};

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Each line once. */
static void sort(struct baseline *baseline)
{
    size_t count = 0;

    if (baseline->count != 0)
        qsort((void *)baseline->lines, baseline->count, sizeof *baseline->lines, compare_lines);
    for (size_t i = 0; i < baseline->count; i++)
        if (i == 0 || strcmp(baseline->lines[i], baseline->lines[count - 1]) != 0)
            baseline->lines[count++] = baseline->lines[i];
    baseline->count = count;
}

static int add(struct baseline *baseline, const char *line, struct error *err)
{
    const char **grown =
        line == NULL ? NULL : array_grow((void *)baseline->lines, baseline->count, sizeof *grown);

    if (grown == NULL)
        return error_no_memory(err);
    baseline->lines = grown;
    grown[baseline->count++] = line;
    return 0;
}

/* NULL: no memory. */
static const char *line_of(struct audit_report *report, const struct finding *finding)
{
    const struct location *place = &finding->place;
    struct slice line =
        arena_printf(&report->arena, "%s %s %.*s%s%.*s%s%.*s", finding->rule->code, place->kind,
                     SLICE_ARG(place->ns), place->ns.len == 0 ? "" : "/", SLICE_ARG(place->name),
                     finding->subject.len == 0 ? "" : " ", SLICE_ARG(finding->subject));

    if (line.ptr != NULL)
        make_printable((char *)line.ptr);
    return line.ptr;
}

/* ---- reading ---- */

static int take_line(struct baseline *baseline, struct audit_report *report, const char *line,
                     struct error *err)
{
    struct slice rest = slice_of(line);
    struct slice code = slice_cut(&rest, ' ');

    if (line[0] == '#' || line[0] == '\0')
        return 0;
    if (rule_find(audit_rules, code) == NULL || rest.len == 0)
        return error_set(err, ERROR_INVALID, "expected a rule and an object, as %s",
                         "\"CG103 Deployment shop/web data\"");
    return add(baseline, arena_copy(&report->arena, slice_of(line)).ptr, err);
}

/* A file of the audited folder may name any other. */
static int check_file(const char *path, struct error *err)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return error_system(err, errno, "%s%s", path,
                            errno == ENOENT ? " (--write-baseline writes it)" : "");
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_INVALID, "%s: is not a regular file", path);
    return status.st_size > BASELINE_BYTES_MAX
               ? error_set(err, ERROR_INVALID, "%s: over %d MiB", path, BASELINE_BYTES_MAX >> 20)
               : 0;
}

static int load(struct baseline *baseline, struct audit_report *report, const char *path,
                struct error *err)
{
    int rc = check_file(path, err);
    FILE *file = rc < 0 ? NULL : fopen(path, "re");
    char *line = NULL;
    size_t bytes = 0;

    if (file == NULL)
        return rc < 0 ? rc : error_system(err, errno, "%s", path);
    for (size_t number = 1; rc == 0 && getline(&line, &bytes, file) >= 0; number++) {
        line[strcspn(line, "\r\n")] = '\0';
        rc = take_line(baseline, report, line, err);
        if (rc == ERROR_INVALID)
            rc = error_wrap(err, "%s:%zu", path, number);
    }
    if (rc == 0 && !feof(file))
        rc = error_system(err, errno, "%s", path);
    free(line);
    (void)fclose(file); /* read only: nothing is lost */
    sort(baseline);
    return rc;
}

/* Ignores what the lines know. used: of each line, whether a finding is of it. False: no memory. */
static bool apply(struct audit_report *report, const struct baseline *baseline, bool *used)
{
    for (size_t i = 0; i < report->findings.count; i++) {
        struct finding *finding = &report->findings.items[i];
        const char *line = line_of(report, finding);
        if (line == NULL)
            return false;
        const char **found = baseline->count == 0
                                 ? NULL
                                 : bsearch(&line, (void *)baseline->lines, baseline->count,
                                           sizeof *baseline->lines, compare_lines);
        if (found == NULL)
            continue;
        used[found - baseline->lines] = true;
        if (finding->ignored.len == 0) {
            finding->ignored = SLICE("known: the baseline has it");
            finding->is_known = true;
        }
    }
    return true;
}

int baseline_read(struct audit_report *report, const char *path, struct error *err)
{
    struct baseline baseline = {NULL, 0};
    size_t unused = 0;
    int rc = load(&baseline, report, path, err);
    bool *used = rc < 0 ? NULL : calloc(baseline.count + 1, sizeof *used);

    if (rc == 0 && (used == NULL || !apply(report, &baseline, used)))
        rc = error_no_memory(err);
    for (size_t i = 0; rc == 0 && used != NULL && i < baseline.count; i++)
        unused += used[i] ? 0 : 1;
    if (rc == 0 && unused != 0)
        gaps_add(
            &report->findings.gaps, 0,
            "lines of %s that no finding is of: %zu; --write-baseline removes them, also those of "
            "what was not given",
            path, unused);
    free(used);
    free((void *)baseline.lines);
    return rc;
}

/* ---- writing ---- */

static int put_lines(const struct baseline *baseline, const char *path, struct error *err)
{
    FILE *file = fopen(path, "we");

    if (file == NULL)
        return error_system(err, errno, "%s", path);
    (void)fputs("# Known findings of claimguard audit. They do not count, and need no reason.\n"
                "# --write-baseline writes this file.\n",
                file);
    for (size_t i = 0; i < baseline->count; i++)
        (void)fprintf(file, "%s\n", baseline->lines[i]);
    bool is_bad = ferror(file) != 0;
    return fclose(file) != 0 || is_bad ? error_system(err, errno == 0 ? EIO : errno, "%s", path)
                                       : 0;
}

int baseline_write(struct audit_report *report, const char *path, struct error *err)
{
    struct baseline baseline = {NULL, 0};
    int rc = 0;

    for (size_t i = 0; i < report->findings.count && rc == 0; i++) {
        const struct finding *finding = &report->findings.items[i];
        if (finding->ignored.len == 0)
            rc = add(&baseline, line_of(report, finding), err);
    }
    sort(&baseline);
    if (rc == 0)
        rc = put_lines(&baseline, path, err);
    free((void *)baseline.lines);
    return rc == 0 ? baseline_read(report, path, err) : rc;
}
