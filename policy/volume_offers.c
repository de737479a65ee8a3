#include "policy/volume_offers.h"

#include "cache/objects/volume_match.h"

static struct volume_wish wish_of(const struct claim *claim, char uid[UID_TEXT_BYTES])
{
    const struct claim_rare *rare = claim_rare_at(claim->rare);
    struct volume_wish wish = {
        .ns = name_text(claim->ns),
        .name = claim_name(claim),
        .uid = uid_text(&claim->uid, uid),
        .storage_class = name_slice(claim_storage_class(claim)),
        .attributes_class = name_slice(claim_volume_attributes_class(claim)),
        .is_block = claim->is_block,
    };

    if (rare != NULL) {
        wish.selector = name_slice(rare->selector);
        wish.requested = rare->requested;
        wish.access_modes = rare->access_modes;
    }
    return wish;
}

/* key: of a volume with a volume_offer. */
static struct volume_offered offered_by(const struct resource_shape_key *key)
{
    struct volume_offered volume = {
        .labels = name_slice(key->attributes[VOLUME_LABELS]),
        .kept_for = name_slice(key->attributes[VOLUME_KEPT_FOR]),
        .capacity = key->capacity,
        .access_modes = (unsigned)(key->number >> VOLUME_ACCESS_SHIFT),
        .is_block = (key->number & VOLUME_IS_BLOCK) != 0,
    };

    volume_offer_classes(name_slice(key->attributes[VOLUME_OFFER]), &volume.storage_class,
                         &volume.attributes_class);
    return volume;
}

bool volume_offers_fit(const struct cluster *cluster, const struct claim *claim)
{
    char uid[UID_TEXT_BYTES];
    struct volume_wish wish = wish_of(claim, uid);
    const struct resource_shape *shape = cluster->offers;

    for (; shape != NULL; shape = shape->next_offer) {
        struct volume_offered volume = offered_by(&shape->key);
        if (volume_matches(&volume, &wish))
            return true;
    }
    return false;
}

bool volume_offers_other_class(const struct cluster *cluster, const struct claim *claim,
                               struct slice *class)
{
    const struct resource *volume = cluster_find_volume(cluster, claim);

    if (volume == NULL || resource_attribute(volume, VOLUME_OFFER).len == 0 ||
        resource_attribute(volume, VOLUME_KEPT_FOR).len != 0)
        return false;
    struct volume_offered offered = offered_by(&resource_shape_at(volume->shape)->key);
    *class = offered.attributes_class;
    return !slice_equal(*class, name_slice(claim_volume_attributes_class(claim)));
}
