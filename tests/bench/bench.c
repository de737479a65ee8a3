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
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/base/log.h"
#include "extender/cli/load.h"
#include "extender/cli/services.h"
#include "extender/verbs/verbs.h"
#include "model.h"
#include "programs.h"
#include "support/http.h"

enum { VERDICTS = 4000 };

/* ---- filter round trips ---- */

/* The answer's size, and the same call for the no-op server, which is to write as many bytes. */
static size_t prepare(const struct child *claimguard, struct slice body, struct buf *request,
                      struct buf *noop_request)
{
    struct buf in;
    char path[32];
    int fd = http_connect(claimguard->port);

    buf_init(&in, 64 << 20);
    bench_make_request(request, "/filter", body);
    (void)bench_call(fd, buf_slice(request), &in);
    (void)close(fd);
    const char *answer = memmem(in.bytes, in.len, "\r\n\r\n", 4);
    size_t answer_bytes = in.len - (size_t)(answer + 4 - in.bytes);
    (void)snprintf(path, sizeof path, "/%zu", answer_bytes);
    bench_make_request(noop_request, path, body);
    buf_dispose(&in);
    return answer_bytes;
}

static void measure_round_trip(const struct child *claimguard, const struct child *noop,
                               const char *what, unsigned names, struct slice body)
{
    static double ours[ROUNDS], bound[ROUNDS];
    struct buf request, noop_request;

    buf_init(&request, 64 << 20);
    buf_init(&noop_request, 64 << 20);
    size_t answer_bytes = prepare(claimguard, body, &request, &noop_request);
    bench_alternate(claimguard, noop, buf_slice(&request), buf_slice(&noop_request), ours, bound);
    double median = bench_percentile(ours, ROUNDS, 0.5),
           noop_median = bench_percentile(bound, ROUNDS, 0.5);
    (void)printf(
        "| %u names, %s | %zu / %zu KiB | %.0f µs | %.0f µs | **%.2f** | %.0f / %.0f µs |\n", names,
        what, body.len / 1024, answer_bytes / 1024, median, noop_median, median / noop_median,
        bench_percentile(ours, ROUNDS, 0.99), bench_percentile(bound, ROUNDS, 0.99));
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
    bench_die("the model has no such claim");
    return -1;
}

/* With the policies of tests/support/node_policy.h: half of the nodes are rejected. */
static void bench_node_verdicts(struct model *model, const char *snapshot, const struct child *noop)
{
    struct child claimguard = bench_start_claimguard("tests/bench/node_policies", snapshot, NULL);
    struct buf body;

    buf_init(&body, 64 << 20);
    model->asked_name = "web-frontend-tested";
    model_put_filter(model, -1, 5000, &body);
    measure_round_trip(&claimguard, noop, "every other node is rejected", 5000, buf_slice(&body));
    buf_dispose(&body);
    bench_stop(claimguard);
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

    bench_generate(&model, snapshot, sizeof snapshot);
    bench_pin(bench_client_core);
    struct child claimguard = bench_start_claimguard("claimguard", snapshot, NULL),
                 noop = bench_start_noop();
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
    bench_stop(claimguard);
    bench_node_verdicts(&model, snapshot, &noop);
    bench_stop(noop);
}

/* ---- DeferFSMount ---- */

static void write_entries(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/deferral.yaml", bench_work);
    FILE *file = fopen(path, "we");
    if (file == NULL ||
        fputs("apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n"
              "deferFSMount:\n  entries:\n"
              "  - {storageClass: fast-storage, runtimeClass: microvm, nonExclusiveClaims: "
              "Exclusive}\n",
              file) < 0 ||
        fclose(file) != 0)
        bench_die("cannot write the configuration");
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
    bench_make_request(&request, "/filter", buf_slice(&body));
    buf_reset(&body, SIZE_MAX);
    model_put_filter(model, claim, names, &body);
    bench_make_request(&plain_request, "/filter", buf_slice(&body));
    bench_alternate(claimguard, claimguard, buf_slice(&request), buf_slice(&plain_request),
                    deferring, plain);
    double median = bench_percentile(deferring, ROUNDS, 0.5),
           other = bench_percentile(plain, ROUNDS, 0.5);
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
    bench_die("the model has no such claim");
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

    bench_generate(&model, snapshot, sizeof snapshot);
    write_entries(config, sizeof config);
    bench_pin(bench_client_core);
    struct child claimguard = bench_start_claimguard("claimguard", snapshot, config);
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
    bench_stop(claimguard);
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
        bench_die("pipe");
    pid_t pid = fork();
    if (pid == 0) {
        double started = bench_now_us();
        load(path);
        loaded.seconds = (bench_now_us() - started) / 1e6;
        loaded.peak_kib = bench_memory_kib(getpid(), "VmHWM:");
        loaded.steady_kib = bench_memory_kib(getpid(), "VmRSS:");
        _exit(write(ends[1], &loaded, sizeof loaded) == (ssize_t)sizeof loaded ? 0 : 1);
    }
    (void)close(ends[1]);
    if (read(ends[0], &loaded, sizeof loaded) != (ssize_t)sizeof loaded)
        bench_die("a child failed");
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
        bench_die(err.message);
}

static void load_jansson(const char *path)
{
    if (json_load_file(path, 0, NULL) == NULL)
        bench_die("jansson could not read the snapshot");
}

static void bench_loading(unsigned pods)
{
    struct model model = {.nodes = 5000, .pods = pods, .claims = pods};
    struct stat status;
    char snapshot[512];

    bench_generate(&model, snapshot, sizeof snapshot);
    if (stat(snapshot, &status) != 0)
        bench_die("no snapshot");
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
    struct child server = bench_start_claimguard("claimguard", snapshot, NULL);
    long rss = bench_memory_kib(server.pid, "VmRSS:"),
         peak = bench_memory_kib(server.pid, "VmHWM:");
    bench_stop(server);
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
                bench_die("an object of the model was refused");
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
        bench_die(err.message);
    fill(&state, model);
    scratch_init(&scratch, 64 << 20, NULL);
    for (unsigned i = 0; i < VERDICTS; i++) {
        unsigned claim = (unsigned)((i * UINT64_C(2654435761)) % model->claims);
        scratch_reset(&scratch);
        model_put_filter(model, claim, 500, &scratch.body);
        double started = bench_now_us();
        if (verb_answer(&state, VERB_FILTER, &scratch) != 200)
            bench_die("a verdict failed");
        times[i] = bench_now_us() - started;
    }
    scratch_dispose(&scratch);
    services_dispose(&state);
    (void)malloc_trim(0);
    return bench_percentile(times, VERDICTS, 0.5);
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
    if (optind >= argc || mkdtemp(bench_work) == NULL)
        bench_die("usage: bench BUILD-FOLDER [--pods N]");
    bench_folder = argv[optind];
    log_configure(LOG_ERROR, LOG_TEXT);
    (void)signal(SIGPIPE, SIG_IGN);
    bench_server_core = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0;
    bench_round_trips("client and server on a core each");
    bench_client_core = bench_server_core;
    bench_round_trips("client and server on one core");
    bench_deferral();
    bench_loading(pods);
    bench_verdicts();
    (void)snprintf(command, sizeof command, "rm -r %s", bench_work);
    return system(command) == 0 ? 0 : 1; /* NOLINT(cert-env33-c): a command of our own */
}
