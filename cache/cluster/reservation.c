#include "cache/cluster/reservation.h"

#include <utlist.h>

#include "cache/cluster/cluster_internal.h"

static uint32_t uid_hash(const struct uid *uid)
{
    return table_hash((struct slice){(const char *)uid->bytes, sizeof uid->bytes}, 0);
}

static bool is_of_pod(const void *record, const void *uid)
{
    return memcmp(&((const struct reservation *)record)->uid, uid, sizeof(struct uid)) == 0;
}

struct reservation *reservation_find(const struct cluster *cluster, const struct uid *uid)
{
    return table_find(&cluster->reserved, uid_hash(uid), is_of_pod, uid);
}

struct reservation *reservation_of(const struct cluster *cluster,
                                   const struct object_reference *pod)
{
    struct uid uid;
    struct reservation *found =
        uid_find(&cluster->names, pod->uid, &uid) ? reservation_find(cluster, &uid) : NULL;

    return found != NULL && slice_equal(name_slice(found->ns), pod->ns) &&
                   slice_equal(name_slice(found->name), pod->name)
               ? found
               : NULL;
}

static struct reservation **list_of(struct cluster *cluster, const struct reservation *reservation)
{
    return reservation->is_doubtful ? &cluster->in_doubt : &cluster->reservations;
}

static bool add_to_index(struct cluster *cluster, struct reservation *reservation)
{
    struct reservation **list = list_of(cluster, reservation);

    reservation->record.hash = uid_hash(&reservation->uid);
    if (!table_add(&cluster->reserved, &reservation->record))
        return false;
    DL_APPEND(*list, reservation);
    cluster->reserved_in[share_of(name_slice(reservation->ns))] += !reservation->is_creation;
    return true;
}

static void remove_from_index(struct cluster *cluster, struct reservation *reservation)
{
    struct reservation **list = list_of(cluster, reservation);

    table_remove(&cluster->reserved, &reservation->record);
    DL_DELETE(*list, reservation);
    cluster->reserved_in[share_of(name_slice(reservation->ns))] -= !reservation->is_creation;
}

static void leave_claim(struct cluster *cluster, struct claim *claim)
{
    claim->named--;
    claim_free_if_unused(cluster, claim);
}

static void leave_shared(struct cluster *cluster, struct reservation *reservation)
{
    if (reservation->shared_count == 0)
        return;
    DL_DELETE2(cluster->sharing, reservation, former_sharing, next_sharing);
    while (reservation->shared_count != 0) {
        struct claim *claim =
            reservation->claims[reservation->claim_count + --reservation->shared_count];
        claim->sharers--;
        leave_claim(cluster, claim);
    }
}

/* Frees a reservation that is not in the table. */
static void reservation_free(struct cluster *cluster, struct reservation *reservation)
{
    leave_shared(cluster, reservation);
    for (size_t i = 0; i < reservation->claim_count; i++) {
        if (reservation_has(reservation, reservation->claims[i]))
            reservation->claims[i]->reservation = reservation_ref(NULL);
        leave_claim(cluster, reservation->claims[i]);
    }
    cluster->doubtful -= reservation->is_lost;
    if (reservation->is_creation)
        reservation_end_creation(cluster, reservation);
    names_release(&cluster->names, reservation->ns);
    names_release(&cluster->names, reservation->name);
    names_release(&cluster->names, reservation->node);
    uid_release(&cluster->names, reservation->uid);
    pool_free(cluster->reserved.pool, reservation);
}

/* NULL is ignored. */
static void end(struct cluster *cluster, struct reservation *reservation)
{
    if (reservation == NULL)
        return;
    remove_from_index(cluster, reservation);
    reservation_free(cluster, reservation);
}

/* Ends a reservation before it expires: reservation_expired finds it next. */
static void end_early(struct cluster *cluster, struct reservation *reservation)
{
    if (reservation->is_ended)
        return;
    remove_from_index(cluster, reservation);
    reservation->is_ended = true;
    LL_PREPEND(cluster->ended_early, reservation);
}

void reservation_end(struct cluster *cluster, struct reservation *reservation)
{
    if (!reservation->is_ended) {
        end(cluster, reservation);
        return;
    }
    LL_DELETE(cluster->ended_early, reservation);
    reservation_free(cluster, reservation);
}

/* The reservation of a pod that is not being bound loses a claim to another pod. */
static void lose_claim(struct cluster *cluster, struct reservation *reservation)
{
    if (--reservation->left_count == 0 && !reservation_binds(reservation))
        end_early(cluster, reservation);
}

/* The reservation of the share (SHARES: of any) that expires first, and whose pod is not being
 * bound; NULL: there is none. */
static struct reservation *find_first(const struct cluster *cluster, unsigned share)
{
    struct reservation *reservation = cluster->reservations;

