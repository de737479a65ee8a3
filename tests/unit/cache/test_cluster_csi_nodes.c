/* Nodes and CSINodes against a plain twin: two tables that hold what each object says. After any
 * sequence of events, the cluster's records and counts must be those that follow from the twin. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "cache/cluster/cluster.h"

enum { SEEDS = 100, STEPS = 300, NAMES = 5, DRIVERS = 3, UIDS = 4, LATE = 4 };

/* The first is none, the last is stored as a name. */
static const char *const uids[UIDS] = {"", "6d1a0d3e-3f0b-4a39-8a5c-000000000001",
                                       "6d1a0d3e-3f0b-4a39-8a5c-000000000002", "u3"};

/* A Node or a CSINode. */
struct item {
    bool exists;
    unsigned uid, version; /* of a CSINode: its owner's UID; version 0: none */
    unsigned drivers;      /* bit i: 'a' + i */
};

static const enum kind kinds[] = {KIND_NODE, KIND_CSI_NODE};

struct twin {
    struct item items[2][NAMES]; /* by the kinds above */
    bool has_pod[NAMES];         /* on that node */
    unsigned version;
    uint64_t random;
};

static struct cluster cluster;

static unsigned roll(struct twin *twin, unsigned sides)
{
    twin->random = twin->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(twin->random >> 33) % sides;
}

static const char *drivers_text(unsigned drivers, char text[2 * DRIVERS])
{
    size_t len = 0;

    for (unsigned d = 0; d < DRIVERS; d++) {
        if ((drivers >> d & 1) == 0)
            continue;
        if (len != 0)
            text[len++] = ',';
        text[len++] = (char)('a' + d);
    }
    text[len] = '\0';
    return text;
}

/* The object that the item says; its texts are static. */
static struct object object_of(unsigned which, unsigned name, const struct item *item)
{
    static char names[NAMES][4], version[16], drivers[2 * DRIVERS];
    struct object object = {.kind = kinds[which]};

    (void)snprintf(names[name], sizeof names[name], "n%u", name);
    (void)snprintf(version, sizeof version, "%u", item->version);
    object.meta = (struct meta){.name = slice_of(names[name]),
                                .resource_version = slice_of(item->version == 0 ? "" : version)};
    if (kinds[which] == KIND_NODE) {
        object.meta.uid = slice_of(uids[item->uid]);
    } else {
        object.resource.attributes[CSI_NODE_OWNER] = slice_of(uids[item->uid]);
        object.resource.attributes[CSI_NODE_DRIVERS] =
            slice_of(drivers_text(item->drivers, drivers));
    }
    return object;
}

static void apply(const struct object *object)
{
    struct error err = {0};
    cr_assert_eq(cluster_apply(&cluster, object, &err), 0, "%s", err.message);
}

/* ---- events ---- */

/* One that is new, late, or without a version. */
static struct item random_item(struct twin *twin)
{
    struct item item = {.exists = true, .version = ++twin->version};

    item.uid = roll(twin, UIDS);
    item.drivers = roll(twin, 1 << DRIVERS);
    if (roll(twin, 3) == 0)
        item.version -= roll(twin, LATE) % item.version;
    if (roll(twin, 12) == 0)
        item.version = 0;
    return item;
}

static bool is_stale(const struct item *known, const struct item *item)
{
    return known->exists && item->version != 0 && item->version < known->version;
}

static void put(struct twin *twin, unsigned which, unsigned name, bool overrides)
{
    struct item item = random_item(twin), *known = &twin->items[which][name];
    struct object object = object_of(which, name, &item);

    apply(&object);
    if (overrides || !is_stale(known, &item))
        *known = item;
}

static void put_any(struct twin *twin)
{
    put(twin, roll(twin, 2), roll(twin, NAMES), false);
}

static void delete_any(struct twin *twin)
{
    unsigned which = roll(twin, 2), name = roll(twin, NAMES);
    struct item item = random_item(twin), *known = &twin->items[which][name];
    struct object object = object_of(which, name, &item);

    cluster_delete(&cluster, &object);
    if (!is_stale(known, &item))
        *known = (struct item){0};
}

/* A pod comes to a node, or goes: the node's record stays as long as a pod names it. */
static void change_pod_on(struct twin *twin, unsigned i)
{
    struct claim_reference claim = {.name = SLICE("data")};
    struct object node = object_of(0, i, &(struct item){0}), pod = {.kind = KIND_POD};

    pod.pod = (struct pod_object){
        .meta = {.ns = SLICE("default"), .name = node.meta.name, .uid = node.meta.name},
        .node = node.meta.name,
        .claims = &claim,
        .claim_count = 1};
    if (twin->has_pod[i])
        cluster_delete(&cluster, &pod);
    else
        apply(&pod);
    twin->has_pod[i] = !twin->has_pod[i];
}

static void change_pod(struct twin *twin)
{
    change_pod_on(twin, roll(twin, NAMES));
}

/* A list of Nodes or of CSINodes, which leaves some out and has some that cannot be decoded. The
 * other kind changes while it is read. */
