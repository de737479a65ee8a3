/* A server whose cluster cannot be reached. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/http.h"
#include "support/process.h"

static struct daemon server;
static char config_path[] = "/tmp/claimguard-XXXXXX";

static void start_with_a_cluster_that_cannot_be_reached(void)
{
    static const char kubeconfig[] =
        "current-context: a\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {}}]\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n";
    int fd = mkstemp(config_path);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, kubeconfig, sizeof kubeconfig - 1), (ssize_t)sizeof kubeconfig - 1);
    (void)close(fd);
    cr_assert(daemon_start(&server, (const char *const[]){"--kubeconfig", config_path, NULL}));
}

/* It is counted after the attempt, which may end later than the server is up. Pods have none: they
 * are listed after claims. */
static bool await_restart(void)
{
    bool is_counted = false;

    for (int tries = 0; tries < 200 && !is_counted; tries++) {
        struct response response = http_get(server.metrics_port, "/metrics");
        is_counted =
            strstr(response.body, "claimguard_watch_restarts_total{resource="
                                  "\"persistentvolumeclaims\",reason=\"connection\"} 0") == NULL;
        response_free(&response);
        if (!is_counted)
            (void)usleep(50000);
    }
    return is_counted;
}

/* Nothing is decided, and everything says so. */
Test(unsynced, is_not_ready_and_decides_nothing)
{
    static const struct {
        const char *verb;
        int status;
        const char *answer;
    } rows[] = {
        {"/filter", 200, "\"Error\":\"the cache is not synced yet: pods\""},
        {"/prefilter", 200,
         "{\"code\":\"Error\",\"reasons\":[\"the cache is not synced yet: pods\"]"},
        {"/preempt", 503, "{\"error\":\"the cache is not synced yet: pods\"}"},
        {"/bind", 200, "{\"Error\":\"the cache is not synced yet: pods\"}"},
    };
    struct response response;
    char *body = read_file(SOURCE_DIR "/docs/example/filter-request.json");

    start_with_a_cluster_that_cannot_be_reached();
    response = http_get(server.metrics_port, "/readyz");
    cr_expect_eq(response.status, 503);
    cr_expect(strstr(response.body, "[-] pods not synced\n") != NULL, "%s", response.body);
    cr_expect(strstr(response.body, "[-] poddisruptionbudgets not synced\n") != NULL);
    response_free(&response);
    cr_expect_eq(http_get_status(server.metrics_port, "/livez"), 200);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        http_call(server.port, "POST", rows[i].verb, body, &response);
        cr_expect_eq(response.status, rows[i].status, "%s", rows[i].verb);
        cr_expect(strstr(response.body, rows[i].answer) != NULL, "%s: %s", rows[i].verb,
                  response.body);
        response_free(&response);
    }
    response = http_get(server.metrics_port, "/metrics");
    cr_expect(strstr(response.body, "claimguard_cache_synced{resource=\"pods\"} 0") != NULL);
    response_free(&response);
    cr_expect(await_restart(), "no restart is counted");
    free(body);
    cr_expect_eq(daemon_stop(&server), 0);
    (void)unlink(config_path);
}
