/* Reservations of pods that are being created with their node. */
#include "cache/cluster/reservation_internal.h"

/* How many there are in the namespace, and in those that share its counter. */
static uint16_t *count_of(struct cluster *cluster, const struct reservation *reservation)
{
    return &cluster->creations_in[share_of(name_slice(reservation->ns))];
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

    if (!is_known && (cluster->creations >= CREATIONS_MAX ||
                      *count_of(cluster, reservation) >= NAMESPACE_CREATIONS_MAX))
        return error_set(err, ERROR_UNAVAILABLE,
                         "over %d pods that name their node are being created, or over %d in the "
                         "namespace",
                         CREATIONS_MAX, NAMESPACE_CREATIONS_MAX);
    reservation->is_creation = true;
    cluster->creations++;
    ++*count_of(cluster, reservation);
    return add_future_claims(cluster, reservation, pod) ? 0 : error_no_memory(err);
}

void reservation_end_creation(struct cluster *cluster, const struct reservation *reservation)
{
    cluster->creations--;
    --*count_of(cluster, reservation);
}