    while (reservation != NULL &&
           (reservation_binds(reservation) || reservation->is_late ||
            (share != SHARES && share_of(name_slice(reservation->ns)) != share)))
        reservation = reservation->next;
    return reservation;
}

/* If there are too many, ends the one that expires first of the share (shares.h) that has most.
 * Those of pods that are being created have a maximum of their own, and do not end early. */
static void keep_maximum(struct cluster *cluster)
{
    if (cluster->reserved.count <= RESERVATIONS_MAX + cluster->creations)
        return;
    struct reservation *first = find_first(cluster, share_largest(cluster->reserved_in));
    if (first == NULL)
        first = find_first(cluster, SHARES);
    if (first != NULL)
        end_early(cluster, first);
}

/* How many claims the pod may reserve. A filter call costs no memory for its other claims. */
static size_t count_claims(const struct pod_object *pod, const bool *exclusive, bool binds)
{
    size_t count = 0;

    if (binds || exclusive == NULL)
        return pod->claim_count;
    for (size_t i = 0; i < pod->claim_count; i++)
        count += exclusive[i];
    return count;
}

/* A reservation without claims, but with memory for so many; NULL: no memory. node: of the bind. */
static struct reservation *reservation_new(struct cluster *cluster, const struct pod_object *pod,
                                           size_t claims, bool binds)
{
    struct reservation *reservation = pool_alloc(
        cluster->reserved.pool, sizeof *reservation + claims * sizeof *reservation->claims);
    bool failed = false;

    if (reservation == NULL)
        return NULL;
    reservation->ns = names_take(&cluster->names, pod->meta.ns, &failed);
    reservation->name = names_take(&cluster->names, pod->meta.name, &failed);
    reservation->node = binds ? names_take(&cluster->names, pod->node, &failed) : NULL;
    reservation->uid = uid_take(&cluster->names, pod->meta.uid, &failed);
    reservation->priority = (int32_t)pod->priority;
    if (!failed)
        return reservation;
    reservation_free(cluster, reservation);
    return NULL;
}

/* The exclusive claims that were added are the reservation's from now on. */
static void own_exclusive(struct cluster *cluster, struct reservation *reservation)
{
    reservation->left_count = reservation->claim_count;
    for (size_t i = 0; i < reservation->claim_count; i++) {
        struct claim *claim = reservation->claims[i];
        if (claim_is_reserved(claim))
            lose_claim(cluster, reservation_at(claim->reservation));
        claim->reservation = reservation_ref(reservation);
    }
}

static void take_shared(struct cluster *cluster, struct reservation *reservation,
                        struct claim *claim)
{
    if (reservation->shared_count == 0)
        DL_PREPEND2(cluster->sharing, reservation, former_sharing, next_sharing);
    reservation->claims[reservation->claim_count + reservation->shared_count++] = claim;
    claim->sharers++;
    claim->named++;
}

/* The pod's claim number i, if it exists and is exclusive, or is not; else NULL. */
static struct claim *find_claim(const struct cluster *cluster, const struct pod_object *pod,
                                size_t i, const bool *exclusive, bool is_exclusive)
{
    struct claim *claim = cluster_find_named_claim(cluster, pod->meta.ns, pod->claims[i].name);

    if (claim == NULL || !claim->exists)
        return NULL;
    return (exclusive != NULL ? exclusive[i] : claim->is_rwop) == is_exclusive ? claim : NULL;
}

/* The exclusive claims come first, then the shared ones of a pod that is being bound. */
static void take_claims(struct cluster *cluster, struct reservation *reservation,
                        const struct pod_object *pod, const bool *exclusive)
{
    struct claim *claim;

    for (size_t i = 0; i < pod->claim_count; i++)
        if ((claim = find_claim(cluster, pod, i, exclusive, true)) != NULL)
            reservation_add_exclusive(reservation, claim);
    own_exclusive(cluster, reservation);
    for (size_t i = 0; reservation_binds(reservation) && i < pod->claim_count; i++)
        if ((claim = find_claim(cluster, pod, i, exclusive, false)) != NULL)
            take_shared(cluster, reservation, claim);
}

/* Whether the pod holds its claims itself, or needs none: the scheduler's information is older. */
static bool is_bound_or_finished(const struct pod *pod)
{
    return pod != NULL && (pod_is_assigned(pod) || pod->is_terminal);
}

/* Marks earlier reservations that expire after the new one: a preemptor's reservation lasts longer
 * than others, and a reload may change the duration. */
static void mark_late(const struct cluster *cluster, struct reservation *newest)
{
    struct reservation *before = newest;

    while (before != cluster->reservations) {
        before = before->prev;
        if (!before->is_late && before->expires_ns <= newest->expires_ns)
            return;
        before->is_late = true;
    }
}

