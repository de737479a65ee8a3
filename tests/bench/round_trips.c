/* Calls over HTTP, against a no-op server, and with and without DeferFSMount. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "programs.h"
#include "support/http.h"

static const struct model small = {.nodes = 5000,
                                   .pods = 20000,
                                   .claims = 20000,
                                   .exclusive_share = 0.5,
                                   .pending_share = 0.1,
                                   .seed = 1};

/* ---- against a no-op server ---- */

/* A row of a table. */
struct round_trip {
    const char *path, *what;
    unsigned names; /* of nodes, in a filter call */
    double goal;    /* of the ratio; 0: none */
    struct slice body;
};

/* The answer's size, and the same call for the no-op server, which is to write as many bytes. */
static size_t prepare(const struct child *claimguard, const struct round_trip *trip,
                      struct buf *request, struct buf *noop_request)
{
    struct buf in;
    char path[32];
    int fd = http_connect(claimguard->port);

    buf_init(&in, 64 << 20);
    bench_make_request(request, trip->path, trip->body);
    (void)bench_call(fd, buf_slice(request), &in);
    (void)close(fd);
    const char *answer = memmem(in.bytes, in.len, "\r\n\r\n", 4);
    size_t answer_bytes = in.len - (size_t)(answer + 4 - in.bytes);
    (void)snprintf(path, sizeof path, "/%zu", answer_bytes);
    bench_make_request(noop_request, path, trip->body);
    buf_dispose(&in);
    return answer_bytes;
}

enum { RUNS = 5, RUN = ROUNDS / RUNS };

/* Of the medians of the runs, ours and the other's: their median, and each run's ratio, sorted. The
 * p99 is that of all calls. */
struct ratio {
    double times[2], p99[2]; /* ours, the other's */
    double runs[RUNS], median;
};

/* Sorts the values. */
static void compare_runs(double *ours, double *bound, struct ratio *out)
{
    double *values[2] = {ours, bound};
    double medians[2][RUNS];

    for (int i = 0; i < RUNS; i++) {
        for (int side = 0; side < 2; side++)
            medians[side][i] = bench_percentile(values[side] + (ptrdiff_t)i * RUN, RUN, 0.5);
        out->runs[i] = medians[0][i] / medians[1][i];
    }
    for (int side = 0; side < 2; side++) {
        out->times[side] = bench_percentile(medians[side], RUNS, 0.5);
        out->p99[side] = bench_percentile(values[side], ROUNDS, 0.99);
    }
    out->median = bench_percentile(out->runs, RUNS, 0.5);
}

static void print_goal(double goal)
{
    if (goal == 0)
        (void)printf(" |");
    else
        (void)printf(" %.2f |", goal);
}

static void measure_round_trip(const struct child *claimguard, const struct child *noop,
                               const struct round_trip *trip)
{
    static double ours[ROUNDS], bound[ROUNDS];
    struct buf request, noop_request;
    struct ratio ratio;

    buf_init(&request, 64 << 20);
    buf_init(&noop_request, 64 << 20);
    size_t answer_bytes = prepare(claimguard, trip, &request, &noop_request);
    bench_alternate(claimguard, noop, buf_slice(&request), buf_slice(&noop_request), ours, bound);
    compare_runs(ours, bound, &ratio);
    if (trip->names != 0)
        (void)printf("| %u names, %s", trip->names, trip->what);
    else
        (void)printf("| %s", trip->what);
    (void)printf(" | %zu / %zu KiB | %.0f µs | %.0f µs | **%.2f** | %.2f to %.2f |",
                 trip->body.len / 1024, answer_bytes / 1024, ratio.times[0], ratio.times[1],
                 ratio.median, ratio.runs[0], ratio.runs[RUNS - 1]);
    print_goal(trip->goal);
    (void)printf(" %.0f / %.0f µs |\n", ratio.p99[0], ratio.p99[1]);
    (void)fflush(stdout);
    buf_dispose(&request);
    buf_dispose(&noop_request);
}

/* The head of a table of round trips. */
static void print_head(void)
{
    (void)printf("Medians of %d runs of %d calls each, measured alternately; the ratios of the "
                 "runs from\nthe smallest to the largest.\n\n"
                 "| call | body / answer | claimguard | no-op | ratio | runs | goal | p99 |\n"
                 "|---|---|---|---|---|---|---|---|\n",
                 RUNS, RUN);
}

