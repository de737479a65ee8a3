#include "support/scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/http.h"
#include "support/process.h"

enum { AT_A_TIME = 4, SCENARIO_SECONDS_MAX = 280, STOP_MS_MAX = 30000, RUNNING_MAX = 256 };

static void finish(int status);

void check(bool is_so, const char *format, ...)
{
    va_list arguments;

    if (is_so)
        return;
    va_start(arguments, format);
    (void)fputs("FAILED: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    finish(1);
}

void sleep_ms(int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};

    (void)nanosleep(&time, NULL);
}

int64_t clock_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)1000 + now.tv_nsec / 1000000;
}

/* ---- the program ---- */

struct running {
    const struct scenario *scenario;
    pid_t pid;
    char output[32];
    int64_t started_ms;
};

static char folder[] = "/tmp/scenario-XXXXXX"; /* of one scenario */

static void show(const char *path)
{
    char *text = read_file(path);

    (void)fputs(text, stderr);
    free(text);
}

/* The claimguards of a scenario. Those that it leaves are ended, and their logs shown. */
static struct guard started[RUNNING_MAX]; /* copies: theirs are gone with the scenario's stack */
static size_t started_count;

static void finish(int status)
{
    char command[64];

    for (size_t i = 0; i < started_count; i++)
        if (started[i].pid > 0) {
            (void)kill(started[i].pid, SIGKILL);
            show(started[i].log);
        }
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    (void)!system(command); /* NOLINT(cert-env33-c): a folder of our own */
    (void)fflush(NULL);
    _exit(status); /* what the test has not freed is no leak of claimguard's */
}

static void run_scenario(const struct scenario *scenario, const char *output)
{
    int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(126);
    (void)alarm(SCENARIO_SECONDS_MAX);
    if (mkdtemp(folder) == NULL)
        _exit(126);
    api_serve();
    api_put("{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-1\"}}");
    api_put("{\"kind\":\"Node\",\"metadata\":{\"name\":\"node-2\"}}");
    scenario->run();
    finish(0);
}

static void launch(struct running *running, const struct scenario *scenario)
{
    *running = (struct running){.scenario = scenario, .started_ms = clock_ms()};
    (void)strcpy(running->output, "/tmp/scenario-log-XXXXXX"); /* NOLINT: fits */
    (void)close(mkstemp(running->output));
    (void)fflush(NULL);
    running->pid = fork();
    if (running->pid == 0)
        run_scenario(scenario, running->output);
}

/* Waits for one of them; returns whether it went well. */
static bool reap(struct running *running, size_t *count)
{
    int status = 0;
    pid_t pid = wait(&status);
    size_t i = 0;

    while (i < *count && running[i].pid != pid)
        i++;
    if (i == *count)
        return true;
    bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    printf("%s %s (%.1f s)%s\n", is_good ? "ok    " : "FAILED", running[i].scenario->name,
           (double)(clock_ms() - running[i].started_ms) / 1000,
           WIFSIGNALED(status) ? ", by a signal" : "");
    (void)fflush(stdout);
    if (!is_good)
        show(running[i].output);
    (void)unlink(running[i].output);
    running[i] = running[--*count];
    return is_good;
}

int scenarios_run(const struct scenario *scenarios, size_t count, int argc, char **argv)
{
    struct running running[AT_A_TIME];
    size_t running_count = 0, ran = 0, failed = 0;

    for (size_t i = 0; i < count; i++) {
        if (argc > 1 && strstr(scenarios[i].name, argv[1]) == NULL)
            continue;
        if (running_count == AT_A_TIME)
            failed += !reap(running, &running_count);
        launch(&running[running_count++], &scenarios[i]);
        ran++;
    }
    while (running_count != 0)
        failed += !reap(running, &running_count);
    if (ran == 0)
        (void)fprintf(stderr, "no scenario ran\n");
    return failed != 0 || ran == 0;
}

/* ---- claimguard ---- */

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

const char *scenario_folder(void)
{
    return folder;
}

