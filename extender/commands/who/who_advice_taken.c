/* Hand-made volumes of a claim's class that would fit it, and are other claims'. */
#include "extender/commands/who/who_advice.h"
#include "policy/volume.h"

enum { SCRATCH_BYTES_MAX = 1 << 20 };

/* Whether the claim of another one has a volume that is large enough. */
static bool has_fit(const struct who_claim *claim, const struct claim *other, struct arena *scratch)
{
    const struct cluster *cluster = &claim->inquiry->cluster;
    const struct claim_rare *rare = claim_rare_at(claim->claim->rare);
    const struct resource *volume = volume_of(cluster, other);
    char name[PROVISIONED_NAME_BYTES];
    struct volume_details details;

    if (other == claim->claim || volume == NULL ||
        !slice_equal(name_slice(claim_storage_class(other)),
                     name_slice(claim_storage_class(claim->claim))))
        return false;
    struct slice text =
        inquiry_find_details(claim->inquiry, KIND_VOLUME, SLICE(""), resource_name(volume, name));
    arena_reset(scratch);
    return text.ptr != NULL && volume_details_read(text, scratch, &details) &&
           details.capacity != 0 && (rare == NULL || details.capacity >= rare->requested);
}

static bool comes_before(const struct claim *a, const struct claim *b)
{
    int order = slice_compare(name_text(a->ns), name_text(b->ns));

    return (order == 0 ? slice_compare(claim_name(a), claim_name(b)) : order) < 0;
}

struct slice advice_taken_text(const struct who_claim *claim)
{
    const struct claim *other, *first = NULL;
    struct table_walk walk = {.at = 0};
    struct arena scratch;
    size_t count = 0;
    char buffer[PROVISIONED_NAME_BYTES];

    arena_init(&scratch, SCRATCH_BYTES_MAX);
    while ((other = cluster_next_claim(&claim->inquiry->cluster, &walk)) != NULL) {
        if (!has_fit(claim, other, &scratch))
            continue;
        count++;
        first = first == NULL || comes_before(other, first) ? other : first;
    }
    arena_dispose(&scratch);
    return first == NULL
               ? SLICE("")
               : arena_printf(
                     claim->arena, "; %zu that would fit %s bound, %.*s to claim %.*s/%.*s", count,
                     count == 1 ? "is" : "are", SLICE_ARG(claim_volume_name(first, buffer)),
                     SLICE_ARG(name_text(first->ns)), SLICE_ARG(claim_name(first)));
}
