#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/base/clock.h"

enum { LOG_WAIT_MS = 180000 };

static const char *binary(void)
{
    const char *path = getenv("CLAIMGUARD_BINARY");

    if (path == NULL) {
        (void)fprintf(stderr, "CLAIMGUARD_BINARY is not set\n");
        abort();
    }
    return path;
}

char *read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    size_t length = 0, capacity = 4096;
    char *text = malloc(capacity);

    if (file == NULL || text == NULL) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        abort();
    }
    for (size_t count; (count = fread(text + length, 1, capacity - length - 1, file)) != 0;) {
        length += count;
        if (capacity - length < 2)
            text = realloc(text, capacity *= 2);
        if (text == NULL)
            abort();
    }
    text[length] = '\0';
    (void)fclose(file);
    return text;
}

/* Starts the binary; its output goes to the two descriptors. */
static pid_t spawn(const char *const *arguments, const char *input, int out, int err)
{
    const char *argv[PROCESS_ARGUMENTS_MAX + 2] = {binary()};

    for (int i = 0; arguments[i] != NULL && i < PROCESS_ARGUMENTS_MAX; i++)
        argv[i + 1] = arguments[i];
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    int in = open(input == NULL ? "/dev/null" : input, O_RDONLY);
    if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(err, STDERR_FILENO) < 0)
        _exit(126);
    (void)execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

static int exit_status(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int temporary_file(char *path)
{
    (void)strcpy(path, "/tmp/claimguard-test-XXXXXX"); /* NOLINT: fits */
    return mkstemp(path);
}

int process_run(const char *const *arguments, const char *input, char **out, char **err)
{
    char out_path[64], err_path[64];
    int out_fd = temporary_file(out_path), err_fd = temporary_file(err_path);

    pid_t pid = spawn(arguments, input, out_fd, err_fd);
    int status = pid < 0 ? -1 : exit_status(pid);
    *out = read_file(out_path);
    *err = read_file(err_path);
    (void)unlink(out_path);
    (void)unlink(err_path);
    (void)close(out_fd);
    (void)close(err_fd);
    return status;
}

/* Reads the log up to and with a line that holds the text. */
static bool read_until(int log, const char *text, char *line, size_t size)
{
    size_t length = 0;
    struct pollfd ready = {.fd = log, .events = POLLIN};
    int64_t end_ms = now_ms() + LOG_WAIT_MS;

    while (length + 1 < size && now_ms() < end_ms && poll(&ready, 1, LOG_WAIT_MS) > 0) {
        if (read(log, line + length, 1) != 1)
            return false;
        if (line[length++] != '\n')
            continue;
        line[length] = '\0';
        if (strstr(line, text) != NULL)
            return true;
        (void)fputs(line, stderr);
        length = 0;
    }
    return false;
}

bool daemon_wait_for(struct daemon *daemon, const char *text)
{
    char line[4096];
    return read_until(daemon->log, text, line, sizeof line);
}

static uint16_t port_behind(const char *line, const char *key)
{
    const char *at = strstr(line, key);

    at = at == NULL ? NULL : strchr(at, ':');
    return at == NULL ? 0 : (uint16_t)strtoul(at + 1, NULL, 10);
}

bool daemon_start(struct daemon *daemon, const char *const *arguments)
{
    const char *all[PROCESS_ARGUMENTS_MAX + 1] = {"serve", "--listen", "127.0.0.1:0",
                                                  "--metrics-listen", "127.0.0.1:0"};
    char line[4096];
    int pipe_ends[2];

    for (int i = 0; arguments[i] != NULL; i++)
        all[i + 5] = arguments[i];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        return false;
    daemon->pid = spawn(all, NULL, pipe_ends[1], pipe_ends[1]);
    (void)close(pipe_ends[1]);
    daemon->log = pipe_ends[0];
    if (daemon->pid < 0 || !read_until(daemon->log, "listening", line, sizeof line))
        return false;
    daemon->port = port_behind(line, "address=");
    daemon->metrics_port = port_behind(line, "metrics=");
    return daemon->port != 0 && daemon->metrics_port != 0;
}

long daemon_memory_mib(const struct daemon *daemon, const char *field)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)daemon->pid);
    char *text = read_file(path), *at = strstr(text, field);
    if (at == NULL) {
        (void)fprintf(stderr, "%s: no %s\n", path, field);
        abort();
    }
    long kib = strtol(at + strlen(field) + 1, NULL, 10);
    free(text);
    return kib / 1024;
}

void process_keep_sanitizer_small(void)
{
    const char *options = getenv("ASAN_OPTIONS");
    char more[512];

    (void)snprintf(more, sizeof more,
                   "%s:quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
                   ":detect_stack_use_after_return=0",
                   options == NULL ? "" : options);
    if (setenv("ASAN_OPTIONS", more, 1) != 0)
        abort();
}

int daemon_stop(struct daemon *daemon)
{
    char rest[4096];

    (void)kill(daemon->pid, SIGTERM);
    for (ssize_t count; (count = read(daemon->log, rest, sizeof rest)) > 0;)
        (void)fwrite(rest, 1, (size_t)count, stderr);
    (void)close(daemon->log);
    return exit_status(daemon->pid);
}

char *read_file_in(const char *folder, const char *file)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    return read_file(path);
}
