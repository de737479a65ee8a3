/* The server's life: probes, metrics, reload, shutdown. The real program; what cannot be seen from
 * outside, in this process. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "config/base/watchdog.h"
#include "extender/cli/commands.h"
#include "support/http.h"
#include "support/process.h"

static struct daemon server;
static char config_path[] = "/tmp/claimguard-XXXXXX";

#define HEAD "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n"

static void write_config(const char *text)
{
    char next[64];

    (void)snprintf(next, sizeof next, "%s.next", config_path);
    FILE *file = fopen(next, "we");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    cr_assert_eq(rename(next, config_path), 0); /* as a ConfigMap or an editor does */
}

static void setup(void)
{
    int fd = mkstemp(config_path);

    cr_assert_geq(fd, 0);
    (void)close(fd);
    write_config(HEAD);
    cr_assert(daemon_start(&server, (const char *const[]){"--snapshot",
                                                          SOURCE_DIR "/docs/example/snapshot.yaml",
                                                          "--config", config_path, NULL}));
}

static void teardown(void)
{
    cr_expect_eq(daemon_stop(&server), 0);
    (void)unlink(config_path);
}

TestSuite(serve, .init = setup, .fini = teardown);

Test(serve, probes_answer_on_both_ports)
{
    static const char *const paths[] = {"/livez", "/readyz", "/healthz", "/statusz", "/metrics"};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        cr_expect_eq(http_get_status(server.port, paths[i]), 200, "%s", paths[i]);
        cr_expect_eq(http_get_status(server.metrics_port, paths[i]), 200, "%s", paths[i]);
    }
    cr_expect_eq(http_get_status(server.metrics_port, "/filter"), 404,
                 "verbs are on the other port");
    struct response verbose = http_get(server.port, "/readyz?verbose");
    cr_expect_not_null(strstr(verbose.body, "[+] pods synced\n"), "%s", verbose.body);
    response_free(&verbose);
}

static void call_every_verb(void)
{
    static const char *const verbs[] = {"/filter", "/prefilter", "/preempt", "/bind"};
    char *body = read_file(SOURCE_DIR "/docs/example/filter-request.json");

    for (size_t i = 0; i < 4; i++) {
        struct response response;
        http_call(server.port, "POST", verbs[i], body, &response);
        response_free(&response);
    }
    free(body);
}

/* A real Prometheus parser reads /metrics. */
Test(serve, metrics_pass_promtool)
{
    char path[] = "/tmp/claimguard-XXXXXX", command[128];

    call_every_verb();
    struct response metrics = http_get(server.metrics_port, "/metrics");
    int fd = mkstemp(path);
    cr_assert_eq(write(fd, metrics.body, metrics.body_len), (ssize_t)metrics.body_len);
    (void)close(fd);
    (void)snprintf(command, sizeof command, "promtool check metrics < %s", path);
    int status = system(command); /* NOLINT(cert-env33-c): a fixed command */
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "promtool: %d", status);
    (void)unlink(path);
    response_free(&metrics);
}

