#include "policy/volume_attributes_class.h"

#include "policy/bound_volume.h"
#include "policy/conflicts.h"
#include "policy/volume_offers.h"

/* A claim that names a class, and where the verdict goes. */
struct check {
    const struct view *view;
    const struct claim *claim;
    struct arena *arena;
    struct verdict *out;
    size_t *left_out; /* rejections without a reason of their own */
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

/* Without memory, these return false, and the verdict is Error. */
static bool warn(const struct check *check, struct slice text)
{
    return verdict_add_warning(check->out, check->arena, text);
}

/* The claim is a cause: it may have changed, and the scheduler may know that before the cache. */
static bool reject(const struct check *check, struct slice reason)
{
    const struct claim *claim = check->claim;

    check->out->code = CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    if (check->out->reason_count == VERDICT_REASONS_MAX) {
        (*check->left_out)++;
        return true;
    }
    return verdict_add_reason(check->out, check->arena, reason) &&
           verdict_add_cause(check->out, check->arena, KIND_CLAIM, name_text(claim->ns),
                             claim_name(claim), &claim->uid);
}

static bool await(const struct check *check, enum kind kind, struct slice name)
{
    return verdict_add_awaited(check->out, check->arena,
                               &(struct object_reference){.kind = kind, .name = name});
}

/* ---- unbound claims ---- */

/* Rejects the claim until its class changes, or there is a volume of these classes: if the claim
 * can be bound to it, no VolumeAttributesClass is needed. */
static bool reject_unbound(const struct check *check, struct slice reason, struct slice offer)
{
    struct slice name = name_slice(claim_volume_attributes_class(check->claim));

    return reject(check, reason) && await(check, KIND_VOLUME_ATTRIBUTES_CLASS, name) &&
           await(check, KIND_VOLUME, offer);
}

static bool reject_missing(const struct check *check, struct slice offer)
{
    const struct claim *claim = check->claim;

    return reject_unbound(
        check,
        arena_printf(check->arena, "VolumeAttributesClass %.*s of claim %.*s/%.*s does not exist",
                     SLICE_ARG(name_slice(claim_volume_attributes_class(claim))),
                     SLICE_ARG(name_text(claim->ns)), SLICE_ARG(claim_name(claim))),
        offer);
}

static bool reject_other_driver(const struct check *check, struct slice driver,
                                struct slice provisioner, struct slice offer)
{
    const struct claim *claim = check->claim;

