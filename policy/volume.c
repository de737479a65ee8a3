#include "policy/volume.h"

#include "cache/objects/label_selector.h"
#include "cache/objects/objects.h"

/* ---- the volume that a claim is bound to ---- */

/* Whether the volume's claimRef names the claim. */
static bool names_claim(const struct resource *volume, const struct claim *claim)
{
    return slice_equal(resource_attribute(volume, VOLUME_CLAIM_NAMESPACE), name_text(claim->ns)) &&
           slice_equal(resource_attribute(volume, VOLUME_CLAIM_NAME), claim_name(claim));
}

/* volume: of the name that the claim has; NULL: there is none. */
static enum volume_state find_state(const struct resource *volume, const struct claim *claim,
                                    struct slice claim_uid)
{
    bool is_named = volume != NULL && names_claim(volume, claim);
    enum claim_phase phase = claim_phase(claim);

    if (is_named && claim_uid.len != 0 && !uid_is(&claim->uid, claim_uid))
        return VOLUME_OF_EARLIER; /* such a claim is Lost, too */
    if (phase == CLAIM_LOST)
        return VOLUME_LOST;
    if (!claim_has_volume(claim))
        return VOLUME_UNBOUND;
    if (volume == NULL)
        return VOLUME_UNKNOWN;
    /* the phase is written last: kube-scheduler binds a pod before it says Bound */
    bool is_bound = is_named || (resource_attribute(volume, VOLUME_CLAIM_NAME).len == 0 &&
                                 phase == CLAIM_BOUND);
    return is_bound ? VOLUME_BOUND : VOLUME_OF_ANOTHER;
}

enum volume_state volume_state_of(const struct cluster *cluster, const struct claim *claim,
                                  struct slice claim_uid)
{
    return claim->exists ? find_state(cluster_find_volume(cluster, claim), claim, claim_uid)
                         : VOLUME_UNBOUND;
}

const struct resource *volume_of(const struct cluster *cluster, const struct claim *claim)
{
    const struct resource *volume = claim->exists ? cluster_find_volume(cluster, claim) : NULL;

    return volume != NULL && find_state(volume, claim, SLICE("")) == VOLUME_BOUND ? volume : NULL;
}

/* ---- its driver ---- */

struct slice volume_driver(const struct resource *volume)
{
    struct slice driver = resource_attribute(volume, VOLUME_DRIVER);

    return driver.len != 0 ? driver : in_tree_driver(resource_attribute(volume, VOLUME_IN_TREE));
}

struct slice volume_provisioner(const struct cluster *cluster, const struct claim *claim,
                                struct slice *plugin)
{
    const struct resource *class =
        cluster_find_resource(cluster, KIND_STORAGE_CLASS, name_slice(claim_storage_class(claim)));
    struct slice provisioner =
        class == NULL ? SLICE("") : resource_attribute(class, STORAGE_CLASS_PROVISIONER);
    struct slice driver = in_tree_driver(provisioner);

    if (plugin != NULL)
        *plugin = driver.len != 0 ? provisioner : SLICE("");
    return driver.len != 0 ? driver : provisioner;
}

struct slice volume_driver_of(const struct cluster *cluster, const struct claim *claim)
{
    const struct resource *volume = volume_of(cluster, claim);

    if (volume != NULL)
        return volume_driver(volume);
    return claim_has_volume(claim) ? SLICE("") : volume_provisioner(cluster, claim, NULL);
}

/* ---- where it is attached ---- */

/* By the CSIDriver of that name; without one, `otherwise`. */
static enum attachment driver_attachment(const struct cluster *cluster, struct slice name,
                                         enum attachment otherwise)
{
    const struct resource *driver = cluster_find_resource(cluster, KIND_CSI_DRIVER, name);

    if (driver == NULL)
        return in_tree_driver_attaches(name) ? ATTACHMENT_YES : otherwise;
    return (resource_number(driver) & CSI_DRIVER_DOES_NOT_ATTACH) != 0 ? ATTACHMENT_NO
                                                                       : ATTACHMENT_YES;
}

