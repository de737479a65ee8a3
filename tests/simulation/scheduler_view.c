#include <stdlib.h>
#include <string.h>

#include "simulation/world.h"

int node_in_the_way(const struct scheduler *scheduler, size_t other, const struct sim_pod *pod,
                    bool exclusive)
{
    static const char key[] = "\"nodeName\":\"node-";
    const char *text = scheduler->seen[other];
    const char *node = text == NULL ? NULL : strstr(text, key);
    unsigned claims = pod->claims & world.server.pods[other].claims;

    for (unsigned i = 0; i < CLAIMS; i++)
        if (exclusive && !world.server.claims[i].is_rwop)
            claims &= ~(1U << i);
    return node == NULL || claims == 0 || &world.server.pods[other] == pod
               ? -1
               : atoi(node + strlen(key));
}

bool sees_conflict(const struct scheduler *scheduler, const struct sim_pod *pod, int *helps)
{
    bool is_any = false, can_help = !pod->never;

    *helps = -1;
    for (size_t i = 0; i < world.server.pod_count; i++) {
        int node = node_in_the_way(scheduler, i, pod, true);
        if (node < 0)
            continue;
        can_help = can_help && (!is_any || node == *helps) &&
                   world.server.pods[i].priority < pod->priority;
        is_any = true;
        *helps = node;
    }
    *helps = can_help ? *helps : -1;
    return is_any;
}

bool scheduler_asks(const struct scheduler *scheduler, const struct sim_pod *pod)
{
    int helps = -1;

    return !scheduler->is_plain &&
           (!scheduler->sees_claims || !sees_conflict(scheduler, pod, &helps) || helps >= 0);
}
