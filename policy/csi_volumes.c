/*
 * csi_volumes: a pod runs only on nodes that have the CSI drivers of its volumes: of inline volumes
 * (KEP-596), of claims bound to CSI volumes or to in-tree volumes that a CSI driver serves now, and
 * of unbound claims whose provisioner is known as a CSI driver. The rows of the decision table
 * (docs/policies.md), rows about the pod first:
 *
 *   inline, and the CSIDriver does not list Ephemeral    UnschedulableAndUnresolvable
 *   inline, and there is no CSIDriver                    UnschedulableAndUnresolvable
 *   a claim, and the CSIDriver does not list Persistent  UnschedulableAndUnresolvable
 *   the node's CSINode lists the driver                  Success
 *   the node's CSINode does not                          UnschedulableAndUnresolvable, that node
 *   the node has no CSINode of its own                   as missingCSINode says, that node
 *
 * Where every node that the cache knows passes, no node is checked. So under missingCSINode:
 * Reject, a node that the cache does not know yet, which has no CSINode here, passes a filter call
 * then. It is rejected where it is the only node in question (view.node: a bind, Volcano's call),
 * and where nodes are checked because a known one does not pass.
 *
 * kube-scheduler's NodeVolumeLimits judges drivers that opt in with
 * CSIDriver.spec.preventPodSchedulingIfMissing, if its version does so (the gate
 * VolumeLimitScaling, on since 1.37). This policy judges them as all others, and needs not know the
 * version: filter is called only with nodes that passed there, so both say the same.
 *
 * Not judged: inline volumes of a pod without mounts (pod_object.mounts is NULL: it has too many
 * volumes); a claim whose volume the cache does not know; and drivers beyond CSI_NEEDS_MAX. The
 * cache has the mounts of pending pods with inline CSI volumes, so a bind also judges those.
 */
#include "policy/policy.h"
#include "policy/volume.h"

enum { CSI_NEEDS_MAX = 32 }; /* nodes have few drivers; more would only cost time under the lock */

/* ---- the drivers that a pod needs ---- */

/* A driver that the pod needs on its node, and the first volume for which it does. */
struct need {
    struct slice driver;
    struct slice plugin;       /* of an in-tree volume: only nodes where it is migrated need the
                                  driver, as in kube-scheduler; else empty */
    struct slice volume;       /* the inline one; of a claim: not set */
    const struct claim *claim; /* NULL: an inline volume */
    struct slice offer;        /* of an unbound claim: a volume that it could be bound to */
    bool is_everywhere;        /* on every node that the cache knows */
    struct slice reason;       /* on nodes without it */
};

struct needs {
    struct need *items;
    size_t count;
};

/* Adds it unless the pod needs the driver already. False: no memory. */
static bool add_need(struct needs *needs, struct arena *arena, const struct need *need)
{
    for (size_t i = 0; i < needs->count; i++)
        if (slice_equal(needs->items[i].driver, need->driver) &&
            slice_equal(needs->items[i].plugin, need->plugin) &&
            (needs->items[i].claim == NULL) == (need->claim == NULL))
            return true;
    if (needs->count == CSI_NEEDS_MAX)
        return true;
    struct need *grown = arena_grow(arena, needs->items, needs->count, sizeof *grown);
    if (grown == NULL)
        return false;
    grown[needs->count++] = *need;
    needs->items = grown;
    return true;
}

/* The driver of a claim that is bound to the volume; empty: it is not a CSI volume. */
static void find_volume_driver(const struct resource *volume, struct need *need)
{
    need->driver = volume_driver(volume);
    if (resource_attribute(volume, VOLUME_DRIVER).len == 0)
        need->plugin = resource_attribute(volume, VOLUME_IN_TREE);
}

/* The driver that will provision the claim's volume; empty: none that is known. A provisioner need
 * not be a CSI driver, so something must say that it is: a CSIDriver, or a node that has it. If
 * there is a volume that the claim could be bound to, which may be of any driver, kube-scheduler
 * tries that first. False: no memory. */
