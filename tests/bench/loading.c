/* How long a snapshot takes to load and how much memory it takes, against jansson. */
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "extender/commands/inquiry/load.h"
#include "programs.h"

enum { RUNS = 5 };

struct loaded {
    double seconds, peak_mib, steady_mib;
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
        loaded.peak_mib = (double)bench_memory_kib(getpid(), "VmHWM:") / 1024;
        loaded.steady_mib = (double)bench_memory_kib(getpid(), "VmRSS:") / 1024;
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

    cluster_init(&loaded_cluster);
    if (load_snapshot(&loaded_cluster, path, NULL, &report, &err) < 0)
        bench_die(err.message);
}

static void load_jansson(const char *path)
{
    if (json_load_file(path, 0, NULL) == NULL)
        bench_die("jansson could not read the snapshot");
}

static struct spread spread_of(const struct loaded runs[RUNS], size_t offset)
{
    double values[RUNS];

    for (int i = 0; i < RUNS; i++)
        values[i] = *(const double *)(const void *)((const char *)&runs[i] + offset);
    return bench_spread(values, RUNS);
}

/* mib: of the snapshot. */
static void put_row(const char *what, const struct loaded runs[RUNS], double mib)
{
    struct spread seconds = spread_of(runs, offsetof(struct loaded, seconds));
    double steady_mib = spread_of(runs, offsetof(struct loaded, steady_mib)).median;
    double peak_mib = spread_of(runs, offsetof(struct loaded, peak_mib)).median;

    (void)printf("| %s | %.2f (%.2f-%.2f) | %.0f | %.1f MiB | %.1f MiB | **%.2f** |\n", what,
                 seconds.median, seconds.low, seconds.high, mib / seconds.median, steady_mib,
                 peak_mib, peak_mib / steady_mib);
}

void bench_loading(unsigned pods)
{
    struct model model = {.nodes = 5000, .pods = pods, .claims = pods};
    struct loaded ours[RUNS], theirs[RUNS];
    double ratios[RUNS];
    struct stat status;
    char snapshot[512];

    bench_generate(&model, snapshot, sizeof snapshot);
    if (stat(snapshot, &status) != 0)
        bench_die("no snapshot");
    double mib = (double)status.st_size / (1 << 20);
    for (int i = 0; i < RUNS; i++) {
        ours[i] = in_child(load_ours, snapshot);
        theirs[i] = in_child(load_jansson, snapshot);
        ratios[i] = theirs[i].seconds / ours[i].seconds;
    }
    struct spread ratio = bench_spread(ratios, RUNS);
    (void)printf(
        "\n## Loading a snapshot: %u pods, %u claims, %u nodes, %.0f MiB of JSON\n\n"
        "Medians of %d runs, alternately, and the spread.\n\n"
        "| | seconds | MiB/s | memory after | peak | peak / after |\n|---|---|---|---|---|---|\n",
        pods, pods, model.nodes, mib, RUNS);
    put_row("claimguard", ours, mib);
    put_row("jansson json_load_file", theirs, mib);
    (void)printf("\nclaimguard reads **%.1f times** as fast as jansson (%.1f-%.1f).\n",
                 ratio.median, ratio.low, ratio.high);
    (void)unlink(snapshot);
    (void)fflush(stdout);
}
