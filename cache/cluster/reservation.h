/*
 * reservation: claims that are reserved for a pod between its filter answer and its bind, as in the
 * scheduling framework's Reserve. A pod that passes a filter reserves its exclusive claims, all or
 * none, so no other pod passes for the same claim before the first one is bound. Policies treat a
 * reservation as a holder.
 *
 *   filter passes             reserved until expires_ns; a later call may extend it, not shorten it
 *   a pod of higher           takes the claims over: the bind of the first pod will be refused; a
 *     priority passes           reservation without a claim ends
 *   bind begins               no pod takes the claims over, and it expires after BINDING_DEAD_MS
 *   pod rejected for good     ends, unless a bind of the pod is under way or in doubt
 *   pod rejected on the       the same; but that of a preemptor stays, since pods were evicted for
 *     nodes that are offered    it, and the next offer may have other nodes
 *   bind refused              ends; that of a preemptor stays until BINDING_DEAD_MS after its first
 *                             bind that was refused began
 *   pod seen bound, or gone   ends: the pod itself holds the claims, or does not need them
 *   pod not created yet       stays though the API server has no such pod: it may have in a moment
 *
 * All times are nanoseconds of the caller's monotonic clock. Ownership: the cluster owns all
 * reservations; a pointer is valid until the next change. Threads: as the cluster.
 */
#ifndef CACHE_CLUSTER_RESERVATION_H
#define CACHE_CLUSTER_RESERVATION_H

#include "cache/cluster/cluster.h"
#include "cache/objects/own_object.h"

/* Of more reservations, the one that expires first ends, except those of pods that are being bound.
 */
enum {
    RESERVATIONS_MAX = 10000,
    CREATIONS_MAX = 10000, /* of pods that are being created and bound at once: more fail */
    CREATIONS_BYTES_MAX = 16 << 20, /* with the names of their claims, which need not exist */
    CREATIONS_SHARE = 1,            /* of either, of a namespace (shares.h) */
};

struct reservation {
    struct table_record record; /* by the UID */
    struct uid uid;             /* the pod's: the key */
    struct name *ns;
    struct name *name;
    struct name *node; /* of the last bind; NULL: of none */
    int32_t priority;
    unsigned binds;   /* under way; several if a scheduler repeats a call that has no answer yet */
    bool is_doubtful; /* a Binding was sent, and its outcome is not known: */
    bool is_lost;     /* its answer was lost; false: admission has let it pass */
    bool is_late;     /* it expires after a reservation that was made later */
    bool is_of_preemptor;    /* pods are, or may have been, evicted for it: claimguard does it, or
                                the pod is nominated to a node */
    bool is_creation;        /* the pod is bound as it is created, and has not been seen yet */
    uint32_t creation_bytes; /* then what it takes, with the names of its claims */
    uint64_t expires_ns;
    uint64_t kept_until_ns; /* of a preemptor whose bind was refused: no later call extends it; 0 */
    bool is_ended;          /* early: it lost its last claim, or there were too many */
    struct reservation *prev;           /* in cluster.reservations, or in cluster.in_doubt */
    struct reservation *next;           /* the same, or in cluster.ended_early */
    struct reservation *former_sharing; /* in cluster.sharing, if it shares a claim */
    struct reservation *next_sharing;   /* the same */
    size_t claim_count, shared_count;
    size_t left_count;      /* exclusive claims that no other pod has taken over */
    struct claim *claims[]; /* claim_count exclusive ones; then shared_count shared ones, which only
                               a pod that is being bound has */
};

/*
 * Reserves the pod's exclusive claims. The caller has checked that each is free, or that its
 * reservation may be taken over. This replaces the pod's former reservation, and does not end
 * before it. exclusive: for each of the pod's claims, whether it is exclusive; NULL: the
 * ReadWriteOncePod claims are. A pod without an exclusive claim, and a pod that is known to be
 * bound or finished, reserve nothing. A doubt ends when it would have, unless this bind ends in
 * doubt, too. exclusive has no value for claims that do not exist.
 *
 * binds: a bind begins, to pod->node. Until it ends, no other pod may use the pod's remaining
 * claims exclusively, and a call without binds changes nothing. If the pod is not seen bound,
 * reservation_doubt, reservation_admit or reservation_undo ends the bind. A pod that the cluster
 * does not have is being created with its node: claims of its generic ephemeral volumes that do not
 * exist are reserved, too, unless they are for another such pod (POD-VOLUME may be two pods' name).
 *
 * Errors: ERROR_NO_MEMORY, ERROR_UNAVAILABLE (the limits of creations); nothing
 * has changed.
 */
int reservation_take(struct cluster *cluster, const struct pod_object *pod, const bool *exclusive,
                     bool binds, uint64_t expires_ns, struct error *err);

/* Makes the reservation that another claimguard had (own_object.h), after the cluster's objects
 * were read: as reservation_take. It expires when it would have there; a pod that was being bound
 * then is being bound from now on. Errors: ERROR_NO_MEMORY, ERROR_UNAVAILABLE. */
