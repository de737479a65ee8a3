/* The largest cluster that Kubernetes users report: what claimguard takes there. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "callers.h"
#include "feed.h"
#include "programs.h"

enum { NODES = 65000, OBJECTS = 500000, TURNS = 5, STARTS = 5 };

static const double turn_seconds = 1;

/* claim < 0: none. goal: of the ratio. */
struct row {
    const char *what;
    long claim;
    double goal;
};

static void measure_row(const struct child *claimguard, const struct child *noop,
                        const struct model *model, const struct row *row)
{
    struct latency ours[TURNS], bound[TURNS];
    double ratios[TURNS];
    struct buf body, request;

    buf_init(&body, 64 << 20);
    buf_init(&request, 64 << 20);
    model_put_filter(model, row->claim, NODES, &body);
    bench_make_request(&request, "/filter", buf_slice(&body));
    for (int i = 0; i < TURNS; i++) {
        ours[i] = callers_run(&(struct callers){claimguard->port, 1, turn_seconds, &request});
        bound[i] = callers_run(&(struct callers){noop->port, 1, turn_seconds, &request});
        ratios[i] = ours[i].p50 / bound[i].p50;
    }
    struct latencies a = callers_spread(ours, TURNS), b = callers_spread(bound, TURNS);
    struct spread ratio = bench_spread(ratios, TURNS);
    (void)printf("| %d names, %s | %zu KiB | %.0f µs | %.0f µs | **%.2f** (%.2f-%.2f) | %.2f | "
                 "%.0f / %.0f µs |\n",
                 NODES, row->what, body.len / 1024, a.p50.median, b.p50.median, ratio.median,
                 ratio.low, ratio.high, row->goal, a.p99.median, b.p99.median);
    (void)fflush(stdout);
    buf_dispose(&body);
    buf_dispose(&request);
}

/* Returns the last of STARTS servers, which stays. */
static struct child measure_starts(const char *snapshot)
{
    double seconds[STARTS], rss[STARTS], peaks[STARTS];
    struct child claimguard = {0};

    for (int i = 0; i < STARTS; i++) {
        if (i != 0)
            bench_stop(claimguard);
        double started = bench_now_us();
        claimguard = bench_start_claimguard("claimguard", snapshot, NULL);
        seconds[i] = (bench_now_us() - started) / 1e6;
        rss[i] = (double)bench_memory_kib(claimguard.pid, "VmRSS:") / 1024;
        peaks[i] = (double)bench_memory_kib(claimguard.pid, "VmHWM:") / 1024;
    }
    struct spread time = bench_spread(seconds, STARTS), mib = bench_spread(rss, STARTS);
    (void)printf("It listens after **%.1f s** (%.1f-%.1f). RSS %.0f MiB\n(%.0f-%.0f; peak "
                 "%.0f MiB), **%.0f bytes a pod** with its claim and volume. Medians of %d starts,"
                 "\nand the spread.\n\n",
                 time.median, time.low, time.high, mib.median, mib.low, mib.high,
                 bench_percentile(peaks, STARTS, 0.5), mib.median * (1 << 20) / OBJECTS, STARTS);
    return claimguard;
}

void bench_scale(void)
{
    struct model model = {.nodes = NODES,
                          .pods = OBJECTS,
                          .claims = OBJECTS,
                          .has_volumes = true,
                          .driver_share = 1,
                          .exclusive_share = 0.5,
                          .pending_share = 0.1,
                          .seed = 1};
    struct stat status;
    char snapshot[512];

    bench_generate(&model, snapshot, sizeof snapshot);
    if (stat(snapshot, &status) != 0)
        bench_die("no snapshot");
    (void)printf(
        "\n## The largest clusters: %d nodes with CSINodes, %d pods, claims and volumes\n\n"
        "`serve` reads a snapshot of %.0f MiB. ",
        NODES, OBJECTS, (double)status.st_size / (1 << 20));
    struct child claimguard = measure_starts(snapshot), noop = bench_start_noop(NULL, NULL);
    (void)unlink(snapshot);
    (void)printf(
        "Client and server on one core; medians of %d turns of %.0f s, alternately, and the "
        "spread.\nThe goals are those of 5000 names.\n\n"
        "| call | body | claimguard | no-op | ratio | goal | p99 |\n"
        "|---|---|---|---|---|---|---|\n",
        TURNS, turn_seconds);
    const struct row rows[] = {
        {"no claim", -1, 1.15},
        {"a free exclusive claim", (long)feed_free_claim(&model, 0), 1.15},
        {"a conflict", bench_find_claim(&model, true, true), 1.3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        measure_row(&claimguard, &noop, &model, &rows[i]);
    bench_stop(claimguard);
    bench_stop(noop);
}