enum attachment volume_attachment(const struct cluster *cluster, const struct resource *volume,
                                  bool knows_drivers)
{
    struct slice driver = volume_driver(volume);

    if (driver.len != 0)
        return driver_attachment(cluster, driver,
                                 knows_drivers ? ATTACHMENT_YES : ATTACHMENT_UNKNOWN);
    return resource_attribute(volume, VOLUME_IN_TREE).len != 0 ? ATTACHMENT_YES : ATTACHMENT_NO;
}

enum attachment volume_attachment_of(const struct cluster *cluster, const struct claim *claim,
                                     bool knows_drivers)
{
    const struct resource *volume = volume_of(cluster, claim);

    return volume != NULL ? volume_attachment(cluster, volume, knows_drivers)
                          : driver_attachment(cluster, volume_provisioner(cluster, claim, NULL),
                                              ATTACHMENT_UNKNOWN);
}

bool volume_is_on_one_node(const struct cluster *cluster, const struct resource *volume)
{
    return volume_is_for_one_node(volume) &&
           volume_attachment(cluster, volume, true) == ATTACHMENT_YES;
}

/* ---- the volumes that an unbound claim may be bound to ---- */

/* As IsVolumeBoundToClaim: without a UID, the user has chosen the claim. No name has a '/'. */
static bool is_kept_for(struct slice kept_for, const struct claim *claim)
{
    struct slice ns = slice_cut(&kept_for, '/'), name = slice_cut(&kept_for, '/'), uid = kept_for;

    return slice_equal(ns, name_text(claim->ns)) && slice_equal(name, claim_name(claim)) &&
           (uid.len == 0 || uid_is(&claim->uid, uid));
}

/* Whether the claim, which is not bound, may be bound to volumes of that shape, which are
 * Available, and not being deleted: field by field as FindMatchingVolume
 * (k8s.io/component-helpers/storage/volume), by which kube-scheduler and the PersistentVolume
 * controller choose one. The volume's nodeAffinity does not count: which nodes it allows,
 * kube-scheduler checks. A volume that is kept for the claim, or that the claim names, need not
 * have the labels; and one that is kept for it, nor the class and the access modes. */
static enum misfit compare(const struct claim *claim, const struct resource_shape_key *volume,
                           bool is_named)
{
    static const struct claim_rare none;
    const struct claim_rare *rare = claim->rare.step == 0 ? &none : claim_rare_at(claim->rare);
    const struct name *kept_for = volume->attributes[VOLUME_KEPT_FOR];
    unsigned access_modes = (unsigned)(volume->number >> VOLUME_ACCESS_SHIFT) & ACCESS_ALL;
    bool is_kept = kept_for != NULL && is_kept_for(name_slice(kept_for), claim);
    struct slice storage_class, attributes_class;

    volume_offer_classes(name_slice(volume->attributes[VOLUME_OFFER]), &storage_class,
                         &attributes_class);
    if (!is_kept && !slice_equal(storage_class, name_slice(claim_storage_class(claim))))
        return MISFIT_CLASS;
    if (kept_for != NULL && !is_kept)
        return MISFIT_KEPT;
    if (volume->capacity < rare->requested)
        return MISFIT_SIZE;
    if (((volume->number & VOLUME_IS_BLOCK) != 0) != claim->is_block)
        return MISFIT_MODE;
    if (!is_kept && (rare->access_modes & ~access_modes) != 0)
        return MISFIT_ACCESS;
    if (!slice_equal(attributes_class, name_slice(claim_volume_attributes_class(claim))))
        return MISFIT_ATTRIBUTES_CLASS;
    return is_kept || is_named || rare->selector == NULL ||
                   selector_matches(name_slice(rare->selector),
                                    name_slice(volume->attributes[VOLUME_LABELS]), SLICE(""))
               ? MISFIT_NONE
               : MISFIT_SELECTOR;
}

