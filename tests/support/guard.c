/* claimguard, as a process of a scenario. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/http.h"
#include "support/process.h"
#include "support/scenario.h"

enum { STOP_MS_MAX = 30000, RUNNING_MAX = 256 };

/* The claimguards of a scenario. Those that it leaves are ended, and their logs shown. */
static struct guard started[RUNNING_MAX]; /* copies: theirs are gone with the scenario's stack */
static size_t started_count;

void guards_end(void)
{
    for (size_t i = 0; i < started_count; i++)
        if (started[i].pid > 0) {
            (void)kill(started[i].pid, SIGKILL);
            scenario_show(started[i].log);
        }
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    check(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, "%s: %s", path,
          strerror(errno));
}

static uint16_t port_behind(const char *line, const char *key)
{
    const char *at = line == NULL ? NULL : strstr(line, key);

    at = at == NULL ? NULL : strchr(at, ':');
    return at == NULL ? 0 : (uint16_t)strtoul(at + 1, NULL, 10);
}

static bool read_ports(struct guard *guard)
{
    char *log = read_file(guard->log);
    const char *line = strstr(log, "listening");

    guard->port = port_behind(line, "address=");
    guard->metrics_port = port_behind(line, "metrics=");
    bool has_both =
        line != NULL && strchr(line, '\n') != NULL && guard->port != 0 && guard->metrics_port != 0;
    free(log);
    return has_both;
}

static void kubeconfig_path(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/kubeconfig", scenario_folder());
}

void guard_user(const char *user)
{
    char path[64], text[2048];

    kubeconfig_path(path, sizeof path);
    (void)snprintf(text, sizeof text,
                   "apiVersion: v1\nkind: Config\ncurrent-context: t\n"
                   "clusters: [{name: t, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
                   "users: [{name: t, user: %s}]\n"
                   "contexts: [{name: t, context: {cluster: t, user: t}}]\n",
                   api_port(), user);
    write_file(path, text);
}

static void write_config(const struct guard *guard, const char *config)
{
    static const char head[] =
        "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n";
    char text[16384];

    (void)snprintf(text, sizeof text, "%s%s", head, config);
    write_file(guard->config, text);
}

void guard_reload(const struct guard *guard, const char *config)
{
    write_config(guard, config);
    (void)kill(guard->pid, SIGHUP);
    check(guard_logs(guard, "configuration reloaded"), "the configuration is reloaded");
}

/* What claimguards agree on, in force as this configuration wants it, unless the scenario has put
 * it, or removed it. */
static void put_agreement(const char *config)
{
    static bool is_put;

    if (is_put ||
        strcmp(api_object("configmaps", "claimguard", "claimguard-agreement"), "null") != 0)
        return;
    is_put = true;
    api_put("{\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"claimguard\",\"name\":"
            "\"claimguard-agreement\"},\"data\":{\"claimLock.%s\":\"in force\"%s}}",
            strstr(config, "claimLock: Annotation") != NULL ? "Annotation" : "Local",
            strstr(config, "nonExclusiveClaims: Exclusive") != NULL
                ? ",\"exclusive.fast-storage\":\"in force\""
                : "");
}

void guard_launch(struct guard *guard, const char *config)
{
    char kubeconfig[64];

    *guard = (struct guard){.pid = 0};
    (void)snprintf(guard->log, sizeof guard->log, "%s/log-%zu", scenario_folder(), started_count);
    (void)snprintf(guard->config, sizeof guard->config, "%s/config-%zu", scenario_folder(),
                   started_count);
    kubeconfig_path(kubeconfig, sizeof kubeconfig);
    put_agreement(config);
    write_config(guard, config);
    write_file(guard->log, "");
    if (access(kubeconfig, F_OK) != 0) /* a scenario may have one of its own */
        guard_user("{token: t}");
    guard->pid = fork();
    if (guard->pid == 0) {
        int log = open(guard->log, O_WRONLY | O_APPEND);
        const char *binary = getenv("CLAIMGUARD_BINARY");
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* where a scenario is killed */
        if (log < 0 || dup2(log, STDERR_FILENO) < 0 || binary == NULL)
            _exit(126); /* ctest sets CLAIMGUARD_BINARY */
        (void)execl(binary, binary, "serve", "--listen", "127.0.0.1:0", "--metrics-listen",
                    "127.0.0.1:0", "--kubeconfig", kubeconfig, "--config", guard->config,
                    (char *)NULL);
        _exit(127);
    }
    check(guard->pid > 0 && started_count < RUNNING_MAX, "fork");
    started[started_count++] = *guard;
    AWAIT(read_ports(guard), "claimguard listens");
}

