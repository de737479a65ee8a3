/*
 * services: the state of a program that serves, with the services that its threads share: one place
 * that knows them all.
 */
#ifndef EXTENDER_CLI_SERVICES_H
#define EXTENDER_CLI_SERVICES_H

#include "extender/state.h"

/* state_init, with all services. Ownership: takes the config unless it fails; services_dispose. */
int services_init(struct state *state, struct config *config, struct error *err);

/* Ends the services, and the state. */
void services_dispose(struct state *state);

#endif
