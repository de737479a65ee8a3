/*
 * services: creates the state of a server, with the services that its threads share (requeue,
 * events, preemption, ...). No other module includes all of them.
 *
 * Threads: one, before the others start and after they end.
 */
#ifndef EXTENDER_CLI_SERVICES_H
#define EXTENDER_CLI_SERVICES_H

#include "extender/serving/state.h"

/* state_init, and all services.
 * Ownership: services_dispose; it owns config, unless it fails. Errors: ERROR_NO_MEMORY. */
int services_init(struct state *state, struct config *config, struct error *err);

/* Frees the services, and the state. */
void services_dispose(struct state *state);

#endif
