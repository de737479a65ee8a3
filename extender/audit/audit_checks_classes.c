/* VolumeAttributesClasses of claims. */
#include <stdlib.h>

#include "extender/audit/audit_checks_internal.h"

/* A claim that names a class. */
struct classed {
    const struct claim_record *claim;
    struct audit_place place;
    bool has_it; /* the volume has the class */
};

/* ---- available volumes ---- */

/* The available volumes that have a class, sorted by it. */
struct offers {
    const struct volume_record **volumes;
    size_t count;
};

static bool is_offer(const struct record *record)
{
    const struct volume_record *volume = (const struct volume_record *)record;
    return volume->is_available && volume->classes != NULL;
}

static int compare_offers(const void *a, const void *b)
{
    const struct volume_record *const *x = a, *const *y = b;
    return slice_compare((*x)->classes->class, (*y)->classes->class);
}

/* False: no memory. Ownership: free(out->volumes). */
static bool find_offers(const struct inventory *inventory, struct offers *out)
{
    size_t count = 0;

    *out = (struct offers){.volumes = NULL};
    for (const struct record *at = inventory->first[RECORD_VOLUME]; at != NULL; at = at->next)
        count += is_offer(at);
    if (count == 0)
        return true;
    out->volumes = calloc(count, sizeof *out->volumes);
    if (out->volumes == NULL)
        return false;
    for (const struct record *at = inventory->first[RECORD_VOLUME]; at != NULL; at = at->next)
        if (is_offer(at))
            out->volumes[out->count++] = (const struct volume_record *)at;
    qsort((void *)out->volumes, out->count, sizeof *out->volumes, compare_offers);
    return true;
}

/* Whether the claim may be bound to an available volume: then its class is not needed. */
static bool is_offered(const struct offers *offers, const struct claim_record *claim)
{
    size_t low = 0, high = offers->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(offers->volumes[middle]->classes->class, claim->classes->class) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < offers->count; low++) {
        const struct volume_classes *classes = offers->volumes[low]->classes;
        if (!slice_equal(classes->class, claim->classes->class))
            return false;
        if (volume_matches(&classes->offered, &claim->classes->wish))
            return true;
    }
    return false;
}

/* ---- claims ---- */

static void check_missing(struct audit_check *check, const struct classed *classed,
                          const struct offers *offers)
{
    const struct claim_record *claim = classed->claim;

    if (classed->has_it || !inventory_is_complete(check->inventory, RECORD_ATTRIBUTES_CLASS) ||
        (!claim->is_bound && is_offered(offers, claim)))
        return;
    audit_report_add(
        check->report, RULE_CLASS_MISSING, LEVEL_ERROR, classed->place,
        "VolumeAttributesClass %.*s does not exist, so %s", SLICE_ARG(claim->classes->class),
        claim->is_bound ? "the volume keeps its present class" : "no volume is provisioned");
}

static void check_driver(struct audit_check *check, const struct classed *classed,
                         const struct plain_record *class)
{
    struct slice driver = claim_driver(check->inventory, classed->claim);

    if (driver.len == 0 || class->text.len == 0 || slice_equal(driver, class->text))
        return;
    audit_report_add(check->report, RULE_CLASS_OTHER_DRIVER, LEVEL_ERROR, classed->place,
                     "VolumeAttributesClass %.*s is for driver %.*s, and the claim's %s %.*s",
                     SLICE_ARG(classed->claim->classes->class), SLICE_ARG(class->text),
                     claim_volume(check->inventory, classed->claim) != NULL ? "volume is of driver"
                                                                            : "provisioner is",
                     SLICE_ARG(driver));
}

static void check_status(struct audit_check *check, const struct classed *classed)
{
    const struct claim_record *claim = classed->claim;
    const struct claim_classes *classes = claim->classes;
    struct slice current = classes->current.len == 0 ? SLICE("no class") : classes->current;

    if (slice_equal(classes->modify_status, SLICE("Infeasible")))
        audit_report_add(check->report, RULE_CLASS_INFEASIBLE, LEVEL_WARNING, classed->place,
                         "the driver has refused VolumeAttributesClass %.*s; the volume keeps %.*s",
                         SLICE_ARG(classes->target.len == 0 ? classes->class : classes->target),
                         SLICE_ARG(current));
    else if (claim->is_bound && classes->modify_status.len == 0 && !classed->has_it)
        audit_report_add(
            check->report, RULE_CLASS_NOT_APPLIED, LEVEL_WARNING, classed->place,
            "VolumeAttributesClass %.*s is not being applied: the volume has %.*s, and the status "
            "has no modification",
            SLICE_ARG(claim->classes->class), SLICE_ARG(current));
}

static void check_claim(struct audit_check *check, const struct claim_record *claim,
                        const struct offers *offers)
{
    const struct claim_classes *classes = claim->classes;
    struct classed classed = {
        claim, audit_place(&claim->record, classes->line, classes->column, classes->class),
        slice_equal(classes->class, classes->current)};
    const struct plain_record *class = (const struct plain_record *)inventory_find(
        check->inventory, RECORD_ATTRIBUTES_CLASS, SLICE(""), classes->class);

    check->has_class = true;
    if (class == NULL)
        check_missing(check, &classed, offers);
    else
        check_driver(check, &classed, class);
    if (class != NULL || !inventory_is_complete(check->inventory, RECORD_ATTRIBUTES_CLASS))
        check_status(check, &classed);
}

static void check_deleting(struct audit_check *check, const struct plain_record *class)
{
    const struct inventory *inventory = check->inventory;

    if (!class->is_deleting || class->is_named || !inventory_is_complete(inventory, RECORD_CLAIM))
        return;
    if (!inventory_is_complete(inventory, RECORD_VOLUME)) {
        check->has_deleting = true;
        return;
    }
    audit_report_add(check->report, RULE_CLASS_DELETING, LEVEL_NOTE,
                     audit_place(&class->record, 0, 0, SLICE("")),
                     "it is being deleted, and no claim and no volume of the input names it");
}

void audit_check_classes(struct audit_check *check)
{
    const struct inventory *inventory = check->inventory;
    struct offers offers;

    if (!find_offers(inventory, &offers)) {
        check->report->has_failed = true;
        return;
    }
    for (const struct record *at = inventory->first[RECORD_CLAIM]; at != NULL; at = at->next) {
        const struct claim_record *claim = (const struct claim_record *)at;
        if (claim->classes != NULL && claim->classes->class.len != 0)
            check_claim(check, claim, &offers);
    }
    free((void *)offers.volumes);
    for (const struct record *at = inventory->first[RECORD_ATTRIBUTES_CLASS]; at != NULL;
         at = at->next)
        check_deleting(check, (const struct plain_record *)at);
}
