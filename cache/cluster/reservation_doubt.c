/* Reservations whose pod may be bound, and nobody knows yet. */
#include "cache/cluster/reservation.h"

#include <utlist.h>

/* A bind of the pod has ended, and the pod may be bound. NULL: it has no reservation. */
static struct reservation *keep(struct cluster *cluster, const struct uid *uid, uint64_t expires_ns)
{
    struct reservation *reservation = reservation_find(cluster, uid);

    if (reservation == NULL)
        return NULL;
    reservation->binds -= reservation->binds != 0;
    if (!reservation->is_doubtful) {
        DL_DELETE(cluster->reservations, reservation);
        DL_APPEND(cluster->in_doubt, reservation);
    }
    reservation->is_doubtful = true;
    reservation->expires_ns = expires_ns;
    return reservation;
}

void reservation_doubt(struct cluster *cluster, const struct uid *uid, uint64_t expires_ns)
{
    struct reservation *reservation = keep(cluster, uid, expires_ns);

    if (reservation == NULL)
        return;
    cluster->doubtful += !reservation->is_lost;
    reservation->is_lost = true;
}

void reservation_admit(struct cluster *cluster, const struct uid *uid, uint64_t expires_ns)
{
    (void)keep(cluster, uid, expires_ns);
}

struct reservation *reservation_next_doubtful(const struct cluster *cluster,
                                              const struct reservation *after, uint64_t now_ns)
{
    struct reservation *next = after == NULL ? cluster->in_doubt : after->next;

    while (next != NULL && !(next->binds == 0 && next->expires_ns <= now_ns))
        next = next->next;
    return next;
}

void reservation_settle(struct cluster *cluster, const struct uid *uid, uint64_t now_ns)
{
    struct reservation *reservation = reservation_find(cluster, uid);

    if (reservation == NULL || !reservation->is_doubtful || reservation->binds != 0 ||
        reservation->expires_ns > now_ns)
        return;
    DL_DELETE(cluster->in_doubt, reservation);
    DL_PREPEND(cluster->reservations, reservation); /* it is the next that expires */
    reservation->is_late = true;
    cluster->doubtful -= reservation->is_lost;
    reservation->is_doubtful = reservation->is_lost = false;
}

void reservation_postpone(struct cluster *cluster, const struct uid *uid, uint64_t expires_ns)
{
    struct reservation *reservation = reservation_find(cluster, uid);

    if (reservation != NULL && reservation->is_doubtful)
        reservation->expires_ns = expires_ns;
}
