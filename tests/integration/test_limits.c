/* Where the system sets a limit: a log that nobody reads, and few files. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/http.h"
#include "support/process.h"

/* Each is a line of some thousand bytes. */
static void refuse_binds(const struct daemon *daemon, int count)
{
    char name[254], body[1024], request[1200];
    int fd = http_connect(daemon->port);

    memset(name, 'p', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    int length = snprintf(body, sizeof body,
                          "{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":\"u\",\"Node\":"
                          "\"%s\"}",
                          name, name, name);
    length =
        snprintf(request, sizeof request,
                 "POST /bind HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", length, body);
    for (int i = 0; i < count; i++) {
        struct response response;
        cr_assert_eq(http_send(fd, request, (size_t)length), 0);
        http_receive(fd, &response);
        cr_assert_eq(response.status, 200);
        response_free(&response);
    }
    (void)close(fd);
}

static double dropped_lines(const struct daemon *daemon)
{
    return http_metric(daemon->metrics_port, "\nclaimguard_log_lines_dropped_total ");
}

Test(serve_unread, a_log_that_nobody_reads_hangs_nobody, .timeout = 60)
{
    struct daemon daemon;
    int status = 0;

    cr_assert(daemon_start(
        &daemon,
        (const char *const[]){"--snapshot", SOURCE_DIR "/docs/example/snapshot.yaml", NULL}));
    refuse_binds(&daemon, 2500);
    cr_expect_eq(http_get_status(daemon.port, "/livez"), 200);
    cr_expect_eq(http_get_status(daemon.metrics_port, "/livez"), 200);
    cr_expect_gt(dropped_lines(&daemon), 0);
    (void)kill(daemon.pid, SIGTERM); /* and the pipe is still full */
    for (int i = 0; waitpid(daemon.pid, &status, WNOHANG) == 0; i++) {
        cr_assert_lt(i, 1000, "it has not ended after ten seconds");
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (void)close(daemon.log);
}

static void limit_files(rlim_t now, rlim_t most)
{
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){now, most}), 0);
}

Test(serve_files, the_limit_is_raised_to_what_is_needed)
{
    struct daemon daemon;

    limit_files(100, 4096);
    cr_assert(daemon_start(
        &daemon,
        (const char *const[]){"--snapshot", SOURCE_DIR "/docs/example/snapshot.yaml", NULL}));
    cr_expect_eq(http_metric(daemon.metrics_port, "\nprocess_max_fds "), 512);
    cr_expect_eq(daemon_stop(&daemon), 0);
}

Test(serve_files, a_limit_that_is_too_low_is_logged)
{
    char *out, *log;

    limit_files(100, 300);
    (void)process_run((const char *const[]){"serve", "--snapshot",
                                            SOURCE_DIR "/docs/example/snapshot.yaml", "--listen",
                                            "192.0.2.1:1", NULL}, /* nobody's: it ends */
                      NULL, &out, &log);
    cr_expect_not_null(strstr(log,
                              "too few files may be open, so connections will be refused limit=300 "
                              "need=512"),
                       "%s", log);
    free(out);
    free(log);
}

/* The status with which `serve` of a FIFO that never ends stops after the signal. */
static int end_while_loading(int signal)
{
    char path[] = "/tmp/claimguard-fifo-XXXXXX", fifo[64];
    int status = -1;

    cr_assert_not_null(mkdtemp(path));
    (void)snprintf(fifo, sizeof fifo, "%s/fifo", path);
    cr_assert_eq(mkfifo(fifo, 0600), 0);
    int writer = open(fifo, O_RDWR | O_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0) {
        execl(getenv("CLAIMGUARD_BINARY"), "claimguard", "serve", "--snapshot", fifo, "--listen",
              "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", NULL);
        _exit(127);
    }
    (void)sleep(1);
    (void)kill(pid, signal);
    for (int i = 0; waitpid(pid, &status, WNOHANG) == 0; i++) {
        if (i == 500)
            (void)kill(pid, SIGKILL);
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    (void)close(writer);
    (void)unlink(fifo);
    (void)rmdir(path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(serve_loading, signals_end_it_while_a_snapshot_is_read, .timeout = 60)
{
    cr_expect_eq(end_while_loading(SIGTERM), 0);
    cr_expect_eq(end_while_loading(SIGINT), 0);
}
