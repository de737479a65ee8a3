/* How long a snapshot takes to load and how much memory it takes, against jansson. */
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "extender/inquiry/load.h"
#include "programs.h"

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

    cluster_init(&loaded_cluster);
    if (load_snapshot(&loaded_cluster, path, NULL, &report, &err) < 0)
        bench_die(err.message);
}

static void load_jansson(const char *path)
{
    if (json_load_file(path, 0, NULL) == NULL)
        bench_die("jansson could not read the snapshot");
}

void bench_loading(unsigned pods)
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
    (void)unlink(snapshot);
    (void)fflush(stdout);
}
