/* Users of an episode, who create and delete pods and claims; and what fails meanwhile. */
#include <string.h>

#include "simulation/admission.h"

static struct sim_pod *any_pod(void)
{
    struct sim_pod *chosen = NULL;
    unsigned seen = 0;

    for (size_t i = 0; i < world.server.pod_count; i++)
        if (world.server.pods[i].exists && one_in(++seen))
            chosen = &world.server.pods[i];
    return chosen;
}

/* The names outlive the letters in which they are. */
static const char *const names[NAMES] = {"p0", "p1", "p2", "p3", "p4", "p5"};

/* Bound by its creation. Its user may have written what is to be deferred, or part of it. */
static void name_node(struct client_creation *creation)
{
    struct sim_pod *pod = &creation->properties;
    unsigned written = one_in(3) ? pod->claims & (unsigned)below(1 << CLAIMS) : pod->claims;

    creation->node = (int)below(NODES);
    if (!pod->is_vm || world.agrees || one_in(4)) /* docs/risks.md: of a class without entry */
        return;
    if (one_in(2))
        pod->fields |= written;
    else if (!pod->opts_out)
        pod->annotated = written;
    pod->own_fields |= written;
}

/* Of two such pods, each gives way to the other, and a third may wait for long. */
static bool is_denied_now(void)
{
    for (size_t i = 0; i < world.server.pod_count; i++)
        if (world.server.pods[i].exists && world.server.pods[i].is_denied)
            return true;
    return false;
}

static void own_claim(struct sim_pod *pod)
{
    pod->ephemeral = 1U << (CLAIMS - 1);
    pod->claims |= pod->ephemeral;
    pod->is_vm = false; /* whether that is deferred is in creation_rows */
    pod->fields = pod->own_fields = 0;
}

static void create_pod_with(unsigned claims)
{
    static const int priorities[] = {0, 0, 10, 100};
    unsigned own_fields =
        world.defers && !world.agrees && one_in(3) ? claims & (unsigned)below(1 << CLAIMS) : 0;
    struct client_creation creation = {
        .name = world.has_ephemeral && one_in(3) ? EPHEMERAL_OWNER : names[below(NAMES)],
        .properties = {.priority = priorities[below(4)],
                       .never = one_in(10),
                       .is_grouped = one_in(10),
                       .claims = claims,
                       .fields = own_fields,
                       .own_fields = own_fields,
                       .is_protected = one_in(3),
                       .scheduler = (unsigned)below(world.scheduler_count),
                       .is_vm = world.defers && one_in(2),
                       .opts_out = world.defers && one_in(10)},
        .node = -1,
        .is_dry_run = world.has_admission && one_in(10)};

    if (server_find_pod(creation.name, strlen(creation.name)) != NULL)
        return;
    if (world.has_ephemeral && strcmp(creation.name, EPHEMERAL_OWNER) == 0)
        own_claim(&creation.properties);
    if (world.has_admission && one_in(12) && !is_denied_now()) {
        creation.properties.is_denied = true;
        creation.properties.priority = 0; /* else it preempts without end, and is never bound */
    }
    if (world.has_admission && one_in(3))
        name_node(&creation);
    client_create(&creation, NULL, NULL);
}

/* Where volumes are for one node, or replicas differ, also pods that come at the same time and want
 * one volume: their schedulers find it free, and choose nodes. */
static void create_pods(void)
{
    unsigned claims = one_in(20) ? 0 : (unsigned)below((1 << CLAIMS) - 1) + 1;

    create_pod_with(claims);
    if (!(world.is_for_one_node || world.agrees) || one_in(2))
        return;
    create_pod_with(claims);
    create_pod_with(claims & (unsigned)below(1 << CLAIMS));
}

static void create_claim(struct sim_claim *claim, bool is_rwop)
{
    if (world.is_over || !claim->is_absent)
        return;
    claim->is_rwop = is_rwop;
    claim->is_slow = world.defers && one_in(2);
    server_create_claim((unsigned)(claim - world.server.claims));
}

static void create_exclusive_claim(void *context)
{
    create_claim(context, true);
}

static void create_shared_claim(void *context)
{
    create_claim(context, false);
}

/* A claim that nobody uses is gone for a while, and comes back as another one; pods may come before
 * it. One that others may share comes when all watches have sent the former: else pods may be
 * rejected for what that was, and nobody wakes them. */
static void remove_claim(void)
{
    unsigned claim = (unsigned)below(CLAIMS);

    if (world.server.claims[claim].is_absent || server_is_used(claim) ||
        (world.has_ephemeral && claim == CLAIMS - 1))
        return;
    server_remove_claim(claim);
    if (one_in(3))
        later(CLAIM_LATE_SECONDS * SECOND, true, create_shared_claim, &world.server.claims[claim]);
    else
        later(below(one_in(2) ? 10 * SECOND : 100 * MILLISECOND), true, create_exclusive_claim,
              &world.server.claims[claim]);
}

/* ---- faults ---- */

static void start_scheduler(void *context)
{
    if (!world.is_over)
        scheduler_start(context);
}

static void fault(void)
{
    struct replica *replica = &world.replicas[below(world.replica_count)];
    struct scheduler *scheduler = &world.schedulers[below(world.scheduler_count)];

    if (world.agrees && one_in(2)) {
        trace("replica %u may not read what is agreed", replica->index);
        replica->agrees_again_ns = world.now_ns + below(200 * SECOND);
        return;
    }
    switch (below(world.is_hard ? 5 : 4)) {
    case 0:
        if (world.is_stable)
            break;
        replica_restart(replica);
        break;
    case 1:
        if (scheduler->is_up) {
            scheduler_crash(scheduler);
            later(below(3 * SECOND), true, start_scheduler, scheduler);
        }
        break;
    case 2:
        trace("the API server is down");
        world.api_down_until_ns = world.now_ns + below(8 * SECOND);
        server_replace(one_in(4) ? (enum field_support)below(3) : world.field);
        break;
    case 3: replica_relist(replica, watched_kinds[below(WATCHED_KINDS)]); break;
    default: /* of a hard world */
        trace("GETs fail");
        world.gets_fail_until_ns = world.now_ns + below(8 * SECOND);
    }
}

/* ---- what happens next ---- */

/* Someone who may post Bindings also tries that. */
static void bind_beside(struct sim_pod *pod)
{
    if (world.has_admission && pod->node < 0)
        client_post(&(struct client_binding){.pod = pod,
                                             .node = (int)below(NODES),
                                             .has_no_uid = one_in(4),
                                             .is_dry_run = one_in(4)},
                    NULL, NULL);
}

void users_act(void *context)
{
    struct sim_pod *pod = any_pod();

    if (world.now_ns > world.end_ns || world.is_over)
        return;
    switch (below(15)) {
    case 0:
    case 1:
        if (pod != NULL)
            server_terminate(pod, one_in(2) ? 0 : below(10) * SECOND);
        break;
    case 2:
        if (pod != NULL && pod->is_finished)
            server_terminate(pod, 0);
        else if (pod != NULL)
            server_finish(pod);
        break;
    case 3: server_set_budget((int64_t)below(3)); break;
    case 4:
        if (world.has_faults && one_in(2))
            fault();
        break;
    case 5: remove_claim(); break;
    case 6: /* of the pod that is bound next */
        world.edits += one_in(2);
        world.touches += one_in(2);
        break;
    case 7:
        if (pod != NULL)
            bind_beside(pod);
        break;
    default: create_pods();
    }
    later(below(one_in(4) ? 5 * SECOND : 500 * MILLISECOND), true, users_act, context);
}
