/*
 * assumed: reservations, between a filter answer and the bind that follows. A pod that may pass
 * reserves its exclusive claims, all of them or none, so that no other pod passes for the same
 * claim before the first one is bound. The record lies in the cluster; policies see it as a holder.
 *
 *   filter passes          reserved until expires_ns; asked again: later, never sooner
 *   one of higher          takes the claims over: the first pod's bind will be refused,
 *     priority passes        and a reservation that has no claim left ends
 *   bind begins            binding: nobody takes it over, and it does not expire before then
 *   seen bound, or gone    ends: the pod itself holds the claims, or needs them no more
 *
 * The time is told by the caller: nanoseconds of a clock that only runs forward.
 *
 * Threads: as the cluster.
 */
#ifndef CACHE_CLUSTER_RESERVATION_H
#define CACHE_CLUSTER_RESERVATION_H

#include "cache/cluster/cluster.h"

/* With more, the one that expires first ends, of those whose pods are not being bound. */
enum { RESERVATIONS_MAX = 10000 };

struct reservation {
    uint32_t hash;  /* struct table_record: of the UID */
    struct uid uid; /* the pod's: the key */
    struct name *ns;
    struct name *name;
    int32_t priority;
    unsigned binds;   /* under way: more than one when a scheduler asks again before it is told */
    bool is_doubtful; /* a Binding was sent, and nobody knows what became of it */
    bool is_late;     /* it expires later than one that was made after it */
    uint64_t expires_ns;
    bool is_ended;            /* early: it has no claims any more, or made room for another */
    struct reservation *prev; /* by utlist: in the order in which they were made */
    struct reservation *next; /* ... or of those that ended early */
    struct reservation *next_sharing, **sharing; /* of those that share claims; NULL: it does not */
    size_t claim_count, shared_count;
    size_t left_count;      /* of claim_count: not taken over by another pod */
    struct claim *claims[]; /* claim_count taken alone, then, of a pod that is being bound,
                               shared_count that it shares */
};

/*
 * Reserves the claims that the pod takes alone, which the caller has found free, or held by
 * reservations that may be taken over; what the pod had reserved before is replaced, and ends no
 * sooner. alone: for each of the pod's claims, whether it does; NULL: those that are
 * ReadWriteOncePod. A pod that takes none alone, or that is known to be bound or finished, reserves
 * nothing. Of more than RESERVATIONS_MAX, the one that expires first ends.
 *
 * binds: a bind begins. Until it ends, nobody may take the pod's other claims alone, either, and a
 * call that is no bind changes nothing, whatever it says about the pod. reservation_doubt or
 * reservation_undo ends the bind, if the pod is not bound.
 * Errors: ERROR_NO_MEMORY; nothing has changed.
 */
int reservation_take(struct cluster *cluster, const struct pod_object *pod, const bool *alone,
                     bool binds, uint64_t expires_ns, struct error *err);

/* The pod's; NULL: it has none. */
struct reservation *reservation_find(const struct cluster *cluster, const struct uid *uid);

/* Ends the pod's reservation, if it has one. */
void reservation_release(struct cluster *cluster, const struct uid *uid);

/* The API server has no pod of that name and UID: its reservation ends. One that is for another
 * name stays: who asks about a pod may say any UID. */
void reservation_release_absent(struct cluster *cluster, const struct object_reference *absent);

/* A bind has ended: a Binding was sent, and its answer was lost. It may still be applied, so until
 * expires_ns nobody else gets the claims, whatever a later bind of the pod comes to. */
void reservation_doubt(struct cluster *cluster, const struct uid *uid, uint64_t expires_ns);

/* A bind has ended: it was refused. So does the reservation, unless another bind of the pod is
 * under way or in doubt. False: one is. */
bool reservation_undo(struct cluster *cluster, const struct uid *uid);

/* The pod will not need its reservation: it ends, unless a bind of the pod is under way or in
 * doubt. False: one is. */
bool reservation_give_back(struct cluster *cluster, const struct uid *uid);

/* A reservation that has expired by now_ns or has ended early, or NULL: who waits for it is to hear
 * of it, then reservation_end. */
struct reservation *reservation_expired(const struct cluster *cluster, uint64_t now_ns);
void reservation_end(struct cluster *cluster, struct reservation *reservation);

/* Whether the claim, one of claim_count, was not taken over. */
static inline bool reservation_has(const struct reservation *reservation, const struct claim *claim)
{
    return claim->reservation == reservation;
}

/* A pod that is being bound, or may be: nobody takes its claims over. */
static inline bool reservation_binds(const struct reservation *reservation)
{
    return reservation->binds != 0 || reservation->is_doubtful;
}

/* Whether the claim is reserved for another pod than this one, which may not take it over. */
static inline const struct reservation *reserved_against(const struct claim *claim,
                                                         const struct pod_object *pod)
{
    const struct reservation *reservation = claim->reservation;

    if (reservation == NULL || uid_is(&reservation->uid, pod->meta.uid))
        return NULL;
    return reservation_binds(reservation) || reservation->priority >= pod->priority ? reservation
                                                                                    : NULL;
}

/* A pod, other than this one, that is being bound and shares the claim; NULL: there is none. */
const struct reservation *shared_against(const struct cluster *cluster, const struct claim *claim,
                                         const struct pod_object *pod);

/* Ends all of them. */
void reservations_dispose(struct cluster *cluster);

#endif
