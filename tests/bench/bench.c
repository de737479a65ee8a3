/*
 * bench: measures claimguard against lower bounds, as ratios within one run (./dev bench). Prints a
 * Markdown table. Never asserts on time.
 *
 *     bench BUILD-FOLDER [--pods N]
 */
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config/base/log.h"
#include "extender/cli/load.h"
#include "extender/cli/services.h"
#include "extender/verbs/verbs.h"
#include "model.h"
#include "support/http.h"

enum {
    CONNECTIONS = 20,
    CALLS = 100, /* measured on each connection, after WARM_UP others */
    WARM_UP = 20,
    ROUNDS = CONNECTIONS * CALLS,
    FIRST_WRITE = 4096,
    WRITE = 32768,
    VERDICTS = 4000,
};

static const char *folder;
static char work[] = "/tmp/claimguard-bench-XXXXXX";

static void die(const char *what)
{
    (void)fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static double now_us(void)
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

static double percentile(double *values, size_t count, double p)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[(size_t)((double)(count - 1) * p)];
}

/* ---- programs ---- */

struct child {
    pid_t pid;
    uint16_t port;
};

/* Where the client and the servers run: left to the scheduler, a call takes three times as long
 * when it happens to wake an idle core, and the ratio says which of the two was lucky. */
static int client_core, server_core;

static void pin(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        die("cannot pin to a core");
}

static struct child start(const char *const *argv)
{
    int ends[2];
    char line[4096];
    struct child child = {0};

    if (pipe(ends) != 0)
        die("pipe");
    child.pid = fork();
    if (child.pid == 0) {
        pin(server_core);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    (void)close(ends[1]);
    FILE *log = fdopen(ends[0], "r");
    while (child.port == 0 && log != NULL && fgets(line, sizeof line, log) != NULL) {
        const char *at = strstr(line, "listening");
        at = at == NULL ? NULL : strstr(at, "127.0.0.1:");
        if (at != NULL)
            child.port = (uint16_t)strtoul(at + 10, NULL, 10);
        else if (strstr(line, "claimguard:") != NULL)
            (void)fputs(line, stderr);
    }
    if (child.port == 0)
        die("a server did not start");
    return child; /* its log stays open: closing it would stop the server */
}

static void stop(struct child child)
{
    (void)kill(child.pid, SIGTERM);
    (void)waitpid(child.pid, NULL, 0);
}

/* config: NULL: the defaults. */
static struct child start_claimguard(const char *snapshot, const char *config)
{
    char binary[512];

