#include "programs.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/http.h"

enum { FIRST_WRITE = 4096, WRITE = 32768 };

const char *bench_folder;
char bench_work[] = "/tmp/claimguard-bench-XXXXXX";
int bench_client_core, bench_server_core;

void bench_die(const char *what)
{
    (void)fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

double bench_now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_percentile(double *values, size_t count, double p)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[(size_t)((double)(count - 1) * p)];
}

struct spread bench_spread(double *values, size_t count)
{
    double median = bench_percentile(values, count, 0.5);

    return (struct spread){median, values[0], values[count - 1]};
}

void bench_pin(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); i++)
        if (core == BENCH_ANY_CORE || i == core)
            CPU_SET((size_t)i, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        bench_die("cannot pin to a core");
}

static uint16_t port_after(const char *line, const char *text)
{
    const char *at = strstr(line, text);
    return at == NULL ? 0 : (uint16_t)strtoul(at + strlen(text), NULL, 10);
}

struct child bench_start(const char *const *argv)
{
    int ends[2];
    char line[4096];
    struct child child = {0};

    if (pipe(ends) != 0)
        bench_die("pipe");
    child.pid = fork();
    if (child.pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a bench that fails leaves no server */
        bench_pin(bench_server_core);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    (void)close(ends[1]);
    child.log = fdopen(ends[0], "r");
    while (child.port == 0 && child.log != NULL && fgets(line, sizeof line, child.log) != NULL) {
        const char *at = strstr(line, "address=127.0.0.1:");
        uint16_t port = port_after(line, "address=127.0.0.1:");
        if (at != NULL && strstr(line, "listening") != NULL) {
            child.port = port;
            child.metrics_port = port_after(line, "metrics=127.0.0.1:");
        } else if (at != NULL)
            child.admission_port = port;
        else if (strstr(line, "claimguard:") != NULL)
            (void)fputs(line, stderr);
    }
    if (child.port == 0)
        bench_die("a server did not start");
    return child; /* its log stays open: closing it would stop the server */
}

void bench_stop(struct child child)
{
    (void)kill(child.pid, SIGTERM);
    (void)waitpid(child.pid, NULL, 0);
}

struct child bench_start_claimguard(const char *program, const char *snapshot, const char *config)
{
    char binary[512];

