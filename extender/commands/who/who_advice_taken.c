/* Volumes of a claim's class that would fit it, and are other claims'. */
#include "extender/commands/who/who_advice.h"
#include "policy/volume.h"

enum { SCRATCH_BYTES_MAX = 1 << 20, VOLUMES_READ_MAX = 200 };

/* Whether another claim has a volume of the class, by what the cluster has of it. */
static bool may_fit(const struct who_claim *claim, const struct claim *other)
{
    const struct claim_rare *rare = claim_rare_at(claim->claim->rare);
    const struct resource *volume = volume_of(&claim->inquiry->cluster, other);
    bool wants_many = rare != NULL &&
                      (rare->access_modes & (ACCESS_READ_WRITE_MANY | ACCESS_READ_ONLY_MANY)) != 0;

    return other != claim->claim && volume != NULL && other->is_block == claim->claim->is_block &&
           (rare == NULL || rare->selector == NULL) &&
           !(wants_many && volume_is_for_one_node(volume)) &&
           claim_storage_class(other) == claim_storage_class(claim->claim);
}

static bool has_size(const struct who_claim *claim, const struct claim *other,
                     struct arena *scratch)
{
    const struct claim_rare *rare = claim_rare_at(claim->claim->rare);
    char name[PROVISIONED_NAME_BYTES];
    struct volume_details details;
    struct slice text = inquiry_find_details(claim->inquiry, KIND_VOLUME, SLICE(""),
                                             claim_volume_name(other, name));

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
    size_t count = 0, read = 0;
    char buffer[PROVISIONED_NAME_BYTES];

    arena_init(&scratch, SCRATCH_BYTES_MAX);
    while ((other = cluster_next_claim(&claim->inquiry->cluster, &walk)) != NULL) {
        if (!may_fit(claim, other))
            continue;
        if (read++ == VOLUMES_READ_MAX)
            break;
        if (!has_size(claim, other, &scratch))
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
