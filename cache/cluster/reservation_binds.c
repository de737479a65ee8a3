/*
 * Reservations of pods that are being bound: who shares their claims; pods that are being created
 * with their node; pods that may be bound, and nobody knows yet. And reservations that another
 * claimguard had: those of a file.
 */
#include <utlist.h>

#include "cache/cluster/cluster_internal.h"
#include "cache/cluster/reservation.h"
#include "config/base/clock.h"

/* ---- shared claims ---- */

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

/* ---- pods that are being created with their node ---- */

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

    return share_is_over(cluster->creations_in[in].count, cluster->creations, 1, CREATIONS_MAX,
                         CREATIONS_SHARE) ||
           share_is_over(cluster->creations_in[in].bytes, cluster->creation_bytes, bytes,
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

/* ---- pods that may be bound ---- */

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

/* ---- those of a file ---- */

int reservation_restore(struct cluster *cluster, const struct own_object *object, uint64_t now_ns,
                        struct error *err)
{
    struct claim_reference claims[POD_CLAIMS_MAX];
    bool exclusive[POD_CLAIMS_MAX];
    struct pod_object pod = {
        .meta = object->meta, .node = object->node, .priority = object->priority, .claims = claims};
    uint64_t expires_ns = now_ns + (uint64_t)object->expires_in_ms * NS_PER_MS;
    const struct slice *own = object->claims.items, *shared = object->shared.items;
    struct uid uid;

    if (object->claims.count + object->shared.count > POD_CLAIMS_MAX)
        return error_set(err, ERROR_TOO_BIG, "a reservation of over %d claims", POD_CLAIMS_MAX);
    pod.meta.uid = object->pod_uid;
    for (size_t i = 0; i < object->claims.count; i++, pod.claim_count++) {
        /* one that does not exist is reserved for a pod that is being created */
        claims[i] = (struct claim_reference){.name = own[i], .is_ephemeral = true};
        exclusive[i] = true;
    }
    for (size_t i = 0; i < object->shared.count; i++, pod.claim_count++) {
        claims[pod.claim_count] = (struct claim_reference){.name = shared[i]};
        exclusive[pod.claim_count] = false;
    }
    if (reservation_take(cluster, &pod, exclusive, object->binds, expires_ns, err) < 0)
        return err->code;
    if (object->is_of_preemptor && uid_find(&cluster->names, pod.meta.uid, &uid)) {
        struct reservation *reservation = reservation_find(cluster, &uid);
        if (reservation != NULL)
            reservation->is_of_preemptor = true;
    }
    return 0;
}
