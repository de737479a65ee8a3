#include "policy/bound_volume.h"

bool bound_volume_is_of(const struct resource *volume, const struct claim *claim)
{
    return slice_equal(resource_attribute(volume, VOLUME_CLAIM_NAMESPACE), name_text(claim->ns)) &&
           slice_equal(resource_attribute(volume, VOLUME_CLAIM_NAME), claim_name(claim));
}

const struct resource *bound_volume_find(const struct cluster *cluster, const struct claim *claim)
{
    /* the phase is written last: kube-scheduler binds a pod before it says Bound */
    bool may_be = claim_phase(claim) != CLAIM_LOST;
    const struct resource *volume = may_be ? cluster_find_volume(cluster, claim) : NULL;

    if (volume == NULL || bound_volume_is_of(volume, claim))
        return volume;
    return resource_attribute(volume, VOLUME_CLAIM_NAME).len == 0 &&
                   claim_phase(claim) == CLAIM_BOUND
               ? volume
               : NULL;
}

struct slice bound_volume_driver(const struct resource *volume)
{
    struct slice driver = resource_attribute(volume, VOLUME_DRIVER);

    return driver.len != 0 ? driver : in_tree_driver(resource_attribute(volume, VOLUME_IN_TREE));
}

struct slice bound_volume_provisioner(const struct cluster *cluster, const struct claim *claim,
                                      struct slice *plugin)
{
    const struct resource *class =
        cluster_find_resource(cluster, KIND_STORAGE_CLASS, name_slice(claim_storage_class(claim)));
    struct slice provisioner =
        class == NULL ? SLICE("") : resource_attribute(class, STORAGE_CLASS_PROVISIONER);
    struct slice driver = in_tree_driver(provisioner);

    *plugin = driver.len != 0 ? provisioner : SLICE("");
    return driver.len != 0 ? driver : provisioner;
}
