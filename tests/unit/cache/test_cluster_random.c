/*
 * Random sequences of events against a naive model: after each, every count and every holder is
 * counted again from what the model has. Seeded; a failure names its seed.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/cluster/reservation.h"

enum {
    SEEDS = 60,
    STEPS = 400,
    LIST_SEEDS = 10,
    LIST_STEPS = 100,
    PODS = 12,
    OTHERS = 500, /* pods that only make the end of a list come in many steps */
    CLAIMS = 5,
    NODES = 4,
    POD_CLAIMS = 3
};

struct model_pod {
    bool exists;
    bool is_ghost; /* it is gone, and a list's end has not come to it yet: so it still counts */
    int uid, node, phase; /* node -1: none; phase 0 Running, 1 Succeeded */
    int claims[POD_CLAIMS], claim_count;
    unsigned version;
};

struct model_claim {
    bool exists, is_rwop;
    int uid;
    unsigned version;
};

struct world {
    struct cluster cluster;
    struct model_pod pods[PODS];
    struct model_claim claims[CLAIMS];
    bool nodes[NODES];
    bool others[OTHERS];
    unsigned version; /* the last one handed out, as etcd would */
    uint64_t listed;  /* the version of a list whose end has begun; 0: there is none */
    int uid;
    uint64_t random;
};

static unsigned roll(struct world *world, unsigned sides)
{
    world->random = world->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(world->random >> 33) % sides;
}

struct texts {
    char name[16], uid[16], version[16], node[16], claims[POD_CLAIMS][16];
    struct claim_reference references[POD_CLAIMS];
};

static struct meta put_meta(struct texts *t, char kind, int index, int uid, unsigned version)
{
    (void)snprintf(t->name, sizeof t->name, "%c%d", kind, index);
    (void)snprintf(t->uid, sizeof t->uid, "uid-%d", uid);
    (void)snprintf(t->version, sizeof t->version, "%u", version);
    return (struct meta){.ns = kind == 'n' ? (struct slice){NULL, 0} : SLICE("default"),
                         .name = slice_of(t->name),
                         .uid = slice_of(t->uid),
                         .resource_version = slice_of(t->version)};
}

static void apply(struct world *world, const struct object *object)
{
    struct error err = {0};
    cr_assert_eq(cluster_apply(&world->cluster, object, &err), 0);
}

static void take_pod(struct world *world, const struct object *object)
{
    struct error err = {0};

    if (world->listed == 0)
        apply(world, object);
    else /* only GETs report pods while a list of them ends */
        cr_assert_eq(cluster_learn(&world->cluster, object, world->listed, 0, &err), 0);
}

static void send_pod(struct world *world, int index, const struct model_pod *pod)
{
    struct texts t;
    struct object object = {.kind = KIND_POD};

    object.pod.meta = put_meta(&t, 'p', index, pod->uid, pod->version);
    if (pod->node >= 0) {
        (void)snprintf(t.node, sizeof t.node, "n%d", pod->node);
        object.pod.node = slice_of(t.node);
    } else if (pod->version % 2 == 0)
        object.pod.nominated_node = SLICE("n0"); /* its uses are linked, and do not count */
    object.pod.phase = pod->phase == 0 ? SLICE("Running") : SLICE("Succeeded");
    for (int i = 0; i < pod->claim_count; i++) {
        (void)snprintf(t.claims[i], sizeof t.claims[i], "c%d", pod->claims[i]);
        t.references[i] = (struct claim_reference){.name = slice_of(t.claims[i])};
    }
    object.pod.claims = t.references;
    object.pod.claim_count = (size_t)pod->claim_count;
    take_pod(world, &object);
}

static void change_pod(struct world *world)
{
    int index = (int)roll(world, PODS);
    struct model_pod *pod = &world->pods[index];

    if (!pod->exists || pod->is_ghost) {
        *pod = (struct model_pod){.exists = true, .uid = ++world->uid, .node = -1};
        for (int c = 0; c < CLAIMS && pod->claim_count < POD_CLAIMS; c++)
            if (roll(world, 2) == 0)
                pod->claims[pod->claim_count++] = c;
    }
    struct model_pod older = *pod;
    pod->version = ++world->version;
    if (pod->node < 0 && roll(world, 2) == 0)
        pod->node = (int)roll(world, NODES);
    if (pod->node >= 0 && roll(world, 4) == 0)
        pod->phase = 1;
    send_pod(world, index, pod);
    if (older.version != 0 && roll(world, 3) == 0) /* what was before comes once more, and late */
        send_pod(world, index, &older);
}

