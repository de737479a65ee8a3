#include "support/scenario.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/process.h"

enum { AT_A_TIME = 4, SCENARIO_SECONDS_MAX = 280 };

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

struct running {
    const struct scenario *scenario;
    pid_t pid;
    char output[32];
    int64_t started_ms;
};

static char folder[] = "/tmp/scenario-XXXXXX"; /* of one scenario */

void scenario_show(const char *path)
{
    char *text = read_file(path);

    (void)fputs(text, stderr);
    free(text);
}

static void finish(int status)
{
    char command[64];

    guards_end();
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
        scenario_show(running[i].output);
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

const char *scenario_folder(void)
{
    return folder;
}
