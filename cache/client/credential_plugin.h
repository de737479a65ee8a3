/*
 * credential_plugin: one run of a credential plugin (exec), which goes on beside everything else:
 * its owner looks at it from time to time.
 *
 *     struct plugin_run run = {.pid = 0};
 *     if (plugin_start(&run, kubeconfig, monotonic_ns(), err) == 0)
 *         while (plugin_step(&run, monotonic_ns(), err) == PLUGIN_RUNS)
 *             continue; // with other work; in the end, run.text is what the plugin printed
 *     plugin_stop(&run);
 *
 * The plugin has a process group of its own, which is killed when the plugin takes longer than
 * PLUGIN_SECONDS_MAX, prints too much, or is stopped. Nothing here waits for it but plugin_stop,
 * for PLUGIN_KILL_MS at most.
 *
 * Threads: one.
 */
#ifndef CACHE_CLIENT_CREDENTIAL_PLUGIN_H
#define CACHE_CLIENT_CREDENTIAL_PLUGIN_H

#include <stdint.h>
#include <sys/types.h>

#include "cache/client/kubeconfig.h"
#include "config/base/buf.h"

enum {
    PLUGIN_SECONDS_MAX = 30,
    PLUGIN_OUTPUT_BYTES_MAX = 1024 * 1024,
    PLUGIN_KILL_MS = 100, /* that a killed process may take to end */
};

enum { PLUGIN_DONE, PLUGIN_RUNS };

/* Zeroed: none runs. */
struct plugin_run {
    const char *command; /* for messages */
    pid_t pid;           /* 0: none */
    int output;          /* the end of the pipe that we read */
    uint64_t deadline_ns;
    struct buf text; /* what it has printed */
};

/* Errors: ERROR_SYSTEM, ERROR_NO_MEMORY; then nothing runs. */
int plugin_start(struct plugin_run *run, const struct kubeconfig *kubeconfig, uint64_t now_ns,
                 struct error *err);

/* Takes what it has printed. PLUGIN_DONE: it has ended well, and text is all of it. Errors:
 * ERROR_TIMEOUT, ERROR_TOO_BIG, ERROR_UNAVAILABLE (its exit status), ERROR_SYSTEM. */
int plugin_step(struct plugin_run *run, uint64_t now_ns, struct error *err);

/* Ends it, if it runs, and what it started; forgets the text. */
void plugin_stop(struct plugin_run *run);

#endif