static void delete_pod(struct world *world)
{
    int index = (int)roll(world, PODS);
    struct texts t;
    struct object object = {.kind = KIND_POD};

    object.meta = put_meta(&t, 'p', index, world->pods[index].uid, ++world->version);
    if (world->listed == 0)
        cluster_delete(&world->cluster, &object);
    else
        cluster_learn_gone(
            &world->cluster,
            &(struct object_reference){KIND_POD, object.meta.ns, object.meta.name, object.meta.uid},
            1);
    world->pods[index].exists = false;
}

static struct pod *find_pod(struct world *world, char kind, int index)
{
    char name[16];

    (void)snprintf(name, sizeof name, "%c%d", kind, index);
    return cluster_find_pod(&world->cluster, SLICE("default"), slice_of(name));
}

static void bind_pod(struct world *world)
{
    int index = (int)roll(world, PODS);
    struct model_pod *pod = &world->pods[index];
    struct error err = {0};
    char node[16];

    if (!pod->exists || pod->node >= 0)
        return;
    pod->node = (int)roll(world, NODES);
    (void)snprintf(node, sizeof node, "n%d", pod->node);
    cr_assert_eq(cluster_assign(&world->cluster, find_pod(world, 'p', index), slice_of(node), &err),
                 0);
}

static void reserve(struct world *world)
{
    const struct pod *pod = find_pod(world, 'p', (int)roll(world, PODS));
    struct error err = {0};
    struct arena arena;
    struct pod_object object;

    if (pod == NULL)
        return;
    arena_init(&arena, 1 << 16);
    cr_assert(cluster_describe_pod(pod, &arena, &object));
    cr_assert_eq(reservation_take(&world->cluster, &object, NULL, roll(world, 2) == 0, 0, &err), 0);
    arena_dispose(&arena);
}

static void change_claim(struct world *world)
{
    int index = (int)roll(world, CLAIMS);
    struct model_claim *claim = &world->claims[index];
    struct texts t;
    struct object object = {.kind = KIND_CLAIM};

    if (!claim->exists || roll(world, 8) == 0) /* recreated: its deletion was not seen */
        *claim = (struct model_claim){.exists = true, .uid = ++world->uid};
    claim->is_rwop = roll(world, 2) == 0;
    claim->version = ++world->version;
    object.claim.meta = put_meta(&t, 'c', index, claim->uid, claim->version);
    object.claim.is_rwop = claim->is_rwop;
    apply(world, &object);
}

static void delete_claim(struct world *world)
{
    int index = (int)roll(world, CLAIMS);
    struct texts t;
    struct object object = {.kind = KIND_CLAIM};

    object.meta = put_meta(&t, 'c', index, world->claims[index].uid, ++world->version);
    cluster_delete(&world->cluster, &object);
    world->claims[index].exists = false;
}

static void change_node(struct world *world)
{
    int index = (int)roll(world, NODES);
    struct texts t;
    struct object object = {.kind = KIND_NODE};

    object.meta = put_meta(&t, 'n', index, 0, ++world->version);
    world->nodes[index] = !world->nodes[index];
    if (world->nodes[index])
        apply(world, &object);
    else
        cluster_delete(&world->cluster, &object);
}

static unsigned count(const struct world *world, int claim, int node)
{
    unsigned total = 0;

    for (int p = 0; p < PODS; p++) {
        const struct model_pod *pod = &world->pods[p];
        if (!pod->exists || pod->node < 0 || pod->phase != 0 || (node >= 0 && pod->node != node))
            continue;
        for (int i = 0; i < pod->claim_count; i++)
            total += pod->claims[i] == claim;
    }
    return total;
}

/* Counts that are stored: those of claims that two or more pods hold. */
static unsigned count_shared(const struct world *world)
{
    unsigned total = 0;

    for (int c = 0; c < CLAIMS; c++)
        for (int n = 0; count(world, c, -1) > 1 && n < NODES; n++)
            total += count(world, c, n) != 0;
    return total;
}

static unsigned count_uses(const struct claim *claim)
{
    unsigned total = 0;

    for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next)) {
        cr_assert_eq(claim_at(use->claim), claim);
        total += pod_holds(use_pod(use));
    }
    return total;
}