static bool find_provisioner(const struct cluster *cluster, struct need *need, struct arena *arena)
{
    const struct claim *claim = need->claim;
    struct slice plugin, driver = volume_provisioner(cluster, claim, &plugin);

    if (cluster_find_resource(cluster, KIND_CSI_DRIVER, driver) == NULL &&
        cluster_count_driver_nodes(cluster, driver) == 0)
        return true;
    need->offer = volume_offer(name_slice(claim_storage_class(claim)),
                               name_slice(claim_volume_attributes_class(claim)), arena);
    if (need->offer.ptr == NULL || volume_offers_fit(cluster, claim))
        return need->offer.ptr != NULL;
    need->plugin = plugin;
    need->driver = driver;
    return true;
}

static bool add_claim(const struct cluster *cluster, struct slice ns, struct slice name,
                      struct needs *needs, struct arena *arena)
{
    const struct claim *claim = cluster_find_claim(cluster, ns, name);
    struct need need = {.claim = claim};

    if (claim == NULL) /* another policy's business */
        return true;
    const struct resource *volume = volume_of(cluster, claim);
    if (volume != NULL)
        find_volume_driver(volume, &need);
    else if (!claim_has_volume(claim) && !find_provisioner(cluster, &need, arena))
        return false;
    return need.driver.len == 0 || add_need(needs, arena, &need);
}

/* In the order of the pod's volumes. False: no memory. */
static bool find_needs(const struct cluster *cluster, const struct pod_object *pod,
                       struct arena *arena, struct needs *out)
{
    const struct pod_mounts *mounts = pod->mounts;

    for (size_t i = 0; mounts == NULL && i < pod->claim_count; i++)
        if (!add_claim(cluster, pod->meta.ns, pod->claims[i].name, out, arena))
            return false;
    for (size_t i = 0; mounts != NULL && i < mounts->volume_count; i++) {
        const struct pod_volume *volume = &mounts->volumes[i];
        struct need need = {.driver = volume->driver, .volume = volume->name};
        if (volume->source == VOLUME_SOURCE_CSI
                ? !add_need(out, arena, &need)
                : volume->claim.len != 0 &&
                      !add_claim(cluster, pod->meta.ns, volume->claim, out, arena))
            return false;
    }
    return true;
}

/* ---- rows about the pod ---- */

/* What may change what a claim needs: the scheduler has events for these, but may have them before
 * the cache has them. */
static void await_claim(const struct need *need, struct arena *arena, struct verdict *out)
{
    const struct claim *claim = need->claim;

    if (claim == NULL || need->offer.len == 0)
        return;
    struct object_reference reference = {
        .kind = KIND_CLAIM, .ns = name_text(claim->ns), .name = claim_name(claim)};
    (void)verdict_await(out, arena, KIND_VOLUME, need->offer);
    (void)verdict_add_awaited(out, arena, &reference);
    (void)verdict_await(out, arena, KIND_STORAGE_CLASS, name_slice(claim_storage_class(claim)));
    (void)verdict_await(out, arena, KIND_CSI_DRIVER, need->driver);
}

/* The reason for which no node can serve the need; empty: there is none; {NULL, 0}: no memory. An
 * in-tree volume needs its CSI driver only on some nodes. */
static struct slice find_mode_problem(const struct cluster *cluster, const struct need *need,
                                      struct arena *arena)
{
    const struct resource *driver = cluster_find_resource(cluster, KIND_CSI_DRIVER, need->driver);
    struct slice modes = SLICE("Persistent"); /* the API server's default */

    if (driver != NULL && resource_attribute(driver, CSI_DRIVER_LIFECYCLE_MODES).len != 0)
        modes = resource_attribute(driver, CSI_DRIVER_LIFECYCLE_MODES);
    if (need->plugin.len != 0 ||
        words_have(modes, need->claim == NULL ? SLICE("Ephemeral") : SLICE("Persistent")))
        return SLICE("");
    if (need->claim != NULL)
        return arena_printf(
            arena, "CSI driver %.*s does not support claims (claim %.*s/%.*s; it supports %.*s)",
            SLICE_ARG(need->driver), CLAIM_NAME_ARG(need->claim), SLICE_ARG(modes));
    if (driver == NULL)
        return arena_printf(arena, "no CSIDriver object for inline volume %.*s (driver %.*s)",
                            SLICE_ARG(need->volume), SLICE_ARG(need->driver));
    return arena_printf(
        arena, "CSI driver %.*s does not support inline volumes (volume %.*s; it supports %.*s)",
        SLICE_ARG(need->driver), SLICE_ARG(need->volume), SLICE_ARG(modes));
}

