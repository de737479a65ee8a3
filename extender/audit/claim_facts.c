#include "extender/audit/claim_facts.h"

#include "cache/objects/objects.h"

const struct claim_record *claim_of_use(const struct inventory *inventory, struct slice ns,
                                        const struct volume_use *use)
{
    const struct claim_record *claim;

    if (use->is_inline || use->name.len == 0)
        return NULL;
    claim = (const struct claim_record *)inventory_find(inventory, RECORD_CLAIM, ns, use->name);
    return claim == NULL || claim->is_ambiguous ? NULL : claim;
}

static bool is_of_claim(const struct inventory *inventory, const struct volume_record *volume,
                        const struct claim_record *claim)
{
    return volume->claim == 0 ||
           volume->claim == inventory_claim_hash(inventory, claim->record.ns, claim->record.name);
}

const struct volume_record *claim_volume(const struct inventory *inventory,
                                         const struct claim_record *claim)
{
    const struct volume_record *volume;

    if (claim->volume.len == 0)
        return NULL;
    volume = (const struct volume_record *)inventory_find(inventory, RECORD_VOLUME, SLICE(""),
                                                          claim->volume);
    return volume != NULL && is_of_claim(inventory, volume, claim) ? volume : NULL;
}

bool claim_is_for_one_node(const struct inventory *inventory, const struct claim_record *claim)
{
    const struct volume_record *volume = claim_volume(inventory, claim);
    unsigned modes = claim->modes;

    if (volume != NULL)
        return volume->is_for_one_node;
    return (modes & ACCESS_READ_WRITE_ONCE) != 0 &&
           (modes &
            (ACCESS_READ_WRITE_MANY | ACCESS_READ_ONLY_MANY | ACCESS_READ_WRITE_ONCE_POD)) == 0;
}

static struct slice provisioner(const struct inventory *inventory, const struct claim_record *claim)
{
    const struct plain_record *class;

    if (claim->storage_class.len == 0)
        return SLICE("");
    class = (const struct plain_record *)inventory_find(inventory, RECORD_STORAGE_CLASS, SLICE(""),
                                                        claim->storage_class);
    if (class == NULL)
        return SLICE("");
    struct slice driver = in_tree_driver(class->text);
    return driver.len != 0 ? driver : class->text;
}

struct slice claim_driver(const struct inventory *inventory, const struct claim_record *claim)
{
    const struct volume_record *volume = claim_volume(inventory, claim);

    if (volume != NULL)
        return volume->driver;
    return claim->volume.len != 0 ? SLICE("") : provisioner(inventory, claim);
}

/* A CSIDriver's attachRequired. Without an object, a driver's volumes are attached. */
static enum attachment driver_attachment(const struct inventory *inventory, struct slice name,
                                         bool is_csi)
{
    const struct plain_record *driver =
        name.len == 0 ? NULL
                      : (const struct plain_record *)inventory_find(inventory, RECORD_CSI_DRIVER,
                                                                    SLICE(""), name);

    if (driver != NULL)
        return driver->does_not_attach ? ATTACHMENT_NO : ATTACHMENT_YES;
    return is_csi && inventory_is_complete(inventory, RECORD_CSI_DRIVER) ? ATTACHMENT_YES
                                                                         : ATTACHMENT_UNKNOWN;
}

enum attachment claim_attachment(const struct inventory *inventory,
                                 const struct claim_record *claim)
{
    const struct volume_record *volume = claim_volume(inventory, claim);

    if (volume == NULL) /* a provisioner need not be a CSI driver */
        return driver_attachment(inventory, provisioner(inventory, claim), false);
    if (volume->driver.len != 0)
        return driver_attachment(inventory, volume->driver, true);
    return volume->is_attached_in_tree ? ATTACHMENT_YES : ATTACHMENT_NO;
}