static void check(const struct world *world, unsigned seed, unsigned step)
{
    size_t violations = 0, pods = 0, claims = 0;

    for (int c = 0; c < CLAIMS; c++) {
        char name[16];
        (void)snprintf(name, sizeof name, "c%d", c);
        const struct claim *claim =
            cluster_find_claim(&world->cluster, SLICE("default"), slice_of(name));
        cr_assert_eq(claim != NULL, world->claims[c].exists, "seed %u step %u", seed, step);
        if (claim == NULL)
            continue;
        claims++;
        violations += claim->is_rwop && count(world, c, -1) > 1;
        cr_assert_eq(claim->refs, count(world, c, -1), "seed %u step %u", seed, step);
        cr_assert_eq(count_uses(claim), claim->refs, "seed %u step %u", seed, step);
        for (int n = 0; n < NODES; n++) {
            (void)snprintf(name, sizeof name, "n%d", n);
            const struct node *node = cluster_find_node(&world->cluster, slice_of(name));
            cr_assert_eq(node != NULL, world->nodes[n]);
            if (node != NULL)
                cr_assert_eq(refcount_get(&world->cluster.refs, node, claim), count(world, c, n),
                             "seed %u step %u", seed, step);
        }
    }
    cr_assert_eq(world->cluster.refs.count, count_shared(world), "seed %u step %u", seed, step);
    for (int p = 0; p < PODS; p++)
        pods += world->pods[p].exists;
    for (int o = 0; o < OTHERS; o++)
        pods += world->others[o];
    cr_assert_eq(world->cluster.violations, violations, "seed %u step %u", seed, step);
    cr_assert_eq(world->cluster.counts[KIND_POD], pods, "seed %u step %u", seed, step);
    cr_assert_eq(world->cluster.counts[KIND_CLAIM], claims, "seed %u step %u", seed, step);
}

Test(cluster_random, counts_are_exact_after_any_sequence_of_events)
{
    static void (*const events[])(struct world *) = {change_pod,   change_pod,   change_pod,
                                                     change_pod,   delete_pod,   change_claim,
                                                     change_claim, delete_claim, change_node};
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct world *world = calloc(1, sizeof *world);
        cr_assert_not_null(world);
        world->random = seed;
        cluster_init(&world->cluster);
        for (unsigned step = 0; step < STEPS; step++) {
            events[roll(world, sizeof events / sizeof *events)](world);
            check(world, seed, step);
        }
        cluster_dispose(&world->cluster);
        free(world);
    }
}

/* ---- lists ---- */

static void put_others(struct world *world)
{
    for (int o = 0; o < OTHERS; o++) {
        struct texts t;
        struct object object = {.kind = KIND_POD};
        object.meta = put_meta(&t, 'o', o, ++world->uid, ++world->version);
        apply(world, &object);
        world->others[o] = true;
    }
}

/* What the cluster does not have any more is gone, if it should. */
static void look_for_ghosts(struct world *world)
{
    for (int p = 0; p < PODS; p++)
        if (world->pods[p].exists && world->pods[p].is_ghost && find_pod(world, 'p', p) == NULL)
            world->pods[p].exists = false;
    for (int o = 0; o < OTHERS; o++)
        world->others[o] = world->others[o] && find_pod(world, 'o', o) != NULL;
}

static bool is_any_ghost(const struct world *world)
{
    bool is_any = false;

    for (int p = 0; p < PODS; p++)
        is_any = is_any || (world->pods[p].exists && world->pods[p].is_ghost);
    for (int o = 0; o < OTHERS; o++)
        is_any = is_any || world->others[o];
    return is_any;
}

static void list_pods(struct world *world, unsigned seed)
{
    static void (*const meanwhile[])(struct world *) = {
        change_pod, delete_pod, bind_pod, reserve, change_claim, delete_claim, change_node};
    unsigned steps = 0;

    put_others(world);
    for (int p = 0; p < PODS; p++)
        world->pods[p].is_ghost = roll(world, 3) == 0;
    uint64_t version = ++world->version;
    cluster_list_begin(&world->cluster, KIND_POD, false, 0);
    for (int p = 0; p < PODS; p++)
        if (world->pods[p].exists && !world->pods[p].is_ghost)
            send_pod(world, p, &world->pods[p]);
    check(world, seed, 0);
    world->listed = version;
    while (cluster_list_end(&world->cluster, KIND_POD, version, NULL)) {
        look_for_ghosts(world);
        check(world, seed, ++steps);
        meanwhile[roll(world, sizeof meanwhile / sizeof *meanwhile)](world);
        look_for_ghosts(world);
        check(world, seed, steps);
    }
    cr_assert(steps > 3 && !is_any_ghost(world), "seed %u", seed);
    world->listed = 0;
    for (int p = 0; p < PODS; p++)
        world->pods[p].is_ghost = false;
}

Test(cluster_random, counts_are_exact_while_the_end_of_a_list_comes_in_steps)
{
    static void (*const events[])(struct world *) = {change_pod,   change_pod,   bind_pod,
                                                     delete_pod,   reserve,      change_claim,
                                                     change_claim, delete_claim, change_node};
    for (unsigned seed = 1; seed <= LIST_SEEDS; seed++) {
        struct world *world = calloc(1, sizeof *world);
        cr_assert_not_null(world);
        world->random = seed;
        cluster_init(&world->cluster);
        for (unsigned step = 0; step < LIST_STEPS; step++) {
            events[roll(world, sizeof events / sizeof *events)](world);
            if (roll(world, 10) == 0)
                list_pods(world, seed);
            check(world, seed, step);
        }
        cluster_dispose(&world->cluster);
        free(world);
    }
}
