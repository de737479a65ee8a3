/* The largest cluster that Kubernetes users report: what claimguard takes there. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "callers.h"
#include "feed.h"
#include "programs.h"

enum { NODES = 65000, OBJECTS = 500000, TURNS = 5 };

static const double turn_seconds = 1;

static void measure_filter(const struct child *claimguard, const struct child *noop,
                           const struct model *model, long claim, const char *what)
{
    struct latency ours[TURNS], bound[TURNS];
    double spread[2];
    struct buf body, request;

    buf_init(&body, 64 << 20);
    buf_init(&request, 64 << 20);
    model_put_filter(model, claim, NODES, &body);
    bench_make_request(&request, "/filter", buf_slice(&body));
    for (int i = 0; i < TURNS; i++) {
        ours[i] = callers_run(&(struct callers){claimguard->port, 1, turn_seconds, &request});
        bound[i] = callers_run(&(struct callers){noop->port, 1, turn_seconds, &request});
    }
    struct latency a = callers_median(ours, TURNS, spread),
                   b = callers_median(bound, TURNS, spread);
    (void)printf("| %d names, %s | %zu KiB | %.0f µs | %.0f µs | **%.2f** | %.0f / %.0f µs |\n",
                 NODES, what, body.len / 1024, a.p50, b.p50, a.p50 / b.p50, a.p99, b.p99);
    (void)fflush(stdout);
    buf_dispose(&body);
    buf_dispose(&request);
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
    bench_pin(bench_client_core);
    double started = bench_now_us();
    struct child claimguard = bench_start_claimguard("claimguard", snapshot, NULL);
    double seconds = (bench_now_us() - started) / 1e6;
    struct child noop = bench_start_noop(NULL, NULL);
    double rss_kib = (double)bench_memory_kib(claimguard.pid, "VmRSS:"),
           peak_kib = (double)bench_memory_kib(claimguard.pid, "VmHWM:");
    (void)printf(
        "\n## The largest clusters: %d nodes with CSINodes, %d pods, claims and volumes\n\n"
        "`serve` reads a snapshot of %.0f MiB and listens after **%.1f s**. RSS %.0f MiB "
        "(peak %.0f MiB),\n**%.0f bytes a pod** with its claim and volume.\n\n"
        "Client and server on one core; medians of %d turns of %.0f s, alternately.\n\n"
        "| call | body | claimguard | no-op | ratio | p99 |\n|---|---|---|---|---|---|\n",
        NODES, OBJECTS, (double)status.st_size / (1 << 20), seconds, rss_kib / 1024,
        peak_kib / 1024, rss_kib * 1024 / OBJECTS, TURNS, turn_seconds);
    (void)unlink(snapshot);
    measure_filter(&claimguard, &noop, &model, -1, "no claim");
    measure_filter(&claimguard, &noop, &model, (long)feed_free_claim(&model, 0),
                   "a free exclusive claim");
    bench_stop(claimguard);
    bench_stop(noop);
}
