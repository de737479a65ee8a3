/* Reservations of pods that are being created with their node. */
#include "cache/cluster/reservation_internal.h"

static unsigned share(const struct reservation *reservation)
{
    return share_of(name_slice(reservation->ns));
}

static void count(struct cluster *cluster, const struct reservation *reservation, int change)
{
    uint32_t bytes = (uint32_t)change * reservation->creation_bytes;

    cluster->creations += (size_t)change;
    cluster->creation_bytes += (size_t)change * reservation->creation_bytes;
    cluster->creations_in[share(reservation)].count += (unsigned)change;
    cluster->creations_in[share(reservation)].bytes += bytes;
}

static bool are_too_many(const struct cluster *cluster, const struct reservation *reservation)
{
    unsigned in = share(reservation);
    uint32_t bytes = reservation->creation_bytes;

    return share_is_over(cluster->creations_in[in].count, cluster->creations, CREATIONS_MAX,
                         CREATIONS_SHARE) ||
           share_is_over(cluster->creations_in[in].bytes + bytes, cluster->creation_bytes + bytes,
                         CREATIONS_BYTES_MAX, CREATIONS_SHARE);
}

/* At most: other pods may name the same claims. */
static uint32_t bytes_of(const struct pod_object *pod)
{
    size_t bytes = sizeof(struct reservation) + pod->meta.name.len;

    for (size_t i = 0; i < pod->claim_count; i++)
        bytes += sizeof(struct claim *) + CLAIM_BYTES + pod->claims[i].name.len;
    return (uint32_t)bytes;
}

/* Whether the claim will be created for the pod of another such reservation. */
static bool is_of_other(const struct claim *claim, const struct reservation *reservation)
{
    const struct reservation *other = reservation_at(claim->reservation);

    return other != NULL && reservation_binds(other) &&
           memcmp(&other->uid, &reservation->uid, sizeof other->uid) != 0;
}

/* False: no memory. */
static bool add_future_claims(struct cluster *cluster, struct reservation *reservation,
                              const struct pod_object *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        if (!pod->claims[i].is_ephemeral)
            continue;
        struct claim *claim = claim_get_or_create(cluster, reservation->ns, pod->claims[i].name);
        if (claim == NULL)
            return false;
        if (!claim->exists && !is_of_other(claim, reservation))
            reservation_add_exclusive(reservation, claim);
    }
    return true;
}

int reservation_begin_creation(struct cluster *cluster, struct reservation *reservation,
                               const struct reservation *former, const struct pod_object *pod,
                               struct error *err)
{
    bool is_known = former != NULL && former->is_creation;

    reservation->creation_bytes = bytes_of(pod);
    if (!is_known && are_too_many(cluster, reservation))
        return error_set(err, ERROR_UNAVAILABLE,
                         "over %d pods that name their node are being created, or their claims' "
                         "names take over %d MiB, or as much of either as the namespace may have",
                         CREATIONS_MAX, CREATIONS_BYTES_MAX >> 20);
    reservation->is_creation = true;
    count(cluster, reservation, 1);
    return add_future_claims(cluster, reservation, pod) ? 0 : error_no_memory(err);
}

void reservation_end_creation(struct cluster *cluster, const struct reservation *reservation)
{
    count(cluster, reservation, -1);
}
