/* What has to be true when everything has had its time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "extender/serving/bind/deferral.h"
#include "extender/serving/zpages/zpages.h"
#include "simulation/world.h"

static void put_object(void *context, enum kind kind, struct slice text)
{
    take_object(context, kind, CHANGE_PUT, text);
}

/* Whether some node suits the pod, by what differs from node to node. */
static bool has_node(const struct verdict *verdict, struct arena *arena)
{
    char name[16];
    struct slice reason;

    for (int i = 0; i < NODES; i++) {
        (void)snprintf(name, sizeof name, "node-%d", i);
        if (policy_filter(verdict, slice_of(name), arena, &reason) == NULL)
            return true;
    }
    return false;
}

/* Whether claimguard is asked about the pod with a node that suits it. A scheduler that sees the
 * conflict itself offers the holder's node alone. Where a filter rejects that one, nobody says that
 * the pod would run on another, so nobody is evicted for it. */
static bool is_offered(const struct sim_pod *pod, const struct verdict *verdict)
{
    const struct scheduler *scheduler = &world.schedulers[pod->scheduler];

    return scheduler_asks(scheduler, pod) &&
           !(scheduler->sees_claims && policy_filters_nodes(verdict));
}

/* The exclusive claims that two pods have. */
static size_t count_violations(void)
{
    size_t violations = 0;

    for (unsigned c = 0; c < CLAIMS; c++) {
        size_t holders = 0;
        bool is_exclusive = world.server.claims[c].is_rwop;
        for (size_t i = 0; i < world.server.pod_count; i++) {
            const struct sim_pod *pod = &world.server.pods[i];
            if (!pod_is_there(pod) || pod->node < 0 || (pod->claims >> c & 1) == 0)
                continue;
            holders++;
            is_exclusive = is_exclusive || (server_deferred_claims(pod) >> c & 1) != 0;
        }
        violations += is_exclusive && holders > 1 && !world.server.claims[c].is_absent;
    }
    return violations;
}

/* claimguard_exclusive_claim_violations */
static size_t read_metric(struct state *state)
{
    static const char name[] = "\nclaimguard_exclusive_claim_violations ";
    struct pieces *pieces = scrape_new(state, false);
    struct buf text;

    buf_init(&text, 1 << 20);
    while (pieces->next(pieces, &text))
        continue;
    pieces_free(pieces);
    const char *line = strstr(buf_text(&text), name);
    size_t count = line == NULL ? 0 : strtoul(line + strlen(name), NULL, 10);
    buf_dispose(&text);
    return count;
}

/* What nobody could prevent is reported. With an Exclusive entry and claimLock Annotation, claims
 * that no pod defers are also exclusive. */
static void check_reported(void)
{
    size_t violations = count_violations();

    for (unsigned i = 0; i < world.replica_count; i++) {
        size_t reported = read_metric(&world.replicas[i].state);
        if (reported < violations || (reported > violations && !world.defers))
            broken("replica %u reports %zu claims with two pods, and there are %zu", i, reported,
                   violations);
    }
}

/* Whether its field says what was decided for an earlier claim, which cannot be taken back. */
static bool is_refused_for_good(const struct view *view, const struct pod *record,
                                const struct pod_object *pod, struct arena *arena)
{
    struct deferral deferral;
    struct error err = {0};

    return deferral_plan(view, record->version, pod, arena, &deferral, &err) == ERROR_INVALID;
}

/* Whether several pods that another webhook denies want a claim of this pod. They give way in turn,
 * and which of the others is next is chance. */
static bool is_beside_denied(const struct sim_pod *pod)
{
    unsigned denied = 0;

    for (size_t i = 0; i < world.server.pod_count; i++) {
        const struct sim_pod *other = &world.server.pods[i];
        denied += pod_is_there(other) && other->is_denied && (other->claims & pod->claims) != 0;
    }
    return denied > 1;
}

/* Every pod that could be bound is, and every preemption that is allowed was done. */
void check_settled(void)
{
    struct cluster cluster;
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    struct informer_target truth = {.cluster = &cluster, .lock = &lock};
    struct config config = {.arena = {0}};
    struct view view = {.cluster = &cluster, .config = &config};
    struct arena arena;

    check_reported();
    replica_configure(&config);
    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    server_list(KIND_NODE, put_object, &truth);
    server_list(KIND_VOLUME, put_object, &truth);
    server_list(KIND_CLAIM, put_object, &truth);
    server_list(KIND_POD, put_object, &truth);
    for (size_t i = 0; i < world.server.pod_count; i++) {
        const struct sim_pod *pod = &world.server.pods[i];
        struct pod_object object;
        struct verdict verdict;
        bool is_hidden =
            (pod->own_fields & ~server_shown_fields(pod)) != 0; /* a replica may know */
        if (!pod_is_there(pod) || pod->node >= 0 || pod->is_denied || is_hidden ||
            is_beside_denied(pod))
            continue;
        const struct pod *record = cluster_find_pod(&cluster, SLICE("ns"), slice_of(pod->name));
        if (record == NULL || !cluster_describe_pod(record, &arena, &object))
            continue;
        if (is_refused_for_good(&view, record, &object, &arena))
            continue;
        policy_prefilter(&view, &object, &arena, &verdict);
        if (!has_node(&verdict, &arena))
            continue;
        if (!code_is_rejection(verdict.code))
            broken("nothing is in the way of %s (%s), and it is not bound", pod->name,
                   pod->uid + 24);
        else if (verdict.code == CODE_UNSCHEDULABLE && world.preempts && is_offered(pod, &verdict))
            broken("%s (%s) may preempt, and has not", pod->name, pod->uid + 24);
    }
    arena_dispose(&arena);
    cluster_dispose(&cluster);
}
