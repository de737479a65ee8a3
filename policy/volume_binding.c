/*
 * volume_binding: as PreFilter and Filter of kube-scheduler's VolumeBinding (1.37), in its words.
 * The rows of the decision table (docs/policies.md); all are UnschedulableAndUnresolvable:
 *
 *   a claim is Lost                                         the pod
 *   a claim is not bound, and does not wait for a node      the pod
 *   the volume of a bound claim does not exist              each node
 *   the nodeAffinity of that volume does not match          the node
 *   the volume of a claim is being made for another node    the node
 *   no volume on the node matches a claim, and its class
 *     makes none, or not there                              the node
 *   the same, and no CSIStorageCapacity has room for one    the node
 */
#include "policy/policy.h"
#include "policy/volume.h"

#define NODE_CONFLICT "node(s) didn't match PersistentVolume's node affinity"
#define BIND_CONFLICT "node(s) didn't find available persistent volumes to bind"
#define NO_ROOM       "node(s) did not have enough free storage"
#define NO_VOLUME     "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

/* ---- claims ---- */

enum binding {
    BINDING_DONE,      /* the claim has its volume */
    BINDING_IMMEDIATE, /* its volume comes first, without a node */
    BINDING_DELAYED,   /* its volume is chosen or made with the pod's node */
    BINDING_UNKNOWN,   /* the input does not say */
};

/* kube-scheduler reads an annotation, which is written right before the phase. A claim without a
 * phase is of a file that was written by hand. */
static enum binding binding_of(const struct view *view, const struct placed_claim *placed)
{
    const struct claim *claim = placed->claim;
    struct slice class = name_slice(claim_storage_class(claim));
    bool has_volume = claim_has_volume(claim);

    if (claim_phase(claim) == CLAIM_BOUND)
        return BINDING_DONE;
    if (claim_phase(claim) == CLAIM_PHASE_UNKNOWN)
        return BINDING_UNKNOWN;
    if (class.len == 0 || has_volume)
        return BINDING_IMMEDIATE;
    if (cluster_find_resource(view->cluster, KIND_STORAGE_CLASS, class) == NULL)
        return view->placement->knows_classes ? BINDING_IMMEDIATE : BINDING_UNKNOWN;
    if (placed->binding_mode.len == 0)
        return BINDING_UNKNOWN;
    return slice_equal(placed->binding_mode, SLICE("WaitForFirstConsumer")) ? BINDING_DELAYED
                                                                            : BINDING_IMMEDIATE;
}

/* A claim whose volume is chosen with the node. */
struct wanting {
    const struct placed_claim *placed;
    const struct placed_volume **fits; /* in their order; of a volume that is kept for it, that */
    size_t fit_count;
    bool has_own; /* a volume is kept for it: no other one is taken */
};

/* The claims of the pod, as kube-scheduler sorts them. */
struct binder {
    const struct view *view;
    const struct placed_claim **bound;
    size_t bound_count;
    struct wanting *wanting; /* by what they ask for */
    size_t wanting_count;
    const struct placed_volume **taken; /* on the node in question */
    size_t taken_count;
};

static int64_t requested(const struct claim *claim)
{
    const struct claim_rare *rare = claim_rare_at(claim->rare);

    return rare == NULL ? 0 : rare->requested;
}

/* Of its class alone, also if it is kept for the claim. */
static bool fits(const struct placed_volume *volume, const struct claim *claim)
{
    struct slice class, attributes_class;

    volume_offer_classes(resource_attribute(volume->volume, VOLUME_OFFER), &class,
                         &attributes_class);
    return slice_equal(class, name_slice(claim_storage_class(claim))) &&
           volume_offer_fits(volume->volume, claim);
}

static bool find_fits(const struct placement *placement, struct wanting *wanting,
                      struct arena *arena)
{
    wanting->fits =
        arena_alloc(arena, (placement->volume_count + 1) * sizeof(const struct placed_volume *));
    for (size_t i = 0; wanting->fits != NULL && i < placement->volume_count; i++) {
        const struct placed_volume *volume = &placement->volumes[i];
        if (wanting->has_own || !fits(volume, wanting->placed->claim))
            continue;
        if (resource_attribute(volume->volume, VOLUME_KEPT_FOR).len != 0) {
            wanting->has_own = true;
            wanting->fit_count = 0;
        }
        wanting->fits[wanting->fit_count++] = volume;
    }
    return wanting->fits != NULL;
}

