/* Causes: a volume that is not attached where the pod is: how many volumes of a driver a node can
 * have; and a pod that has its node, and whose volumes do not come there. */
#include <stdlib.h>

#include "extender/commands/why/why_internal.h"
#include "policy/volume.h"

enum { LIMIT_DRIVERS_MAX = 64 /* of one pod */, CSI_NODE_BYTES_MAX = 1 << 20 };

/* ---- how many volumes a node can have ---- */

/*
 * CSINode allocatable.count, counted as kube-scheduler's NodeVolumeLimits does: the volumes that
 * the node's pods use, and those that are only attached. Volumes with different names count as
 * different ones, whatever their handles are. Of a claim whose volume the input does not have, the
 * driver is not known (volume_driver_of).
 */

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

/* What to count of a claim; NULL: it is not the driver's. */
static const void *find_volume(const struct counting *counting, const struct claim *claim)
{
    const struct resource *volume = volume_of(counting->cluster, claim);

    if (!claim->exists ||
        !slice_equal(volume_driver_of(counting->cluster, claim), counting->driver))
        return NULL;
    return volume != NULL ? (const void *)volume : (const void *)claim;
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
        if (volume != NULL && slice_equal(volume_driver(volume), counting->driver))
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
    counting = arena_alloc(pod->shared->arena, sizeof *counting);
    if (counting == NULL)
        return NULL;
    *counting = (struct counting){.next = pod->shared->countings,
                                  .cluster = &pod->inquiry->cluster,
                                  .arena = pod->shared->arena,
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

    pod->has_failed = pod->has_failed || counting == NULL;
    if (counting == NULL || !counting->has_limits)
        return;
    const bool *full = find_full(pod, counting, &example);
    if (full == NULL)
        return;
    struct slice names = why_node_names(pod, full, true);
    if (why_add_nodes(pod, WHY_NARROWS, full, reference,
                      "no more volumes of driver %.*s can be attached to node %.*s (%.*s)",
                      SLICE_ARG(driver), SLICE_ARG(names), SLICE_ARG(example)))
        why_help(pod, "move pods with volumes of %.*s away from there, or add a node",
                 SLICE_ARG(driver));
}

void why_limit(struct why_pod *pod)
{
    struct slice seen[LIMIT_DRIVERS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < pod->claim_count && count < LIMIT_DRIVERS_MAX; i++) {
        const struct claim *claim = pod->claims[i].who.claim;
        struct slice driver = volume_driver_of(&pod->inquiry->cluster, claim);
        bool is_new = claim->exists && driver.len != 0;
        for (size_t j = 0; j < count; j++)
            is_new = is_new && !slice_equal(seen[j], driver);
        if (!is_new)
            continue;
        seen[count++] = driver;
        check_driver(pod, driver);
    }
}

/* ---- a pod on its node ---- */

/* The attachment of the claim's volume to the pod's node; NULL: none. */
static const struct who_attachment *find_own(const struct why_pod *pod,
                                             const struct why_claim *claim)
{
    for (size_t i = 0; i < claim->who.attachment_count; i++)
        if (slice_equal(claim->who.attachments[i].node, pod_node(pod->pod)))
            return &claim->who.attachments[i];
    return NULL;
}

/* ---- another node has the volume ---- */

/* Of one of those that wait for the claim: the node that has its volume; empty: none. */
static struct slice find_blocking_node(const struct why_pod *pod, const struct why_claim *claim)
{
    for (size_t i = 0; i < claim->who.waiter_count; i++)
        if (claim->who.waiters[i].pod == pod->pod)
            return claim->who.waiters[i].blocked_by;
    return SLICE("");
}

/* What would free the volume. A pod that has ended is no holder, and its kubelet may be late. */
static void help_by_pods(struct why_pod *pod, const struct why_claim *claim, struct slice node)
{
    for (size_t i = 0; i < claim->who.finished_count; i++)
        if (slice_equal(pod_node(claim->who.finished[i]), node)) {
            why_help(
                pod,
                "pod %.*s/%.*s there has ended: wait until its kubelet has unmounted the volume",
                POD_ARG(claim->who.finished[i]));
            break;
        }
    why_help_all(pod, who_freed_by(&claim->who, false, pod->texts));
}

void why_multi_attach(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice node = find_blocking_node(pod, claim);
    if (node.len == 0)
        return;
    why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
            "volume %.*s of claim %.*s/%.*s is for one node at a time, and node %.*s has it "
            "(Multi-Attach)",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(node));
    why_root(pod, (struct object_reference){.kind = KIND_NODE, .name = node});
    help_by_pods(pod, claim, node);
}

/* ---- the pod's own node ---- */

/* Volumes of one driver wait for the same. */
static void root_driver(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice driver = claim->volume == NULL ? SLICE("") : volume_driver(claim->volume);

    if (driver.len != 0)
        why_root(pod, (struct object_reference){.kind = KIND_CSI_DRIVER, .name = driver});
}

void why_attach_failed(struct why_pod *pod, const struct why_claim *claim)
{
    const struct who_attachment *own = find_own(pod, claim);
    if (own == NULL || own->attach_error.len == 0)
        return;
    char name[PROVISIONED_NAME_BYTES];
    const struct object_reference reference = {.kind = KIND_VOLUME_ATTACHMENT,
                                               .name = resource_name(own->record, name)};
    why_add(pod, WHY_BLOCKS, reference,
            "volume %.*s of claim %.*s/%.*s cannot be attached to node %.*s: %.*s",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(pod_node(pod->pod)),
            SLICE_ARG(own->attach_error));
    root_driver(pod, claim);
    why_help(pod, "driver %.*s says so, and tries again: its controller's log has more",
             SLICE_ARG(resource_attribute(own->record, VOLUME_ATTACHMENT_DRIVER)));
}

/* Whether the volume needs a VolumeAttachment: those of plug-ins without a CSI driver have none. */
static bool needs_attachment(const struct why_pod *pod, const struct why_claim *claim)
{
    return why_knows(pod, KIND_VOLUME_ATTACHMENT) && claim->volume != NULL &&
           who_is_attachable(&claim->who) && volume_driver(claim->volume).len != 0;
}

void why_not_attached(struct why_pod *pod, const struct why_claim *claim)
{
    const struct who_attachment *own = find_own(pod, claim);
    bool is_elsewhere = find_blocking_node(pod, claim).len != 0;
    if (!needs_attachment(pod, claim) || (own == NULL && is_elsewhere) ||
        (own != NULL && (own->is_attached || own->attach_error.len != 0)))
        return;
    if (own == NULL)
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "volume %.*s of claim %.*s/%.*s has no VolumeAttachment to node %.*s",
                SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(pod_node(pod->pod)));
    else
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "volume %.*s of claim %.*s/%.*s is being attached to node %.*s",
                SLICE_ARG(claim->who.volume), CLAIM_ARG(claim), SLICE_ARG(pod_node(pod->pod)));
    root_driver(pod, claim);
    if (!node_at(pod->pod->node)->exists && why_knows(pod, KIND_NODE))
        why_help(pod,
                 "node %.*s does not exist, so nothing attaches to it: kube-controller-manager "
                 "deletes the pod",
                 SLICE_ARG(pod_node(pod->pod)));
    else if (own == NULL)
        why_help(pod, "wait: kube-controller-manager makes it within seconds");
    else
        why_help(pod, "wait; if it stays so, is the external-attacher of driver %.*s running?",
                 SLICE_ARG(resource_attribute(own->record, VOLUME_ATTACHMENT_DRIVER)));
}
