/* Each alert of manifests/monitoring fires for its reason, and for no other reason, and
 * docs/operations.md says what to do about it. */
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/every_metric.h"
#include "support/process.h"

enum { RULES_MAX = 32, MINUTES = 15 };

#define RULES_FILE "rules.yaml" /* scenario_write_rules */

static struct rule {
    char alert[64], expr[512], severity[16], summary[128], description[320];
} rules[RULES_MAX];
static size_t rule_count;

/* Copies what follows the key to out, up to one of the characters, if the line has the key. Returns
 * whether it has. */
static bool take_value(const char *line, const char *key, const char *ends, char *out, size_t size)
{
    const char *value = strstr(line, key);

    if (value == NULL)
        return false;
    int len = (int)strcspn(value + strlen(key), ends);
    check((size_t)len < size, "%s is too long", line);
    (void)snprintf(out, size, "%.*s", len, value + strlen(key));
    while (len > 0 && out[len - 1] == ' ')
        out[--len] = '\0';
    return true;
}

/* A line of a rule; its description is the last one. */
static void read_rule_line(struct rule *rule, const char *line)
{
    static const char expr[] = "    expr: ";

    (void)take_value(line, "  - alert: ", "#", rule->alert, sizeof rule->alert);
    if (strncmp(line, expr, strlen(expr)) == 0)
        (void)snprintf(rule->expr, sizeof rule->expr, "%s", line + strlen(expr));
    (void)take_value(line, "{severity: ", "}", rule->severity, sizeof rule->severity);
    (void)take_value(line, "      summary: ", "", rule->summary, sizeof rule->summary);
    if (take_value(line, "      description: ", "", rule->description, sizeof rule->description)) {
        check(rule->summary[0] != '\0', "%s has no summary", rule->alert);
        rule_count++;
    }
}

static void read_rules(void)
{
    scenario_write_rules();
    char *text = read_file_in(scenario_folder(), RULES_FILE);

    for (char *save, *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        check(rule_count < RULES_MAX, "too many alerts");
        read_rule_line(&rules[rule_count], line);
    }
    free(text);
}

/* The page about operations names each alert with its severity, and no other. */
static void check_documented(void)
{
    static const char title[] = "\n## Alerts\n", row[] = "\n| `Claimguard";
    char *docs = read_file(SOURCE_DIR "/docs/operations.md"), *rest = strstr(docs, title);
    size_t count = 0;

    check(rest != NULL, "there are alerts");
    for (const char *at = rest; (at = strstr(at, row)) != NULL; at += strlen(row))
        count++;
    check(count == rule_count, "%zu alerts, and %zu rows", rule_count, count);
    for (size_t i = 0; i < rule_count; i++) {
        char begin[128];
        (void)snprintf(begin, sizeof begin, "\n| `%s` | %s |", rules[i].alert, rules[i].severity);
        check(strstr(rest, begin) != NULL, "docs/operations.md has %s", begin);
    }
    free(docs);
}

/* ---- none fires without a reason ---- */

/* The page's samples for a quarter of an hour, in which events still arrive. */
static void write_quiet_test(const char *page)
{
    static const char events[] = "claimguard_cache_last_event_timestamp_seconds{";
    FILE *file = scenario_open("test.yaml");
    long now = (long)time(NULL);

    (void)fprintf(file, "rule_files: [" RULES_FILE "]\ntests:\n- interval: 1m\n  input_series:\n");
    (void)fprintf(file, "  - {series: 'up{job=\"claimguard\"}', values: '1+0x%d'}\n", MINUTES);
    for (const char *line = page; line != NULL; line = page_next_line(line)) {
        int len = page_line_len(line), name = len;
        while (name > 0 && line[name] != ' ')
            name--;
        if (strncmp(line, "claimguard_", 11) != 0 || memmem(line, (size_t)len, "_bucket{", 8))
            continue;
        bool is_time = memmem(line, (size_t)name, "_timestamp_seconds", 18) != NULL;
        (void)fprintf(file, "  - {series: '%.*s', values: '%.3f+%dx%d'}\n", name, line,
                      strtod(line + name, NULL) - (is_time ? (double)now : 0),
                      strncmp(line, events, strlen(events)) == 0 ? 60 : 0, MINUTES);
    }
    (void)fprintf(file, "  alert_rule_test:\n");
    for (size_t i = 0; i < rule_count; i++)
        (void)fprintf(file, "  - {eval_time: %dm, alertname: %s, exp_alerts: []}\n", MINUTES,
                      rules[i].alert);
    check(fclose(file) == 0, "the test is written");
}