static void measure_filter(const struct child *claimguard, const struct child *noop,
                           const char *what, unsigned names, double goal, struct slice body)
{
    measure_round_trip(
        claimguard, noop,
        &(struct round_trip){
            .path = "/filter", .what = what, .names = names, .goal = goal, .body = body});
}

/* With the policies of tests/support/node_policy.h: half of the nodes are rejected. */
static void bench_node_verdicts(struct model *model, const char *snapshot, const struct child *noop)
{
    struct child claimguard = bench_start_claimguard("tests/bench/node_policies", snapshot, NULL);
    struct buf body;

    buf_init(&body, 64 << 20);
    model->asked_name = "web-frontend-tested";
    model_put_filter(model, -1, 5000, &body);
    measure_filter(&claimguard, noop, "every other node is rejected", 5000, 0, buf_slice(&body));
    buf_dispose(&body);
    bench_stop(claimguard);
}

/* Volcano's calls: the pods of the node are checked and skipped. */
static void bench_predicates(const struct model *model, const struct child *claimguard,
                             const struct child *noop)
{
    const struct {
        const char *what;
        long claim;
    } rows[] = {
        {"Volcano, a node with 110 pods, no claim", -1},
        {"the same, a free exclusive claim", bench_find_claim(model, true, false)},
        {"the same, a conflict", bench_find_claim(model, true, true)},
    };
    struct buf body;

    buf_init(&body, 64 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf_reset(&body, SIZE_MAX);
        model_put_predicate(model, rows[i].claim, 110, &body);
        measure_round_trip(claimguard, noop,
                           &(struct round_trip){.path = "/volcano/predicate",
                                                .what = rows[i].what,
                                                .body = buf_slice(&body)});
    }
    buf_dispose(&body);
}

void bench_round_trips(const char *where)
{
    struct model model = small;
    double goal = bench_client_core == bench_server_core ? 1.15 : 1.10;
    const struct {
        const char *what;
        long claim;
        double goal; /* with 5,000 names or more */
    } kinds[] = {
        {"no claim", -1, goal},
        {"a free exclusive claim", bench_find_claim(&model, true, false), goal},
        {"a conflict", bench_find_claim(&model, true, true), 1.3},
    };
    const unsigned sizes[] = {500, 5000, 15000};
    char snapshot[512];
    struct buf body;

    bench_generate(&model, snapshot, sizeof snapshot);
    bench_pin(bench_client_core);
    struct child claimguard = bench_start_claimguard("claimguard", snapshot, NULL),
                 noop = bench_start_noop(NULL, NULL);
    (void)printf(
        "\n## Round trip of a call, %s\n\nKeep-alive client in C; the no-op server reads the "
        "same body and writes as many bytes.\n",
        where);
    print_head();
    buf_init(&body, 64 << 20);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t k = 0; k < 3; k++) {
            buf_reset(&body, SIZE_MAX);
            model_put_filter(&model, kinds[k].claim, sizes[s], &body);
            measure_filter(&claimguard, &noop, kinds[k].what, sizes[s],
                           sizes[s] < 5000 ? 0 : kinds[k].goal, buf_slice(&body));
        }
    }
    buf_dispose(&body);
    bench_predicates(&model, &claimguard, &noop);
    bench_stop(claimguard);
    bench_node_verdicts(&model, snapshot, &noop);
    bench_stop(noop);
}

/* ---- with and without DeferFSMount ---- */

/* Two filter calls, alternately, to the same server. */
static void measure_pair(const struct child *claimguard, struct slice body, struct slice plain_body,
                         unsigned names, const char *what)
{
    static double times[ROUNDS], plain[ROUNDS];
    struct buf request, plain_request;

    buf_init(&request, 64 << 20);
    buf_init(&plain_request, 64 << 20);
    bench_make_request(&request, "/filter", body);
    bench_make_request(&plain_request, "/filter", plain_body);
    bench_alternate(claimguard, claimguard, buf_slice(&request), buf_slice(&plain_request), times,
                    plain);
    double median = bench_percentile(times, ROUNDS, 0.5),
           other = bench_percentile(plain, ROUNDS, 0.5);
    (void)printf("| %u names, %s | %.1f µs | %.1f µs | **%.2f** |\n", names, what, median, other,
                 median / other);
    (void)fflush(stdout);
    buf_dispose(&request);
    buf_dispose(&plain_request);
}