void guard_start(struct guard *guard, const char *config)
{
    guard_launch(guard, config);
    guard_await_ready(guard);
}

void guard_stop(struct guard *guard)
{
    int64_t give_up_ms = clock_ms() + STOP_MS_MAX;
    int status = 0;
    pid_t ended = 0;

    (void)kill(guard->pid, SIGTERM);
    while (ended == 0 && clock_ms() < give_up_ms) {
        ended = waitpid(guard->pid, &status, WNOHANG);
        sleep_ms(ended == 0 ? 10 : 0);
    }
    check(ended == guard->pid, "claimguard has not ended ten seconds after SIGTERM");
    for (size_t i = 0; i < started_count; i++)
        if (started[i].pid == guard->pid)
            started[i].pid = 0;
    guard->pid = 0;
    bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!is_good)
        scenario_show(guard->log);
    check(is_good, "claimguard ended with %s %d", WIFEXITED(status) ? "exit status" : "signal",
          WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

char *guard_get(const struct guard *guard, const char *path, int *status)
{
    struct response response;

    http_call(guard->metrics_port, "GET", path, NULL, &response);
    if (status != NULL)
        *status = response.status;
    free(response.head);
    return response.body;
}

bool guard_is_ready(const struct guard *guard)
{
    int status;

    free(guard_get(guard, "/readyz", &status));
    return status == 200;
}

void guard_await_ready(const struct guard *guard)
{
    AWAIT(guard_is_ready(guard), "claimguard is ready");
}

char *guard_call(const struct guard *guard, const char *verb, const char *body)
{
    struct response response;

    http_call(guard->port, "POST", verb, body, &response);
    check(response.status == 200, "%s: status %d: %s", verb, response.status, response.body);
    free(response.head);
    return response.body;
}

/* Whether the page has the family of samples that begin so. Those of a histogram have names of
 * their own. */
static bool has_family(const char *page, const char *prefix)
{
    static const char *const endings[] = {"", "_bucket", "_sum", "_count"};
    size_t len = strcspn(prefix, "{ ");
    char type[256];

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t cut = strlen(endings[i]);
        if (len < cut || strncmp(prefix + len - cut, endings[i], cut) != 0)
            continue;
        (void)snprintf(type, sizeof type, "# TYPE %.*s %s", (int)(len - cut), prefix,
                       i == 0 ? "" : "histogram\n");
        if (strstr(page, type) != NULL)
            return true;
    }
    return false;
}

bool guard_page_has(const struct guard *guard, const char *path, const char *text)
{
    char *page = guard_get(guard, path, NULL);
    bool has = strstr(page, text) != NULL;

    free(page);
    return has;
}

double guard_metric(const struct guard *guard, const char *prefix)
{
    char *text = guard_get(guard, "/metrics", NULL);
    double sum = 0;

    check(has_family(text, prefix), "no metric on the page is named %s", prefix);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *value = strncmp(line, prefix, strlen(prefix)) == 0 ? strpbrk(line, " }") : NULL;
        if (value != NULL)
            sum += strtod(value + 1, NULL);
        if (*line == '\0')
            break;
    }
    free(text);
    return sum;
}

static bool log_has(const struct guard *guard, const char *text)
{
    char *log = read_file(guard->log);
    bool has = strstr(log, text) != NULL;

    free(log);
    return has;
}

bool guard_logs(const struct guard *guard, const char *text)
{
    int64_t give_up_ms = clock_ms() + PATIENCE_MS;

    while (!log_has(guard, text) && clock_ms() < give_up_ms)
        sleep_ms(20);
    return log_has(guard, text);
}
