/* Pods that clients create with their node, or bind. Included by the rows of creations. */
#ifndef SIMULATION_CREATIONS_H
#define SIMULATION_CREATIONS_H

#include <stdio.h>
#include <string.h>

#include "simulation/admission.h"
#include "simulation/rows.h"

enum { DATA = 1, CACHE = 2, SHARED = 4 }; /* claims */

enum { WAITS = 0, CREATED = 201, DENIED = 409, FAILED = 500 }; /* what the API server answers */

/* Of one request; of an earlier one the answer may come later. */
static inline unsigned *status_new(void)
{
    static unsigned statuses[256], count;
    unsigned *status = &statuses[count++ % 256];

    *status = WAITS;
    return status;
}

static inline void note_status(void *context, unsigned status, struct slice answer)
{
    (void)answer;
    *(unsigned *)context = status;
}

/* WAITS: there is no answer within two seconds. */
static inline unsigned post(const struct client_creation *creation)
{
    unsigned *status = status_new();

    client_create(creation, note_status, status);
    wait_seconds(2);
    return *status;
}

static inline unsigned create_on(int node, const char *name, unsigned claims)
{
    return post(&(struct client_creation){
        .name = name, .properties = {.claims = claims, .scheduler = 1}, .node = node});
}

static inline unsigned create_bound(const char *name, unsigned claims)
{
    return create_on(1, name, claims);
}

/* It is allowed, and the API server stores it so many seconds later. */
static inline void create_late(const char *name, unsigned claims, uint64_t seconds)
{
    world.store_after_ns = seconds * SECOND;
    expect(create_bound(name, claims) == WAITS, "it is allowed, and not stored yet");
    world.store_after_ns = 0;
}

/* A pod that no scheduler knows, which waits for its Binding. */
static inline struct sim_pod *create_pending(const char *name, unsigned claims)
{
    struct sim_pod *pod =
        server_create_pod(name, &(struct sim_pod){.claims = claims, .scheduler = 1});

    wait_seconds(1);
    return pod;
}

static inline unsigned bind(struct sim_pod *pod)
{
    unsigned *status = status_new();

    client_post(&(struct client_binding){.pod = pod, .node = 1}, note_status, status);
    wait_seconds(2);
    return *status;
}

static inline bool exists(const char *name)
{
    return server_find_pod(name, strlen(name)) != NULL;
}

static inline void remove_pod(const char *name)
{
    struct sim_pod *pod = server_find_pod(name, strlen(name));

    expect(pod != NULL, "there is something to remove");
    if (pod != NULL)
        server_terminate(pod, 0);
}

static inline void restart(void)
{
    replica_crash(&world.replicas[0]);
    wait_seconds(1);
    replica_start(&world.replicas[0]);
    wait_seconds(1);
}

static inline void review(void)
{
    world.has_admission = true;
    world.review_timeout_ms = 10000;
}

#endif