static void no_alert_fires_without_a_reason(void)
{
    struct guard guard;

    every_metric_start(&guard);
    read_rules();
    check_documented();
    scenario_run("promtool check rules " RULES_FILE);
    char *page = guard_get(&guard, "/metrics", NULL);
    write_quiet_test(page);
    scenario_run("promtool test rules test.yaml");
    free(page);
    guard_stop(&guard);
}

/* ---- each fires for its reason ---- */

/* How many filter calls took no longer. */
#define FILTER_CALLS(seconds_) \
    "claimguard_extender_request_duration_seconds_bucket{verb=\"filter\",le=\"" seconds_ "\"}"

/* Values: one a minute; a+bxn are a, a + b, a + 2b, ... The rules are evaluated at minute 15,
 * second 900. */
static const struct cause {
    const char *series, *fires, *quiet;
    const char *beside, *values; /* another series, whatever the first has; NULL: none */
    bool is_sum;                 /* the alert has no labels */
} causes[] = {
    {.series = "up{job=\"claimguard\"}", .fires = "0+0x20", .quiet = "1+0x20", .is_sum = true},
    {.series = "claimguard_extender_requests_total{verb=\"filter\",result=\"error\"}",
     .fires = "0+1x20",
     .quiet = "5+0x20",
     .is_sum = true},
    {.series = "claimguard_extender_requests_total{verb=\"filter\",result=\"failed\"}",
     .fires = "0+1x20",
     .quiet = "5+0x20",
     .is_sum = true},
    {.series = "claimguard_admission_reviews_total{path=\"/admit/binding\",result=\"failed\"}",
     .fires = "0+1x20",
     .quiet = "5+0x20",
     .is_sum = true},
    {.series = "claimguard_admission_reviews_total{path=\"/admit/pod\",result=\"invalid\"}",
     .fires = "0+1x20",
     .quiet = "5+0x20",
     .is_sum = true},
    {.series = FILTER_CALLS("+Inf"),
     .fires = "0+10x20",
     .quiet = "5+0x20",
     .beside = FILTER_CALLS("2.5"),
     .values = "0+0x20",
     .is_sum = true},
    {.series = "claimguard_config_last_reload_successful", .fires = "0+0x20", .quiet = "1+0x20"},
    {.series = "claimguard_namespaces_given_up", .fires = "1+0x20", .quiet = "0+0x20"},
    {.series = "claimguard_agreement_in_force", .fires = "0+0x20", .quiet = "1+0x20"},
    {.series = "claimguard_cache_stalled{resource=\"pods\"}", .fires = "1+0x20", .quiet = "0+0x20"},
    {.series = "claimguard_cache_synced{resource=\"pods\"}", .fires = "0+0x20", .quiet = "1+0x20"},
    {.series = "claimguard_cache_last_event_timestamp_seconds{resource=\"pods\"}",
     .fires = "779+0x20",
     .quiet = "780+0x20"},
    {.series = "claimguard_cache_skipped_objects_total{resource=\"pods\"}",
     .fires = "0+1x20",
     .quiet = "5+0x20"},
    {.series = "claimguard_exclusive_claim_violations", .fires = "1+0x20", .quiet = "0+0x20"},
    {.series = "claimguard_confirmations_total{result=\"unknown\"}",
     .fires = "0+1x20",
     .quiet = "5+0x20"},
    {.series = POD_GETS("503"),
     .fires = "0+10x20",
     .quiet = "0+5x20",
     .beside = POD_GETS("200"),
     .values = "0+50x20",
     .is_sum = true},
    {.series = POD_GETS("error"),
     .fires = "0+10x20",
     .quiet = "0+5x20",
     .beside = POD_GETS("200"),
     .values = "0+50x20",
     .is_sum = true},
    {.series = "claimguard_binds_in_doubt", .fires = "1+0x20", .quiet = "0+0x20"},
    {.series = "claimguard_binds_in_flight", .fires = "64+0x20", .quiet = "63+0x20"},
    {.series = "claimguard_connections{port=\"extender\"}",
     .fires = "58+0x20",
     .quiet = "57+0x20",
     .beside = "claimguard_connections_max{port=\"extender\"}",
     .values = "64+0x20"},
    {.series = "claimguard_requeues_total{result=\"dropped\"}",
     .fires = "0+1x20",
     .quiet = "5+0x20"},
    {.series = "claimguard_preemption_attempts_total{result=\"failed\"}",
     .fires = "0 0 0 0 0 0 1 1 2 2 3 3 4 4 4 4",
     .quiet = "0 0 0 0 0 0 1 1 2 2 3 3 3 3 3 3"},
    {.series = "claimguard_events_dropped_total", .fires = "0+1x20", .quiet = "5+0x20"},
    {.series = "claimguard_log_lines_dropped_total", .fires = "0+1x20", .quiet = "5+0x20"},
    {.series = "claimguard_certificate_not_after_timestamp_seconds{port=\"extender\"}",
     .fires = "1210499+0x20",
     .quiet = "1210500+0x20"},
};

