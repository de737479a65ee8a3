/* Causes: a volume that is not the claim's, or is being deleted; and what differs between a volume
 * and a claim. */
#include "extender/commands/why/why_internal.h"

/* ---- texts ---- */

struct slice why_size(int64_t bytes, struct arena *arena)
{
    static const struct {
        int64_t bytes;
        const char *unit;
    } units[] = {{(int64_t)1 << 40, "Ti"}, {1 << 30, "Gi"},   {1 << 20, "Mi"},
                 {1000000000000, "T"},     {1000000000, "G"}, {1000000, "M"}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (bytes >= units[i].bytes && bytes % units[i].bytes == 0)
            return arena_printf(arena, "%lld%s", (long long)(bytes / units[i].bytes),
                                units[i].unit);
    return bytes < 1 << 20 ? arena_printf(arena, "%lld", (long long)bytes)
                           : arena_printf(arena, "%lldMi", (long long)(bytes >> 20));
}

/* "ReadWriteOnce, ReadWriteMany". {NULL, 0}: no memory. */
static struct slice modes_text(unsigned modes, struct arena *arena)
{
    struct slice text = SLICE("");
    bool ok = true;

    for (unsigned i = 0; i < ACCESS_MODES; i++)
        if ((modes & 1U << i) != 0)
            ok = ok && (text.len == 0 || arena_append(arena, &text, SLICE(", "))) &&
                 arena_append(arena, &text, slice_of(access_mode_texts[i]));
    return ok ? text : (struct slice){NULL, 0};
}

/* "type in a b, tier exists": a selector as in label_selector.h. {NULL, 0}: no memory. */
static struct slice selector_text(struct slice selector, struct arena *arena)
{
    struct slice text = SLICE("");
    bool ok = true;

