#include "policy/placement.h"

#include <stdlib.h>

#include "cache/objects/label_selector.h"

/* The reasons beside the nodes of the placement. */
struct checked {
    const struct placement *placement;
    struct slice *reasons;
};

static int compare_node(const void *name, const void *node)
{
    return slice_compare(*(const struct slice *)name, ((const struct placed_node *)node)->name);
}

static void check_nodes(const void *context, const struct slice *names, size_t count,
                        struct arena *arena, struct slice *reasons)
{
    const struct checked *checked = context;
    const struct placed_node *nodes = checked->placement->nodes;

    (void)arena;
    for (size_t i = 0; i < count; i++) {
        const struct placed_node *node =
            bsearch(&names[i], nodes, checked->placement->node_count, sizeof *nodes, compare_node);
        reasons[i] = node == NULL ? SLICE("") : checked->reasons[node - nodes];
    }
}

void placement_restrict(const struct placement *placement, placement_check *check, void *context,
                        struct arena *arena, struct verdict *out)
{
    struct node_filter *filter = arena_alloc(arena, sizeof *filter);
    struct checked *checked = arena_alloc(arena, sizeof *checked);
    struct slice *reasons = arena_alloc(arena, (placement->node_count + 1) * sizeof *reasons);

    if (filter == NULL || checked == NULL || reasons == NULL) {
        verdict_out_of_memory(out);
        return;
    }
    *checked = (struct checked){placement, reasons};
    *filter = (struct node_filter){.check = check_nodes, .context = checked};
    for (size_t i = 0; i < placement->node_count; i++) {
        reasons[i] = check(context, &placement->nodes[i]);
        if (reasons[i].len != 0)
            out->nodes = filter;
    }
}

struct csi_driver_details placement_driver(const struct placement *placement, struct slice driver)
{
    for (size_t i = 0; i < placement->driver_count; i++)
        if (slice_equal(placement->drivers[i].name, driver))
            return placement->drivers[i].details;
    return (struct csi_driver_details){.is_required = false};
}

static bool has_labels(const struct pull_items *wanted, struct slice labels)
{
    const struct topology_label *items = wanted->items;

    for (size_t i = 0; i < wanted->count; i++) {
        struct slice value;
        if (!labels_find(labels, items[i].key, &value) ||
            !slice_is_among(value, items[i].values.items, items[i].values.count))
            return false;
    }
    return wanted->count != 0; /* an empty term matches no node */
}

bool topologies_match(const struct pull_items *topologies, struct slice labels)
{
    const struct topology *items = topologies->items;

    for (size_t i = 0; i < topologies->count; i++)
        if (has_labels(&items[i].labels, labels))
            return true;
    return false;
}