int reservation_restore(struct cluster *cluster, const struct own_object *object, uint64_t now_ns,
                        struct error *err);

/* The reservation of the pod with that UID; NULL: it has none. */
struct reservation *reservation_find(const struct cluster *cluster, const struct uid *uid);

/* The same, by namespace, name and UID. A scheduler's request may contain the UID of another pod.
 */
struct reservation *reservation_of(const struct cluster *cluster,
                                   const struct object_reference *pod);

/* Ends the pod's reservation, if it has one. */
void reservation_release(struct cluster *cluster, const struct uid *uid);

/* The API server has no pod of that name and UID: ends its reservation, unless the pod is being
 * created. */
void reservation_release_absent(struct cluster *cluster, const struct object_reference *absent);

/* A bind has ended: a Binding was sent, and its answer was lost. The API server may still apply it,
 * so no other pod gets the claims until expires_ns and reservation_settle, even if a later bind of
 * the pod is refused. */
void reservation_doubt(struct cluster *cluster, const struct uid *uid, uint64_t expires_ns);

/* The same for a Binding that admission lets pass: the API server applies it now, or not at all,
 * and does not say which. */
void reservation_admit(struct cluster *cluster, const struct uid *uid, uint64_t expires_ns);

/* The next reservation in doubt behind `after` (NULL: the first) that has expired: the API server
 * works on its Binding no more. Whether the pod is bound has to be read before reservation_settle,
 * since the watch may be late. NULL: there is none. */
struct reservation *reservation_next_doubtful(const struct cluster *cluster,
                                              const struct reservation *after, uint64_t now_ns);

/* The pod was not bound when the API server was asked after now_ns: its expired reservation is in
 * doubt no more. */
void reservation_settle(struct cluster *cluster, const struct uid *uid, uint64_t now_ns);

/* The pod could not be read: it stays in doubt, and is not due before expires_ns. */
void reservation_postpone(struct cluster *cluster, const struct uid *uid, uint64_t expires_ns);

/* A bind has ended: no Binding of it may be applied. Others may get its claims now, unless another
 * bind of the pod is under way or in doubt (false). Ends the reservation; but a preemptor keeps its
 * exclusive claims against pods that are no more important, until its first refused bind would have
 * expired: kube-scheduler clears the nomination of a pod whose bind fails, and nothing else would
 * keep them.
 */
bool reservation_undo(struct cluster *cluster, const struct uid *uid);

/* The pod does not need its reservation. Ends it; false: a bind of the pod is under way or in
 * doubt, so the reservation stays. */
bool reservation_give_back(struct cluster *cluster, const struct uid *uid);

/* A reservation that has expired by now_ns, and is not in doubt, or has ended early; NULL: there is
 * none. The caller requeues the pods that wait for its claims, then calls reservation_end. Those in
 * doubt cost nothing. */
struct reservation *reservation_expired(const struct cluster *cluster, uint64_t now_ns);
void reservation_end(struct cluster *cluster, struct reservation *reservation);

/* Whether the reservation still has that exclusive claim: no other pod has taken it over. */
static inline bool reservation_has(const struct reservation *reservation, const struct claim *claim)
{
    return reservation_at(claim->reservation) == reservation;
}

/* Whether the API server may be asked whether the pod exists. Not of a creation: its answer, that
 * there is no such pod, may arrive when the pod was created and seen, and would count as newer. */
static inline bool reservation_may_be_asked(const struct reservation *reservation)
{
    return !reservation->is_creation;
}

/* Whether the pod is being bound, or may be: no pod takes its claims over. */
static inline bool reservation_binds(const struct reservation *reservation)
{
    return reservation->binds != 0 || reservation->is_doubtful;
}

/* Whether the reservation stays when its pod is rejected. by_nodes: only on the nodes that were
 * offered. */
static inline bool reservation_outlasts(const struct reservation *reservation, bool by_nodes)
{
    return reservation_binds(reservation) || (by_nodes && reservation->is_of_preemptor);
}

/* The reservation of the claim for another pod, if this pod may not take it over; else NULL. */
static inline const struct reservation *reservation_against(const struct claim *claim,
                                                            const struct pod_object *pod)
{
    const struct reservation *reservation = reservation_at(claim->reservation);

    if (reservation == NULL || uid_is(&reservation->uid, pod->meta.uid))
        return NULL;
    return reservation_binds(reservation) || reservation->priority >= pod->priority ? reservation
                                                                                    : NULL;
}

/* The next reservation behind `after` (NULL: the first) of a pod that is being bound and shares the
 * claim; NULL: there is none. Costs nothing if no pod does. */
const struct reservation *reservation_next_sharing(const struct cluster *cluster,
                                                   const struct claim *claim,
                                                   const struct reservation *after);

/* The first one of another pod. */
const struct reservation *reservation_sharing(const struct cluster *cluster,
                                              const struct claim *claim,
                                              const struct pod_object *pod);

/* Ends all reservations. */
void reservations_dispose(struct cluster *cluster);

#endif