/* Behind those that ask for as much, or less. */
static bool add_wanting(struct binder *binder, const struct placed_claim *placed,
                        struct arena *arena)
{
    size_t at = binder->wanting_count++;

    for (; at > 0 && requested(binder->wanting[at - 1].placed->claim) > requested(placed->claim);
         at--)
        binder->wanting[at] = binder->wanting[at - 1];
    binder->wanting[at] = (struct wanting){.placed = placed};
    return find_fits(binder->view->placement, &binder->wanting[at], arena);
}

/* The reason for which the pod passes nowhere; empty: none; {NULL, 0}: no memory. */
static struct slice sort_claims(struct binder *binder, struct arena *arena)
{
    const struct placement *placement = binder->view->placement;
    bool has_immediate = false, has_memory = true;
    char buffer[PROVISIONED_NAME_BYTES];

    for (size_t i = 0; i < placement->claim_count; i++) {
        const struct claim *claim = placement->claims[i].claim;
        if (claim_phase(claim) == CLAIM_LOST)
            return arena_printf(
                arena,
                "persistentvolumeclaim \"%.*s\" bound to non-existent persistentvolume \"%.*s\"",
                SLICE_ARG(claim_name(claim)), SLICE_ARG(claim_volume_name(claim, buffer)));
    }
    for (size_t i = 0; i < placement->claim_count; i++) {
        const struct placed_claim *placed = &placement->claims[i];
        enum binding binding = binding_of(binder->view, placed);
        if (binding == BINDING_DONE)
            binder->bound[binder->bound_count++] = placed;
        else if (binding == BINDING_DELAYED)
            has_memory = add_wanting(binder, placed, arena) && has_memory;
        has_immediate = has_immediate || binding == BINDING_IMMEDIATE;
    }
    if (!has_memory)
        return (struct slice){NULL, 0};
    return has_immediate ? SLICE("pod has unbound immediate PersistentVolumeClaims") : SLICE("");
}

/* ---- a node ---- */

/* The reason for which a bound claim cannot be used on the node; empty: none. */
static struct slice check_bound(const struct binder *binder, const struct placed_node *node)
{
    const struct placement *placement = binder->view->placement;

    for (size_t i = 0; i < binder->bound_count; i++) {
        const struct placed_claim *placed = binder->bound[i];
        bool is_missing = claim_has_volume(placed->claim) &&
                          cluster_find_volume(binder->view->cluster, placed->claim) == NULL;
        if (is_missing && placement->knows_volumes)
            return SLICE(NO_VOLUME);
        if (placement_knows_labels(placement, node) &&
            !volume_terms_match(&placed->terms, node->node, node->labels))
            return SLICE(NODE_CONFLICT);
    }
    return SLICE("");
}

static bool is_taken(const struct binder *binder, const struct placed_volume *volume)
{
    for (size_t i = 0; i < binder->taken_count; i++)
        if (binder->taken[i] == volume)
            return true;
    return false;
}

/* As volume_terms_match, but for a volume that no claim has, kube-scheduler translates nothing. */
static bool is_allowed(const struct placement *placement, const struct pull_items *terms,
                       const struct placed_node *node)
{
    return terms->count == 0 || !placement_knows_labels(placement, node) ||
           node_terms_match(terms, SLICE(""), node->labels);
}

/* Takes the smallest volume that is left on the node. */
static bool take_volume(struct binder *binder, const struct wanting *wanting,
                        const struct placed_node *node)
{
    for (size_t i = 0; i < wanting->fit_count; i++) {
        const struct placed_volume *volume = wanting->fits[i];
        if (is_taken(binder, volume) || !is_allowed(binder->view->placement, &volume->terms, node))
            continue;
        binder->taken[binder->taken_count++] = volume;
        return true;
    }
    return false;
}

