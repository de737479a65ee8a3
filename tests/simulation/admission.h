/*
 * admission: Bindings, and pods to create, that reach the API server, which has them reviewed
 * (admission.c), and those that others than claimguard post (client.c).
 */
#ifndef SIMULATION_ADMISSION_H
#define SIMULATION_ADMISSION_H

#include "simulation/world.h"

/* A Binding, or a pod, that a client has posted. Ownership: borrowed. */
struct posted {
    const char *path, *body;
    struct sim_pod *created; /* the pod: it has a UID, and does not exist; NULL: a Binding */
    bool is_own;             /* by claimguard */
    bool is_dry_run;
    bool is_unreviewed; /* there was no answer, and failurePolicy is Ignore */
    uint64_t looked_ns; /* see sim_pod */
    uint64_t came_ns;   /* when its 60 s began; 0: now */
};

/* It reaches the API server, which has it reviewed, and stores or refuses it. Then, unless then is
 * NULL, that is called once. */
typedef void stored(void *context, unsigned status, struct slice answer);
void post_arrives(const struct posted *posted, stored *then, void *context);

/* ---- client.c ---- */

struct client_binding {
    struct sim_pod *pod;
    int node;
    bool has_no_uid, is_dry_run;
};

struct client_creation {
    const char *name;
    struct sim_pod properties;
    int node; /* -1: a scheduler chooses it */
    bool is_dry_run;
};

/* Post it over the network. Then, unless then is NULL, that is called once; status 0: there was no
 * answer. */
void client_post(const struct client_binding *binding, stored *then, void *context);
void client_create(const struct client_creation *creation, stored *then, void *context);

#endif
