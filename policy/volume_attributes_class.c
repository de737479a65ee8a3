/*
 * volume_attributes_class: the VolumeAttributesClass that a claim names can be applied to its
 * volume (KEP-3751). nil and "" are the same: no class. The rows of the decision table
 * (docs/policies.md), for each claim that names a class:
 *
 *   unbound, and a volume of that class is available    Success: it is bound by the names alone
 *   unbound, the class is missing                       UnschedulableAndUnresolvable
 *   unbound, the class is for another driver than
 *     the storage class's provisioner                   UnschedulableAndUnresolvable
 *   bound, with waitForModify, and Pending, InProgress
 *     or Infeasible                                     UnschedulableAndUnresolvable
 *   bound                                               Success, with warnings: the volume keeps
 *                                                       working with the attributes that it has
 *
 * Follows external-provisioner (a missing class is tried again for ever, another driver is an
 * error), external-resizer (a missing target is Pending; it does not compare drivers), and
 * kube-controller-manager's FindMatchingVolume, which compares the names of claim and volume.
 */
#include "policy/policy.h"
#include "policy/volume.h"

/* A claim that names a class, and where the verdict goes. */
struct check {
    const struct view *view;
    const struct claim *claim;
    struct arena *arena;
    struct verdict *out;
};

/* How far a bound claim is from the class that it names. */
struct change {
    struct slice current; /* the class in force; empty: none */
    struct slice wanted;  /* the class to which it is being changed; in force, if they are equal */
    struct slice status;  /* empty: nobody works on it */
};

static int mode(const struct config *config)
{
    return config->volume_attributes_classes.mode;
}

static const struct resource *find_class(const struct check *check, struct slice name)
{
    return cluster_find_resource(check->view->cluster, KIND_VOLUME_ATTRIBUTES_CLASS, name);
}

/* An API server before 1.34 has claims with the field, if its feature gate is on, but serves the
 * classes as v1beta1 at best: they may exist. */
static bool is_unserved(const struct cluster *cluster)
{
    return cluster->is_unserved[KIND_VOLUME_ATTRIBUTES_CLASS];
}

static struct slice driver_of(const struct resource *class)
{
    return resource_attribute(class, VOLUME_ATTRIBUTES_CLASS_DRIVER);
}

static void warn(const struct check *check, struct slice text)
{
    (void)verdict_add_warning(check->out, check->arena, text);
}

/* The claim is a cause: it may have changed, and the scheduler may know that before the cache. */
static void reject(const struct check *check, struct slice reason)
{
    const struct claim *claim = check->claim;

    if (verdict_reject(check->out, check->arena, reason))
        (void)verdict_add_cause(check->out, check->arena, KIND_CLAIM, name_text(claim->ns),
                                claim_name(claim), &claim->uid);
}

static void await(const struct check *check, enum kind kind, struct slice name)
{
    (void)verdict_await(check->out, check->arena, kind, name);
}

/* ---- unbound claims ---- */

/* Until there is a volume of these classes: if the claim can be bound to it, no
 * VolumeAttributesClass is needed. */
static void await_offer(const struct check *check)
{
    const struct claim *claim = check->claim;

    await(check, KIND_VOLUME,
          volume_offer(name_slice(claim_storage_class(claim)),
                       name_slice(claim_volume_attributes_class(claim)), check->arena));
}

/* A claim for which a volume is provisioned, unless one is available. */
static void check_unbound(const struct check *check)
{
    const struct cluster *cluster = check->view->cluster;
    const struct claim *claim = check->claim;
    struct slice name = name_slice(claim_volume_attributes_class(claim));
    const struct resource *class = find_class(check, name);
    struct slice provisioner = volume_provisioner(cluster, claim, NULL);
    struct slice driver = class == NULL ? SLICE("") : driver_of(class);
    bool fits = driver.len == 0 || provisioner.len == 0 || slice_equal(driver, provisioner);

    if ((class == NULL ? is_unserved(cluster) : fits) || volume_offers_fit(cluster, claim))
        return;
    if (class == NULL)
        reject(check, arena_printf(check->arena,
                                   "VolumeAttributesClass %.*s of claim %.*s/%.*s does not exist",
                                   SLICE_ARG(name), CLAIM_NAME_ARG(claim)));
    else
        reject(check, arena_printf(check->arena,
                                   "VolumeAttributesClass %.*s is for driver %.*s, claim "
                                   "%.*s/%.*s is provisioned by %.*s",
                                   SLICE_ARG(name), SLICE_ARG(driver), CLAIM_NAME_ARG(claim),
                                   SLICE_ARG(provisioner)));
    await(check, KIND_VOLUME_ATTRIBUTES_CLASS, name);
    await_offer(check);
    if (class != NULL)
        await(check, KIND_STORAGE_CLASS, name_slice(claim_storage_class(claim)));
}