enum misfit volume_misfit(const struct resource *volume, const struct claim *claim, bool is_named)
{
    return resource_attribute(volume, VOLUME_OFFER).len == 0
               ? MISFIT_NONE
               : compare(claim, &resource_shape_at(volume->shape)->key, is_named);
}

/* What stops volumes of the shapes that are nearest to the claim: it comes later, or they are
 * larger. MISFIT_NONE: there is no such shape. */
static enum misfit nearest_misfit(const struct cluster *cluster, const struct claim *claim,
                                  int64_t *capacity)
{
    enum misfit nearest = MISFIT_NONE;

    for (const struct resource_shape *shape = cluster->offers; shape != NULL;
         shape = shape->next_offer) {
        enum misfit misfit = compare(claim, &shape->key, false);
        if (misfit <= MISFIT_KEPT || misfit < nearest ||
            (misfit == nearest && shape->key.capacity <= *capacity))
            continue;
        nearest = misfit;
        *capacity = shape->key.capacity;
    }
    return nearest;
}

const struct resource *volume_nearest(const struct cluster *cluster, const struct claim *claim,
                                      enum misfit *misfit)
{
    const struct resource *nearest = NULL;
    char a[PROVISIONED_NAME_BYTES], b[PROVISIONED_NAME_BYTES];
    struct table_walk walk = {.at = 0};
    int64_t capacity = 0;

    *misfit = nearest_misfit(cluster, claim, &capacity);
    if (*misfit == MISFIT_NONE)
        return NULL;
    for (const struct resource *volume;
         (volume = cluster_next_resource(cluster, KIND_VOLUME, &walk)) != NULL;)
        if (resource_shape_at(volume->shape)->key.capacity == capacity &&
            volume_misfit(volume, claim, false) == *misfit &&
            (nearest == NULL ||
             slice_compare(resource_name(volume, a), resource_name(nearest, b)) < 0))
            nearest = volume;
    return nearest;
}

const struct resource *volume_of_earlier(const struct cluster *cluster, const struct claim *claim)
{
    struct table_walk walk = {.at = 0};
    const struct resource *volume;

    while ((volume = cluster_next_resource(cluster, KIND_VOLUME, &walk)) != NULL)
        if (resource_attribute(volume, VOLUME_OFFER).len == 0 && names_claim(volume, claim))
            break;
    return volume;
}

bool volume_offers_fit(const struct cluster *cluster, const struct claim *claim)
{
    for (const struct resource_shape *shape = cluster->offers; shape != NULL;
         shape = shape->next_offer)
        if (compare(claim, &shape->key, false) == MISFIT_NONE)
            return true;
    return false;
}

bool volume_offer_fits(const struct resource *volume, const struct claim *claim)
{
    return resource_attribute(volume, VOLUME_OFFER).len != 0 &&
           compare(claim, &resource_shape_at(volume->shape)->key, false) == MISFIT_NONE;
}

const struct resource *volume_free_for(const struct cluster *cluster, const struct claim *claim)
{
    const struct resource *first = NULL, *volume;
    char a[PROVISIONED_NAME_BYTES], b[PROVISIONED_NAME_BYTES];
    struct table_walk walk = {.at = 0};

    if (!volume_offers_fit(cluster, claim))
        return NULL;
    while ((volume = cluster_next_resource(cluster, KIND_VOLUME, &walk)) != NULL)
        if (volume_offer_fits(volume, claim) &&
            (first == NULL || slice_compare(resource_name(volume, a), resource_name(first, b)) < 0))
            first = volume;
    return first;
}

bool volume_offers_other_class(const struct cluster *cluster, const struct claim *claim,
                               struct slice *class)
{
    const struct resource *volume = cluster_find_volume(cluster, claim);
    struct slice storage_class;

    if (volume == NULL || resource_attribute(volume, VOLUME_OFFER).len == 0 ||
        resource_attribute(volume, VOLUME_KEPT_FOR).len != 0)
        return false;
    volume_offer_classes(resource_attribute(volume, VOLUME_OFFER), &storage_class, class);
    return !slice_equal(*class, name_slice(claim_volume_attributes_class(claim)));
}
