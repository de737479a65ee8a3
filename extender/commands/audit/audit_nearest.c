/* Of several objects of one name, the one that counts; and the volume of a claim. */
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

static bool is_kept_for(const struct resource *volume, const struct claim_record *claim)
{
    return slice_equal(resource_attribute(volume, VOLUME_CLAIM_NAME), claim->record.name) &&
           slice_equal(resource_attribute(volume, VOLUME_CLAIM_NAMESPACE),
                       name_text(claim->stored->ns));
}

static enum audit_match match_of(const struct volume_record *volume,
                                 const struct claim_record *claim)
{
    if (volume->stored == NULL)
        return MATCH_NONE;
    bool is_kept = is_kept_for(volume->stored, claim);
    if (claim_has_volume(claim->stored)) /* the volume has the name already */
        return is_kept || resource_attribute(volume->stored, VOLUME_CLAIM_NAME).len == 0
                   ? MATCH_NAMED
                   : MATCH_NONE;
    if (is_kept)
        return MATCH_KEPT;
    /* a claim without a class may get the default one */
    return claim->names_class && volume_offer_fits(volume->stored, claim->stored) ? MATCH_FITS
                                                                                  : MATCH_NONE;
}

static enum attachment attachment_of(struct audit_check *check, const struct resource *volume,
                                     const struct record *from)
{
    bool knows_drivers = inventory_is_complete(check->inventory, KIND_CSI_DRIVER);

    return volume_driver(volume).len == 0
               ? volume_attachment(check->cluster, volume, knows_drivers)
               : driver_attachment(check, volume_driver(volume), from,
                                   knows_drivers ? ATTACHMENT_YES : ATTACHMENT_UNKNOWN);
}

/* One more that matches as well as those before it, and is as near. */
static void add_candidate(struct audit_candidates *of, const struct volume_record *volume,
                          enum attachment attachment)
{
    const struct resource *stored = volume->stored, *first;

    if (of->first == NULL) {
        of->first = volume;
        of->attachment = attachment;
    }
    first = of->first->stored;
    of->attachment = of->attachment == attachment ? attachment : ATTACHMENT_UNKNOWN;
    of->is_any_for_one_node |= volume_is_for_one_node(stored);
    of->are_on_one_host &= volume->is_on_one_host;
    of->differ |= !slice_equal(volume_driver(stored), volume_driver(first)) ||
                  volume_is_for_one_node(stored) != volume_is_for_one_node(first) ||
                  volume->is_on_one_host != of->first->is_on_one_host;
}

/* Kept until another claim is asked about. */
static const struct audit_candidates *candidates_of(struct audit_check *check,
                                                    const struct claim_record *claim)
{
    struct audit_candidates *of = &check->candidates;
    char buffer[PROVISIONED_NAME_BYTES];
    bool is_named = claim_has_volume(claim->stored);
    const struct record *at = is_named ? inventory_find(check->inventory, KIND_VOLUME, SLICE(""),
                                                        claim_volume_name(claim->stored, buffer))
                                       : check->inventory->first[KIND_VOLUME];

    if (of->claim == claim)
        return of;
    *of = (struct audit_candidates){.claim = claim};
    for (; at != NULL; at = is_named ? at->same : at->next) {
        const struct volume_record *volume = (const struct volume_record *)at;
        enum audit_match match = match_of(volume, claim);
        size_t near = match == MATCH_NONE ? 0 : nearness(at, &claim->record);
        if (match == MATCH_NONE || match < of->match || (match == of->match && near < of->nearness))
            continue;
        if (match > of->match || near > of->nearness)
            *of = (struct audit_candidates){
                .claim = claim, .match = match, .nearness = near, .are_on_one_host = true};
        add_candidate(of, volume, attachment_of(check, volume->stored, &claim->record));
    }
    return of;
}

