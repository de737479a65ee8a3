/* Of several objects of one name, the one that counts. */
#include "extender/commands/audit/audit_checks.h"

/* ---- the nearest ---- */

/* The folders that both are in, and one more for the same file. */
static size_t nearness(const struct record *a, const struct record *b)
{
    const char *x = a->spot.path, *y = b->spot.path;
    size_t folders = 0;

    if (x == NULL || y == NULL)
        return 0;
    for (; *x == *y && *x != '\0'; x++, y++)
        folders += *x == '/';
    return folders + (*x == *y);
}

static size_t best_nearness(const struct record *first, const struct record *from)
{
    size_t best = 0;

    for (const struct record *at = first; at != NULL; at = at->same) {
        size_t this = nearness(at, from);
        best = this > best ? this : best;
    }
    return best;
}

/* From `at` on, the next one that is so near. */
static struct record *next_near(struct record *at, const struct record *from, size_t best)
{
    while (at != NULL && nearness(at, from) < best)
        at = at->same;
    return at;
}

static void note_differing(struct audit_check *check, struct record *first)
{
    struct audit_report *report = check->report;

    if (first == NULL || first->is_noted)
        return;
    first->is_noted = true;
    audit_note(check, &check->differing,
               arena_printf(&report->arena, "%s %.*s", kind_text((enum kind)first->kind),
                            SLICE_ARG(audit_name(report, first->ns, first->name))));
}

/* ---- claims ---- */

/* The same claim in a cluster, which knows its volume; else `claim`. */
static struct claim_record *bound_twin(struct record *first, struct claim_record *claim)
{
    if (claim->stored != NULL && claim_phase(claim->stored) == CLAIM_BOUND)
        return claim;
    for (struct record *at = first; at != NULL; at = at->same) {
        struct claim_record *twin = (struct claim_record *)at;
        if (twin->modes == claim->modes && twin->stored != NULL &&
            claim_phase(twin->stored) == CLAIM_BOUND)
            return twin;
    }
    return claim;
}

struct claim_record *audit_claim_of(struct audit_check *check, const struct record *record,
                                    const struct volume_use *use)
{
    struct record *first =
        use->is_inline || use->name.len == 0
            ? NULL
            : inventory_find(check->inventory, KIND_CLAIM, record->ns, use->name);
    size_t best = best_nearness(first, record);
    struct claim_record *claim = (struct claim_record *)next_near(first, record, best);

    if (claim == NULL)
        return NULL;
    for (const struct record *at = next_near(claim->record.same, record, best); at != NULL;
         at = next_near(at->same, record, best))
        if (((const struct claim_record *)at)->modes != claim->modes) {
            note_differing(check, first);
            return NULL;
        }
    claim = bound_twin(first, claim);
    return claim->stored == NULL ? NULL : claim;
}

/* ---- drivers ---- */

/* By the CSIDrivers of that name; without one, `otherwise`, unless its name shows it. */
static enum attachment driver_attachment(struct audit_check *check, struct slice name,
                                         const struct record *from, enum attachment otherwise)
{
    struct record *first = inventory_find(check->inventory, KIND_CSI_DRIVER, SLICE(""), name);
    size_t best = best_nearness(first, from);
    enum attachment all = in_tree_driver_attaches(name) ? ATTACHMENT_YES : otherwise;

    for (struct record *at = next_near(first, from, best), *before = NULL; at != NULL;
         before = at, at = next_near(at->same, from, best)) {
        enum attachment one =
            ((const struct driver_record *)at)->attaches ? ATTACHMENT_YES : ATTACHMENT_NO;
        if (before != NULL && one != all) {
            note_differing(check, first);
            return ATTACHMENT_UNKNOWN;
        }
        all = one;
    }
    return all;
}

bool audit_refuses_inline(struct audit_check *check, const struct record *record,
                          struct driver_record *driver)
{
    struct record *first = &driver->record;
    size_t best = best_nearness(first, record), refusing = 0, all = 0;

    for (const struct record *at = next_near(first, record, best); at != NULL;
         at = next_near(at->same, record, best), all++)
        refusing += !words_have(((const struct driver_record *)at)->modes, SLICE("Ephemeral"));
    if (refusing != 0 && refusing != all)
        note_differing(check, first);
    return refusing == all;
}

/* ---- StorageClasses ---- */

/* Those that a claim may mean: of the name that it names, or default ones. */
struct classes {
    const struct record *claim;
    struct record *first;
    bool are_default;    /* those of the input, which are of several names */
    struct slice newest; /* of default ones: the API server takes the one that was made last */
    size_t nearness;
};

static struct record *next_class(const struct classes *classes, struct record *at)
{
    do {
        const struct class_record *class;
        at = at == NULL ? classes->first : classes->are_default ? at->next : at->same;
        class = (const struct class_record *)at;
        if (class != NULL && classes->are_default &&
            (!class->is_default || slice_compare(class->created, classes->newest) < 0))
            continue;
        if (class == NULL || nearness(at, classes->claim) >= classes->nearness)
            break;
    } while (at != NULL);
    return at;
}

