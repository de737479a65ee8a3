/* The memory of the server: by what its cluster has, and by its size. */
#include <stdio.h>
#include <unistd.h>

#include "bench.h"
#include "programs.h"

enum {
    RUNS = 5,
    SET_PODS = 20,      /* of a StatefulSet */
    SMALL_SET_PODS = 3, /* the same, for a row of its own */
    PODS_A_NODE = 30,
};

static const struct model stateful = {.nodes = 5000, .set_pods = SET_PODS};

static struct model of_size(unsigned pods)
{
    struct model model = stateful;

    model.pods = model.claims = pods;
    return model;
}

/* Of RUNS servers that have loaded the model, and write no log. */
static struct spread measure_mib(const struct model *model)
{
    double sizes[RUNS];
    char snapshot[512];

    bench_generate(model, snapshot, sizeof snapshot);
    for (int run = 0; run < RUNS; run++) {
        struct child server = bench_start_claimguard("claimguard", snapshot, NULL);
        sizes[run] = (double)bench_memory_kib(server.pid, "VmRSS:") / 1024;
        bench_stop(server);
    }
    (void)unlink(snapshot);
    return bench_spread(sizes, RUNS);
}

static double bytes_a_pod(double mib, const struct model *model)
{
    return mib * (1 << 20) / model->pods;
}

/* last_mib: of the row above; 0: there is none. goal: bytes a pod; 0: none. Returns the memory. */
static double put_row(const char *what, const struct model *model, double last_mib, unsigned goal)
{
    struct spread mib = measure_mib(model);

    (void)printf("| %s | %.1f MiB (%.1f-%.1f) | ", what, mib.median, mib.low, mib.high);
    if (last_mib != 0)
        (void)printf("%+.0f", bytes_a_pod(mib.median - last_mib, model));
    (void)printf(" | **%.0f** | ", bytes_a_pod(mib.median, model));
    if (goal != 0)
        (void)printf("%u", goal);
    (void)printf(" |\n");
    (void)fflush(stdout);
    return mib.median;
}

static void put_parts(unsigned pods)
{
    struct model model = of_size(pods), empty = {.nodes = 1, .set_pods = SET_PODS};

    (void)printf("\n## Memory by what the cluster has: %u pods, %u nodes\n\n"
                 "RSS of the server, all of the process counted; it is %.1f MiB with an empty "
                 "cluster. Each pod\nhas a claim, and a name, a UID and a version of its own. "
                 "StatefulSets have %d pods each. Medians\nof "
                 "%d starts, and the spread.\n\n"
                 "| the cluster has | RSS | bytes a pod more | bytes a pod | goal |\n"
                 "|---|---|---|---|---|\n",
                 pods, model.nodes, measure_mib(&empty).median, SET_PODS, RUNS);
    double mib = put_row("pods and claims", &model, 0, 200);
    model.has_volumes = true;
    mib = put_row("and a PersistentVolume for each claim", &model, mib, 0);
    model.has_labels = true;
    mib = put_row("and labels and owners of StatefulSets", &model, mib, 0);
    model.driver_share = 1;
    mib = put_row("and a CSINode for each node: all", &model, mib, 250);
    model.set_pods = SMALL_SET_PODS;
    (void)put_row("all, in StatefulSets of three pods", &model, mib, 0);
}

static void put_sizes(void)
{
    static const unsigned sizes[] = {1000, 10000, 150000, 500000};

    (void)printf("\n## Memory by the size of the cluster\n\n"
                 "RSS of the server with all of these: pods, claims, volumes, labels, owners, and "
                 "a node and a\nCSINode for %d pods. Medians of %d starts, and the spread. It "
                 "needs [more while it\nanswers calls](operations.md#memory-and-open-files).\n\n"
                 "| pods | nodes | RSS |\n|---|---|---|\n",
                 PODS_A_NODE, RUNS);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct model model = of_size(sizes[i]);
        model.nodes = sizes[i] / PODS_A_NODE;
        model.has_volumes = model.has_labels = true;
        model.driver_share = 1;
        struct spread mib = measure_mib(&model);
        (void)printf("| %u | %u | **%.0f MiB** (%.0f-%.0f) |\n", sizes[i], model.nodes, mib.median,
                     mib.low, mib.high);
        (void)fflush(stdout);
    }
}

void bench_memory(unsigned pods)
{
    put_parts(pods);
    put_sizes();
}
