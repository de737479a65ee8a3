/*
 * volume_zone: as kube-scheduler's VolumeZone (1.37), in its words. The rows of the decision table
 * (docs/policies.md):
 *
 *   the node is not in the zones of a volume    UnschedulableAndUnresolvable on the node
 *   otherwise                                   Skip
 */
#include "policy/volume_zone.h"

#include "policy/policy.h"

#define ZONE_CONFLICT "node(s) had no available volume zone"

static bool is_in_set(struct slice set, struct slice value)
{
    while (set.len != 0) {
        const char *end = memmem(set.ptr, set.len, "__", 2);
        struct slice item = {set.ptr, end == NULL ? set.len : (size_t)(end - set.ptr)};
        if (slice_equal(item, value))
            return true;
        set = end == NULL ? (struct slice){"", 0} : (struct slice){end + 2, set.len - item.len - 2};
    }
    return false;
}

const char *const zone_keys[ZONE_KEYS] = {
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"};

/* What the same is called on a newer node; NULL: the same. */
static const char *const other_keys[ZONE_KEYS] = {NULL, NULL, "topology.kubernetes.io/zone",
                                                  "topology.kubernetes.io/region"};

bool zones_find(struct slice volume, const char *key, struct slice *set)
{
    return labels_find(volume, slice_of(key), set) && set->len != 0 &&
           !is_in_set(*set, SLICE("")) && !slice_ends_with(*set, SLICE("__"));
}

bool zones_have(struct slice volume, struct slice node)
{
    bool has_any = false, is_in = true;

    for (size_t i = 0; i < ZONE_KEYS; i++) {
        struct slice wanted, value;
        bool has = labels_find(node, slice_of(zone_keys[i]), &value);
        has_any = has_any || has;
        if (!has && other_keys[i] != NULL)
            has = labels_find(node, slice_of(other_keys[i]), &value);
        if (zones_find(volume, zone_keys[i], &wanted))
            is_in = is_in && has && is_in_set(wanted, value);
    }
    return !has_any || is_in;
}

/* ---- the policy ---- */

/* kube-scheduler does not check the claims of generic ephemeral volumes. */
static struct slice check_node(void *context, const struct placed_node *node)
{
    const struct placement *placement = context;
    bool is_in = true;

    for (size_t i = 0; placement_knows_labels(placement, node) && i < placement->claim_count; i++) {
        const struct placed_claim *placed = &placement->claims[i];
        is_in = is_in && (placed->is_ephemeral || zones_have(placed->volume_labels, node->labels));
    }
    return is_in ? SLICE("") : SLICE(ZONE_CONFLICT);
}

static void prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out)
{
    struct placement placement;

    (void)pod;
    *out = (struct verdict){.code = CODE_SKIP};
    if (view->placement == NULL)
        return;
    placement = *view->placement;
    placement_restrict(view->placement, check_node, &placement, arena, out);
}

/* As of volume_binding. */
const struct policy volume_zone = {.name = "VolumeZone", .prefilter = prefilter};
