/*
 * credential_plugin: one run of a credential plugin (exec). It runs in the background; its owner
 * calls plugin_step from time to time.
 *
 *     struct plugin_run run = {.pid = 0};
 *     if (plugin_start(&run, kubeconfig, monotonic_ns(), err) == 0)
 *         while (plugin_step(&run, monotonic_ns(), err) == PLUGIN_RUNS)
 *             continue; // with other work; after PLUGIN_DONE, run.text is what the plugin printed
 *     plugin_stop(&run);
 *
 * The plugin has a process group of its own, which is killed when the plugin takes longer than
 * PLUGIN_SECONDS_MAX, prints too much, or is stopped. Only plugin_stop waits for it, for
 * PLUGIN_KILL_MS at most.
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
    PLUGIN_KILL_MS = 100, /* how long a killed process may take to end */
};

enum { PLUGIN_DONE, PLUGIN_RUNS };

/* All zero: no plugin runs. */
struct plugin_run {
    const char *command; /* for messages */
    pid_t pid;           /* 0: none */
    int output;          /* the reading end of the pipe */
    uint64_t deadline_ns;
    struct buf text; /* what it has printed */
};

/* Starts the plugin. Errors: ERROR_SYSTEM, ERROR_NO_MEMORY; it does not run. */
int plugin_start(struct plugin_run *run, const struct kubeconfig *kubeconfig, uint64_t now_ns,
                 struct error *err);

/* Reads its output. PLUGIN_DONE: it has succeeded, and text is its output. Errors:
 * ERROR_TIMEOUT, ERROR_TOO_BIG, ERROR_UNAVAILABLE (its exit status), ERROR_SYSTEM. */
int plugin_step(struct plugin_run *run, uint64_t now_ns, struct error *err);

/* Kills the plugin, if it runs, and its children. Frees the text. */
void plugin_stop(struct plugin_run *run);

#endif