/* "has class C", or "has no class". */
#define CLASS_ARG(class) (class).len == 0 ? "has no class" : "has class ", SLICE_ARG(class)

/* A claim of which the user has named the volume: it is bound to that one, or never. */
static void check_named(const struct check *check)
{
    const struct claim *claim = check->claim;
    struct slice ours = name_slice(claim_volume_attributes_class(claim)), theirs;

    if (!volume_offers_other_class(check->view->cluster, claim, &theirs))
        return;
    reject(check, arena_printf(check->arena,
                               "claim %.*s/%.*s is never bound to volume %.*s, which it names: the "
                               "claim %s%.*s, and the volume %s%.*s",
                               CLAIM_NAME_ARG(claim), SLICE_ARG(name_slice(claim_volume(claim))),
                               CLASS_ARG(ours), CLASS_ARG(theirs)));
    await_offer(check);
}

/* ---- bound claims ---- */

static struct change find_change(const struct claim *claim)
{
    const struct modification *modification = claim_modification(claim);
    struct slice named = name_slice(claim_volume_attributes_class(claim));
    struct change change = {named, named, SLICE("")};

    if (modification == NULL)
        return change;
    change.current = name_slice(modification->current);
    struct slice target = name_slice(modification->target),
                 status = name_slice(modification->status);
    /* the user has named the former class again: nothing is waited for any more, and an older
     * external-resizer does not remove the status */
    if (slice_equal(named, change.current) &&
        (slice_equal(status, SLICE("Pending")) || slice_equal(status, SLICE("Infeasible"))))
        return change;
    if (target.len != 0)
        change.wanted = target;
    change.status = status;
    return change;
}

/* The driver of a claim's volume. False: the volume is not one of CSI. Empty: not known. */
static bool find_driver(const struct check *check, struct slice *driver)
{
    const struct resource *volume = volume_of(check->view->cluster, check->claim);

    *driver = volume == NULL ? SLICE("") : resource_attribute(volume, VOLUME_DRIVER);
    return volume == NULL || driver->len != 0;
}

/* "driver D", or "its driver" where the volume is not known. */
#define DRIVER_ARG(driver) (driver).len == 0 ? "its driver" : "driver ", SLICE_ARG(driver)

/* "claim NS/C keeps class W: ...". why: {NULL, 0} without memory. */
static void warn_of_kept(const struct check *check, const struct change *change, struct slice why)
{
    bool has_class = change->current.len != 0;

    warn(check, why.ptr == NULL ? why
                                : arena_printf(check->arena, "claim %.*s/%.*s %s%.*s: %.*s",
                                               CLAIM_NAME_ARG(check->claim),
                                               has_class ? "keeps class " : "stays without a class",
                                               SLICE_ARG(change->current), SLICE_ARG(why)));
}

static bool is_known_status(struct slice status)
{
    return slice_equal(status, SLICE("Pending")) || slice_equal(status, SLICE("InProgress")) ||
           slice_equal(status, SLICE("Infeasible"));
}

/* What keeps the class that the claim names from coming into force. */
static void warn_of_change(const struct check *check, const struct change *change,
                           struct slice driver)
{
    bool is_missing =
        find_class(check, change->wanted) == NULL && !is_unserved(check->view->cluster);

    if (slice_equal(change->status, SLICE("Infeasible")))
        warn_of_kept(check, change,
                     arena_printf(check->arena, "%s%.*s refused class %.*s", DRIVER_ARG(driver),
                                  SLICE_ARG(change->wanted)));
    else if (change->status.len != 0 && !is_known_status(change->status))
        warn(check, arena_printf(check->arena,
                                 "claim %.*s/%.*s is being changed to class %.*s, with an unknown "
                                 "status (%.*s)",
                                 CLAIM_NAME_ARG(check->claim), SLICE_ARG(change->wanted),
                                 SLICE_ARG(change->status)));
    else if (slice_equal(change->wanted, change->current))
        return;
    else if (is_missing)
        warn_of_kept(
            check, change,
            arena_printf(check->arena, "class %.*s does not exist", SLICE_ARG(change->wanted)));
    else if (change->status.len == 0)
        warn(check,
             arena_printf(check->arena, "class %.*s is not being applied: no modifier for %s%.*s",
                          SLICE_ARG(change->wanted), DRIVER_ARG(driver)));
}

