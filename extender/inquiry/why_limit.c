/* Cause: how many volumes of a driver a node can have (CSINode allocatable.count), counted as
 * kube-scheduler's NodeVolumeLimits does: those that the node's pods use, and those that are only
 * attached. Volumes with different names count as different ones, whatever their handles are. */
#include <stdlib.h>

#include "cache/store/uthash_config.h"
#include "extender/inquiry/why_internal.h"
#include "policy/bound_volume.h"

enum { LIMIT_DRIVERS_MAX = 64 /* of one pod */, CSI_NODE_BYTES_MAX = 1 << 20 };

/* A volume on a node. */
struct on_node {
    const struct node *node;
    const void *volume; /* its record; of an unbound claim, the claim's */
};

/* What the nodes have of one driver; for all pods of the answer. */
struct counting {
    struct counting *next;
    const struct cluster *cluster;
    struct arena *arena;
    struct slice driver;
    struct on_node *items; /* by node, then by volume */
    size_t count;
    int64_t *limits; /* as find_limit, by the nodes of why_shared */
    bool has_limits;
    bool has_no_memory;
};

static int compare(const void *a, const void *b)
{
    const struct on_node *x = a, *y = b;
    uintptr_t left = (uintptr_t)x->node, right = (uintptr_t)y->node;

    if (left == right) {
        left = (uintptr_t)x->volume;
        right = (uintptr_t)y->volume;
    }
    return (left > right) - (left < right);
}

/* The driver of a claim, and what to count of it; NULL: it is not the driver's. */
static const void *find_volume(const struct counting *counting, const struct claim *claim)
{
    const struct cluster *cluster = counting->cluster;
    const struct resource *volume = claim->exists ? bound_volume_find(cluster, claim) : NULL;
    struct slice plugin;

    if (!claim->exists)
        return NULL;
    if (volume != NULL)
        return slice_equal(bound_volume_driver(volume), counting->driver) ? volume : NULL;
    return slice_equal(bound_volume_provisioner(cluster, claim, &plugin), counting->driver)
               ? (const void *)claim
               : NULL;
}

static void count_one(struct counting *counting, const struct node *node, const void *volume)
{
    struct on_node *grown =
        arena_grow(counting->arena, counting->items, counting->count, sizeof *grown);

    if (grown == NULL) {
        counting->has_no_memory = true;
        return;
    }
    grown[counting->count++] = (struct on_node){node, volume};
    counting->items = grown;
}

static void count_used(struct counting *counting)
{
    struct table_walk walk = {.at = 0};

    for (const struct claim *claim;
         (claim = cluster_next_claim(counting->cluster, &walk)) != NULL;) {
        const void *volume = claim->refs == 0 ? NULL : find_volume(counting, claim);
        for (const struct use *use = use_at(claim->uses); volume != NULL && use != NULL;
             use = use_at(use->next))
            if (pod_holds(use_pod(use)))
                count_one(counting, node_at(use_pod(use)->node), volume);
    }
}

static void count_attached(struct counting *counting)
{
    const struct cluster *cluster = counting->cluster;
    struct table_walk walk = {.at = 0};

    for (const struct resource *attachment;
         (attachment = cluster_next_resource(cluster, KIND_VOLUME_ATTACHMENT, &walk)) != NULL;) {
        const struct resource *volume =
            cluster_find_resource(cluster, KIND_VOLUME, who_volume_of(attachment));
        if (volume != NULL && slice_equal(bound_volume_driver(volume), counting->driver))
            count_one(
                counting,
                cluster_find_node(cluster, resource_attribute(attachment, VOLUME_ATTACHMENT_NODE)),
                volume);
    }
}

/* Sorts them, and counts each volume of a node once. */
static void finish(struct counting *counting)
{
    size_t kept = 0;

    if (counting->count != 0)
        qsort(counting->items, counting->count, sizeof *counting->items, compare);
    for (size_t i = 0; i < counting->count; i++)
        if (kept == 0 || compare(&counting->items[i], &counting->items[kept - 1]) != 0)
            counting->items[kept++] = counting->items[i];
    counting->count = kept;
}

/* How many volumes the node has, and which of the pod's are not among them. */
static void count_on(const struct why_pod *pod, const struct counting *counting,
                     const struct node *node, size_t *used, size_t *more)
{
    const struct on_node first = {node, NULL};
    size_t low = 0, high = counting->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&counting->items[middle], &first) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*used = 0; low + *used < counting->count && counting->items[low + *used].node == node;)
        (*used)++;
    *more = 0;
    for (size_t i = 0; i < pod->claim_count; i++) {
        const void *volume = find_volume(counting, pod->claims[i].who.claim);
        const struct on_node key = {node, volume};
        if (volume != NULL && (*used == 0 || bsearch(&key, counting->items + low, *used, sizeof key,
                                                     compare) == NULL))
            (*more)++;
    }
}

