/* manifests/monitoring in a real Prometheus that scrapes a real claimguard, and itself as another
 * job: each rule is evaluated, each query of the dashboard, and of docs/volume-policies.md, has an
 * answer, and the dashboard shows claimguard alone. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/every_metric.h"
#include "support/process.h"

#define DASHBOARD SOURCE_DIR "/manifests/monitoring/dashboard.json"

enum { QUERY_BYTES = 1024, VALUE_BYTES = 128, GRID_WIDTH = 24 };

/* ---- Prometheus ---- */

struct prometheus {
    pid_t pid;
    uint16_t port;
};

/* A port that nobody listens on. */
static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    check(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 &&
              getsockname(fd, (struct sockaddr *)&address, &size) == 0,
          "a port: %s", strerror(errno));
    (void)close(fd);
    return ntohs(address.sin_port);
}

static void run_prometheus(const char *listen_flag)
{
    int log = open("prometheus.log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* where the scenario fails */
    if (log < 0 || dup2(log, STDERR_FILENO) < 0)
        _exit(126);
    (void)execlp("prometheus", "prometheus", "--config.file=prometheus.yaml",
                 "--storage.tsdb.path=tsdb", listen_flag, (char *)NULL);
    _exit(127);
}

/* It scrapes claimguard and itself each second, and evaluates the rules. */
static void prometheus_start(struct prometheus *prometheus, const struct guard *guard)
{
    char listen_flag[64];
    FILE *file = scenario_open("prometheus.yaml");

    scenario_write_rules();
    prometheus->port = free_port();
    (void)fprintf(
        file,
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\n"
        "scrape_configs:\n- job_name: claimguard\n"
        "  static_configs: [{targets: ['127.0.0.1:%u']}]\n"
        "- job_name: other\n  static_configs: [{targets: ['127.0.0.1:%u']}]\n",
        guard->metrics_port, prometheus->port);
    check(fclose(file) == 0, "its configuration is written");
    (void)snprintf(listen_flag, sizeof listen_flag, "--web.listen-address=127.0.0.1:%u",
                   prometheus->port);
    prometheus->pid = fork();
    if (prometheus->pid == 0) {
        if (chdir(scenario_folder()) != 0)
            _exit(126);
        run_prometheus(listen_flag);
    }
    check(prometheus->pid > 0, "fork");
}

static void prometheus_stop(const struct prometheus *prometheus)
{
    (void)kill(prometheus->pid, SIGKILL);
    check(waitpid(prometheus->pid, NULL, 0) == prometheus->pid, "Prometheus ends");
}

static size_t append_body(const char *bytes, size_t size, size_t count, void *file)
{
    (void)size; /* 1 */
    return fwrite(bytes, 1, count, file);
}

/* GET of its API; NULL: it does not answer yet. Ownership: the caller's to free. */
static json_t *prometheus_get(const struct prometheus *prometheus, const char *path,
                              const char *query)
{
    char *body = NULL, url[128], field[4 * QUERY_BYTES];
    size_t len = 0;
    FILE *file = open_memstream(&body, &len);
    CURL *curl = curl_easy_init();
    char *escaped = curl_easy_escape(curl, query, 0);

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/api/v1/%s", prometheus->port, path);
    (void)snprintf(field, sizeof field, "query=%s", escaped);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    if (query[0] != '\0')
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, field);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append_body);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, file);
    bool is_answered = curl_easy_perform(curl) == CURLE_OK;
    (void)fclose(file);
    json_t *answer = is_answered ? json_loads(body, 0, NULL) : NULL;
    curl_free(escaped);
    curl_easy_cleanup(curl);
    free(body);
    return answer;
}

/* Whether the query has a sample by now. Fails if Prometheus does not understand the query. */
static bool has_sample(const struct prometheus *prometheus, const char *query)
{
    json_t *answer = prometheus_get(prometheus, "query", query);
    const char *error = json_string_value(json_object_get(answer, "error"));

    check(error == NULL, "%s: %s", query, error);
    size_t count = json_array_size(json_object_get(json_object_get(answer, "data"), "result"));
    json_decref(answer);
    return count != 0;
}

/* ---- the rules ---- */

static bool is_evaluated(json_t *rule)
{
    const char *health = json_string_value(json_object_get(rule, "health"));

    check(health != NULL && strcmp(health, "err") != 0, "%s: %s",
          json_string_value(json_object_get(rule, "name")),
          json_string_value(json_object_get(rule, "lastError")));
    return strcmp(health, "ok") == 0;
}