static bool has_sample(const char *page, const char *series)
{
    char line[256];

    (void)snprintf(line, sizeof line, "\n%s ", series);
    return strstr(page, line) != NULL || strncmp(series, "up{", 3) == 0;
}

/* The rule about the metric. */
static size_t find_rule(const char *series)
{
    size_t len = strcspn(series, "{");

    for (size_t i = 0; i < rule_count; i++) {
        const char *name = strstr(rules[i].expr, "claimguard_");
        if (name == NULL)
            name = strstr(rules[i].expr, "up{");
        if (name != NULL && strspn(name, "abcdefghijklmnopqrstuvwxyz_") == len &&
            strncmp(name, series, len) == 0)
            return i;
    }
    check(false, "no alert is about %s", series);
    return 0;
}

/* The value of a label of the series, up to a quote. */
static const char *label_value(const struct cause *cause, const char *name, int len)
{
    char key[64];

    (void)snprintf(key, sizeof key, "%.*s=\"", len, name);
    const char *at = strstr(cause->series, key);
    bool is_scraped = !cause->is_sum && strcmp(key, "instance=\"") == 0; /* in the real world */
    check(at != NULL || is_scraped, "%s has no label %.*s", cause->series, len, name);
    return at == NULL ? "" : at + strlen(key);
}

/* In quotes, {{ $labels.NAME }} expanded, as YAML. */
static void write_text(FILE *file, const char *text, const struct cause *cause)
{
    static const char label[] = "{{ $labels.", end[] = " }}";

    (void)fputc('\'', file);
    for (; *text != '\0'; text++) {
        if (strncmp(text, label, strlen(label)) == 0) {
            const char *name = text + strlen(label);
            int len = (int)strcspn(name, " ");
            const char *value = label_value(cause, name, len);
            (void)fprintf(file, "%.*s", (int)strcspn(value, "\""), value);
            text = name + len + strlen(end) - 1;
        } else {
            (void)fprintf(file, *text == '\'' ? "''" : "%c", *text);
        }
    }
    (void)fputc('\'', file);
}

static void write_firing(FILE *file, const struct cause *cause, const struct rule *rule)
{
    const char *labels = cause->is_sum ? NULL : strchr(cause->series, '{');

    (void)fprintf(file, "{exp_labels: {severity: %s", rule->severity);
    for (const char *at = labels == NULL ? "{}" : labels; *at != '\0'; at++)
        (void)fprintf(file, "%c%s", *at == '=' ? ':' : (*at == '{' ? ',' : *at),
                      *at == '=' ? " " : ""); /* YAML */
    (void)fprintf(file, ", exp_annotations: {summary: ");
    write_text(file, rule->summary, cause);
    (void)fprintf(file, ", description: ");
    write_text(file, rule->description, cause);
    (void)fprintf(file, "}}");
}

