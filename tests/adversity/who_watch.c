/* claimguard who --watch: it shows each change, whatever becomes of its watches, and ends well. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/process.h"
#include "support/scenario.h"

struct watcher {
    pid_t pid;
    char out[64], err[64]; /* files */
};

static const char *kubeconfig(void)
{
    guard_user("{token: t}");
    return scenario_printf("%s/kubeconfig", scenario_folder());
}

/* Runs `who --watch` with standard output on the descriptor. */
static pid_t launch(int out, const char *err, const char *what, const char *more)
{
    const char *binary = getenv("CLAIMGUARD_BINARY"), *config = kubeconfig();
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    int errors = open(err, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (binary == NULL || out < 0 || errors < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(errors, STDERR_FILENO) < 0)
        _exit(126);
    (void)execl(binary, binary, "who", what, "--watch", "--kubeconfig", config, more, (char *)NULL);
    _exit(127);
}

static struct watcher watch(const char *what, const char *more)
{
    struct watcher watcher;

    (void)snprintf(watcher.out, sizeof watcher.out, "%s/out", scenario_folder());
    (void)snprintf(watcher.err, sizeof watcher.err, "%s/err", scenario_folder());
    int out = open(watcher.out, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    watcher.pid = launch(out, watcher.err, what, more);
    (void)close(out);
    return watcher;
}

static bool file_has(const char *path, const char *text)
{
    char *all = access(path, F_OK) == 0 ? read_file(path) : strdup("");
    bool has = strstr(all, text) != NULL;

    free(all);
    return has;
}

static void await_text(const char *path, const char *text)
{
    int64_t give_up_ms = clock_ms() + 60000;

    while (!file_has(path, text) && clock_ms() < give_up_ms)
        sleep_ms(20);
    if (!file_has(path, text))
        scenario_show(path);
    check(file_has(path, text), "no \"%s\"", text);
}

/* Returns the exit status; fails unless it ends within ten seconds. */
static int await_end(pid_t pid)
{
    int64_t give_up_ms = clock_ms() + 10000;
    int status = 0;
    pid_t ended = 0;

    while (ended == 0 && clock_ms() < give_up_ms) {
        ended = waitpid(pid, &status, WNOHANG);
        sleep_ms(20);
    }
    if (ended == 0)
        (void)kill(pid, SIGKILL);
    check(ended == pid && WIFEXITED(status), "it ends by itself");
    return WEXITSTATUS(status);
}

static void stop(const struct watcher *watcher, int signal)
{
    check(kill(watcher->pid, signal) == 0, "it still runs");
    int status = await_end(watcher->pid);
    if (status != 0)
        scenario_show(watcher->err);
    check(status == 0, "exit status %d", status);
}

/* ---- changes ---- */

static void each_change_is_a_line(void)
{
    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    struct watcher watcher = watch("default/data", NULL);
    await_text(watcher.out, "  default/data  held by a on node-1, Bound; no pod waits\n");
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    await_text(watcher.out, "  default/data  held by a on node-1, Bound; b waits\n");
    put_pod(&(struct test_pod){.name = "c", .claim = "data"});
    await_text(watcher.out, "Bound; b and 1 more wait\n");
    put_pod(&(struct test_pod){.name = "a",
                               .claim = "data",
                               .node = "node-1",
                               .more_meta = ",\"deletionTimestamp\":\"2026-11-22T10:00:30Z\""});
    await_text(watcher.out, "held by a on node-1, Terminating; b and 1 more wait\n");
    api_remove("pods", "default", "a");
    await_text(watcher.out, "held by no pod; b and 1 more wait\n");
    api_remove("pods", "default", "b");
    api_remove("pods", "default", "c");
    await_text(watcher.out, "held by no pod; no pod waits\n");
    api_remove("persistentvolumeclaims", "default", "data");
    await_text(watcher.out, "  default/data  does not exist, and no pod names it\n");
    stop(&watcher, SIGTERM);
    check(!file_has(watcher.err, "claimguard"), "nothing went wrong");
}

static void all_claims_are_followed(void)
{
    put_claim("data");
    put_claim("logs");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    put_pod(&(struct test_pod){.name = "b", .claim = "data"});
    struct watcher watcher = watch("--all", NULL);
    await_text(watcher.out, "  default/data  held by a on node-1, Bound; b waits\n");
    put_pod(&(struct test_pod){.name = "c", .claim = "logs", .node = "node-2"});
    put_pod(&(struct test_pod){.name = "d", .claim = "logs"});
    await_text(watcher.out, "  default/logs  held by c on node-2, Bound; d waits\n");
    api_remove("pods", "default", "d");
    await_text(watcher.out, "  default/logs  no pod waits\n");
    stop(&watcher, SIGINT);
}

/* What the advice needs is not asked for again at each change. */
static void changes_cost_few_requests(void)
{
    static const char owner[] =
        ",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\",\"name\":"
        "\"a\",\"uid\":\"1\",\"controller\":true}]";

    put_claim("data");
    put_pod(
        &(struct test_pod){.name = "a-0", .claim = "data", .node = "node-1", .more_meta = owner});
    struct watcher watcher = watch("default/data", NULL);
    await_text(watcher.out, "held by a-0 on node-1, Bound; no pod waits\n");
    for (int i = 1; i <= 5; i++) {
        put_pod(&(struct test_pod){.name = scenario_printf("b%d", i), .claim = "data"});
        await_text(watcher.out,
                   i == 1 ? "; b1 waits\n" : scenario_printf("; b1 and %d more wait\n", i - 1));
    }
    size_t count = api_count("GET", "/statefulsets/a");
    check(count >= 1 && count <= 2, "%zu requests", count);
    stop(&watcher, SIGTERM);
}

/* Each line is an object, also of a change that no line for people shows. */
static void json_is_an_object_on_a_line(void)
{
    char line[16384];
    size_t count = 0;

    put_claim("data");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1"});
    struct watcher watcher = watch("default/data", "-ojson");
    await_text(watcher.out, "\"priority\":0,");
    put_pod(&(struct test_pod){.name = "a", .claim = "data", .node = "node-1", .priority = 7});
    await_text(watcher.out, "\"priority\":7,");
    stop(&watcher, SIGTERM);
    FILE *file = fopen(watcher.out, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        const char *time = json_string_value(json_object_get(object, "time"));
        check(time != NULL && strlen(time) == strlen("2026-11-22T10:00:30Z"), "%s", line);
        check(json_array_size(json_object_get(object, "claims")) == 1, "%s", line);
        check(json_is_array(json_object_get(object, "notKnown")), "%s", line);
        json_decref(object);
        count++;
    }
    check(file != NULL && fclose(file) == 0 && count == 2, "%zu lines", count);
}

static void a_claim_that_comes_later_is_awaited(void)
{
    struct watcher watcher = watch("default/data", NULL);

    await_text(watcher.err, "there is no claim default/data");
    put_claim("data");
    await_text(watcher.out, "  default/data  held by no pod; no pod waits\n");
    stop(&watcher, SIGTERM);
}

/* ---- watches that fail ---- */

static struct watcher watch_pair(void)
{
    put_pair("node-1");
    struct watcher watcher = watch("default/data", NULL);
    await_text(watcher.out, "held by a on node-1, Bound; b waits\n");
    return watcher;
}

/* Nothing is shown as gone while the new list is read. */
static void a_version_that_is_too_old_is_survived(void)
{
    struct watcher watcher = watch_pair();

    api_hold("pods");
    api_remove("pods", "default", "b");
    api_compact();
    api_cut("pods");
    api_release("pods");
    await_text(watcher.out, "held by a on node-1, Bound; no pod waits\n");
    check(!file_has(watcher.out, "held by no pod"), "a held it all the time");
    stop(&watcher, SIGTERM);
}

static void an_api_server_that_is_away_is_awaited(void)
{
    struct watcher watcher = watch_pair();

    api_go_down();
    await_text(watcher.err, "pods are not answered; what is shown may be old");
    api_remove("pods", "default", "a");
    api_come_back();
    await_text(watcher.out, "held by no pod; b waits\n");
    await_text(watcher.err, "claimguard: pods are answered again\n");
    stop(&watcher, SIGTERM);
}

static void rights_that_are_withdrawn_and_given_back(void)
{
    struct watcher watcher = watch_pair();

    api_fault(&(struct api_fault){.method = "GET", .path = "/pods?", .status = 403});
    api_cut("pods");
    await_text(watcher.err, "pods are not answered");
    api_remove("pods", "default", "a");
    api_heal();
    await_text(watcher.out, "held by no pod; b waits\n");
    stop(&watcher, SIGTERM);
}

static void connections_that_die_are_survived(void)
{
    struct watcher watcher = watch_pair();

    for (int i = 0; i < 5; i++) {
        api_fault(&(struct api_fault){
            .method = "GET", .path = "/pods?", .times = 1, .ending = API_CLOSE});
        api_cut("pods");
        put_pod(
            &(struct test_pod){.name = scenario_printf("c%d", i), .claim = "data", .node = NULL});
        await_text(watcher.out, scenario_printf("Bound; b and %d more wait\n", i + 1));
    }
    stop(&watcher, SIGTERM);
}

/* ---- what cannot be read at all ---- */

static void a_kind_without_rights_is_a_gap(void)
{
    api_fault(&(struct api_fault){.method = "GET", .path = "/nodes?", .status = 403});
    put_pair("node-1");
    struct watcher watcher = watch("default/data", "-ojson");
    await_text(watcher.out, "nodes: these credentials may not list them");
    api_heal();
    await_text(watcher.out, "\"nodeState\":\"Ready\"");
    stop(&watcher, SIGTERM);
}

static void expect_failure(const char *text)
{
    struct watcher watcher = watch("default/data", NULL);
    int status = await_end(watcher.pid);

    await_text(watcher.err, text);
    check(status == 2, "exit status %d", status);
}

static void without_rights_on_pods_there_is_no_answer(void)
{
    put_pair("node-1");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods?", .status = 403});
    expect_failure("status 403: these credentials may not list and watch them");
    api_fault(&(struct api_fault){.method = "GET", .path = "/pods?", .status = 401});
    expect_failure("status 401: these credentials are not accepted");
}

static void without_an_api_server_there_is_no_answer(void)
{
    api_go_down();
    expect_failure("no good answer to the list of");
}

/* ---- nobody reads ---- */

static void a_closed_pipe_ends_it_quietly(void)
{
    int ends[2];
    char first[16];
    const char *err = scenario_printf("%s/err", scenario_folder());

    put_pair("node-1");
    check(pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0, "a pipe");
    pid_t pid = launch(ends[1], err, "default/data", NULL);
    (void)close(ends[1]);
    check(read(ends[0], first, sizeof first) > 0, "the first state");
    (void)close(ends[0]);
    check(await_end(pid) == 0, "it ends, although nothing changes");
    check(!file_has(err, "claimguard"), "quietly");
}

int main(int argc, char **argv)
{
    static const struct scenario all[] = {
        SCENARIO(each_change_is_a_line),
        SCENARIO(all_claims_are_followed),
        SCENARIO(changes_cost_few_requests),
        SCENARIO(json_is_an_object_on_a_line),
        SCENARIO(a_claim_that_comes_later_is_awaited),
        SCENARIO(a_version_that_is_too_old_is_survived),
        SCENARIO(an_api_server_that_is_away_is_awaited),
        SCENARIO(rights_that_are_withdrawn_and_given_back),
        SCENARIO(connections_that_die_are_survived),
        SCENARIO(a_kind_without_rights_is_a_gap),
        SCENARIO(without_rights_on_pods_there_is_no_answer),
        SCENARIO(without_an_api_server_there_is_no_answer),
        SCENARIO(a_closed_pipe_ends_it_quietly),
    };

    return scenarios_run(all, sizeof all / sizeof *all, argc, argv);
}
