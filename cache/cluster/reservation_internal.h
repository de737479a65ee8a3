/*
 * reservation_internal: what the files of reservations share. Only they include it.
 *
 * Threads: as the cluster.
 */
#ifndef CACHE_CLUSTER_RESERVATION_INTERNAL_H
#define CACHE_CLUSTER_RESERVATION_INTERNAL_H

#include "cache/cluster/cluster_internal.h"
#include "cache/cluster/reservation.h"

/* Adds a claim to the reservation, which has memory for it; it is not reserved yet. */
static inline void reservation_add_exclusive(struct reservation *reservation, struct claim *claim)
{
    reservation->claims[reservation->claim_count++] = claim;
    claim->named++;
}

/* The reservation, which is not in the table yet, is of a pod that is being created: counts it, and
 * adds the claims that will be created after the pod, for it alone. former: the pod's reservation
 * that this one will replace; NULL: none. Errors: ERROR_UNAVAILABLE: too many; ERROR_NO_MEMORY. */
int reservation_begin_creation(struct cluster *cluster, struct reservation *reservation,
                               const struct reservation *former, const struct pod_object *pod,
                               struct error *err);

/* It is counted no more. */
void reservation_end_creation(struct cluster *cluster, const struct reservation *reservation);

#endif