/* The same pod with a runtime class and without. */
static void measure_deferral(const struct child *claimguard, const struct model *model, long claim,
                             unsigned names, const char *what)
{
    struct model with = *model;
    struct buf body, plain_body;

    with.runtime_class = "microvm";
    buf_init(&body, 64 << 20);
    buf_init(&plain_body, 64 << 20);
    model_put_filter(&with, claim, names, &body);
    model_put_filter(model, claim, names, &plain_body);
    measure_pair(claimguard, buf_slice(&body), buf_slice(&plain_body), names, what);
    buf_dispose(&body);
    buf_dispose(&plain_body);
}

void bench_deferral(void)
{
    struct model model = small;
    char snapshot[512], config[512];

    model.has_volumes = true;
    bench_generate(&model, snapshot, sizeof snapshot);
    bench_write_config("deferFSMount:\n  entries:\n  - {storageClass: fast-storage, runtimeClass: "
                       "microvm, nonExclusiveClaims: Exclusive}\n",
                       config, sizeof config);
    struct child claimguard = bench_start_claimguard("claimguard", snapshot, config);
    (void)printf("\n## A pod that defers its mounts, and one that does not\n\n"
                 "The same filter call, once with a runtime class that has an entry and once "
                 "without a\nruntime class; client and server on one core. Medians of %d\ncalls, "
                 "measured alternately.\n\n"
                 "| call | defers | does not | ratio |\n|---|---|---|---|\n",
                 ROUNDS);
    for (int exclusive = 1; exclusive >= 0; exclusive--) {
        const char *what = exclusive ? "a ReadWriteOncePod claim" : "a ReadWriteOnce claim";
        measure_deferral(&claimguard, &model, bench_find_claim(&model, exclusive, false), 500,
                         what);
        measure_deferral(&claimguard, &model, bench_find_claim(&model, exclusive, false), 5000,
                         what);
    }
    bench_stop(claimguard);
}

/* ---- volumes that not every node can have ---- */

/* Against the no-op: the pod passes on some of 5,000 nodes. */
static void measure_some_nodes(const struct model *model, const struct child *noop, long claim,
                               const char *config, const char *what)
{
    char snapshot[512];
    struct buf body;

    buf_init(&body, 64 << 20);
    model_put_filter(model, claim, 5000, &body);
    bench_generate(model, snapshot, sizeof snapshot);
    struct child claimguard = bench_start_claimguard("claimguard", snapshot, config);
    measure_filter(&claimguard, noop, what, 5000, 0, buf_slice(&body));
    bench_stop(claimguard);
    buf_dispose(&body);
}

/* Nothing but the driver is asked about: the claim is shared, and no pod has it. */
static void measure_driver_everywhere(const struct model *model, long claim)
{
    char snapshot[512];
    struct buf body, plain_body;

    buf_init(&body, 64 << 20);
    buf_init(&plain_body, 64 << 20);
    model_put_filter(model, claim, 5000, &body);
    model_put_filter(model, -1, 5000, &plain_body);
    bench_generate(model, snapshot, sizeof snapshot);
    struct child claimguard = bench_start_claimguard("claimguard", snapshot, NULL);
    measure_pair(&claimguard, buf_slice(&body), buf_slice(&plain_body), 5000, "a CSI claim");
    bench_stop(claimguard);
    buf_dispose(&body);
    buf_dispose(&plain_body);
}

void bench_volumes(void)
{
    struct model model = small;
    long free_claim = bench_find_claim(&model, false, false),
         held = bench_find_claim(&model, false, true);
    char config[512];

    model.has_volumes = true;
    model.driver_share = 1;
    bench_write_config("readWriteOnce: {mode: Enforce}\n", config, sizeof config);
    struct child noop = bench_start_noop(NULL, NULL);
    (void)printf("\n## Volumes that not every node can have\n\nClient and server on one core. "
                 "Medians of %d calls, measured alternately.\n\n"
                 "| call | the driver is on each node | a pod without claims | ratio |\n"
                 "|---|---|---|---|\n",
                 ROUNDS);
    measure_driver_everywhere(&model, free_claim);
    (void)printf("\n");
    print_head();
    measure_some_nodes(&model, &noop, held, config, "a ReadWriteOnce claim in use on one of them");
    model.driver_share = 0.99;
    measure_some_nodes(&model, &noop, free_claim, NULL, "the driver is on 99 of 100 nodes");
    model.driver_share = 0.5;
    measure_some_nodes(&model, &noop, free_claim, NULL, "the driver is on half of the nodes");
    bench_stop(noop);
}
