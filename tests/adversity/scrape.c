/* The page /metrics is as docs/metrics.md documents it, and Prometheus can read it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/every_metric.h"
#include "support/http.h"
#include "support/process.h"

enum { NAME_BYTES = 128 };

/* ---- what is on the page ---- */

struct family {
    char name[NAME_BYTES], type[16];
};

static bool is_named(const char *sample, const char *name, const char *ending)
{
    size_t len = strlen(name), more = strlen(ending);

    return strncmp(sample, name, len) == 0 && strncmp(sample + len, ending, more) == 0 &&
           strchr("{ ", sample[len + more]) != NULL;
}

/* Whether the family's samples have that name; total: the end of the names of counters. */
static bool belongs(const char *sample, const struct family *family, const char *total)
{
    if (strcmp(family->type, "histogram") == 0)
        return is_named(sample, family->name, "_bucket") ||
               is_named(sample, family->name, "_sum") || is_named(sample, family->name, "_count");
    return is_named(sample, family->name, strcmp(family->type, "counter") == 0 ? total : "");
}

/* A family of the page: HELP, TYPE, then its samples. */
static void begin_family(const char *page, const char *help, struct family *family)
{
    char start[NAME_BYTES + 16], name[NAME_BYTES];

    check(sscanf(help, "# HELP %127s", family->name) == 1, "%.*s", page_line_len(help), help);
    (void)snprintf(start, sizeof start, "# HELP %s ", family->name);
    check(strstr(page, start) == help, "%s is there twice", family->name);
    const char *type = page_next_line(help);
    check(type != NULL && sscanf(type, "# TYPE %127s %15s", name, family->type) == 2 &&
              strcmp(name, family->name) == 0,
          "%s has no type", family->name);
}

/* Each family is there once, and all its samples are below it: promtool does not check this. */
static void check_families(const char *page, const char *total)
{
    struct family family = {"", ""};
    unsigned count = 0;

    for (const char *line = page; line != NULL; line = page_next_line(line))
        if (strncmp(line, "# HELP ", 7) == 0) {
            begin_family(page, line, &family);
            count++;
            line = page_next_line(line);
        } else if (line[0] != '#') {
            check(belongs(line, &family, total), "%.*s is no sample of %s %s", page_line_len(line),
                  line, family.type, family.name);
        }
    check(count > 40, "%u metrics", count);
}

/* ---- what is documented ---- */

/* The names of a sample's labels: "verb,code". le is the histogram's own. */
static void label_names(const char *sample, char names[NAME_BYTES])
{
    const char *at = sample + strcspn(sample, "{ ");
    size_t len = 0;

    names[0] = '\0';
    while (*at == '{' || *at == ',') {
        int key = (int)strcspn(++at, "=");
        if (strncmp(at, "le=", 3) != 0)
            len += (size_t)snprintf(names + len, NAME_BYTES - len, "%s%.*s", len == 0 ? "" : ",",
                                    key, at);
        for (at += key + 2; *at != '"'; at++)
            at += *at == '\\';
        at++;
    }
}

/* A row: | `claimguard_name{label,label}` | type | ... */
static void check_row(const char *page, const char *row)
{
    struct family family = {"", ""};
    char labels[NAME_BYTES] = "", found[NAME_BYTES], type[NAME_BYTES + 32];
    unsigned samples = 0;

    int end = (int)strcspn(row, "`"), cut = (int)strcspn(row, "{`");
    (void)snprintf(family.name, sizeof family.name, "%.*s", cut, row);
    if (cut < end)
        (void)snprintf(labels, sizeof labels, "%.*s", end - cut - 2, row + cut + 1);
    check(sscanf(row + end, "` | %15s |", family.type) == 1, "%s has no type", family.name);
    (void)snprintf(type, sizeof type, "\n# TYPE %s %s\n", family.name, family.type);
    check(strstr(page, type) != NULL, "no %s is named %s", family.type, family.name);
    for (const char *line = page; line != NULL; line = page_next_line(line))
        if (line[0] != '#' && belongs(line, &family, "")) {
            label_names(line, found);
            check(strcmp(found, labels) == 0, "%s has the labels {%s}, not {%s}", family.name,
                  found, labels);
            samples++;
        }
    check(samples != 0, "%s has no sample", family.name);
}

