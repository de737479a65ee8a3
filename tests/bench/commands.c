/* What the commands take that read a snapshot of a big cluster, against loading it alone. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "programs.h"

enum { REPEATS = 3, ARGUMENTS_MAX = 8 };

struct used {
    double seconds; /* of the processor: commands have one thread */
    double mib;
};

static const struct row {
    const char *label;
    const char *arguments[ARGUMENTS_MAX]; /* before --snapshot FILE */
    double most_time, most_memory;        /* the goals, as ratios to loading; 0: none */
} rows[] = {
    {"`dry-run` of a pod on one node: loading alone",
     {"dry-run", "--pod", "team-000/web-frontend-7d9f8b6c5d-0", "--node", "ip-10-20-node-0"},
     0,
     0},
    {"`who CLAIM`", {"who", "team-000/data-web-frontend-0"}, 1.1, 1.5},
    {"`who --all`", {"who", "--all"}, 1.1, 1.5},
    {"`who --all -o json`", {"who", "--all", "-o", "json"}, 1.1, 1.5},
    {"`why POD`", {"why", "team-016/web-frontend-7d9f8b6c5d-16"}, 1.1, 1.5},
    {"`audit`", {"audit"}, 2, 1.5},
    {"`audit -o json`", {"audit", "-o", "json"}, 2, 1.5},
    {"`audit -o sarif`", {"audit", "-o", "sarif"}, 2, 1.5},
    {"`audit -o junit`", {"audit", "-o", "junit"}, 2, 1.5},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void become(const struct row *row, const char *snapshot)
{
    const char *argv[ARGUMENTS_MAX + 4];
    char binary[512];
    int count = 0, null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)snprintf(binary, sizeof binary, "%s/claimguard", bench_folder);
    argv[count++] = binary;
    for (int i = 0; i < ARGUMENTS_MAX && row->arguments[i] != NULL; i++)
        argv[count++] = row->arguments[i];
    argv[count++] = "--snapshot";
    argv[count++] = snapshot;
    argv[count] = NULL;
    (void)dup2(null, STDOUT_FILENO);
    (void)dup2(null, STDERR_FILENO);
    (void)execv(binary, (char *const *)(uintptr_t)argv);
    _exit(127);
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static struct used run(const struct row *row, const char *snapshot)
{
    struct rusage usage;
    int status;
    pid_t pid = fork();

    if (pid == 0)
        become(row, snapshot);
    if (wait4(pid, &status, 0, &usage) != pid || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
        bench_die(row->label);
    return (struct used){seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
                         (double)usage.ru_maxrss / 1024};
}

static void print_ratio(double ratio, double most)
{
    if (most == 0)
        (void)printf(" | | ");
    else
        (void)printf(" | **%.2f** | %.1f", ratio, most);
}

void bench_commands(unsigned pods)
{
    struct model model = {.nodes = 5000,
                          .pods = pods,
                          .claims = pods,
                          .deployments = pods / 15 * 2,
                          .driver_share = 1,
                          .pending_share = 0.01};
    struct used best[ROWS];
    struct stat status;
    char snapshot[512];

    bench_generate(&model, snapshot, sizeof snapshot);
    if (stat(snapshot, &status) != 0)
        bench_die("no snapshot");
    for (int repeat = 0; repeat < REPEATS; repeat++)
        for (size_t i = 0; i < ROWS; i++) {
            struct used used = run(&rows[i], snapshot);
            if (repeat == 0 || used.seconds < best[i].seconds)
                best[i] = used;
        }
    (void)printf("\n## Commands: %u pods, claims and volumes, %u Deployments, %u nodes, %.0f MiB "
                 "of JSON\n\n"
                 "Objects of real size. One of a hundred pods is not assigned, and waits for its "
                 "claims. CPU time;\nthe quickest of %d runs. The ratios are to loading alone.\n\n"
                 "| command | seconds | ratio | goal | peak | ratio | goal |\n"
                 "|---|---|---|---|---|---|---|\n",
                 pods, model.deployments, model.nodes, (double)status.st_size / (1024 * 1024),
                 REPEATS);
    for (size_t i = 0; i < ROWS; i++) {
        (void)printf("| %s | %.2f", rows[i].label, best[i].seconds);
        print_ratio(best[i].seconds / best[0].seconds, rows[i].most_time);
        (void)printf(" | %.1f MiB", best[i].mib);
        print_ratio(best[i].mib / best[0].mib, rows[i].most_memory);
        (void)printf(" |\n");
    }
    (void)unlink(snapshot);
    (void)fflush(stdout);
}