static void kubeconfig_path(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/kubeconfig", folder);
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

void guard_launch(struct guard *guard, const char *config)
{
    char kubeconfig[64];

    *guard = (struct guard){.pid = 0};
    (void)snprintf(guard->log, sizeof guard->log, "%s/log-%zu", folder, started_count);
    (void)snprintf(guard->config, sizeof guard->config, "%s/config-%zu", folder, started_count);
    kubeconfig_path(kubeconfig, sizeof kubeconfig);
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
        show(guard->log);
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
    int64_t give_up_ms = clock_ms() + 60000;

    while (!log_has(guard, text) && clock_ms() < give_up_ms)
        sleep_ms(20);
    return log_has(guard, text);
}

/* ---- objects, and what a scheduler sends about them ---- */

void put_claim(const char *name)
{
    api_put("{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv-%s\"},\"spec\":{"
            "\"claimRef\":{\"namespace\":\"default\",\"name\":\"%s\"},\"csi\":{\"driver\":"
            "\"plugin1.example.com\"}}}",
            name, name);
    api_put("{\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"namespace\":\"default\",\"name\":"
            "\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteOncePod\"],\"storageClassName\":"
            "\"fast-storage\",\"volumeName\":\"pv-%s\"},\"status\":{\"phase\":\"Bound\"}}",
            name, name);
}

static const char *format(const char *text, ...) PRINTF_LIKE(1, 2);
static const char *format(const char *text, ...)
{
    va_list arguments;
    char *out = NULL;

    va_start(arguments, text);
    int rc = vasprintf(&out, text, arguments);
    va_end(arguments);
    check(rc >= 0, "no memory");
    return out;
}

static const char *or_empty(const char *text)
{
    return text == NULL ? "" : text;
}

const char *pod_text(const struct test_pod *pod)
{
    const char *uid = api_text("pods", "default", pod->name, "metadata.uid");
    const char *second = pod->second_claim == NULL
                             ? ""
                             : format(",{\"name\":\"w\",\"persistentVolumeClaim\":{"
                                      "\"claimName\":\"%s\"}}",
                                      pod->second_claim);
    const char *volumes =
        pod->claim == NULL
            ? ""
            : format(",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
                     "\"%s\"}}%s]",
                     pod->claim, second);
    const char *node = pod->node == NULL ? "" : format(",\"nodeName\":\"%s\"", pod->node);

    return format("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\","
                  "\"uid\":\"%s\"%s},\"spec\":{\"priority\":%d%s%s%s},\"status\":{\"phase\":"
                  "\"%s\"}}",
                  pod->name, uid, or_empty(pod->more_meta), pod->priority, volumes, node,
                  or_empty(pod->more_spec), pod->node == NULL ? "Pending" : "Running");
}

void put_pod(const struct test_pod *pod)
{
    api_put("%s", pod_text(pod));
}

void put_pair(const char *node)
{
    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = node});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
}

const char *node_of(const char *pod)
{
    return api_text("pods", "default", pod, "spec.nodeName");
}

const char *filter_body(const char *pod)
{
    return format("{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[\"node-1\",\"node-2\"]}",
                  api_object("pods", "default", pod));
}

const char *bind_body(const char *pod, const char *node)
{
    return format("{\"PodName\":\"%s\",\"PodNamespace\":\"default\",\"PodUID\":\"%s\","
                  "\"Node\":\"%s\"}",
                  pod, api_text("pods", "default", pod, "metadata.uid"), node);
}

const char *preempt_body(const char *pod, const char *node, const char *victim)
{
    const char *uid = api_text("pods", "default", victim, "metadata.uid");

    return format("{\"Pod\":%s,\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{\"%s\":{"
                  "\"Pods\":[%s],\"NumPDBViolations\":0}}}",
                  api_object("pods", "default", pod), node,
                  victim[0] == '\0' ? "" : format("{\"UID\":\"%s\"}", uid));
}

bool filter_passes(const struct guard *guard, const char *pod)
{
    char *answer = guard_call(guard, "/filter", filter_body(pod));
    json_t *json = json_loads(answer, 0, NULL);
    bool passes = json_array_size(json_object_get(json, "NodeNames")) != 0;

    printf("filter %s: %s\n", pod, answer);
    json_decref(json);
    free(answer);
    return passes;
}

bool bind_succeeds(const struct guard *guard, const char *pod, const char *node)
{
    char *answer = guard_call(guard, "/bind", bind_body(pod, node));
    json_t *json = json_loads(answer, 0, NULL);
    const char *error = json_string_value(json_object_get(json, "Error"));
    bool is_bound = error == NULL || error[0] == '\0';

    printf("bind %s: %s\n", pod, answer);
    json_decref(json);
    free(answer);
    return is_bound;
}
