/*
 * admission: Bindings that reach the API server, which has them reviewed (admission.c), and those
 * that others than claimguard post (client.c).
 */
#ifndef SIMULATION_ADMISSION_H
#define SIMULATION_ADMISSION_H

#include "simulation/world.h"

/* A Binding that a client has posted. Ownership: borrowed. */
struct posted {
    const char *path, *body;
    bool is_own; /* by claimguard */
    bool is_dry_run;
    uint64_t looked_ns; /* see sim_pod */
};

/* It reaches the API server, which has it reviewed, and stores or refuses it. Then, unless then is
 * NULL, that is called once. */
typedef void stored(void *context, unsigned status, struct slice answer);
void binding_arrives(const struct posted *posted, stored *then, void *context);

/* ---- client.c ---- */

struct client_binding {
    struct sim_pod *pod;
    int node;
    bool has_no_uid, is_dry_run;
};

/* Posts it over the network. Then, unless then is NULL, that is called once; status 0: there was no
 * answer. */
void client_post(const struct client_binding *binding, stored *then, void *context);

#endif