/* Whether all rules are evaluated by now, and what is recorded has samples. */
static bool are_evaluated(const struct prometheus *prometheus)
{
    json_t *answer = prometheus_get(prometheus, "rules", ""), *group, *rule;
    size_t i, j, count = 0;
    bool are = true;

    json_array_foreach (json_object_get(json_object_get(answer, "data"), "groups"), i, group) {
        json_array_foreach (json_object_get(group, "rules"), j, rule) {
            const char *name = json_string_value(json_object_get(rule, "name"));
            are = are && is_evaluated(rule) &&
                  (strchr(name, ':') == NULL || has_sample(prometheus, name));
            count++;
        }
    }
    json_decref(answer);
    return are && count != 0;
}

/* ---- the dashboard ---- */

static void replace_all(char text[QUERY_BYTES], const char *variable, const char *value)
{
    char rest[QUERY_BYTES];

    for (char *at; (at = strstr(text, variable)) != NULL;) {
        (void)snprintf(rest, sizeof rest, "%s", at + strlen(variable));
        (void)snprintf(at, QUERY_BYTES - (size_t)(at - text), "%s%s", value, rest);
    }
}

/* What the dashboard's variables stand for when it begins, which is with "All". */
struct variables {
    char job[VALUE_BYTES], instance[VALUE_BYTES];
};

/* The expression with the variables' values. */
static void put_values(char query[QUERY_BYTES], const struct variables *variables,
                       const char *expression)
{
    (void)snprintf(query, QUERY_BYTES, "%s", expression);
    replace_all(query, "$__rate_interval", "1m");
    replace_all(query, "$job", variables->job);
    replace_all(query, "$instance", variables->instance);
    check(strchr(query, '$') == NULL, "%s has a variable that the dashboard does not have", query);
}

static void check_query(const struct prometheus *prometheus, const struct variables *variables,
                        const char *expression)
{
    char query[QUERY_BYTES];

    put_values(query, variables, expression);
    AWAIT(has_sample(prometheus, query), query);
}

/* The label's values in the answer, as Grafana writes "All": a regular expression. */
static void join_values(char joined[VALUE_BYTES], json_t *answer, const char *label)
{
    json_t *sample;
    size_t i, len = 0;

    json_array_foreach (json_object_get(json_object_get(answer, "data"), "result"), i, sample) {
        const char *value =
            json_string_value(json_object_get(json_object_get(sample, "metric"), label));
        check(value != NULL, "a sample has no label %s", label);
        len += (size_t)snprintf(joined + len, VALUE_BYTES - len, "%s%s", i == 0 ? "" : "|", value);
        check(len < VALUE_BYTES, "%s: too many values", label);
    }
}

/* The value "All" of a variable label_values(QUERY, LABEL), whose name is its label's. */
static void take_variable(struct variables *variables, const struct prometheus *prometheus,
                          json_t *variable, const char *text)
{
    static const char begin[] = "label_values(";
    const char *name = json_string_value(json_object_get(variable, "name"));
    const char *all = json_string_value(json_object_get(variable, "allValue"));
    char query[QUERY_BYTES], selector[QUERY_BYTES], label[VALUE_BYTES];
    char *value = strcmp(name, "job") == 0 ? variables->job : variables->instance;

    check(strncmp(text, begin, strlen(begin)) == 0, "%s", text);
    (void)snprintf(label, sizeof label, ", %s)", name);
    (void)snprintf(selector, sizeof selector, "%s", text + strlen(begin));
    char *comma = strrchr(selector, ',');
    check(comma != NULL && strcmp(comma, label) == 0, "%s", text);
    *comma = '\0';
    put_values(query, variables, selector);
    AWAIT(has_sample(prometheus, query), query);
    json_t *answer = prometheus_get(prometheus, "query", query);
    join_values(value, answer, name);
    json_decref(answer);
    if (all != NULL)
        (void)snprintf(value, VALUE_BYTES, "%s", all);
}

/* The variables are job, and instance, which asks for the job's. What they stand for has no other
 * job's targets. */