    (void)snprintf(binary, sizeof binary, "%s/claimguard", folder);
    return start((const char *const[]){binary, "serve", "--snapshot", snapshot, "--listen",
                                       "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                                       config == NULL ? NULL : "--config", config, NULL});
}

static struct child start_noop(void)
{
    char binary[512];

    (void)snprintf(binary, sizeof binary, "%s/tests/bench/noop", folder);
    return start((const char *const[]){binary, NULL});
}

/* A snapshot file of the model. */
static void generate(const struct model *model, char *path, size_t size)
{
    char command[1024];

    (void)snprintf(path, size, "%s/%u-%u.json", work, model->pods, model->nodes);
    (void)snprintf(command, sizeof command,
                   "%s/tests/bench/generate --nodes %u --pods %u --claims %u %s > %s", folder,
                   model->nodes, model->pods, model->claims, model->has_volumes ? "--volumes" : "",
                   path);
    if (system(command) != 0) /* NOLINT(cert-env33-c): a command of our own */
        die("generate failed");
}

static long memory_kib(pid_t pid, const char *field)
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

/* ---- filter round trips ---- */

/* As net/http writes: the headers with the first of the body, then 32 KiB at a time. */
static void send_like_go(int fd, struct slice request)
{
    size_t step = FIRST_WRITE;

    for (size_t at = 0; at < request.len; at += step, step = WRITE) {
        if (step > request.len - at)
            step = request.len - at;
        if (http_send(fd, request.ptr + at, step) != 0)
            die("a server closed the connection");
    }
}

/* Reads an answer into a buffer that is kept: the client must not be what is measured. */
static size_t receive_answer(int fd, struct buf *in)
{
    size_t total = 0;

    in->len = 0;
    while (total == 0 || in->len < total) {
        if (!buf_reserve(in, 256 * 1024))
            die("out of memory");
        ssize_t count = read(fd, in->bytes + in->len, in->capacity - in->len);
        if (count <= 0)
            die("a server closed the connection");
        in->len += (size_t)count;
        const char *end = total == 0 ? memmem(in->bytes, in->len, "\r\n\r\n", 4) : NULL;
        const char *length =
            end == NULL ? NULL
                        : memmem(in->bytes, (size_t)(end - in->bytes), "Content-Length: ", 16);
        if (length != NULL)
            total = (size_t)(end + 4 - in->bytes) + strtoull(length + 16, NULL, 10);
    }
    return total;
}

static double call(int fd, struct slice request, struct buf *in)
{
    double started = now_us();

    send_like_go(fd, request);
    (void)receive_answer(fd, in);
    return now_us() - started;
}

static void make_request(struct buf *out, const char *path, struct slice body)
{
    buf_reset(out, SIZE_MAX);
    buf_printf(
        out,
        "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Go-http-client/1.1\r\n"
        "Content-Length: %zu\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n",
        path, body.len);
    buf_put(out, body);
}

/* The answer's size, and the same call for the no-op server, which is to write as many bytes. */
static size_t prepare(const struct child *claimguard, struct slice body, struct buf *request,
                      struct buf *noop_request)
{
    struct buf in;
    char path[32];
    int fd = http_connect(claimguard->port);

    buf_init(&in, 64 << 20);
    make_request(request, "/filter", body);
    (void)call(fd, buf_slice(request), &in);
    (void)close(fd);
    const char *answer = memmem(in.bytes, in.len, "\r\n\r\n", 4);
    size_t answer_bytes = in.len - (size_t)(answer + 4 - in.bytes);
    (void)snprintf(path, sizeof path, "/%zu", answer_bytes);
    make_request(noop_request, path, body);
    buf_dispose(&in);
    return answer_bytes;
}

/* By turns, so that both see the same machine; on a new connection now and then, since the kernel's
 * buffers settle differently on each. */
static void alternate(const struct child *claimguard, const struct child *noop,
                      struct slice request, struct slice noop_request, double *ours, double *bound)
{
    struct buf in;

    buf_init(&in, 64 << 20);
    for (int c = 0; c < CONNECTIONS; c++) {
        int fd = http_connect(claimguard->port), noop_fd = http_connect(noop->port);
        for (int i = -WARM_UP; i < CALLS; i++) {
            double a = call(fd, request, &in), b = call(noop_fd, noop_request, &in);
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

static void measure_round_trip(const struct child *claimguard, const struct child *noop,
                               const char *what, unsigned names, struct slice body)
{
    static double ours[ROUNDS], bound[ROUNDS];
    struct buf request, noop_request;

    buf_init(&request, 64 << 20);
    buf_init(&noop_request, 64 << 20);
    size_t answer_bytes = prepare(claimguard, body, &request, &noop_request);
    alternate(claimguard, noop, buf_slice(&request), buf_slice(&noop_request), ours, bound);
    double median = percentile(ours, ROUNDS, 0.5), noop_median = percentile(bound, ROUNDS, 0.5);
    (void)printf(
        "| %u names, %s | %zu / %zu KiB | %.0f µs | %.0f µs | **%.2f** | %.0f / %.0f µs |\n", names,
        what, body.len / 1024, answer_bytes / 1024, median, noop_median, median / noop_median,
        percentile(ours, ROUNDS, 0.99), percentile(bound, ROUNDS, 0.99));
    (void)fflush(stdout);
    buf_dispose(&request);
    buf_dispose(&noop_request);
}

/* An exclusive claim that its pod holds, or does not hold (yet). */
static long find_claim(const struct model *model, bool is_held)
{
    for (unsigned i = 0; i < model->claims && i < model->pods; i++)
        if (model_claim_is_exclusive(model, i) && model_pod_is_assigned(model, i) == is_held)
            return (long)i;
    die("the model has no such claim");
    return -1;
}

static void bench_round_trips(const char *where)
{
    struct model model = {.nodes = 5000,
                          .pods = 20000,
                          .claims = 20000,
                          .exclusive_share = 0.5,
                          .pending_share = 0.1,
                          .seed = 1};
    const struct {
        const char *what;
        long claim;
    } kinds[] = {
        {"no claim", -1},
        {"a free exclusive claim", find_claim(&model, false)},
        {"a conflict", find_claim(&model, true)},
    };
    const unsigned sizes[] = {500, 5000};
    char snapshot[512];
    struct buf body;

    generate(&model, snapshot, sizeof snapshot);
    pin(client_core);
    struct child claimguard = start_claimguard(snapshot, NULL), noop = start_noop();
    (void)printf("\n## Filter round trip, %s\n\nKeep-alive client in C; the no-op server reads the "
                 "same body "
                 "and writes as many bytes.\nMedians of %d calls, measured alternately.\n\n"
                 "| call | body / answer | claimguard | no-op | ratio | p99 |\n"
                 "|---|---|---|---|---|---|\n",
                 where, ROUNDS);
    buf_init(&body, 64 << 20);
    for (size_t s = 0; s < 2; s++) {
        for (size_t k = 0; k < 3; k++) {
            buf_reset(&body, SIZE_MAX);
            model_put_filter(&model, kinds[k].claim, sizes[s], &body);
            measure_round_trip(&claimguard, &noop, kinds[k].what, sizes[s], buf_slice(&body));
        }
    }
    buf_dispose(&body);
    stop(claimguard);
    stop(noop);
}

/* ---- DeferFSMount ---- */

static void write_entries(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/deferral.yaml", work);
    FILE *file = fopen(path, "we");
    if (file == NULL ||
        fputs("apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n"
              "deferFSMount:\n  entries:\n"
              "  - {storageClass: fast-storage, runtimeClass: microvm, nonExclusiveClaims: "
              "Exclusive}\n",
              file) < 0 ||
        fclose(file) != 0)
        die("cannot write the configuration");
}

/* The same pod with a runtime class and without, alternately, to the same server. */
static void measure_deferral(const struct child *claimguard, const struct model *model, long claim,
                             unsigned names, const char *what)
{
    static double deferring[ROUNDS], plain[ROUNDS];
    struct model with = *model;
    struct buf body, request, plain_request;

    with.runtime_class = "microvm";
    buf_init(&body, 64 << 20);
    buf_init(&request, 64 << 20);
    buf_init(&plain_request, 64 << 20);
    model_put_filter(&with, claim, names, &body);
    make_request(&request, "/filter", buf_slice(&body));
    buf_reset(&body, SIZE_MAX);
    model_put_filter(model, claim, names, &body);
    make_request(&plain_request, "/filter", buf_slice(&body));
    alternate(claimguard, claimguard, buf_slice(&request), buf_slice(&plain_request), deferring,
              plain);
    double median = percentile(deferring, ROUNDS, 0.5), other = percentile(plain, ROUNDS, 0.5);
    (void)printf("| %u names, %s | %.1f µs | %.1f µs | **%.2f** |\n", names, what, median, other,
                 median / other);
    (void)fflush(stdout);
    buf_dispose(&body);
    buf_dispose(&request);
    buf_dispose(&plain_request);
}

/* A claim of that kind that nobody holds (yet). */
static long find_free(const struct model *model, bool is_rwop)
{
    for (unsigned i = 0; i < model->claims; i++)
        if (model_claim_is_exclusive(model, i) == is_rwop && !model_pod_is_assigned(model, i))
            return (long)i;
    die("the model has no such claim");
    return -1;
}

static void bench_deferral(void)
{
    struct model model = {.nodes = 5000,
                          .pods = 20000,
                          .claims = 20000,
                          .exclusive_share = 0.5,
                          .pending_share = 0.1,
                          .seed = 1,
                          .has_volumes = true};
    char snapshot[512], config[512];

    generate(&model, snapshot, sizeof snapshot);
    write_entries(config, sizeof config);
    pin(client_core);
    struct child claimguard = start_claimguard(snapshot, config);
    (void)printf("\n## A pod that defers its mounts, and one that does not\n\n"
                 "The same filter call, once with a runtime class that has an entry and once "
                 "without a\nruntime class; client and server on one core. Medians of %d\ncalls, "
                 "measured alternately.\n\n"
                 "| call | defers | does not | ratio |\n|---|---|---|---|\n",
                 ROUNDS);
    for (int exclusive = 1; exclusive >= 0; exclusive--) {
        const char *what = exclusive ? "a ReadWriteOncePod claim" : "a ReadWriteOnce claim";
        measure_deferral(&claimguard, &model, find_free(&model, exclusive), 500, what);
        measure_deferral(&claimguard, &model, find_free(&model, exclusive), 5000, what);
    }
    stop(claimguard);
}

/* ---- memory and loading ---- */

struct loaded {
    double seconds;
    long peak_kib, steady_kib;
};

/* Runs `load` in a process of its own, which reports what it took. */
static struct loaded in_child(void (*load)(const char *path), const char *path)
{
    struct loaded loaded = {0};
    int ends[2];

    if (pipe(ends) != 0)
        die("pipe");
    pid_t pid = fork();
    if (pid == 0) {
        double started = now_us();
        load(path);
        loaded.seconds = (now_us() - started) / 1e6;
        loaded.peak_kib = memory_kib(getpid(), "VmHWM:");
        loaded.steady_kib = memory_kib(getpid(), "VmRSS:");
        _exit(write(ends[1], &loaded, sizeof loaded) == (ssize_t)sizeof loaded ? 0 : 1);
    }
    (void)close(ends[1]);
    if (read(ends[0], &loaded, sizeof loaded) != (ssize_t)sizeof loaded)
        die("a child failed");
    (void)close(ends[0]);
    (void)waitpid(pid, NULL, 0);
    return loaded;
}

static struct cluster loaded_cluster;

static void load_ours(const char *path)
{
    struct load_report report;
    struct error err = {0};

    if (load_snapshot(&loaded_cluster, path, &report, &err) < 0)
        die(err.message);
}

static void load_jansson(const char *path)
{
    if (json_load_file(path, 0, NULL) == NULL)
        die("jansson could not read the snapshot");
}

static void bench_loading(unsigned pods)
{
    struct model model = {.nodes = 5000, .pods = pods, .claims = pods};
    struct stat status;
    char snapshot[512];

    generate(&model, snapshot, sizeof snapshot);
    if (stat(snapshot, &status) != 0)
        die("no snapshot");
    double mib = (double)status.st_size / (1024 * 1024);
    struct loaded ours = in_child(load_ours, snapshot), theirs = in_child(load_jansson, snapshot);
    (void)printf(
        "\n## Loading a snapshot: %u pods, %u claims, %u nodes, %.0f MiB of JSON\n\n"
        "| | seconds | MiB/s | memory after | peak | peak / after |\n|---|---|---|---|---|---|\n"
        "| claimguard | %.2f | %.0f | %.1f MiB | %.1f MiB | **%.2f** |\n"
        "| jansson json_load_file | %.2f | %.0f | %.1f MiB | %.1f MiB | |\n\n"
        "claimguard reads **%.1f times** as fast as jansson.\n",
        pods, pods, model.nodes, mib, ours.seconds, mib / ours.seconds,
        (double)ours.steady_kib / 1024, (double)ours.peak_kib / 1024,
        (double)ours.peak_kib / (double)ours.steady_kib, theirs.seconds, mib / theirs.seconds,
        (double)theirs.steady_kib / 1024, (double)theirs.peak_kib / 1024,
        theirs.seconds / ours.seconds);
    struct child server = start_claimguard(snapshot, NULL);
    long rss = memory_kib(server.pid, "VmRSS:"), peak = memory_kib(server.pid, "VmHWM:");
    stop(server);
    (void)printf(
        "\nThe server with this snapshot: RSS %.1f MiB (peak %.1f MiB), **%.0f bytes a pod**\n"
        "with its claim, all of the process counted.\n",
        (double)rss / 1024, (double)peak / 1024, (double)rss * 1024 / pods);
    (void)fflush(stdout);
    (void)unlink(snapshot);
}

/* ---- verdicts ---- */

static void fill(struct state *state, const struct model *model)
{
    static void (*const puts[])(const struct model *, unsigned,
                                struct buf *) = {model_put_node, model_put_claim, model_put_pod};
    const unsigned counts[] = {model->nodes, model->claims, model->pods};
    static const enum kind kinds[] = {KIND_NODE, KIND_CLAIM, KIND_POD};
    struct arena arena;
    struct buf text;
    struct error err = {0};

    arena_init(&arena, 1 << 20);
    buf_init(&text, 1 << 20);
    for (int k = 0; k < 3; k++) {
        for (unsigned i = 0; i < counts[k]; i++) {
            struct object object;
            struct pull json;
            buf_reset(&text, SIZE_MAX);
            arena_reset(&arena);
            puts[k](model, i, &text);
            pull_init(&json, buf_slice(&text));
            if (!object_read(&json, kinds[k], &arena, &object) ||
                cluster_apply(&state->cluster, &object, &err) < 0)
                die("an object of the model was refused");
        }
    }
    buf_dispose(&text);
    arena_dispose(&arena);
}

/* The time from a body to its answer, without HTTP: 500 names, another claim in each call. */
static double measure_verdicts(const struct model *model)
{
    static double times[VERDICTS];
    struct state state;
    struct config *config;
    struct error err = {0};
    struct scratch scratch;

    if (config_load(&config, NULL, &err) < 0 || services_init(&state, config, &err) < 0)
        die(err.message);
    fill(&state, model);
    scratch_init(&scratch, 64 << 20, NULL);
    for (unsigned i = 0; i < VERDICTS; i++) {
        unsigned claim = (unsigned)((i * UINT64_C(2654435761)) % model->claims);
        scratch_reset(&scratch);
        model_put_filter(model, claim, 500, &scratch.body);
        double started = now_us();
        if (verb_answer(&state, VERB_FILTER, &scratch) != 200)
            die("a verdict failed");
        times[i] = now_us() - started;
    }
    scratch_dispose(&scratch);
    services_dispose(&state);
    (void)malloc_trim(0);
    return percentile(times, VERDICTS, 0.5);
}

static void bench_verdicts(void)
{
    const unsigned sizes[] = {1000, 10000, 150000, 500000};
    double first = 0;

    (void)printf(
        "\n## Verdict time\n\nFrom a filter body with 500 names to its answer, without HTTP; each "
        "call names another\nclaim, half of them exclusive. Medians of %d calls.\n\n"
        "| pods and claims | nodes | median | against 1,000 |\n|---|---|---|---|\n",
        VERDICTS);
    for (size_t i = 0; i < 4; i++) {
        struct model model = {.nodes = sizes[i] > 150000 ? 65000 : 5000,
                              .pods = sizes[i],
                              .claims = sizes[i],
                              .exclusive_share = 0.5,
                              .pending_share = 0.1,
                              .seed = 1};
        double median = measure_verdicts(&model);
        first = i == 0 ? median : first;
        (void)printf("| %u | %u | %.1f µs | **%.2f** |\n", sizes[i], model.nodes, median,
                     median / first);
        (void)fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"pods", required_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};
    unsigned pods = 150000;
    char command[64];

    while (getopt_long(argc, argv, "", options, NULL) == 'p')
        pods = (unsigned)strtoul(optarg, NULL, 10);
    if (optind >= argc || mkdtemp(work) == NULL)
        die("usage: bench BUILD-FOLDER [--pods N]");
    folder = argv[optind];
    log_configure(LOG_ERROR, LOG_TEXT);
    (void)signal(SIGPIPE, SIG_IGN);
    server_core = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0;
    bench_round_trips("client and server on a core each");
    client_core = server_core;
    bench_round_trips("client and server on one core");
    bench_deferral();
    bench_loading(pods);
    bench_verdicts();
    (void)snprintf(command, sizeof command, "rm -r %s", work);
    return system(command) == 0 ? 0 : 1; /* NOLINT(cert-env33-c): a command of our own */
}