/* The new reservation will replace the pod's former one, and does not end before it. */
static void inherit(struct cluster *cluster, struct reservation *reservation,
                    const struct reservation *former)
{
    reservation->is_doubtful = former->is_doubtful;
    reservation->is_lost = former->is_lost;
    cluster->doubtful += former->is_lost;
    reservation->is_of_preemptor = reservation->is_of_preemptor || former->is_of_preemptor;
    reservation->kept_until_ns = former->kept_until_ns;
    if (former->kept_until_ns != 0 && reservation->binds == 0)
        reservation->expires_ns = former->kept_until_ns;
    reservation->binds += former->binds;
    /* of a doubt, only a Binding that may be applied changes the end: reservation_doubt */
    if (former->is_doubtful || reservation->expires_ns < former->expires_ns)
        reservation->expires_ns = former->expires_ns;
}

int reservation_take(struct cluster *cluster, const struct pod_object *pod, const bool *exclusive,
                     bool binds, uint64_t expires_ns, struct error *err)
{
    struct object_reference reference = object_reference_of_pod(&pod->meta);
    const struct pod *known = cluster_find_same_pod(cluster, &reference);
    bool is_creation = binds && known == NULL;

    if (is_bound_or_finished(known))
        return 0;
    struct reservation *reservation =
        reservation_new(cluster, pod, count_claims(pod, exclusive, binds), binds);
    if (reservation == NULL)
        return error_no_memory(err);
    struct reservation *former = reservation_find(cluster, &reservation->uid);
    if (former != NULL && reservation_binds(former) && !binds) {
        reservation_free(cluster, reservation); /* the bind's reservation stays */
        return 0;
    }
    reservation->binds = binds;
    reservation->is_of_preemptor = known != NULL && cluster_nomination_counts(cluster, known);
    reservation->expires_ns = expires_ns;
    if (former != NULL)
        inherit(cluster, reservation, former);
    bool is_begun =
        !is_creation || reservation_begin_creation(cluster, reservation, former, pod, err) == 0;
    if (!is_begun || !add_to_index(cluster, reservation)) {
        reservation_free(cluster, reservation);
        return is_begun ? error_no_memory(err) : err->code;
    }
    end(cluster, former);
    if (!reservation->is_doubtful)
        mark_late(cluster, reservation);
    take_claims(cluster, reservation, pod, exclusive);
    if (reservation->claim_count + reservation->shared_count == 0)
        end(cluster, reservation);
    else if (!binds)
        keep_maximum(cluster);
    return 0;
}

void reservation_release(struct cluster *cluster, const struct uid *uid)
{
    end(cluster, reservation_find(cluster, uid));
}

void reservation_release_absent(struct cluster *cluster, const struct object_reference *absent)
{
    struct reservation *reservation = reservation_of(cluster, absent);

    if (reservation != NULL && !reservation->is_creation)
        end(cluster, reservation);
}

bool reservation_give_back(struct cluster *cluster, const struct uid *uid)
{
    struct reservation *reservation = reservation_find(cluster, uid);

    if (reservation != NULL && reservation_binds(reservation))
        return false;
    if (reservation != NULL)
        end(cluster, reservation);
    return true;
}

bool reservation_undo(struct cluster *cluster, const struct uid *uid)
{
    struct reservation *reservation = reservation_find(cluster, uid);

    if (reservation == NULL)
        return true;
    reservation->binds -= reservation->binds != 0;
    if (!reservation->is_of_preemptor || reservation_binds(reservation) ||
        reservation->left_count == 0)
        return reservation_give_back(cluster, uid);
    leave_shared(cluster, reservation);
    if (reservation->kept_until_ns == 0)
        reservation->kept_until_ns = reservation->expires_ns;
    if (reservation->kept_until_ns < reservation->expires_ns)
        reservation->expires_ns = reservation->kept_until_ns;
    mark_late(cluster, reservation);
    return true;
}

/* Reservations that are neither binding nor late are in the order in which they expire, so the loop
 * ends at the first of these. The others are few, except after a reload with a shorter
 * reservationTTL. */
struct reservation *reservation_expired(const struct cluster *cluster, uint64_t now_ns)
{
    if (cluster->ended_early != NULL)
        return cluster->ended_early;
    for (struct reservation *reservation = cluster->reservations; reservation != NULL;
         reservation = reservation->next) {
        if (reservation->expires_ns <= now_ns)
            return reservation;
        if (!reservation_binds(reservation) && !reservation->is_late)
            return NULL;
    }
    return NULL;
}

void reservations_dispose(struct cluster *cluster)
{
    while (cluster->reservations != NULL)
        end(cluster, cluster->reservations);
    while (cluster->in_doubt != NULL)
        end(cluster, cluster->in_doubt);
    while (cluster->ended_early != NULL)
        reservation_end(cluster, cluster->ended_early);
    table_dispose(&cluster->reserved);
}
