/* Reservations that another claimguard had: those of a file. */
#include "cache/cluster/reservation.h"
#include "config/base/clock.h"

int reservation_restore(struct cluster *cluster, const struct own_object *object, uint64_t now_ns,
                        struct error *err)
{
    struct claim_reference claims[POD_CLAIMS_MAX];
    bool exclusive[POD_CLAIMS_MAX];
    struct pod_object pod = {
        .meta = object->meta, .node = object->node, .priority = object->priority, .claims = claims};
    uint64_t expires_ns = now_ns + (uint64_t)object->expires_in_ms * NS_PER_MS;
    struct uid uid;

    if (object->claims.count + object->shared.count > POD_CLAIMS_MAX)
        return error_set(err, ERROR_TOO_BIG, "a reservation of over %d claims", POD_CLAIMS_MAX);
    pod.meta.uid = object->pod_uid;
    for (size_t i = 0; i < object->claims.count; i++, pod.claim_count++) {
        /* one that does not exist is reserved for a pod that is being created */
        claims[i] = (struct claim_reference){.name = object->claims.items[i], .is_ephemeral = true};
        exclusive[i] = true;
    }
    for (size_t i = 0; i < object->shared.count; i++, pod.claim_count++) {
        claims[pod.claim_count] = (struct claim_reference){.name = object->shared.items[i]};
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
