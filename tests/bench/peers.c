/* A filter call beside those of a Go extender and of kube-scheduler's VolumeRestrictions, which
 * pays neither JSON nor a network; and the memory and the start of the servers. */
#include "peers.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "support/http.h"

enum {
    RUNS = 5,
    TURNS = 4,
    RUN_CALLS = TURNS * CALLS,
    LIBRARY_CALLS = 1000, /* in a run; one takes less than the CPU time is measured in */
};

const char *bench_peers_folder;

/* What a call takes in one run, in microseconds. */
struct cost {
    double p50, p99, cpu;
};

/* A cell: the median, and the lowest and highest run. */
static void put_spread(struct spread spread, const char *unit)
{
    int digits = spread.median < 10 ? 2 : 0;

    (void)printf(" %.*f%s (%.*f–%.*f) |", digits, spread.median, unit, digits, spread.low, digits,
                 spread.high);
}

/* ---- calls ---- */

/* The processor's time that a process has taken so far. */
static double cpu_us(pid_t pid)
{
    clockid_t clock;
    struct timespec time = {0};

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        bench_die("a server has ended");
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* A turn: calls on one connection. */
static double take_turn(const struct child *child, struct slice request, double times[CALLS])
{
    int fd = http_connect(child->port);
    double before = 0;
    struct buf in;

    buf_init(&in, 64 << 20);
    for (int i = -WARM_UP; i < CALLS; i++) {
        if (i == 0)
            before = cpu_us(child->pid);
        double time = bench_call(fd, request, &in);
        if (i >= 0)
            times[i] = time;
    }
    double cpu = cpu_us(child->pid) - before;
    (void)close(fd);
    buf_dispose(&in);
    return cpu;
}

/* One run of the two servers, in turns: a turn of its own for each, because Go collects its garbage
 * beside the calls that follow. */
static void run_servers(const struct child children[PEERS], struct slice request,
                        struct cost costs[PEERS])
{
    static double times[IN_TREE][RUN_CALLS];
    double cpu[IN_TREE] = {0};

    for (int turn = 0; turn < TURNS; turn++)
        for (enum peer i = 0; i < IN_TREE; i++)
            cpu[i] += take_turn(&children[i], request, times[i] + (size_t)turn * CALLS);
    for (enum peer i = 0; i < IN_TREE; i++)
        costs[i] = (struct cost){bench_percentile(times[i], RUN_CALLS, 0.5),
                                 bench_percentile(times[i], RUN_CALLS, 0.99), cpu[i] / RUN_CALLS};
}

/* The library measures itself: the call itself, and not how it learned about it. */
static struct cost run_library(const struct child *library, const char *body)
{
    struct response response;
    struct cost cost;
    char path[64];

    (void)snprintf(path, sizeof path, "/measure?calls=%d", LIBRARY_CALLS);
    http_call(library->port, "POST", path, body, &response);
    json_t *answer = json_loads(response.body == NULL ? "" : response.body, 0, NULL);
    if (json_unpack(answer, "{s:F, s:F, s:F}", "P50", &cost.p50, "P99", &cost.p99, "CPU",
                    &cost.cpu) != 0)
        bench_die("peers: no measurement");
    json_decref(answer);
    response_free(&response);
    return cost;
}

/* The runs of one kind of call. */
struct row {
    unsigned names;
    const char *what;
    struct cost costs[RUNS][PEERS];
};

static struct spread row_spread(const struct row *row, enum peer peer, size_t offset)
{
    double values[RUNS];

    for (int i = 0; i < RUNS; i++)
        values[i] = *(const double *)((const char *)&row->costs[i][peer] + offset);
    return bench_spread(values, RUNS);
}

/* How many times as much the Go extender takes, in the same run. */
static struct spread row_ratio(const struct row *row, size_t offset)
{
    double values[RUNS];

    for (int i = 0; i < RUNS; i++)
        values[i] = *(const double *)((const char *)&row->costs[i][GO_EXTENDER] + offset) /
                    *(const double *)((const char *)&row->costs[i][CLAIMGUARD] + offset);
    return bench_spread(values, RUNS);
}

static void measure_row(struct row *row, const struct child children[PEERS],
                        const struct model *model, long claim)
{
    struct buf body, request;

    buf_init(&body, 64 << 20);
    buf_init(&request, 64 << 20);
    model_put_filter(model, claim, row->names, &body);
    bench_make_request(&request, "/filter", buf_slice(&body));
    for (int i = 0; i < RUNS; i++) {
        run_servers(children, buf_slice(&request), row->costs[i]);
        row->costs[i][IN_TREE] = run_library(&children[IN_TREE], buf_text(&body));
    }
    buf_dispose(&body);
    buf_dispose(&request);
}

static void put_row(const struct row *row, size_t offset)
{
    (void)printf("| %u names, %s |", row->names, row->what);
    for (enum peer i = 0; i < IN_TREE; i++)
        put_spread(row_spread(row, i, offset), " µs");
    struct spread ratio = row_ratio(row, offset);
    (void)printf(" **%.1f** (%.1f–%.1f) |", ratio.median, ratio.low, ratio.high);
    put_spread(row_spread(row, IN_TREE, offset), " µs");
    (void)printf("\n");
}

static void put_table(const struct row *rows, size_t count, const char *title, size_t offset)
{
    (void)printf("\n| %s | claimguard | Go extender | Go / claimguard | VolumeRestrictions |\n"
                 "|---|---|---|---|---|\n",
                 title);
    for (size_t i = 0; i < count; i++)
        put_row(&rows[i], offset);
}

static void bench_calls(const struct child children[PEERS], const struct model *model)
{
    const struct {
        const char *what;
        long claim;
    } kinds[] = {
        {"no claim", -1},
        {"a free exclusive claim", bench_find_claim(model, true, false)},
        {"a conflict", bench_find_claim(model, true, true)},
    };
    static struct row rows[6];

    for (size_t i = 0; i < 6; i++) {
        rows[i].names = i < 3 ? 500 : 5000;
        rows[i].what = kinds[i % 3].what;
        measure_row(&rows[i], children, model, kinds[i % 3].claim);
    }
    put_table(rows, 6, "time of a call, median", offsetof(struct cost, p50));
    put_table(rows, 6, "time of a call, p99", offsetof(struct cost, p99));
    put_table(rows, 6, "CPU time a call", offsetof(struct cost, cpu));
}

/* ---- start and memory ---- */

static struct child start(enum peer peer, const char *snapshot)
{
    char program[512];

    if (peer == CLAIMGUARD)
        return bench_start_claimguard("claimguard", snapshot, NULL);
    (void)snprintf(program, sizeof program, "%s/%s", bench_peers_folder,
                   peer == GO_EXTENDER ? "extender" : "intree");
    return bench_start((const char *const[]){program, snapshot, NULL});
}

/* Starts the servers so often, alternately, and leaves the last of each running. */
static void measure_start(struct child children[PEERS], const char *snapshot,
                          struct spread seconds[PEERS], struct spread mib[PEERS])
{
    double times[PEERS][RUNS], sizes[PEERS][RUNS];

    for (int run = 0; run < RUNS; run++) {
        for (enum peer i = 0; i < IN_TREE; i++) {
            if (run != 0)
                bench_stop(children[i]);
            double started = bench_now_us();
            children[i] = start(i, snapshot);
            times[i][run] = (bench_now_us() - started) / 1e6;
            sizes[i][run] = (double)bench_memory_kib(children[i].pid, "VmRSS:") / 1024;
        }
    }
    children[IN_TREE] = start(IN_TREE, snapshot);
    for (enum peer i = 0; i < IN_TREE; i++) {
        seconds[i] = bench_spread(times[i], RUNS);
        mib[i] = bench_spread(sizes[i], RUNS);
    }
}

static void put_memory(const struct child children[PEERS], const struct spread seconds[PEERS],
                       const struct spread mib[PEERS])
{
    static const char *const names[] = {"claimguard", "Go extender"};

    (void)printf("\n| | start to ready | RSS when ready | after the calls | peak |\n"
                 "|---|---|---|---|---|\n");
    for (enum peer i = 0; i < IN_TREE; i++) {
        (void)printf("| %s |", names[i]);
        put_spread(seconds[i], " s");
        put_spread(mib[i], " MiB");
        (void)printf(" %ld MiB | %ld MiB |\n", bench_memory_kib(children[i].pid, "VmRSS:") / 1024,
                     bench_memory_kib(children[i].pid, "VmHWM:") / 1024);
    }
}

/* ---- the section ---- */

/* The first line that a command prints. */
static void put_output(const char *command)
{
    char line[256] = "";

    FILE *out = popen(command, "re"); /* NOLINT(cert-env33-c): a command of our own */
    if (out == NULL || fgets(line, sizeof line, out) == NULL || pclose(out) != 0)
        bench_die("peers: a command failed");
    (void)printf("%s", line);
}

static void put_version(const struct child *child, const char *what)
{
    struct response response;

    http_call(child->port, "GET", "/version", NULL, &response);
    if (response.status != 200)
        bench_die("peers: no version");
    (void)printf("- %s (%s)\n", what, response.body);
    response_free(&response);
}

static void put_heading(const struct child children[PEERS], const struct model *model,
                        struct checked checked)
{
    char version[512];

    (void)snprintf(version, sizeof version, "%s/claimguard version", bench_folder);
    (void)printf("\n%s\n\n%u pods, %u claims, %u nodes; client and servers on a core each, of\n",
                 PEERS_HEADING, model->pods, model->claims, model->nodes);
    put_output("echo $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), "
               "$(nproc --all) cores, $(uname -sr):");
    (void)printf("\n- ");
    put_output(version);
    put_version(&children[GO_EXTENDER], "an extender as they are usually written in Go: net/http, "
                                        "encoding/json, a map of claims\n  under a lock");
    put_version(&children[IN_TREE], "kube-scheduler's plugin VolumeRestrictions as a library: "
                                    "PreFilter, and Filter on each node\n ");
    (void)printf(
        "\nBefore, all three were asked %u times, and rejected the same nodes (in %u calls).\n\n"
        "The plugin pays for no JSON and no network, because it runs in kube-scheduler. The update "
        "of its\nsnapshot is not counted. It does not name the holder, and two schedulers with it "
        "can give one claim\nto two pods. Filter runs on one node after another here; "
        "kube-scheduler runs 16 at once. The Go\nextender only filters: it has no `bind`, "
        "`preempt` or metrics. Go collects garbage on the core that\nanswers.\n\n"
        "Medians of %d runs of %d calls (plugin: %d), alternately, with the lowest and the highest "
        "run.\n",
        checked.calls, checked.rejected, RUNS, RUN_CALLS, LIBRARY_CALLS);
}

void bench_peers(unsigned pods)
{
    struct model model = {.nodes = 5000,
                          .pods = pods,
                          .claims = pods,
                          .exclusive_share = 0.5,
                          .pending_share = 0.1,
                          .seed = 1};
    struct child children[PEERS];
    struct spread seconds[PEERS], mib[PEERS];
    char snapshot[512];

    if (bench_peers_folder == NULL) {
        (void)fputs("bench: peers: skipped, because they are not built (--peers)\n", stderr);
        return;
    }
    bench_generate(&model, snapshot, sizeof snapshot);
    bench_pin(bench_client_core);
    measure_start(children, snapshot, seconds, mib);
    put_heading(children, &model, peers_compare(children, &model));
    bench_calls(children, &model);
    put_memory(children, seconds, mib);
    (void)fflush(stdout);
    for (enum peer i = 0; i < PEERS; i++)
        bench_stop(children[i]);
    (void)unlink(snapshot);
}