    (void)snprintf(binary, sizeof binary, "%s/%s", bench_folder, program);
    return bench_start((const char *const[]){binary, "serve", "--snapshot", snapshot, "--listen",
                                             "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                                             config == NULL ? NULL : "--config", config, NULL});
}

/* Nobody may stop reading the log of a server: it would wait for room in the pipe. */
static void *drain(void *log)
{
    char line[4096];

    while (fgets(line, sizeof line, log) != NULL)
        ;
    (void)fclose(log);
    return NULL;
}

struct child bench_start_live(const char *kubeconfig, double *seconds)
{
    char binary[512], line[4096];
    double started = bench_now_us();
    pthread_t thread;

    (void)snprintf(binary, sizeof binary, "%s/claimguard", bench_folder);
    struct child child =
        bench_start((const char *const[]){binary, "serve", "--kubeconfig", kubeconfig, "--listen",
                                          "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", NULL});
    bool is_synced = false;
    while (!is_synced && fgets(line, sizeof line, child.log) != NULL)
        is_synced = strstr(line, "cache is synced") != NULL;
    *seconds = (bench_now_us() - started) / 1e6;
    if (!is_synced || pthread_create(&thread, NULL, drain, child.log) != 0)
        bench_die("claimguard was not synced");
    (void)pthread_detach(thread);
    return child;
}

struct child bench_start_noop(const char *certificate, const char *key)
{
    char binary[512];

    (void)snprintf(binary, sizeof binary, "%s/tests/bench/noop", bench_folder);
    return bench_start((const char *const[]){binary, certificate, key, NULL});
}

/* A snapshot file of the model. */
void bench_generate(const struct model *model, char *path, size_t size)
{
    char command[1024];

    (void)snprintf(path, size, "%s/%u-%u.json", bench_work, model->pods, model->nodes);
    (void)snprintf(command, sizeof command,
                   "%s/tests/bench/generate --nodes %u --pods %u --claims %u --drivers %f "
                   "--deployments %u --pending %f --stateful %u %s %s > %s",
                   bench_folder, model->nodes, model->pods, model->claims, model->driver_share,
                   model->deployments, model->pending_share == 0 ? 0.1 : model->pending_share,
                   model->set_pods, model->has_volumes ? "--volumes" : "",
                   model->has_labels ? "--labels" : "", path);
    if (system(command) != 0) /* NOLINT(cert-env33-c): a command of our own */
        bench_die("generate failed");
}

void bench_write_config(const char *text, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/config.yaml", bench_work);
    FILE *file = fopen(path, "we");
    if (file == NULL ||
        fprintf(file, "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n%s",
                text) < 0 ||
        fclose(file) != 0)
        bench_die("cannot write the configuration");
}

double bench_cpu_seconds(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        bench_die("no CPU time");
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

long bench_memory_kib(pid_t pid, const char *field)
{
    char path[64], line[256];
    long value = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            value = strtol(line + strlen(field) + 1, NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return value;
}

long bench_find_claim(const struct model *model, bool is_rwop, bool is_held)
{
    for (unsigned i = 0; i < model->claims; i++)
        if (model_claim_is_exclusive(model, i) == is_rwop &&
            model_pod_is_assigned(model, i) == is_held)
            return (long)i;
    bench_die("the model has no such claim");
    return -1;
}

/* ---- calls ---- */

/* As net/http writes: the headers with the first of the body, then 32 KiB at a time. */
static void send_like_go(int fd, struct slice request)
{
    size_t step = FIRST_WRITE;

    for (size_t at = 0; at < request.len; at += step, step = WRITE) {
        if (step > request.len - at)
            step = request.len - at;
        if (http_send(fd, request.ptr + at, step) != 0)
            bench_die("a server closed the connection");
    }
}

/* The whole answer's length; 0: it is in chunks, of which the last is missing. */
static size_t answer_length(const struct buf *in, const char *body)
{
    static const char last[] = "\r\n0\r\n\r\n"; /* JSON has no line breaks of this kind */
    size_t head = (size_t)(body - in->bytes);
    const char *length = memmem(in->bytes, head, "Content-Length: ", 16);

    if (length != NULL)
        return head + strtoull(length + 16, NULL, 10);
    if (memmem(in->bytes, head, "Transfer-Encoding: chunked", 26) == NULL)
        bench_die("an answer without a length");
    bool is_whole = in->len >= sizeof last &&
                    memcmp(in->bytes + in->len - (sizeof last - 1), last, sizeof last - 1) == 0;
    return is_whole ? in->len : 0;
}

/* Reads an answer into a buffer that is kept: the client must not be what is measured. */
static void receive_answer(int fd, struct buf *in)
{
    size_t total = 0;

    in->len = 0;
    while (total == 0 || in->len < total) {
        if (!buf_reserve(in, (size_t)256 * 1024))
            bench_die("out of memory");
        ssize_t count = read(fd, in->bytes + in->len, in->capacity - in->len);
        if (count <= 0)
            bench_die("a server closed the connection");
        in->len += (size_t)count;
        const char *end = total == 0 ? memmem(in->bytes, in->len, "\r\n\r\n", 4) : NULL;
        if (end != NULL)
            total = answer_length(in, end + 4);
    }
}

double bench_call(int fd, struct slice request, struct buf *in)
{
    double started = bench_now_us();

    send_like_go(fd, request);
    receive_answer(fd, in);
    return bench_now_us() - started;
}

void bench_make_request(struct buf *out, const char *path, struct slice body)
{
    buf_reset(out, SIZE_MAX);
    buf_printf(
        out,
        "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Go-http-client/1.1\r\n"
        "Content-Length: %zu\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n",
        path, body.len);
    buf_put(out, body);
}

/* Alternately, so that both see the same machine; on a new connection now and then, since the
 * kernel's buffers settle differently on each. */
void bench_alternate(const struct child *claimguard, const struct child *noop, struct slice request,
                     struct slice noop_request, double *ours, double *bound)
{
    struct buf in;

    buf_init(&in, 64 << 20);
    for (int c = 0; c < CONNECTIONS; c++) {
        int fd = http_connect(claimguard->port), noop_fd = http_connect(noop->port);
        for (int i = -WARM_UP; i < CALLS; i++) {
            double a = bench_call(fd, request, &in), b = bench_call(noop_fd, noop_request, &in);
            if (i >= 0) {
                ours[c * CALLS + i] = a;
                bound[c * CALLS + i] = b;
            }
        }
        (void)close(fd);
        (void)close(noop_fd);
    }
    buf_dispose(&in);
}