    (void)slice_cut(&selector, '\n'); /* the mark of a selector */
    while (selector.len != 0 && ok) {
        struct slice line = slice_cut(&selector, '\n');
        ok = (text.len == 0 || arena_append(arena, &text, SLICE(", "))) &&
             arena_append(arena, &text, line);
    }
    return ok ? text : (struct slice){NULL, 0};
}

static struct slice or_none(struct slice name)
{
    return name.len == 0 ? SLICE("\"\"") : name;
}

struct slice why_maker(struct why_pod *pod, const struct why_claim *claim)
{
    return why_is_of_template(pod, claim)
               ? arena_printf(pod->arena, ", and StatefulSet %.*s with a template like it",
                              SLICE_ARG(pod->who.owner.name))
               : SLICE("");
}

/* ---- a volume that does not fit ---- */

/* What the volume has of that, and what the claim asks for. */
struct difference {
    struct slice has, wants;
};

static struct difference difference_of(const struct why_pod *pod, const struct claim *claim,
                                       const struct resource *volume, enum misfit misfit)
{
    static const struct claim_rare none;
    const struct claim_rare *rare = claim->rare.step == 0 ? &none : claim_rare_at(claim->rare);
    const struct resource_shape_key *shape = &resource_shape_at(volume->shape)->key;
    unsigned modes = (unsigned)(shape->number >> VOLUME_ACCESS_SHIFT);
    struct slice class, attributes_class, filesystem = SLICE("Filesystem"), block = SLICE("Block");

    volume_offer_classes(resource_attribute(volume, VOLUME_OFFER), &class, &attributes_class);
    switch (misfit) {
    case MISFIT_SIZE:
        return (struct difference){why_size(shape->capacity, pod->arena),
                                   why_size(rare->requested, pod->arena)};
    case MISFIT_ACCESS:
        return (struct difference){modes_text(modes, pod->arena),
                                   modes_text(rare->access_modes, pod->arena)};
    case MISFIT_MODE:
        return claim->is_block ? (struct difference){filesystem, block}
                               : (struct difference){block, filesystem};
    case MISFIT_ATTRIBUTES_CLASS:
        return (struct difference){or_none(attributes_class),
                                   or_none(name_slice(claim_volume_attributes_class(claim)))};
    case MISFIT_SELECTOR:
        return (struct difference){.wants = selector_text(name_slice(rare->selector), pod->arena)};
    case MISFIT_KEPT:
        return (struct difference){resource_attribute(volume, VOLUME_CLAIM_NAME),
                                   claim_name(claim)};
    default:
        return (struct difference){or_none(class), or_none(name_slice(claim_storage_class(claim)))};
    }
}

void why_help_misfit(struct why_pod *pod, const struct why_claim *claim,
                     const struct resource *volume, enum misfit misfit)
{
    static const struct {
        const char *field, *help;
    } rows[] = {
        [MISFIT_CLASS] = {"storageClassName ", "create the claim again with that of the volume"},
        [MISFIT_SIZE] =
            {"",
             "create a volume of that size, with the claim in its claimRef, so that no smaller one "
             "takes it; or the claim again with less"},
        [MISFIT_KEPT] = {"claimRef ", "remove it, or name another volume in a new claim"},
        [MISFIT_MODE] = {"volumeMode ", "both stay so, so create a volume, or the claim again"},
        [MISFIT_ACCESS] = {"", "add that to the volume's accessModes, if its storage can do it; "
                               "else create the claim again with less"},
        [MISFIT_ATTRIBUTES_CLASS] = {"volumeAttributesClassName ",
                                     "create the claim again with that of the volume"},
        [MISFIT_SELECTOR] = {"", ""},
    };
    struct difference difference = difference_of(pod, claim->who.claim, volume, misfit);
    struct slice maker = why_maker(pod, claim);
    char buffer[PROVISIONED_NAME_BYTES];
    const char *help = misfit == MISFIT_SIZE && claim->is_bound /* it wants this volume */
                           ? "create the claim again with at most that"
                           : rows[misfit].help;

    if (misfit == MISFIT_SELECTOR)
        why_help(pod,
                 "no Available volume has the labels of the claim's selector (%.*s): label the "
                 "volume that is meant, or create one",
                 SLICE_ARG(difference.wants));
    else
        why_help(pod, "volume %.*s has %s%.*s, and the claim asks for %.*s: %s%.*s",
                 SLICE_ARG(resource_name(volume, buffer)), rows[misfit].field,
                 SLICE_ARG(difference.has), SLICE_ARG(difference.wants), help, SLICE_ARG(maker));
}

/* ---- the volume of an earlier claim ---- */

bool why_help_earlier(struct why_pod *pod, const struct why_claim *claim)
{
    const struct resource *volume = volume_of_earlier(&pod->inquiry->cluster, claim->who.claim);
    struct who_claim earlier = claim->who;
    char buffer[PROVISIONED_NAME_BYTES];
    struct slice text;

    if (volume == NULL)
        return false;
    earlier.volume = arena_copy(pod->texts, resource_name(volume, buffer));
    bool is_read = earlier.volume.ptr != NULL && who_details(&text, pod->inquiry, KIND_VOLUME,
                                                             SLICE(""), earlier.volume, pod->arena);
    if (!is_read || text.ptr == NULL ||
        !volume_details_read(text, pod->arena, &earlier.volume_details) ||
        uid_is(&claim->who.claim->uid, earlier.volume_details.claim_uid)) {
        pod->has_failed = pod->has_failed || !is_read;
        return false;
    }
    earlier.is_of_earlier = true;
    why_help_all(pod, who_bound_by(&earlier, pod->texts));
    return true;
}

/* ---- its volume ---- */

/* A volume that is there, and that the claim names, and is not bound to. */
static void help_named(struct why_pod *pod, const struct why_claim *claim,
                       const struct resource *volume)
{
    struct slice ns = resource_attribute(volume, VOLUME_CLAIM_NAMESPACE);
    struct slice name = resource_attribute(volume, VOLUME_CLAIM_NAME);
    enum misfit misfit = volume_misfit(volume, claim->who.claim, true);
    bool is_same = slice_equal(name, claim_name(claim->who.claim));
    const struct resource *free = volume_free_for(&pod->inquiry->cluster, claim->who.claim);
    char buffer[PROVISIONED_NAME_BYTES];
    struct slice free_name = free == NULL ? SLICE("") : resource_name(free, buffer);

    if (name.len != 0 && ns.len == 0 && is_same)
        why_help(pod, "the volume's claimRef has no namespace: set it to %.*s",
                 SLICE_ARG(name_text(claim->who.claim->ns)));
    else if (name.len != 0 && !(is_same && slice_equal(ns, name_text(claim->who.claim->ns))))
        why_help(pod,
                 "claim %.*s/%.*s has that volume: name another one%s%.*s%s in a new claim (a "
                 "claim's volumeName cannot be changed)",
                 SLICE_ARG(ns), SLICE_ARG(name), free == NULL ? "" : " (", SLICE_ARG(free_name),
                 free == NULL ? "" : " fits)");
    else if (misfit != MISFIT_NONE)
        why_help_misfit(pod, claim, volume, misfit);
    else
        why_help(pod, "wait, if it is Available; else name another volume in a new claim");
}

void why_volume_missing(struct why_pod *pod, const struct why_claim *claim)
{
    const struct cluster *cluster = &pod->inquiry->cluster;
    const struct claim *record = claim->who.claim;
    if (!record->exists || claim_phase(record) == CLAIM_LOST || !claim->is_bound ||
        claim->volume != NULL || !why_knows(pod, KIND_VOLUME))
        return;
    const struct resource *other = cluster_find_resource(cluster, KIND_VOLUME, claim->who.volume);
    if (other == NULL)
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "volume %.*s of claim %.*s/%.*s does not exist", SLICE_ARG(claim->who.volume),
                CLAIM_ARG(claim));
    else
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "claim %.*s/%.*s names volume %.*s, which is not bound to it%s", CLAIM_ARG(claim),
                SLICE_ARG(claim->who.volume),
                claim->who.is_of_earlier ? ": its claimRef.uid is that of an earlier claim" : "");
    if (claim->who.is_of_earlier) {
        why_help_all(pod, who_bound_by(&claim->who, pod->texts));
        return;
    }
    if (other != NULL)
        help_named(pod, claim, other);
    else if (claim_phase(record) == CLAIM_BOUND)
        why_help_all(pod, who_bound_by(&claim->who, pod->texts));
    else
        why_help(pod, "wait, if a provisioner makes it; else create the PersistentVolume, or a new "
                      "claim");
}

void why_volume_deleting(struct why_pod *pod, const struct why_claim *claim)
{
    bool is_late = pod->stage != WHY_RUNNING && who_is_attachable(&claim->who);
    bool is_of_set = why_is_of_template(pod, claim);
    if (claim->volume_details->deletion_timestamp.len == 0)
        return;
    why_add(pod, is_late && pod->stage == WHY_STARTING ? WHY_BLOCKS : WHY_LATER,
            why_volume_reference(claim),
            "volume %.*s of claim %.*s/%.*s is being deleted: it goes when the claim does%s",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim),
            is_late ? ", and is attached to no node any more" : "");
    why_help_all(pod, who_deletion(&claim->who, pod->texts));
    why_help(pod,
             "%s%.*s%sdelete the claim, and create the PersistentVolume for its storage, and the "
             "claim again: a deletion cannot be undone",
             is_of_set ? "scale StatefulSet " : "",
             SLICE_ARG(is_of_set ? pod->who.owner.name : SLICE("")),
             is_of_set ? " to 0, which makes an empty claim else; then " : "");
}