/* What promtool does not look at: buckets are cumulative and end in _count. */
Test(serve, histograms_are_cumulative_and_requests_are_counted)
{
    call_every_verb();
    struct response metrics = http_get(server.metrics_port, "/metrics");
    unsigned long last = 0, count = 0;
    static const char bucket[] =
        "claimguard_extender_request_duration_seconds_bucket{verb=\"filter\"";

    for (const char *line = metrics.body; (line = strstr(line, bucket)) != NULL; line++) {
        unsigned long value = strtoul(strstr(line, "} ") + 2, NULL, 10);
        cr_expect_geq(value, last);
        last = value;
    }
    const char *total = strstr(
        metrics.body, "claimguard_extender_request_duration_seconds_count{verb=\"filter\"} ");
    cr_assert_not_null(total);
    count = strtoul(strstr(total, "} ") + 2, NULL, 10);
    cr_expect_eq(count, 1);
    cr_expect_eq(last, count);
    static const char *const lines[] = {
        "\nclaimguard_extender_requests_total{verb=\"filter\",result=\"ok\"} 1\n",
        "\nclaimguard_extender_requests_total{verb=\"bind\",result=\"invalid\"} 1\n",
        "\nclaimguard_filter_verdicts_total{policy=\"ReadWriteOncePod\","
        "code=\"UnschedulableAndUnresolvable\"} 1\n",
        "\nclaimguard_unschedulable_pods{policy=\"ReadWriteOncePod\"} 1\n",
        "\nclaimguard_policy_warnings_total{policy=\"ReadWriteOncePod\"} 0\n",
        "\nclaimguard_cache_objects{resource=\"pods\"} 8\n",
        "\nclaimguard_exclusive_claim_violations 0\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect_not_null(strstr(metrics.body, lines[i]), "missing: %s", lines[i]);
    response_free(&metrics);
}

/* Whether /metrics has it within some seconds. */
static bool comes_to_have(const char *line)
{
    bool is_there = false;

    for (int i = 0; i < 100 && !is_there; i++) {
        struct response metrics = http_get(server.metrics_port, "/metrics");
        is_there = strstr(metrics.body, line) != NULL;
        response_free(&metrics);
        if (!is_there)
            (void)usleep(100 * 1000);
    }
    return is_there;
}

Test(serve, connections_are_counted)
{
    int fds[3];

    for (int i = 0; i < 3; i++)
        fds[i] = http_connect(server.port);
    static const char *const lines[] = {
        "\nclaimguard_connections{port=\"extender\"} 3\n",
        "\nclaimguard_connections{port=\"metrics\"} 1\n",
        "\nclaimguard_connections_max{port=\"extender\"} 256\n",
        "\nclaimguard_connections_max{port=\"metrics\"} 64\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect(comes_to_have(lines[i]), "missing: %s", lines[i]);
    for (int i = 0; i < 3; i++)
        (void)close(fds[i]);
}

Test(serve, openmetrics_when_asked_for)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: h\r\nAccept: "
                                  "application/openmetrics-text;version=1.0.0\r\n\r\n";
    struct response response;

    http_raw(server.metrics_port, request, sizeof request - 1, &response);
    cr_expect_not_null(strstr(response.head, "application/openmetrics-text"));
    cr_assert_gt(response.body_len, 6);
    cr_expect_str_eq(response.body + response.body_len - 6, "# EOF\n");
    cr_expect_not_null(strstr(response.body, "# TYPE claimguard_extender_requests counter\n"));
    cr_expect_not_null(strstr(response.body, "\nclaimguard_extender_requests_total{"));
    response_free(&response);
}

/* libmicrohttpd sends the last chunk ("0") of an answer to HEAD, too: a client would take it for
 * the beginning of the next answer. */
Test(serve, an_answer_to_head_is_the_last_of_its_connection)
{
    static const char requests[] = "HEAD /metrics HTTP/1.1\r\nHost: h\r\n\r\n"
                                   "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n";
    char answer[1024];
    size_t len = 0;
    int fd = http_connect(server.metrics_port);

    cr_assert_eq(http_send(fd, requests, sizeof requests - 1), 0);
    for (ssize_t got;
         len < sizeof answer - 1 && (got = recv(fd, answer + len, sizeof answer - 1 - len, 0)) > 0;)
        len += (size_t)got;
    answer[len] = '\0';
    cr_expect_eq(strncmp(answer, "HTTP/1.1 200 ", 13), 0);
    cr_expect_not_null(strcasestr(answer, "\r\nConnection: close\r\n"));
    cr_expect_null(strstr(answer + 1, "HTTP/1.1"));
    (void)close(fd);
}

static void expect_status(const char *text)
{
    struct response page = http_get(server.metrics_port, "/statusz");
    cr_expect_not_null(strstr(page.body, text), "%s", page.body);
    response_free(&page);
}

Test(serve, a_metric_shows_that_a_file_is_not_in_force)
{
    expect_status("\nconfiguration            in force\n");
    expect_status("\ndeferFSMount             nothing is written: the cluster is a snapshot\n");
    static const char is_good[] = "\nclaimguard_config_last_reload_successful ";
    static const char loaded[] = "\nclaimguard_config_last_reload_success_timestamp_seconds ";
    double before = http_metric(server.metrics_port, loaded);
    cr_expect_eq(http_metric(server.metrics_port, is_good), 1);
    cr_expect(before > (double)time(NULL) - 60 && before < (double)time(NULL) + 1, "%f", before);
    write_config(HEAD "server: {debugEndpoint: false}\n");
    cr_expect(daemon_wait_for(&server, "unknown key"));
    cr_expect_eq(http_metric(server.metrics_port, is_good), 0);
    expect_status("\nconfiguration            AS BEFORE: the file has an error");
    cr_expect_eq(http_metric(server.metrics_port, loaded), before);
    write_config(HEAD "server: {debugEndpoints: false}\n");
    cr_expect(daemon_wait_for(&server, "configuration reloaded"));
    cr_expect_eq(http_metric(server.metrics_port, is_good), 1);
    cr_expect_gt(http_metric(server.metrics_port, loaded), before);
}

Test(serve, a_changed_file_is_reloaded_and_a_bad_one_ignored)
{
    cr_expect_eq(http_get_status(server.port, "/debug/cache"), 404);
    cr_expect_eq(http_get_status(server.port, "/debug/snapshot"), 404);
    write_config(HEAD "server: {debugEndpoints: true}\n");
    cr_expect(daemon_wait_for(&server, "configuration reloaded"));
    cr_expect_eq(http_get_status(server.port, "/debug/cache"), 200);
    write_config(HEAD "server: {debugEndpoint: false}\n");
    cr_expect(daemon_wait_for(&server, "unknown key"));
    cr_expect_eq(http_get_status(server.port, "/debug/cache"), 200);
}

/* The flags of the start override the file, at a restart as well. */
Test(serve, an_address_of_the_file_that_a_flag_overrides_is_no_news, .timeout = 60)
{
    FILE *log = fdopen(dup(server.log), "re");
    char *line = NULL;
    size_t size = 0;

    write_config(HEAD "server: {listen: '127.0.0.1:1'}\n");
    while (getline(&line, &size, log) > 0 && strstr(line, "configuration reloaded") == NULL)
        cr_expect_null(strstr(line, "takes effect only after a restart"), "%s", line);
    free(line);
    (void)fclose(log);
}

Test(serve, a_file_with_which_it_could_not_start_is_not_taken)
{
    write_config(HEAD "server: {tls: {certFile: /nowhere/tls.crt, keyFile: /nowhere/tls.key}}\n");
    cr_expect(daemon_wait_for(&server, "the configuration is not reloaded"));
    cr_expect_eq(http_metric(server.metrics_port, "\nclaimguard_config_last_reload_successful "),
                 0);
    write_config(HEAD "server: {listen: 'localhost:1'}\n");
    cr_expect(daemon_wait_for(&server, "localhost is not an IP address"));
}

Test(serve, sighup_reloads)
{
    cr_assert_eq(kill(server.pid, SIGHUP), 0);
    cr_expect(daemon_wait_for(&server, "configuration reloaded"));
}

Test(serve, what_was_accepted_is_answered_on_shutdown)
{
    static const char head[] = "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 51\r\n\r\n";
    static const char body[] = "{\"Pod\":{\"metadata\":{\"name\":\"a\"}},\"NodeNames\":[\"n\"]}";
    struct response response;
    int fd = http_connect(server.port);

    cr_assert_eq(http_send(fd, head, sizeof head - 1), 0);
    (void)usleep(1000 * 1000); /* the headers are there, the body is not */
    cr_assert_eq(kill(server.pid, SIGTERM), 0);
    cr_expect(daemon_wait_for(&server, "shutting down"));
    (void)usleep(200 * 1000);
    cr_assert_eq(http_send(fd, body, sizeof body - 1), 0);
    http_receive(fd, &response);
    cr_expect_eq(response.status, 200);
    cr_expect_not_null(strcasestr(response.head, "Connection: close"));
    response_free(&response);
    (void)close(fd);
}

/* Half a request on each port, and nothing more. */
Test(serve, a_silent_half_request_does_not_hold_up_the_shutdown)
{
    static const char head[] = "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 51\r\n\r\n";
    static const char line[] = "GET /livez HTTP/1.1\r\nHost";
    int fds[] = {http_connect(server.port), http_connect(server.metrics_port)};
    struct timespec start, end;

    cr_assert_eq(http_send(fds[0], head, sizeof head - 1), 0);
    cr_assert_eq(http_send(fds[1], line, sizeof line - 1), 0);
    (void)usleep(100 * 1000);
    cr_assert_eq(kill(server.pid, SIGTERM), 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    cr_expect(daemon_wait_for(&server, "stopped"));
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    cr_expect_leq(end.tv_sec - start.tv_sec, 4, "%d s", (int)(end.tv_sec - start.tv_sec));
    (void)close(fds[0]);
    (void)close(fds[1]);
}

Test(serve, many_requests_on_one_connection)
{
    static const char request[] = "POST /filter HTTP/1.1\r\nHost: h\r\nContent-Length: 51\r\n\r\n"
                                  "{\"Pod\":{\"metadata\":{\"name\":\"a\"}},\"NodeNames\":[\"n\"]}";
    int fd = http_connect(server.port);

    for (int i = 0; i < 200; i++) {
        struct response response;
        cr_assert_eq(http_send(fd, request, sizeof request - 1), 0);
        http_receive(fd, &response);
        cr_assert_eq(response.status, 200);
        response_free(&response);
    }
    (void)close(fd);
}

/* ---- in this process ---- */

static bool is_main_watched;

struct watched *__real_watchdog_begin(struct watchdog *watchdog, const char *what);
struct watched *__wrap_watchdog_begin(struct watchdog *watchdog, const char *what);
struct watched *__wrap_watchdog_begin(struct watchdog *watchdog, const char *what)
{
    if (strcmp(what, "main") == 0) {
        is_main_watched = true;
        (void)pthread_kill(pthread_self(), SIGTERM); /* enough was seen */
    }
    return __real_watchdog_begin(watchdog, what);
}

Test(in_process, the_watchdog_watches_the_main_thread, .timeout = 60)
{
    char *argv[] = {
        "claimguard", "serve",       "--snapshot",       SOURCE_DIR "/docs/example/snapshot.yaml",
        "--listen",   "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
        NULL};

    cr_expect_eq(commands_run(8, argv), EXIT_DONE);
    cr_expect(is_main_watched);
}
