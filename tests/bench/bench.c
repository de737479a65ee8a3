/*
 * bench: measures claimguard against lower bounds, as ratios within one run (./dev bench). Prints a
 * Markdown table. Never asserts on time.
 *
 *     bench BUILD-FOLDER [--pods N]
 */
#include "bench.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/base/log.h"
#include "programs.h"

int main(int argc, char **argv)
{
    static const struct option options[] = {{"pods", required_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};
    unsigned pods = 150000;
    char command[64];

    while (getopt_long(argc, argv, "", options, NULL) == 'p')
        pods = (unsigned)strtoul(optarg, NULL, 10);
    if (optind >= argc || mkdtemp(bench_work) == NULL)
        bench_die("usage: bench BUILD-FOLDER [--pods N]");
    bench_folder = argv[optind];
    log_configure(LOG_ERROR, LOG_TEXT);
    (void)signal(SIGPIPE, SIG_IGN);
    bench_server_core = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1 : 0;
    bench_round_trips("client and server on a core each");
    bench_client_core = bench_server_core;
    bench_round_trips("client and server on one core");
    bench_deferral();
    bench_drivers();
    bench_loading(pods);
    bench_verdicts();
    (void)snprintf(command, sizeof command, "rm -r %s", bench_work);
    return system(command) == 0 ? 0 : 1; /* NOLINT(cert-env33-c): a command of our own */
}