/* Whether a need cannot be served by any node; out is set then. */
static bool reject_modes(const struct cluster *cluster, const struct needs *needs,
                         struct arena *arena, struct verdict *out)
{
    for (size_t i = 0; i < needs->count; i++) {
        const struct need *need = &needs->items[i];
        struct slice reason = find_mode_problem(cluster, need, arena);
        if ((reason.ptr != NULL && reason.len == 0) || !verdict_reject(out, arena, reason))
            continue;
        (void)verdict_await(out, arena, KIND_CSI_DRIVER, need->driver);
        await_claim(need, arena, out);
    }
    (void)verdict_add_left_out(out, arena);
    return out->code != CODE_SKIP;
}

/* ---- rows about a node ---- */

enum { SEEN_SLOTS = 64, SEEN_LISTS_MAX = 48 };

/* A list of drivers that was checked. */
struct seen_list {
    const struct name *drivers;
    struct slice reason; /* empty: the pod passes on nodes with that list; {NULL, 0}: free */
};

/* Those that were checked: nodes share a few. A hash table, because which list the next node has
 * cannot be predicted, and in most lookups the first slot is the right one. */
struct seen_lists {
    size_t count;
    struct seen_list slots[SEEN_SLOTS];
};

struct node_test {
    const struct cluster *cluster;
    struct needs needs;
    bool rejects_bare_nodes; /* those without a CSINode */
    struct seen_lists *seen;
};

/* Why the pod does not pass on a node with these drivers and plug-ins; empty: it passes. */
static struct slice find_missing(const struct needs *needs, struct slice drivers)
{
    for (size_t i = 0; i < needs->count; i++) {
        const struct need *need = &needs->items[i];
        bool is_needed = need->plugin.len == 0 || words_have(drivers, need->plugin);
        if (is_needed && !words_have(drivers, need->driver))
            return need->reason;
    }
    return SLICE("");
}

/* The slot of the list, or a free one. Lists are interned: a list is its address. */
static struct seen_list *find_seen(struct seen_lists *seen, const struct name *drivers)
{
    size_t i = ((uintptr_t)drivers * UINT64_C(0x9e3779b97f4a7c15)) >> 58;

    while (seen->slots[i].drivers != drivers && seen->slots[i].reason.ptr != NULL)
        i = (i + 1) % SEEN_SLOTS;
    return &seen->slots[i];
}

static struct slice check_drivers(const struct node_test *test, const struct name *drivers)
{
    struct seen_lists *seen = test->seen;
    struct seen_list *list = find_seen(seen, drivers);

    if (list->reason.ptr != NULL)
        return list->reason;
    struct slice reason = find_missing(&test->needs, name_slice(drivers));
    if (seen->count < SEEN_LISTS_MAX) {
        *list = (struct seen_list){drivers, reason};
        seen->count++;
    }
    return reason;
}

static bool has_csi_node(const struct node *node)
{
    return node != NULL && node->has_csi_node;
}

static void check_nodes(const void *context, const struct slice *names, size_t count,
                        struct arena *arena, struct slice *reasons)
{
    const struct node_test *test = context;
    struct slice bare =
        test->rejects_bare_nodes ? SLICE("the node has no CSINode object") : SLICE("");

    (void)arena;
    for (size_t i = 0; i < count; i++) {
        const struct node *node = cluster_find_node(test->cluster, names[i]);
        reasons[i] = has_csi_node(node) ? check_drivers(test, node->drivers) : bare;
    }
}

static bool passes_on_bare_nodes(const struct view *view, const struct need *need)
{
    return view->config->csi_volumes.missing_csi_node == MISSING_CSI_NODE_ALLOW ||
           need->plugin.len != 0; /* no CSINode says that it is migrated */
}

/* Finds out which needs are served by every node. Whether all are. */
static bool are_everywhere(const struct view *view, const struct needs *needs)
{
    const struct cluster *cluster = view->cluster;
    bool are_all = true;

    for (size_t i = 0; i < needs->count; i++) {
        struct need *need = &needs->items[i];
        size_t nodes = cluster_count_driver_nodes(cluster, need->driver);
        if (passes_on_bare_nodes(view, need))
            nodes += cluster->bare_nodes;
        need->is_everywhere =
            nodes == cluster->counts[KIND_NODE] ||
            (need->plugin.len != 0 && cluster_count_driver_nodes(cluster, need->plugin) == 0);
        are_all = are_all && need->is_everywhere;
    }
    return are_all;
}