const struct resource *audit_volume_of(struct audit_check *check, const struct claim_record *claim)
{
    const struct resource *volume = cluster_find_volume(check->cluster, claim->stored);
    const struct audit_candidates *of = candidates_of(check, claim);

    if (volume != NULL) /* the claim need not be Bound */
        return resource_attribute(volume, VOLUME_CLAIM_NAME).len == 0
                   ? volume
                   : volume_of(check->cluster, claim->stored);
    if (of->match <= MATCH_FITS)
        return NULL;
    if (of->differ && of->match == MATCH_NAMED)
        note_differing(check, inventory_find(check->inventory, KIND_VOLUME, SLICE(""),
                                             of->first->record.name));
    return of->differ ? NULL : of->first->stored;
}

/* Whether the volume is of the class, and not for a claim of another one. */
static bool serves_class(const struct inventory *inventory, const struct resource *volume,
                         const struct name *class)
{
    struct slice claim_ns, claim_name, storage_class, attributes_class;

    if (volume == NULL || resource_attribute(volume, VOLUME_OFFER).len == 0)
        return false;
    volume_offer_classes(resource_attribute(volume, VOLUME_OFFER), &storage_class,
                         &attributes_class);
    if (!slice_equal(storage_class, name_slice(class)))
        return false;
    claim_ns = resource_attribute(volume, VOLUME_CLAIM_NAMESPACE);
    claim_name = resource_attribute(volume, VOLUME_CLAIM_NAME);
    if (claim_name.len == 0)
        return true;
    const struct claim_record *claim = inventory_find(inventory, KIND_CLAIM, claim_ns, claim_name);
    return claim != NULL && claim->stored != NULL && claim_storage_class(claim->stored) == class;
}

/* Whether manifests make a volume for each claim of the class: with fewer, the class makes others.
 */
static bool are_enough(struct audit_check *check, const struct claim_record *claim)
{
    const struct inventory *inventory = check->inventory;
    const struct name *class = claim_storage_class(claim->stored);
    size_t volumes = 0, claims = 0;

    if (check->counted_class == class)
        return check->are_enough;
    for (const struct record *at = inventory->first[KIND_VOLUME]; at != NULL; at = at->next)
        volumes += serves_class(inventory, ((const struct volume_record *)at)->stored, class);
    for (const struct record *at = inventory->first[KIND_CLAIM]; at != NULL; at = at->next) {
        const struct claim *other = ((const struct claim_record *)at)->stored;
        claims += other != NULL && !claim_has_volume(other) && claim_storage_class(other) == class;
    }
    check->counted_class = class;
    check->are_enough = volumes >= claims;
    return check->are_enough;
}

/* Whether the claim's volume is one of the candidates. */
static bool is_candidate(struct audit_check *check, const struct audit_candidates *of)
{
    return of->match > MATCH_FITS || (of->match == MATCH_FITS && are_enough(check, of->claim));
}

enum attachment audit_attachment(struct audit_check *check, const struct claim_record *claim)
{
    const struct resource *volume = audit_volume_of(check, claim);
    const struct audit_candidates *of = candidates_of(check, claim);

    if (volume != NULL)
        return attachment_of(check, volume, &claim->record);
    enum attachment by_class = class_attachment(check, claim);
    if (of->match == MATCH_NONE)
        return by_class;
    return of->attachment == by_class || is_candidate(check, of) ? of->attachment
                                                                 : ATTACHMENT_UNKNOWN;
}

bool audit_is_for_one_node(struct audit_check *check, const struct claim_record *claim)
{
    const struct resource *volume = audit_volume_of(check, claim);
    const struct audit_candidates *of = candidates_of(check, claim);

    if (volume != NULL)
        return volume_is_for_one_node(volume);
    return (claim->modes & ACCESS_READ_WRITE_ONCE) != 0 &&
           (claim->modes &
            (ACCESS_READ_WRITE_MANY | ACCESS_READ_ONLY_MANY | ACCESS_READ_WRITE_ONCE_POD)) == 0 &&
           (!is_candidate(check, of) || of->is_any_for_one_node);
}

bool audit_is_on_one_host(struct audit_check *check, const struct claim_record *claim)
{
    const struct audit_candidates *of = candidates_of(check, claim);

    return is_candidate(check, of) && of->are_on_one_host;
}
