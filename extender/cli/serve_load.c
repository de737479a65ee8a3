#include "extender/cli/serve_load.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "config/base/log.h"
#include "extender/cli/commands.h"
#include "extender/inquiry/load.h"

static int load(struct state *state, const char *path, struct error *err)
{
    const char *warnings[LOAD_WARNINGS_MAX];
    struct load_report report;
    char objects[24], skipped[24];

    if (load_snapshot(&state->cluster, path, NULL, &report, err) < 0)
        return err->code;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        if (state->cluster.counts[kind] != 0)
            atomic_store(&state->status[kind].last_event_ms, now_ms());
    (void)snprintf(state->source, sizeof state->source, "snapshot %s", path);
    (void)snprintf(objects, sizeof objects, "%zu", report.source.objects);
    (void)snprintf(skipped, sizeof skipped, "%zu", report.source.skipped);
    log_info("snapshot loaded", LOG_STR("file", path), LOG_STR("objects", objects),
             LOG_STR("skipped", skipped));
    size_t count = load_warnings(&state->cluster, &report, warnings);
    for (size_t i = 0; i < count; i++)
        log_warn(warnings[i], LOG_STR("file", path));
    return 0;
}

static void exit_at_once(int signal)
{
    (void)signal;
    _exit(EXIT_DONE);
}

/* A snapshot may be a pipe without an end. Nothing is served yet, so nothing has to be finished. A
 * handler, because the first process of a container ignores signals without one. */
int serve_load(struct state *state, const char *path, struct error *err)
{
    struct sigaction action = {.sa_handler = exit_at_once};
    sigset_t ends;

    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
    int rc = load(state, path, err);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
    return rc;
}