static void write_test(FILE *file, const struct cause *cause, bool fires)
{
    const struct rule *rule = &rules[find_rule(cause->series)];

    (void)fprintf(file,
                  "- interval: 1m\n  input_series:\n"
                  "  - {series: '%s', values: '%s'}\n",
                  cause->series, fires ? cause->fires : cause->quiet);
    if (cause->beside != NULL)
        (void)fprintf(file, "  - {series: '%s', values: '%s'}\n", cause->beside, cause->values);
    (void)fprintf(file,
                  "  alert_rule_test:\n  - eval_time: %dm\n    alertname: %s\n    exp_alerts: [",
                  MINUTES, rule->alert);
    if (fires)
        write_firing(file, cause, rule);
    (void)fprintf(file, "]\n");
}

static void write_tests(const char *page)
{
    FILE *file = scenario_open("test.yaml");
    bool is_tested[RULES_MAX] = {false};

    (void)fprintf(file, "rule_files: [" RULES_FILE "]\ntests:\n");
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        const struct cause *cause = &causes[i];
        check(has_sample(page, cause->series), "there is no %s", cause->series);
        check(cause->beside == NULL || has_sample(page, cause->beside), "there is no %s",
              cause->beside);
        is_tested[find_rule(cause->series)] = true;
        write_test(file, cause, true);
        write_test(file, cause, false);
    }
    for (size_t i = 0; i < rule_count; i++)
        check(is_tested[i], "nothing fires %s", rules[i].alert);
    check(fclose(file) == 0, "the tests are written");
}

/* Whether a line of the page matches. */
static bool matches(const char *page, const char *format, ...) PRINTF_LIKE(2, 3);
static bool matches(const char *page, const char *format, ...)
{
    char pattern[512];
    regex_t regex;
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(pattern, sizeof pattern, format, arguments);
    va_end(arguments);
    check(regcomp(&regex, pattern, REG_EXTENDED | REG_NEWLINE | REG_NOSUB) == 0, "%s", pattern);
    bool has = regexec(&regex, page, 0, NULL, 0) == 0;
    regfree(&regex);
    return has;
}

/* What an alert selects, claimguard_x{label=~"value|value"}, is on the page. promtool would take
 * any name. */
static void check_selectors(const char *page, const char *rule)
{
    for (const char *at = rule; (at = strstr(at, "claimguard_")) != NULL;) {
        const char *metric = at;
        int len = (int)strspn(at, "abcdefghijklmnopqrstuvwxyz_"), used = 0;
        char label[32], values[64];
        at += len;
        check(matches(page, "^%.*s[{ ]", len, metric), "no sample of %.*s", len, metric);
        for (; *at == '{' || *at == ','; at += used) {
            check(sscanf(at, "%*[{,]%31[a-z_]=%*[~]\"%63[^\"]\"%n", label, values, &used) == 2 ||
                      sscanf(at, "%*[{,]%31[a-z_]=\"%63[^\"]\"%n", label, values, &used) == 2,
                  "%s is understood", at);
            for (char *save, *value = strtok_r(values, "|", &save); value != NULL;
                 value = strtok_r(NULL, "|", &save))
                check(matches(page, "^%.*s\\{([^ ]*,)?%s=\"(%s)\"[,}]", len, metric, label, value),
                      "no sample of %.*s has %s=\"%s\"", len, metric, label, value);
        }
    }
}

static void each_alert_fires_for_its_reason(void)
{
    struct guard guard;

    every_metric_start(&guard);
    read_rules();
    char *page = guard_get(&guard, "/metrics", NULL);
    for (size_t i = 0; i < rule_count; i++)
        check_selectors(page, rules[i].expr);
    write_tests(page);
    scenario_run("promtool test rules test.yaml");
    free(page);
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(no_alert_fires_without_a_reason),
        SCENARIO(each_alert_fires_for_its_reason),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
