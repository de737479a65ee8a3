/* What a scheduler asks preempt, and the victims that it deletes then. */
#include <jansson.h>
#include <stdlib.h>

#include "simulation/scheduler.h"

/* The scheduler deletes what the answer names for one node. */
static void take_victims(struct errand *errand, const char *node, const json_t *victims)
{
    struct sim_pod *pod = &world.server.pods[errand->pod];
    const json_t *victim;
    size_t i;

    if (json_array_size(victims) == 0)
        broken("preempt: %s without victims", node);
    json_array_foreach (victims, i, victim) {
        const char *uid = json_string_value(json_object_get(victim, "UID"));
        struct sim_pod *found = uid == NULL ? NULL : server_pod_of(uid, strlen(uid));
        if (found == NULL || found->node != atoi(node + strlen("node-")) ||
            found->priority >= pod->priority)
            broken("preempt for %s: no victim on %s: %s", pod->name, node, uid);
        else
            server_terminate(found, termination_ns(10));
    }
    pod->nominated = atoi(node + strlen("node-"));
    server_touch(pod);
}

static void preempted(void *context, const char *answer)
{
    struct errand *errand = context;
    json_t *json = answer == NULL ? NULL : json_loads(answer, 0, NULL);
    json_t *nodes = json_object_get(json, "NodeNameToMetaVictims");

    if (errand_is_void(errand)) {
        free(errand);
        json_decref(json);
        return;
    }
    if (answer != NULL && nodes == NULL)
        broken("preempt: %s", answer);
    void *first = json_object_iter(nodes);
    if (first != NULL && pod_is_there(&world.server.pods[errand->pod]))
        take_victims(errand, json_object_iter_key(first),
                     json_object_get(json_object_iter_value(first), "Pods"));
    json_decref(json);
    errand_end_rejected(errand);
}

static void put_victims(const struct errand *errand, int node, bool exclusive, struct buf *body)
{
    const struct sim_pod *pod = &world.server.pods[errand->pod];
    const char *separator = "";

    for (size_t i = 0; i < world.server.pod_count; i++) {
        if (node_in_the_way(errand->scheduler, i, pod, exclusive) != node ||
            world.server.pods[i].priority >= pod->priority)
            continue;
        buf_printf(body, "%s{\"UID\":\"%s\"}", separator, world.server.pods[i].uid);
        separator = ",";
    }
}

void errand_preempt(struct errand *errand, int only)
{
    const char *separator = "";
    struct buf body;

    buf_init(&body, 1 << 20);
    buf_printf(&body, "{\"Pod\":");
    errand_put_pod(errand, &body);
    buf_printf(&body, ",\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{");
    for (int node = 0; node < NODES; node++) {
        if (only >= 0 && only != node)
            continue;
        buf_printf(&body, "%s\"node-%d\":{\"Pods\":[", separator, node);
        if (only >= 0 || one_in(2))
            put_victims(errand, node, only >= 0, &body);
        buf_printf(&body, "],\"NumPDBViolations\":0}");
        separator = ",";
    }
    buf_printf(&body, "}}");
    world.server.pods[errand->pod].asked_ns = world.now_ns;
    replica_call(errand->scheduler->replica, VERB_PREEMPT, buf_text(&body), preempted, errand);
    buf_dispose(&body);
}