    return reject_unbound(check,
                          arena_printf(check->arena,
                                       "VolumeAttributesClass %.*s is for driver %.*s, claim "
                                       "%.*s/%.*s is provisioned by %.*s",
                                       SLICE_ARG(name_slice(claim_volume_attributes_class(claim))),
                                       SLICE_ARG(driver), SLICE_ARG(name_text(claim->ns)),
                                       SLICE_ARG(claim_name(claim)), SLICE_ARG(provisioner)),
                          offer) &&
           await(check, KIND_STORAGE_CLASS, name_slice(claim_storage_class(claim)));
}

/* A claim for which a volume is provisioned, unless one is available. */
static bool check_unbound(const struct check *check)
{
    const struct cluster *cluster = check->view->cluster;
    struct slice name = name_slice(claim_volume_attributes_class(check->claim));
    const struct resource *class = find_class(check, name);
    struct slice plugin, provisioner = bound_volume_provisioner(cluster, check->claim, &plugin);
    struct slice driver = class == NULL ? SLICE("") : driver_of(class);
    bool fits = driver.len == 0 || provisioner.len == 0 || slice_equal(driver, provisioner);

    if (class == NULL ? is_unserved(cluster) : fits)
        return true;
    if (volume_offers_fit(cluster, check->claim))
        return true;
    struct slice offer =
        volume_offer(name_slice(claim_storage_class(check->claim)), name, check->arena);
    return class == NULL ? reject_missing(check, offer)
                         : reject_other_driver(check, driver, provisioner, offer);
}

/* "has class C", or "has no class". */
static struct slice class_text(const struct check *check, struct slice class)
{
    return class.len == 0 ? SLICE("has no class")
                          : arena_printf(check->arena, "has class %.*s", SLICE_ARG(class));
}

/* A claim of which the user has named the volume: it is bound to that one, or never. */
static bool check_named(const struct check *check)
{
    const struct claim *claim = check->claim;
    struct slice name = name_slice(claim_volume_attributes_class(claim)), class;

    if (!volume_offers_other_class(check->view->cluster, claim, &class))
        return true;
    struct slice theirs = class_text(check, class), ours = class_text(check, name);
    struct slice offer = volume_offer(name_slice(claim_storage_class(claim)), name, check->arena);
    if (theirs.ptr == NULL || ours.ptr == NULL)
        return reject(check, (struct slice){NULL, 0});
    return reject(check, arena_printf(check->arena,
                                      "claim %.*s/%.*s is never bound to volume %.*s, which it "
                                      "names: the claim %.*s, and the volume %.*s",
                                      SLICE_ARG(name_text(claim->ns)), SLICE_ARG(claim_name(claim)),
                                      SLICE_ARG(name_slice(claim_volume(claim))), SLICE_ARG(ours),
                                      SLICE_ARG(theirs))) &&
           await(check, KIND_VOLUME, offer);
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
    const struct resource *volume = bound_volume_find(check->view->cluster, check->claim);

    *driver = volume == NULL ? SLICE("") : resource_attribute(volume, VOLUME_DRIVER);
    return volume == NULL || driver->len != 0;
}

/* "driver D", or "its driver" where the volume is not known. */
static struct slice driver_text(const struct check *check, struct slice driver)
{
    return driver.len == 0 ? SLICE("its driver")
                           : arena_printf(check->arena, "driver %.*s", SLICE_ARG(driver));
}

/* "claim NS/C keeps class W: ...". */
static bool warn_of_kept(const struct check *check, const struct change *change, struct slice why)
{
    bool has_class = change->current.len != 0;

    if (why.ptr == NULL)
        return warn(check, why);
    return warn(check, arena_printf(check->arena, "claim %.*s/%.*s %s%.*s: %.*s",
                                    SLICE_ARG(name_text(check->claim->ns)),
                                    SLICE_ARG(claim_name(check->claim)),
                                    has_class ? "keeps class " : "stays without a class",
                                    SLICE_ARG(change->current), SLICE_ARG(why)));
}

static bool is_known_status(struct slice status)
{
    return slice_equal(status, SLICE("Pending")) || slice_equal(status, SLICE("InProgress")) ||
           slice_equal(status, SLICE("Infeasible"));
}

static struct slice refusal_text(const struct check *check, const struct change *change,
                                 struct slice driver)
{
    struct slice who = driver_text(check, driver);

    return who.ptr == NULL ? who
                           : arena_printf(check->arena, "%.*s refused class %.*s", SLICE_ARG(who),
                                          SLICE_ARG(change->wanted));
}

static struct slice not_applied_text(const struct check *check, const struct change *change,
                                     struct slice driver)
{
    struct slice whose = driver_text(check, driver);

    return whose.ptr == NULL
               ? whose
               : arena_printf(check->arena, "class %.*s is not being applied: no modifier for %.*s",
                              SLICE_ARG(change->wanted), SLICE_ARG(whose));
}

/* What keeps the class that the claim names from coming into force. */
static bool warn_of_change(const struct check *check, const struct change *change,
                           struct slice driver)
{
    bool is_missing =
        find_class(check, change->wanted) == NULL && !is_unserved(check->view->cluster);

