/* Who shares a claim that a pod is being bound with. */
#include "cache/cluster/cluster.h"
#include "cache/cluster/reservation.h"

static bool shares(const struct reservation *reservation, const struct claim *claim)
{
    for (size_t i = 0; i < reservation->shared_count; i++)
        if (reservation->claims[reservation->claim_count + i] == claim)
            return true;
    return false;
}

const struct reservation *reservation_next_sharing(const struct cluster *cluster,
                                                   const struct claim *claim,
                                                   const struct reservation *after)
{
    const struct reservation *next = after == NULL ? cluster->sharing : after->next_sharing;

    if (claim->sharers == 0)
        return NULL;
    while (next != NULL && !shares(next, claim))
        next = next->next_sharing;
    return next;
}

const struct reservation *reservation_sharing(const struct cluster *cluster,
                                              const struct claim *claim,
                                              const struct pod_object *pod)
{
    const struct reservation *found = reservation_next_sharing(cluster, claim, NULL);

    while (found != NULL && uid_is(&found->uid, pod->meta.uid))
        found = reservation_next_sharing(cluster, claim, found);
    return found;
}
