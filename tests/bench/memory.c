/* The memory of the server: by what its cluster has, and by its size. */
#include <stdio.h>
#include <unistd.h>

#include "bench.h"
#include "programs.h"

enum {
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

/* Of the server that has loaded the model, and writes no log. */
static double measure_kib(const struct model *model)
{
    char snapshot[512];

    bench_generate(model, snapshot, sizeof snapshot);
    struct child server = bench_start_claimguard("claimguard", snapshot, NULL);
    long rss_kib = bench_memory_kib(server.pid, "VmRSS:");
    bench_stop(server);
    (void)unlink(snapshot);
    return (double)rss_kib;
}

/* last_kib: of the row above; 0: there is none. goal: bytes a pod; 0: none. Returns the memory. */
static double put_row(const char *what, const struct model *model, double last_kib, unsigned goal)
{
    double kib = measure_kib(model);

    (void)printf("| %s | %.1f MiB | ", what, kib / 1024);
    if (last_kib != 0)
        (void)printf("%+.0f", (kib - last_kib) * 1024 / model->pods);
    (void)printf(" | **%.0f** | ", kib * 1024 / model->pods);
    if (goal != 0)
        (void)printf("%u", goal);
    (void)printf(" |\n");
    (void)fflush(stdout);
    return kib;
}

static void put_parts(unsigned pods)
{
    struct model model = of_size(pods), empty = {.nodes = 1, .set_pods = SET_PODS};

    (void)printf("\n## Memory by what the cluster has: %u pods, %u nodes\n\n"
                 "RSS of the server, all of the process counted; it is %.1f MiB with an empty "
                 "cluster. Each pod\nhas a claim, and a name, a UID and a version of its own. "
                 "StatefulSets have %d pods each.\n\n"
                 "| the cluster has | RSS | bytes a pod more | bytes a pod | goal |\n"
                 "|---|---|---|---|---|\n",
                 pods, model.nodes, measure_kib(&empty) / 1024, SET_PODS);
    double kib = put_row("pods and claims", &model, 0, 200);
    model.has_volumes = true;
    kib = put_row("and a PersistentVolume for each claim", &model, kib, 0);
    model.has_labels = true;
    kib = put_row("and labels and owners of StatefulSets", &model, kib, 0);
    model.driver_share = 1;
    kib = put_row("and a CSINode for each node: all", &model, kib, 250);
    model.set_pods = SMALL_SET_PODS;
    (void)put_row("all, in StatefulSets of three pods", &model, kib, 0);
}

static void put_sizes(void)
{
    static const unsigned sizes[] = {1000, 10000, 150000, 500000};

    (void)printf("\n## Memory by the size of the cluster\n\n"
                 "RSS of the server with all of these: pods, claims, volumes, labels, owners, and "
                 "a node and a\nCSINode for %d pods. It needs more while it answers calls: "
                 "operations.md.\n\n"
                 "| pods | nodes | RSS |\n|---|---|---|\n",
                 PODS_A_NODE);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct model model = of_size(sizes[i]);
        model.nodes = sizes[i] / PODS_A_NODE;
        model.has_volumes = model.has_labels = true;
        model.driver_share = 1;
        (void)printf("| %u | %u | **%.0f MiB** |\n", sizes[i], model.nodes,
                     measure_kib(&model) / 1024);
        (void)fflush(stdout);
    }
}

void bench_memory(unsigned pods)
{
    put_parts(pods);
    put_sizes();
}
