/*
 * node_volume_limits: as Filter of kube-scheduler's NodeVolumeLimits (1.37), in its words. The rows
 * of the decision table (docs/policies.md); both are Unschedulable, because evicting pods can help:
 *
 *   the node lacks a driver with preventPodSchedulingIfMissing    the node
 *   the node would have more volumes of a driver than it can      the node
 *   otherwise                                                     Skip
 */
#include "policy/node_volume_limits.h"

#include "policy/policy.h"
#include "policy/volume.h"

#define TOO_MANY "node(s) exceed max volume count"

/* ---- what counts ---- */

/* kube-scheduler does not count the volumes of these two plug-ins, although drivers have replaced
 * them. */
static bool is_counted(struct slice plugin)
{
    return !slice_equal(plugin, SLICE("kubernetes.io/azure-file")) &&
           !slice_equal(plugin, SLICE("kubernetes.io/vsphere-volume"));
}

bool counted_volume_of(const struct cluster *cluster, const struct claim *claim, bool knows_volumes,
                       struct counted_volume *out)
{
    const struct resource *volume = claim->exists ? cluster_find_volume(cluster, claim) : NULL;
    struct slice plugin = SLICE("");

    if (!claim->exists || (volume == NULL && claim_has_volume(claim) && !knows_volumes))
        return false;
    *out = (struct counted_volume){.volume = volume == NULL ? (const void *)claim : volume};
    out->driver =
        volume == NULL ? volume_provisioner(cluster, claim, &plugin) : volume_driver(volume);
    if (volume != NULL && resource_attribute(volume, VOLUME_DRIVER).len == 0)
        plugin = resource_attribute(volume, VOLUME_IN_TREE);
    out->is_in_tree = plugin.len != 0;
    return out->driver.len != 0 && is_counted(plugin);
}

bool counted_volume_attached(const struct cluster *cluster, const struct resource *attachment,
                             struct counted_volume *out)
{
    const struct resource *volume = cluster_find_resource(
        cluster, KIND_VOLUME, resource_attribute(attachment, VOLUME_ATTACHMENT_VOLUME));

    *out =
        (struct counted_volume){.driver = resource_attribute(attachment, VOLUME_ATTACHMENT_DRIVER),
                                .volume = volume,
                                .is_only_attached = true};
    return volume != NULL && out->driver.len != 0 &&
           resource_attribute(volume, VOLUME_DRIVER).len != 0;
}

/* Whether a pod uses the volume already. As kube-scheduler counts, one that is only attached to the
 * node would be there twice. */
static bool has_volume(const struct counted_volume *volumes, size_t count,
                       const struct counted_volume *volume)
{
    for (size_t i = 0; i < count; i++)
        if (!volumes[i].is_only_attached && volumes[i].volume == volume->volume &&
            slice_equal(volumes[i].driver, volume->driver))
            return true;
    return false;
}

bool counted_volumes_find(const struct cluster *cluster, const struct placement *placement,
                          struct arena *arena, struct counted_volumes *out)
{
    struct counted_volume volume;

    out->count = 0;
    out->items = arena_alloc(arena, (placement->claim_count + 1) * sizeof *out->items);
    for (size_t i = 0; out->items != NULL && i < placement->claim_count; i++)
        if (counted_volume_of(cluster, placement->claims[i].claim, placement->knows_volumes,
                              &volume) &&
            !has_volume(out->items, out->count, &volume))
            out->items[out->count++] = volume;
    return out->items != NULL;
}

/* ---- a node ---- */

const struct driver_limit *placed_node_driver(const struct placed_node *node, struct slice driver)
{
    const struct driver_limit *drivers = node->drivers.items;

    for (size_t i = 0; i < node->drivers.count; i++)
        if (slice_equal(drivers[i].name, driver))
            return &drivers[i];
    return NULL;
}

struct node_volumes node_volumes_count(const struct counted_volumes *of_pod,
                                       const struct placed_node *node, struct slice driver)
{
    const struct driver_limit *of_node = placed_node_driver(node, driver);
    struct node_volumes out = {.limit = -1};

    if (of_node == NULL || !of_node->volumes.is_known)
        return out;
    out.limit = of_node->volumes.count;
    for (size_t i = 0; i < node->volume_count; i++)
        out.used += slice_equal(node->volumes[i].driver, driver) ? 1 : 0;
    for (size_t i = 0; i < of_pod->count; i++)
        if (slice_equal(of_pod->items[i].driver, driver) &&
            !has_volume(node->volumes, node->volume_count, &of_pod->items[i]))
            out.more++;
    return out;
}

/* ---- the policy ---- */

struct limits {
    const struct placement *placement;
    struct counted_volumes volumes;
    struct slice *missing; /* the reason of a node without the driver of that volume; empty: none */
};

static bool lacks_driver(const struct placed_node *node, const struct counted_volume *volume)
{
    if (node->node->csi_node == NULL)
        return !volume->is_in_tree;
    return node->knows_drivers && placed_node_driver(node, volume->driver) == NULL;
}

static struct slice check_node(void *context, const struct placed_node *node)
{
    const struct limits *limits = context;
    const struct counted_volume *volumes = limits->volumes.items;

    for (size_t i = 0; i < limits->volumes.count; i++)
        if (limits->missing[i].len != 0 && lacks_driver(node, &volumes[i]))
            return limits->missing[i];
    for (size_t i = 0; i < limits->volumes.count; i++) {
        struct node_volumes count = node_volumes_count(&limits->volumes, node, volumes[i].driver);
        if (node_volumes_are_too_many(&count))
            return SLICE(TOO_MANY);
    }
    return SLICE("");
}

/* False: no memory. */
static bool find_reasons(struct limits *limits, struct arena *arena)
{
    size_t count = limits->volumes.count;
    bool has_memory = true;

    limits->missing = arena_alloc(arena, (count + 1) * sizeof *limits->missing);
    for (size_t i = 0; limits->missing != NULL && i < count; i++) {
        struct slice driver = limits->volumes.items[i].driver;
        bool is_required = limits->placement->knows_csi_nodes &&
                           placement_driver(limits->placement, driver).is_required;
        limits->missing[i] =
            !is_required ? SLICE("")
                         : arena_printf(arena, "%.*s CSI driver is not installed on the node",
                                        SLICE_ARG(driver));
        has_memory = has_memory && limits->missing[i].ptr != NULL;
    }
    return has_memory && limits->missing != NULL;
}

static void prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out)
{
    struct limits limits = {.placement = view->placement};

    (void)pod;
    *out = (struct verdict){.code = CODE_SKIP};
    if (view->placement == NULL)
        return;
    if (!counted_volumes_find(view->cluster, view->placement, arena, &limits.volumes) ||
        !find_reasons(&limits, arena)) {
        verdict_out_of_memory(out);
        return;
    }
    placement_restrict(view->placement, check_node, &limits, arena, out);
    if (out->nodes != NULL)
        out->nodes->is_resolvable = true;
}

/* As of volume_binding. */
const struct policy node_volume_limits = {.name = "NodeVolumeLimits", .prefilter = prefilter};