static void take_variables(struct variables *variables, const struct prometheus *prometheus,
                           json_t *dashboard)
{
    char others[QUERY_BYTES];
    json_t *variable;
    size_t i, count = 0;

    json_array_foreach (json_object_get(json_object_get(dashboard, "templating"), "list"), i,
                        variable) {
        const char *text =
            json_string_value(json_object_get(json_object_get(variable, "query"), "query"));
        if (text == NULL)
            continue;
        take_variable(variables, prometheus, variable, text);
        count++;
    }
    check(count == 2 && variables->job[0] != '\0' && variables->instance[0] != '\0',
          "%zu variables", count);
    AWAIT(has_sample(prometheus, "up{job=\"other\"} == 1"), "the other job");
    put_values(others, variables, "up{job=~\"$job\",instance=~\"$instance\",job!=\"claimguard\"}");
    check(!has_sample(prometheus, others), "the dashboard shows other jobs: %s", others);
}

static long long grid(json_t *panel, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(panel, "gridPos"), key));
}

/* A panel has a title and a unit, and a place where no panel before it is. */
static void check_panel(json_t *panels, size_t number, json_t *panel)
{
    const char *title = json_string_value(json_object_get(panel, "title"));
    json_t *defaults = json_object_get(json_object_get(panel, "fieldConfig"), "defaults");
    bool is_row = json_array_size(json_object_get(panel, "targets")) == 0;

    check(title != NULL && title[0] != '\0', "panel %zu has no title", number);
    check(is_row || json_is_string(json_object_get(defaults, "unit")), "%s has no unit", title);
    check(grid(panel, "x") + grid(panel, "w") <= GRID_WIDTH, "%s is too wide", title);
    check(json_integer_value(json_object_get(panel, "id")) == (long long)number + 1, "%s: its id",
          title);
    for (size_t i = 0; i < number; i++) {
        json_t *other = json_array_get(panels, i);
        bool is_beside = grid(other, "x") + grid(other, "w") <= grid(panel, "x") ||
                         grid(panel, "x") + grid(panel, "w") <= grid(other, "x");
        check(is_beside || grid(other, "y") + grid(other, "h") <= grid(panel, "y"),
              "%s covers panel %zu", title, i + 1);
    }
}

static void check_dashboard(const struct prometheus *prometheus)
{
    struct variables variables = {{0}, {0}};
    json_error_t error;
    json_t *dashboard = json_load_file(DASHBOARD, JSON_REJECT_DUPLICATES, &error), *panel, *target;
    json_t *panels = json_object_get(dashboard, "panels");
    size_t i, j, count = 0;

    check(dashboard != NULL, "%s:%d: %s", DASHBOARD, error.line, error.text);
    take_variables(&variables, prometheus, dashboard);
    json_array_foreach (panels, i, panel) {
        check_panel(panels, i, panel);
        json_array_foreach (json_object_get(panel, "targets"), j, target) {
            const char *expression = json_string_value(json_object_get(target, "expr"));
            check(strstr(expression, "job=~\"$job\"") != NULL ||
                      strstr(expression, "ALERTS") != NULL,
                  "%s: of all jobs", expression);
            check_query(prometheus, &variables, expression);
            count++;
        }
    }
    check(count > 40, "%zu queries", count);
    json_decref(dashboard);
}

/* ---- the queries of docs/volume-policies.md ---- */

/* The lines of code that begin with a function, without what they are compared with. */
static void check_page(const struct prometheus *prometheus)
{
    static const struct variables none;
    char *docs = read_file(SOURCE_DIR "/docs/volume-policies.md");
    unsigned count = 0;

    for (char *save, *line = strtok_r(docs, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "    ", 4) != 0 || strstr(line, "claimguard_") == NULL)
            continue;
        line[strcspn(line, ">")] = '\0';
        check_query(prometheus, &none, line + strspn(line, " "));
        count++;
    }
    check(count == 4, "%u queries", count);
    free(docs);
}

static void prometheus_evaluates_each_rule_and_answers_each_query_of_dashboard_and_page(void)
{
    struct prometheus prometheus;
    struct guard guard;

    every_metric_start(&guard);
    prometheus_start(&prometheus, &guard);
    AWAIT(has_sample(&prometheus, "count_over_time(up{job=\"claimguard\"}[1m]) > 2"), "scrapes");
    AWAIT(are_evaluated(&prometheus), "evaluations");
    check_dashboard(&prometheus);
    check_page(&prometheus);
    prometheus_stop(&prometheus);
    guard_stop(&guard);
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(prometheus_evaluates_each_rule_and_answers_each_query_of_dashboard_and_page),
    };
    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