/* The driver's limit on the node; negative: none, or it is not known. */
static int64_t find_limit(const struct inquiry *inquiry, struct slice driver, struct slice node,
                          struct arena *arena)
{
    struct slice text = inquiry_find_details(inquiry, KIND_CSI_NODE, SLICE(""), node);
    struct csi_node_details details;

    arena_reset(arena);
    if (text.ptr == NULL || !csi_node_details_read(text, arena, &details))
        return -1;
    const struct driver_limit *drivers = details.drivers.items;
    for (size_t i = 0; i < details.drivers.count; i++)
        if (slice_equal(drivers[i].name, driver))
            return drivers[i].volumes.is_known ? drivers[i].volumes.count : -1;
    return -1;
}

static void read_limits(struct counting *counting, const struct why_pod *pod)
{
    const struct why_shared *shared = pod->shared;
    struct arena arena;

    counting->limits =
        arena_alloc(counting->arena, (shared->node_count + 1) * sizeof *counting->limits);
    counting->has_no_memory = counting->limits == NULL;
    arena_init(&arena, CSI_NODE_BYTES_MAX);
    for (size_t n = 0; counting->limits != NULL && n < shared->node_count; n++) {
        counting->limits[n] =
            find_limit(pod->inquiry, counting->driver, shared->nodes[n].name, &arena);
        counting->has_limits = counting->has_limits || counting->limits[n] >= 0;
    }
    arena_dispose(&arena);
}

/* Counted once for all pods. NULL: no memory. */
static const struct counting *find_counting(struct why_pod *pod, struct slice driver)
{
    struct counting *counting = pod->shared->countings;

    while (counting != NULL && !slice_equal(counting->driver, driver))
        counting = counting->next;
    if (counting != NULL)
        return counting;
    counting = arena_alloc(&pod->shared->arena, sizeof *counting);
    if (counting == NULL)
        return NULL;
    *counting = (struct counting){.next = pod->shared->countings,
                                  .cluster = &pod->inquiry->cluster,
                                  .arena = &pod->shared->arena,
                                  .driver = driver};
    read_limits(counting, pod);
    if (counting->has_limits) {
        count_used(counting);
        count_attached(counting);
        finish(counting);
    }
    pod->shared->countings = counting;
    return counting->has_no_memory ? NULL : counting;
}

/* Flags the nodes that are full, of those that are left. *example: the first one in words. NULL:
 * no memory. */
static bool *find_full(struct why_pod *pod, const struct counting *counting, struct slice *example)
{
    bool *full = why_flags(pod);

    for (size_t n = 0; full != NULL && n < pod->node_count; n++) {
        int64_t limit = counting->limits[n];
        size_t used, more;
        if (limit < 0 || pod->nodes[n].is_out)
            continue;
        count_on(pod, counting, pod->nodes[n].node, &used, &more);
        full[n] = more != 0 && (int64_t)(used + more) > limit;
        if (full[n] && example->len == 0)
            *example = arena_printf(pod->arena, "node %.*s has %zu of %lld",
                                    SLICE_ARG(pod->nodes[n].name), used, (long long)limit);
    }
    return full;
}

/* The pod has no node, so its nodes are those that all pods share. */
static void check_driver(struct why_pod *pod, struct slice driver)
{
    const struct object_reference reference = {.kind = KIND_CSI_DRIVER, .name = driver};
    const struct counting *counting = find_counting(pod, driver);
    struct slice example = SLICE("");
    size_t before = json_array_size(pod->causes);

    pod->rc |= counting == NULL ? -1 : 0;
    if (counting == NULL || !counting->has_limits)
        return;
    const bool *full = find_full(pod, counting, &example);
    if (full == NULL)
        return;
    struct slice names = why_node_names(pod, full, true);
    why_add_nodes(pod, WHY_NARROWS, full, &reference,
                  json_sprintf("no more volumes of driver %.*s can be attached to node %.*s (%.*s)",
                               SLICE_ARG(driver), SLICE_ARG(names), SLICE_ARG(example)));
    if (json_array_size(pod->causes) != before)
        why_help(pod, json_sprintf("move pods with volumes of %.*s away from there, or add a node",
                                   SLICE_ARG(driver)));
}

/* The driver of the pod's claim; empty: none that is known. */
static struct slice driver_of(const struct why_pod *pod, const struct why_claim *claim)
{
    struct slice plugin;

    if (claim->volume != NULL)
        return bound_volume_driver(claim->volume);
    return claim->who.claim->exists && !claim->is_bound
               ? bound_volume_provisioner(&pod->inquiry->cluster, claim->who.claim, &plugin)
               : SLICE("");
}

void why_limit(struct why_pod *pod)
{
    struct slice seen[LIMIT_DRIVERS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < pod->claim_count && count < LIMIT_DRIVERS_MAX; i++) {
        struct slice driver = driver_of(pod, &pod->claims[i]);
        bool is_new = driver.len != 0;
        for (size_t j = 0; j < count; j++)
            is_new = is_new && !slice_equal(seen[j], driver);
        if (!is_new)
            continue;
        seen[count++] = driver;
        check_driver(pod, driver);
    }
}
