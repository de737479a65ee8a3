/*
 * bench: measures claimguard against lower bounds, as ratios within one run (./dev bench). Prints a
 * Markdown table. Never asserts on time.
 *
 *     bench BUILD-FOLDER [--pods N] [--only SECTION] [--peers FOLDER] [--cluster KUBECONFIG]
 *
 * --only: a name of the table below. --peers: where tests/bench/run has built the programs of
 * tests/bench/peers. --cluster: of an API server that tests/bench/cluster has filled.
 */
#include "bench.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/base/log.h"
#include "own_network.h"
#include "programs.h"

static void round_trips(unsigned pods)
{
    (void)pods;
    bench_client_core = 0;
    bench_round_trips("client and server on a core each");
    bench_client_core = bench_server_core;
    bench_round_trips("client and server on one core");
}

static void reviews(unsigned pods)
{
    (void)pods;
    bench_client_core = 0;
    bench_reviews("client and server on a core each");
    bench_client_core = bench_server_core;
    bench_reviews("client and server on one core");
}

static void deferral(unsigned pods)
{
    (void)pods;
    bench_deferral();
}

static void volumes(unsigned pods)
{
    (void)pods;
    bench_volumes();
}

static void parsing(unsigned pods)
{
    (void)pods;
    bench_parsing();
}

static void verdicts(unsigned pods)
{
    (void)pods;
    bench_verdicts();
}

static void scale(unsigned pods)
{
    (void)pods;
    bench_scale();
}

static void peers(unsigned pods)
{
    bench_client_core = 0;
    bench_peers(pods);
}

static void cluster(unsigned pods)
{
    (void)pods;
    bench_cluster();
}

/* Clients and servers run each on one core, or where the kernel puts them. */
enum cores { PINNED, ANY_CORE };

static const struct {
    const char *name;
    void (*run)(unsigned pods);
    enum cores cores;
} sections[] = {{"memory", bench_memory, PINNED},
                {"sync", bench_sync, ANY_CORE},
                {"cluster", cluster, ANY_CORE},
                {"events", bench_events, ANY_CORE},
                {"latency", bench_latency, ANY_CORE},
                {"round-trips", round_trips, PINNED},
                {"reviews", reviews, PINNED},
                {"deferral", deferral, PINNED},
                {"volumes", volumes, PINNED},
                {"loading", bench_loading, PINNED},
                {"commands", bench_commands, PINNED},
                {"parsing", parsing, PINNED},
                {"verdicts", verdicts, PINNED},
                {"scale", scale, PINNED},
                {"peers", peers, PINNED}};

enum { SECTIONS = sizeof sections / sizeof *sections };

static void die_of_section(void)
{
    (void)fprintf(stderr, "bench: --only: expected one of:");
    for (size_t i = 0; i < SECTIONS; i++)
        (void)fprintf(stderr, " %s", sections[i].name);
    (void)fputc('\n', stderr);
    bench_die("no such section");
}

static void run_section(size_t i, unsigned pods)
{
    bench_server_core = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0;
    if (sections[i].cores == ANY_CORE)
        bench_server_core = BENCH_ANY_CORE;
    bench_client_core = bench_server_core;
    bench_pin(bench_client_core);
    sections[i].run(pods);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"pods", required_argument, NULL, 'p'},
                                            {"only", required_argument, NULL, 'o'},
                                            {"peers", required_argument, NULL, 'P'},
                                            {"cluster", required_argument, NULL, 'c'},
                                            {NULL, 0, NULL, 0}};
    unsigned pods = 150000, run = 0;
    const char *only = NULL;
    char command[64];

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        if (option == 'p')
            pods = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'P')
            bench_peers_folder = optarg;
        else if (option == 'c')
            bench_cluster_kubeconfig = optarg;
        else
            only = option == 'o' ? optarg : "";
    if (optind >= argc || mkdtemp(bench_work) == NULL)
        bench_die("usage: bench BUILD-FOLDER [--pods N] [--only SECTION] [--peers FOLDER] "
                  "[--cluster KUBECONFIG]");
    bench_folder = argv[optind];
    log_configure(LOG_ERROR, LOG_TEXT);
    (void)signal(SIGPIPE, SIG_IGN);
    if (bench_cluster_kubeconfig == NULL) /* its API server is in the machine's network */
        (void)printf("\n%s\n", bench_own_network());
    for (size_t i = 0; i < SECTIONS; i++)
        if (only == NULL || strcmp(only, sections[i].name) == 0) {
            run_section(i, pods);
            run++;
        }
    (void)snprintf(command, sizeof command, "rm -r %s", bench_work);
    if (system(command) != 0) /* NOLINT(cert-env33-c): a command of our own */
        return 1;
    if (run == 0)
        die_of_section();
    return 0;
}
