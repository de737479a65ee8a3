/* Pods whose container runtime mounts their volumes. Included by the rows of DeferFSMount. */
#ifndef SIMULATION_VM_ROWS_H
#define SIMULATION_VM_ROWS_H

#include <stdlib.h>
#include <string.h>

#include "extender/serving/zpages/zpages.h"
#include "simulation/rows.h"

enum { DATA = 1, LOGS = 2, BOTH = 3, SHARED = 4 }; /* claims; SHARED is ReadWriteMany */

static inline struct sim_pod *create_vm(const char *name, int priority, unsigned claims)
{
    return server_create_pod(
        name, &(struct sim_pod){.priority = priority, .claims = claims, .is_vm = true});
}

static inline struct sim_pod *vm_holder(const char *name, int priority, unsigned claims)
{
    struct sim_pod *pod = create_vm(name, priority, claims);

    wait_seconds(2);
    expect(pod->node >= 0, "the VM is bound");
    return pod;
}

static inline struct config *live_config(void)
{
    return world.replicas[0].state.config;
}

static inline void begin_with_field(void)
{
    world.defers = true;
    world.field = FIELD_KNOWN;
}

/* claimguard_deferred_mounts_total */
static inline unsigned counted(void)
{
    static const char name[] = "\nclaimguard_deferred_mounts_total{";
    struct state *state = &world.replicas[0].state;
    struct pieces *pieces = scrape_new(state, false);
    struct buf text;

    buf_init(&text, 1 << 20);
    while (pieces->next(pieces, &text))
        continue;
    pieces_free(pieces);
    const char *line = strstr(buf_text(&text), name);
    unsigned count = line == NULL ? 0 : (unsigned)atoi(strchr(line, '}') + 1);
    buf_dispose(&text);
    return count;
}

static inline void share(void)
{
    server_change_claim(2, false, false);
    wait_seconds(1);
}

#endif