/* Whether the claim's class makes volumes that can be used on the node. */
static bool is_provisioned(const struct binder *binder, const struct placed_claim *placed,
                           const struct placed_node *node)
{
    const struct resource *class = cluster_find_resource(
        binder->view->cluster, KIND_STORAGE_CLASS, name_slice(claim_storage_class(placed->claim)));
    struct slice provisioner = resource_attribute(class, STORAGE_CLASS_PROVISIONER);

    return provisioner.len != 0 && !slice_equal(provisioner, SLICE(NO_PROVISIONER)) &&
           (placed->topologies.count == 0 ||
            !placement_knows_labels(binder->view->placement, node) ||
            topologies_match(&placed->topologies, node->labels));
}

/* Whether a CSIStorageCapacity has room for the claim's volume on the node. */
static bool has_room(const struct binder *binder, const struct placed_claim *placed,
                     const struct placed_node *node)
{
    int64_t bytes = requested(placed->claim);

    return placed->room == NULL || bytes == 0 ||
           placed->room[node - binder->view->placement->nodes] >= bytes;
}

/* What a claim lacks on the node whose volume is not there yet. */
static struct slice check_wanting(struct binder *binder, const struct wanting *wanting,
                                  const struct placed_node *node)
{
    if (wanting->placed->selected_node.len == 0 && take_volume(binder, wanting, node))
        return SLICE("");
    if (!is_provisioned(binder, wanting->placed, node))
        return SLICE(BIND_CONFLICT);
    return has_room(binder, wanting->placed, node) ? SLICE("") : SLICE(NO_ROOM);
}

/* The same of all claims. kube-scheduler looks first at those whose node is selected. */
static struct slice check_unbound(struct binder *binder, const struct placed_node *node)
{
    struct slice reason = SLICE("");

    binder->taken_count = 0;
    for (size_t i = 0; i < binder->wanting_count; i++) {
        struct slice selected = binder->wanting[i].placed->selected_node;
        if (selected.len != 0 && !slice_equal(selected, node->name))
            return SLICE(BIND_CONFLICT);
    }
    for (int selected = 1; selected >= 0; selected--)
        for (size_t i = 0; i < binder->wanting_count && reason.len == 0; i++)
            if ((binder->wanting[i].placed->selected_node.len != 0) == (selected != 0))
                reason = check_wanting(binder, &binder->wanting[i], node);
    return reason;
}

static struct slice check_node(void *context, const struct placed_node *node)
{
    struct binder *binder = context;
    struct slice of_bound = check_bound(binder, node);
    struct slice of_unbound = check_unbound(binder, node);

    if (of_unbound.len == 0)
        return of_bound;
    if (of_bound.len == 0)
        return of_unbound;
    bool is_missing = slice_equal(of_bound, SLICE(NO_VOLUME));
    if (slice_equal(of_unbound, SLICE(NO_ROOM)))
        return is_missing ? SLICE(NO_ROOM "; " NO_VOLUME) : SLICE(NODE_CONFLICT "; " NO_ROOM);
    return is_missing ? SLICE(BIND_CONFLICT "; " NO_VOLUME)
                      : SLICE(NODE_CONFLICT "; " BIND_CONFLICT);
}

/* ---- the policy ---- */

static void prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out)
{
    size_t room = view->placement == NULL ? 0 : view->placement->claim_count + 1;
    struct binder binder = {.view = view};

    (void)pod;
    *out = (struct verdict){.code = CODE_SKIP};
    if (room <= 1)
        return;
    binder.bound = arena_alloc(arena, room * sizeof(const struct placed_claim *));
    binder.wanting = arena_alloc(arena, room * sizeof *binder.wanting);
    binder.taken = arena_alloc(arena, room * sizeof(const struct placed_volume *));
    if (binder.bound == NULL || binder.wanting == NULL || binder.taken == NULL) {
        verdict_out_of_memory(out);
        return;
    }
    struct slice reason = sort_claims(&binder, arena);
    if (reason.ptr != NULL && reason.len == 0)
        placement_restrict(view->placement, check_node, &binder, arena, out);
    else
        (void)verdict_reject(out, arena, reason);
}

/* It reads no kind that is watched: view.placement has what it needs. */
const struct policy volume_binding = {.name = "VolumeBinding", .prefilter = prefilter};