/* Each documented family is on the page, and each family on the page is documented. */
static void check_documented(const char *page)
{
    static const char type[] = "\n# TYPE claimguard_", cell[] = "\n| `claimguard_";
    char *docs = read_file(SOURCE_DIR "/docs/metrics.md");
    unsigned rows = 0, families = 0;

    for (const char *row = docs; (row = strstr(row, cell)) != NULL; row++, rows++)
        check_row(page, row + strlen("\n| `"));
    for (const char *at = page; (at = strstr(at, type)) != NULL; at++, families++) {
        char start[NAME_BYTES];
        const char *name = at + strlen(type);
        (void)snprintf(start, sizeof start, "%s%.*s", cell, (int)strcspn(name, " "), name);
        const char *row = strstr(docs, start);
        check(row != NULL && strchr("`{", row[strlen(start)]) != NULL, "%s is not documented",
              start + 4);
    }
    check(rows == families, "%u are documented, %u are there", rows, families);
    free(docs);
}

/* The reasons of watch_restarts_total have a table: | `reason` `reason` | ... */
static void check_reasons(const char *page)
{
    static const char title[] = "| reason | what happened |\n|---|---|\n";
    static const char pods[] = "\nclaimguard_watch_restarts_total{resource=\"pods\",reason=\"";
    char *docs = read_file(SOURCE_DIR "/docs/metrics.md"), name[NAME_BYTES];
    unsigned documented = 0, found = 0;

    const char *row = strstr(docs, title);
    check(row != NULL, "there is a table of reasons");
    for (row += strlen(title); row != NULL && *row == '|'; row = page_next_line(row))
        for (const char *at = row + 2; *at == '`'; at += strspn(at, " "), documented++) {
            int len = (int)strcspn(++at, "`");
            (void)snprintf(name, sizeof name, "%s%.*s\"", pods, len, at);
            check(strstr(page, name) != NULL, "%.*s is no reason", len, at);
            at += len + 1;
        }
    for (const char *at = page; (at = strstr(at, pods)) != NULL; at++)
        found++;
    check(found == documented, "%u reasons are documented, %u are there", documented, found);
    free(docs);
}

static void the_page_is_what_is_documented_and_promtool_reads_it(void)
{
    struct guard guard;

    every_metric_start(&guard);
    char *page = guard_get(&guard, "/metrics", NULL);
    check_families(page, "");
    check_documented(page);
    check_reasons(page);
    FILE *file = scenario_open("metrics");
    check(fputs(page, file) >= 0 && fclose(file) == 0, "the page is written");
    scenario_run("promtool check metrics < metrics");
    free(page);
    guard_stop(&guard);
}

/* ---- OpenMetrics ---- */

/* promtool reads OpenMetrics only to make blocks of it; for that, samples need times. */
static void check_with_promtool(const char *page)
{
    FILE *file = scenario_open("openmetrics");
    long now = (long)time(NULL);

    for (const char *line = page; line != NULL; line = page_next_line(line)) {
        (void)fprintf(file, "%.*s", page_line_len(line), line);
        if (line[0] != '#')
            (void)fprintf(file, " %ld", now);
        (void)fputc('\n', file);
    }
    check(fclose(file) == 0, "the page is written");
    scenario_run("promtool tsdb create-blocks-from openmetrics openmetrics blocks");
}

static void promtool_reads_the_page_in_open_metrics(void)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: h\r\nAccept: "
                                  "application/openmetrics-text;version=1.0.0\r\n\r\n";
    struct response response;
    struct guard guard;

    every_metric_start(&guard);
    http_raw(guard.metrics_port, request, sizeof request - 1, &response);
    check(response.status == 200, "status %d", response.status);
    check(strstr(response.head, "\r\nContent-Type: application/openmetrics-text; version=1.0.0; "
                                "charset=utf-8\r\n") != NULL,
          "%s", response.head);
    check_families(response.body, "_total");
    check(strcmp(response.body + response.body_len - strlen("\n# EOF\n"), "\n# EOF\n") == 0,
          "it has an end");
    check_with_promtool(response.body);
    response_free(&response);
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(the_page_is_what_is_documented_and_promtool_reads_it),
        SCENARIO(promtool_reads_the_page_in_open_metrics),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
