/*
 * serve_load: reads the snapshot that serve serves.
 *
 * Threads: the main thread.
 */
#ifndef EXTENDER_CLI_SERVE_LOAD_H
#define EXTENDER_CLI_SERVE_LOAD_H

#include "extender/state.h"

/* Loads the snapshot into the state's cluster, and logs what it lacks. Until it is read, SIGTERM
 * and SIGINT end the process. Afterwards both are blocked. Errors: as load_snapshot. */
int serve_load(struct state *state, const char *path, struct error *err);

#endif