static void list_any(struct twin *twin)
{
    unsigned which = roll(twin, 2);
    bool overrides = roll(twin, 4) == 0, is_named[NAMES] = {false};
    unsigned version = roll(twin, 6) == 0 ? 0 : twin->version - roll(twin, twin->version + 1) % 3;

    cluster_list_begin(&cluster, kinds[which], overrides, 0);
    for (unsigned i = 0; i < NAMES; i++) {
        unsigned how = roll(twin, 4);
        struct object object = object_of(which, i, &(struct item){0});
        is_named[i] = how < 3;
        if (how == 0)
            cluster_list_keep(&cluster, kinds[which], SLICE(""), object.meta.name);
        else if (how < 3)
            put(twin, which, i, overrides);
        put(twin, 1 - which, roll(twin, NAMES), false);
    }
    while (cluster_list_end(&cluster, kinds[which], version, NULL))
        continue;
    for (unsigned i = 0; i < NAMES; i++) {
        struct item *item = &twin->items[which][i];
        if (!is_named[i] && (version == 0 || overrides || item->version <= version))
            *item = (struct item){0};
    }
}

/* ---- what follows from the twin ---- */

static bool has_own_csi_node(const struct item *node, const struct item *csi_node)
{
    return node->exists && csi_node->exists &&
           (csi_node->uid == 0 || node->uid == 0 || csi_node->uid == node->uid);
}

static bool is_text(const struct name *name, unsigned drivers)
{
    char text[2 * DRIVERS];
    return slice_equal(name_slice(name), slice_of(drivers_text(drivers, text)));
}

static bool is_uid(const struct uid *uid, unsigned expected)
{
    char text[UID_TEXT_BYTES];
    return slice_equal(uid_text(uid, text), slice_of(uids[expected]));
}

static bool are_records_right(const struct item *node, const struct item *csi_node, unsigned name)
{
    struct slice text = object_of(0, name, node).meta.name;
    const struct node *known = cluster_find_node(&cluster, text);
    const struct csi_node *known_csi_node = cluster_find_csi_node(&cluster, text);
    bool is_own = has_own_csi_node(node, csi_node);

    if ((known != NULL) != node->exists || (known_csi_node != NULL) != csi_node->exists)
        return false;
    bool is_right = known == NULL || (known->has_csi_node == is_own &&
                                      is_text(known->drivers, is_own ? csi_node->drivers : 0) &&
                                      is_uid(&known->uid, node->uid));
    return is_right &&
           (known_csi_node == NULL || (is_text(known_csi_node->drivers, csi_node->drivers) &&
                                       is_uid(&known_csi_node->owner, csi_node->uid)));
}

static void check(const struct twin *twin, unsigned seed, unsigned step)
{
    size_t counts[2] = {0}, records = 0, bare = 0, with[DRIVERS] = {0}, drivers = 0;

    for (unsigned i = 0; i < NAMES; i++) {
        const struct item *node = &twin->items[0][i], *csi_node = &twin->items[1][i];
        bool is_own = has_own_csi_node(node, csi_node);
        cr_assert(are_records_right(node, csi_node, i), "seed %u step %u", seed, step);
        counts[0] += node->exists;
        counts[1] += csi_node->exists;
        records += node->exists || csi_node->exists || twin->has_pod[i];
        bare += node->exists && !is_own;
        for (unsigned d = 0; d < DRIVERS; d++)
            with[d] += is_own && (csi_node->drivers >> d & 1) != 0;
    }
    for (unsigned d = 0; d < DRIVERS; d++) {
        struct slice driver = {&"abc"[d], 1};
        cr_assert_eq(cluster_count_driver_nodes(&cluster, driver), with[d], "seed %u step %u", seed,
                     step);
        drivers += with[d] != 0;
    }
    cr_assert_eq(cluster.counts[KIND_NODE], counts[0], "seed %u step %u", seed, step);
    cr_assert_eq(cluster.counts[KIND_CSI_NODE], counts[1], "seed %u step %u", seed, step);
    cr_assert_eq(cluster.nodes.count, records, "seed %u step %u", seed, step);
    cr_assert_eq(cluster.bare_nodes, bare, "seed %u step %u", seed, step);
    cr_assert_eq(cluster.drivers.count, drivers, "seed %u step %u", seed, step);
}

/* Removes all in a random order: nothing of it may be left. */
static void remove_all(struct twin *twin, unsigned seed)
{
    unsigned first = roll(twin, 2);

    for (unsigned i = 0; i < NAMES; i++)
        for (unsigned k = 0; k < 2; k++) {
            struct object object = object_of((first + k) % 2, i, &(struct item){0});
            cluster_delete(&cluster, &object);
            twin->items[(first + k) % 2][i] = (struct item){0};
            check(twin, seed, STEPS);
        }
    for (unsigned i = 0; i < NAMES; i++)
        if (twin->has_pod[i])
            change_pod_on(twin, i);
    check(twin, seed, STEPS);
    cr_assert_eq(cluster.names.table.count, 0, "seed %u: %u names", seed,
                 cluster.names.table.count);
}

Test(cluster_csi_nodes, are_as_a_plain_twin_after_any_sequence_of_events)
{
    static void (*const events[])(struct twin *) = {put_any,    put_any,    put_any, put_any,
                                                    delete_any, change_pod, list_any};
    cluster_init(&cluster);
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct twin twin = {.random = seed};
        for (unsigned step = 0; step < STEPS; step++) {
            events[roll(&twin, sizeof events / sizeof *events)](&twin);
            check(&twin, seed, step);
        }
        if (seed % 2 == 0)
            remove_all(&twin, seed);
        cluster_dispose(&cluster); /* of some with records */
    }
}