/* What is wrong with the class itself. */
static void warn_of_class(const struct check *check, struct slice name, struct slice driver)
{
    const struct resource *class = find_class(check, name);

    if (class == NULL)
        return;
    struct slice wanted = driver_of(class);
    if (wanted.len != 0 && driver.len != 0 && !slice_equal(wanted, driver))
        warn(check, arena_printf(check->arena,
                                 "class %.*s is for driver %.*s, the volume of claim %.*s/%.*s is "
                                 "of driver %.*s",
                                 SLICE_ARG(name), SLICE_ARG(wanted), CLAIM_NAME_ARG(check->claim),
                                 SLICE_ARG(driver)));
    if ((resource_number(class) & VOLUME_ATTRIBUTES_CLASS_IS_DELETING) != 0)
        warn(check, arena_printf(check->arena, "class %.*s of claim %.*s/%.*s is being deleted",
                                 SLICE_ARG(name), CLAIM_NAME_ARG(check->claim)));
}

/* waitForModify. The scheduler has an event when the claim changes, but none when the configuration
 * does: then those that wait for anything are requeued. */
static void reject_changing(const struct check *check, const struct change *change)
{
    const struct claim *claim = check->claim;
    struct object_reference reference = {
        .kind = KIND_CLAIM, .ns = name_text(claim->ns), .name = claim_name(claim)};

    reject(check, arena_printf(
                      check->arena, "claim %.*s/%.*s is being changed to class %.*s (%.*s)",
                      CLAIM_NAME_ARG(claim), SLICE_ARG(change->wanted), SLICE_ARG(change->status)));
    (void)verdict_add_awaited(check->out, check->arena, &reference);
}

static void check_bound(const struct check *check)
{
    struct change change = find_change(check->claim);
    struct slice driver;
    bool is_csi = find_driver(check, &driver);

    if (check->view->config->volume_attributes_classes.waits_for_modify &&
        is_known_status(change.status))
        reject_changing(check, &change);
    if (!is_csi) {
        warn(check, arena_printf(check->arena,
                                 "class %.*s of claim %.*s/%.*s has no effect: its volume is not a "
                                 "CSI volume",
                                 SLICE_ARG(change.wanted), CLAIM_NAME_ARG(check->claim)));
        return;
    }
    warn_of_change(check, &change, driver);
    warn_of_class(check, change.wanted, driver);
}

/* ---- the pod ---- */

/* Whether the user has named the volume of a claim that is not bound. */
static bool names_volume(const struct claim *claim)
{
    return claim_phase(claim) == CLAIM_PENDING && claim_has_volume(claim);
}

static void check_claim(const struct check *check, bool has_class)
{
    const struct claim *claim = check->claim;

    if (names_volume(claim))
        check_named(check);
    else if (!has_class || claim_phase(claim) == CLAIM_LOST)
        return;
    else if (claim_phase(claim) == CLAIM_BOUND || claim_has_volume(claim))
        check_bound(check);
    else
        check_unbound(check);
}

static void prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out)
{
    struct check check = {.view = view, .arena = arena, .out = out};

    *out = (struct verdict){.code = CODE_SKIP};
    for (size_t i = 0; i < pod->claim_count; i++) {
        check.claim = cluster_find_claim(view->cluster, pod->meta.ns, pod->claims[i].name);
        bool has_class = check.claim != NULL && claim_volume_attributes_class(check.claim) != NULL;
        if (has_class && out->code == CODE_SKIP)
            out->code = CODE_SUCCESS;
        if (check.claim != NULL)
            check_claim(&check, has_class);
    }
    (void)verdict_add_left_out(out, arena);
}

/* It reads classes, and whose they are: the volume's, or to provision. */
const struct policy volume_attributes_class = {
    .name = "VolumeAttributesClass",
    .mode = mode,
    .reads = 1U << KIND_VOLUME | 1U << KIND_STORAGE_CLASS | 1U << KIND_VOLUME_ATTRIBUTES_CLASS,
    .prefilter = prefilter,
};