    if (slice_equal(change->status, SLICE("Infeasible")))
        return warn_of_kept(check, change, refusal_text(check, change, driver));
    if (change->status.len != 0 && !is_known_status(change->status))
        return warn(check, arena_printf(check->arena,
                                        "claim %.*s/%.*s is being changed to class %.*s, with an "
                                        "unknown status (%.*s)",
                                        SLICE_ARG(name_text(check->claim->ns)),
                                        SLICE_ARG(claim_name(check->claim)),
                                        SLICE_ARG(change->wanted), SLICE_ARG(change->status)));
    if (slice_equal(change->wanted, change->current))
        return true;
    if (is_missing)
        return warn_of_kept(
            check, change,
            arena_printf(check->arena, "class %.*s does not exist", SLICE_ARG(change->wanted)));
    return change->status.len != 0 || warn(check, not_applied_text(check, change, driver));
}

/* What is wrong with the class itself. */
static bool warn_of_class(const struct check *check, struct slice name, struct slice driver)
{
    const struct resource *class = find_class(check, name);

    if (class == NULL)
        return true;
    struct slice wanted = driver_of(class);
    if (wanted.len != 0 && driver.len != 0 && !slice_equal(wanted, driver) &&
        !warn(check, arena_printf(check->arena,
                                  "class %.*s is for driver %.*s, the volume of claim %.*s/%.*s "
                                  "is of driver %.*s",
                                  SLICE_ARG(name), SLICE_ARG(wanted),
                                  SLICE_ARG(name_text(check->claim->ns)),
                                  SLICE_ARG(claim_name(check->claim)), SLICE_ARG(driver))))
        return false;
    return (resource_number(class) & VOLUME_ATTRIBUTES_CLASS_IS_DELETING) == 0 ||
           warn(check, arena_printf(check->arena, "class %.*s of claim %.*s/%.*s is being deleted",
                                    SLICE_ARG(name), SLICE_ARG(name_text(check->claim->ns)),
                                    SLICE_ARG(claim_name(check->claim))));
}

/* waitForModify. The scheduler has an event when the claim changes, but none when the configuration
 * does: then those that wait for anything are requeued. */
static bool reject_changing(const struct check *check, const struct change *change)
{
    const struct claim *claim = check->claim;
    struct object_reference reference = {
        .kind = KIND_CLAIM, .ns = name_text(claim->ns), .name = claim_name(claim)};

    return reject(check, arena_printf(check->arena,
                                      "claim %.*s/%.*s is being changed to class %.*s (%.*s)",
                                      SLICE_ARG(name_text(claim->ns)), SLICE_ARG(claim_name(claim)),
                                      SLICE_ARG(change->wanted), SLICE_ARG(change->status))) &&
           verdict_add_awaited(check->out, check->arena, &reference);
}

static bool check_bound(const struct check *check)
{
    struct change change = find_change(check->claim);
    struct slice driver;
    bool is_csi = find_driver(check, &driver);

    if (check->view->config->volume_attributes_classes.waits_for_modify &&
        is_known_status(change.status) && !reject_changing(check, &change))
        return false;
    if (!is_csi)
        return warn(check,
                    arena_printf(check->arena,
                                 "class %.*s of claim %.*s/%.*s has no effect: its volume "
                                 "is not a CSI volume",
                                 SLICE_ARG(change.wanted), SLICE_ARG(name_text(check->claim->ns)),
                                 SLICE_ARG(claim_name(check->claim))));
    return warn_of_change(check, &change, driver) && warn_of_class(check, change.wanted, driver);
}

/* ---- the pod ---- */

/* Whether the user has named the volume of a claim that is not bound. */
static bool names_volume(const struct claim *claim)
{
    return claim_phase(claim) == CLAIM_PENDING && claim_has_volume(claim);
}

static bool check_claim(const struct check *check, bool has_class)
{
    const struct claim *claim = check->claim;
    bool has_volume = claim_has_volume(claim);

    if (names_volume(claim))
        return check_named(check);
    if (!has_class || claim_phase(claim) == CLAIM_LOST)
        return true;
    return claim_phase(claim) == CLAIM_BOUND || has_volume ? check_bound(check)
                                                           : check_unbound(check);
}

static void prefilter(const struct view *view, const struct pod_object *pod, struct arena *arena,
                      struct verdict *out)
{
    size_t left_out = 0;
    struct check check = {.view = view, .arena = arena, .out = out, .left_out = &left_out};

    *out = (struct verdict){.code = CODE_SKIP};
    for (size_t i = 0; i < pod->claim_count; i++) {
        check.claim = cluster_find_claim(view->cluster, pod->meta.ns, pod->claims[i].name);
        bool has_class = check.claim != NULL && claim_volume_attributes_class(check.claim) != NULL;
        if (has_class && out->code == CODE_SKIP)
            out->code = CODE_SUCCESS;
        if (check.claim != NULL && !check_claim(&check, has_class))
            return;
    }
    (void)verdict_add_left_out(out, arena, left_out);
}

const struct policy volume_attributes_class = {
    .name = "VolumeAttributesClass",
    .mode = mode,
    .prefilter = prefilter,
};