/* Whether the only node in question may be rejected though every known node has the drivers: the
 * cache does not know it yet. Of many nodes, none is looked up for this. */
static bool is_for_unknown_node(const struct view *view)
{
    return view->config->csi_volumes.missing_csi_node == MISSING_CSI_NODE_REJECT &&
           view->node.len != 0 && !has_csi_node(cluster_find_node(view->cluster, view->node));
}

/* Writes the texts of all needs once, not for each node. False: no memory. */
static bool put_reasons(const struct needs *needs, struct arena *arena)
{
    for (size_t i = 0; i < needs->count; i++) {
        struct need *need = &needs->items[i];
        if (need->claim == NULL)
            need->reason =
                arena_printf(arena, "CSI driver %.*s (volume %.*s) is not registered on the node",
                             SLICE_ARG(need->driver), SLICE_ARG(need->volume));
        else
            need->reason = arena_printf(
                arena, "CSI driver %.*s of claim %.*s/%.*s is not registered on the node",
                SLICE_ARG(need->driver), CLAIM_NAME_ARG(need->claim));
        if (need->reason.ptr == NULL)
            return false;
    }
    return true;
}

/* The pod passes on the nodes that serve all needs. */
static void restrict_nodes(const struct view *view, const struct needs *needs, struct arena *arena,
                           struct verdict *out)
{
    struct node_filter *filter = arena_alloc(arena, sizeof *filter);
    struct node_test *test = arena_alloc(arena, sizeof *test);
    struct seen_lists *seen = arena_alloc(arena, sizeof *seen);

    if (filter == NULL || test == NULL || seen == NULL || !put_reasons(needs, arena)) {
        verdict_out_of_memory(out);
        return;
    }
    *test = (struct node_test){.cluster = view->cluster, .needs = *needs, .seen = seen};
    *filter = (struct node_filter){.check = check_nodes, .context = test};
    out->nodes = filter;
    for (size_t i = 0; i < needs->count; i++) {
        const struct need *need = &needs->items[i];
        test->rejects_bare_nodes = test->rejects_bare_nodes || !passes_on_bare_nodes(view, need);
        if (!need->is_everywhere)
            (void)verdict_await(out, arena, KIND_CSI_NODE, need->driver);
    }
    for (size_t i = 0; i < needs->count; i++) /* behind the drivers: there is room for few */
        if (!needs->items[i].is_everywhere)
            await_claim(&needs->items[i], arena, out);
}

/* ---- the policy ---- */

static void prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out)
{
    struct needs needs = {.count = 0};

    *out = (struct verdict){.code = CODE_SKIP};
    if (!find_needs(view->cluster, pod, arena, &needs)) {
        verdict_out_of_memory(out);
        return;
    }
    if (needs.count == 0 || reject_modes(view->cluster, &needs, arena, out))
        return;
    out->code = CODE_SUCCESS;
    if (!are_everywhere(view, &needs) || is_for_unknown_node(view))
        restrict_nodes(view, &needs, arena, out);
}

static int mode(const struct config *config)
{
    return config->csi_volumes.mode;
}

bool csi_volumes_refuse_inline(const struct view *view, const struct pod_object *pod,
                               struct arena *arena, struct slice *reason)
{
    const struct pod_mounts *mounts = pod->mounts;
    bool is_enforced = mode(view->config) == MODE_ENFORCE;

    for (size_t i = 0; is_enforced && mounts != NULL && i < mounts->volume_count; i++) {
        const struct pod_volume *volume = &mounts->volumes[i];
        struct need need = {.driver = volume->driver, .volume = volume->name};
        if (volume->source != VOLUME_SOURCE_CSI ||
            cluster_find_resource(view->cluster, KIND_CSI_DRIVER, volume->driver) == NULL)
            continue;
        *reason = find_mode_problem(view->cluster, &need, arena);
        if (reason->ptr == NULL || reason->len != 0)
            return true;
    }
    return false;
}

/* It reads drivers: of volumes and provisioners, their modes, on nodes. */
const struct policy csi_volumes = {
    .name = "CSIVolumes",
    .mode = mode,
    .reads =
        1U << KIND_VOLUME | 1U << KIND_STORAGE_CLASS | 1U << KIND_CSI_DRIVER | 1U << KIND_CSI_NODE,
    .prefilter = prefilter,
};