static struct classes classes_of(const struct audit_check *check, const struct claim_record *claim)
{
    const struct inventory *inventory = check->inventory;
    struct slice name = name_slice(claim_storage_class(claim->stored));
    struct classes classes = {.claim = &claim->record,
                              .newest = SLICE(""),
                              .are_default = name.len == 0 && !claim->names_class &&
                                             claim_phase(claim->stored) != CLAIM_BOUND};
    size_t nearest = 0;

    classes.first = classes.are_default ? inventory->first[KIND_STORAGE_CLASS]
                    : name.len == 0
                        ? NULL
                        : inventory_find(inventory, KIND_STORAGE_CLASS, SLICE(""), name);
    for (struct record *at = NULL; (at = next_class(&classes, at)) != NULL;)
        if (classes.are_default)
            classes.newest = ((const struct class_record *)at)->created;
    for (struct record *at = NULL; (at = next_class(&classes, at)) != NULL;) {
        size_t this = nearness(at, &claim->record);
        nearest = this > nearest ? this : nearest;
    }
    classes.nearness = nearest;
    return classes;
}

/* Its CSI driver, as volume_provisioner has it. */
static struct slice provisioner_of(const struct record *class)
{
    struct slice provisioner = ((const struct class_record *)class)->provisioner;
    struct slice driver = in_tree_driver(provisioner);

    return driver.len != 0 ? driver : provisioner;
}

struct slice audit_driver_of(struct audit_check *check, const struct claim_record *claim)
{
    const struct resource *volume = audit_volume_of(check, claim);
    struct slice driver = SLICE("");

    if (volume != NULL || claim_has_volume(claim->stored))
        return volume == NULL ? SLICE("") : volume_driver(volume);
    struct classes classes = classes_of(check, claim);
    for (struct record *at = NULL; (at = next_class(&classes, at)) != NULL;) {
        struct slice one = provisioner_of(at);
        if (driver.len != 0 && !slice_equal(driver, one)) {
            note_differing(check, at);
            return SLICE("");
        }
        driver = one;
    }
    return driver;
}

/* By the drivers of the classes, which have to agree. */
static enum attachment class_attachment(struct audit_check *check, const struct claim_record *claim)
{
    struct classes classes = classes_of(check, claim);
    enum attachment all = ATTACHMENT_UNKNOWN;

    for (struct record *at = NULL, *before = NULL; (at = next_class(&classes, at)) != NULL;
         before = at) {
        enum attachment one =
            driver_attachment(check, provisioner_of(at), &claim->record, ATTACHMENT_UNKNOWN);
        if (before != NULL && one != all) {
            note_differing(check, at);
            return ATTACHMENT_UNKNOWN;
        }
        all = one;
    }
    return all;
}

/* ---- volumes ---- */

static enum attachment attachment_of(struct audit_check *check, const struct resource *volume,
                                     const struct record *from)
{
    bool knows_drivers = inventory_is_complete(check->inventory, KIND_CSI_DRIVER);

    return volume_driver(volume).len == 0
               ? volume_attachment(check->cluster, volume, knows_drivers)
               : driver_attachment(check, volume_driver(volume), from,
                                   knows_drivers ? ATTACHMENT_YES : ATTACHMENT_UNKNOWN);
}

static size_t count_claims_of(const struct inventory *inventory, struct slice class)
{
    size_t count = 0;

    for (const struct record *at = inventory->first[KIND_CLAIM]; at != NULL; at = at->next) {
        const struct claim *claim = ((const struct claim_record *)at)->stored;
        count += claim != NULL && slice_equal(name_slice(claim_storage_class(claim)), class);
    }
    return count;
}

/* NO if manifests make a volume by hand for each claim of the class, and none of these is attached:
 * the volume is one of them, whichever it is. */
static enum attachment made_attachment(struct audit_check *check, const struct claim_record *claim)
{
    struct slice class = name_slice(claim_storage_class(claim->stored));
    const struct inventory *inventory = check->inventory;
    size_t count = 0;

    for (const struct record *at = inventory->first[KIND_VOLUME]; at != NULL; at = at->next) {
        const struct name *of = ((const struct volume_record *)at)->class;
        if (of == NULL || !slice_equal(name_slice(of), class))
            continue;
        const struct resource *volume =
            cluster_find_resource(check->cluster, KIND_VOLUME, at->name);
        if (volume == NULL || attachment_of(check, volume, at) != ATTACHMENT_NO)
            return ATTACHMENT_UNKNOWN;
        count++;
    }
    return count != 0 && count >= count_claims_of(inventory, class) ? ATTACHMENT_NO
                                                                    : ATTACHMENT_UNKNOWN;
}

enum attachment audit_attachment(struct audit_check *check, const struct claim_record *claim)
{
    const struct resource *volume = audit_volume_of(check, claim);

    if (volume != NULL)
        return attachment_of(check, volume, &claim->record);
    enum attachment by_class = class_attachment(check, claim);
    return by_class != ATTACHMENT_UNKNOWN ? by_class : made_attachment(check, claim);
}
