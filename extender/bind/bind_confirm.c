/* What a bind confirms with the API server before it decides, because the watch may be late. */
#include "extender/bind/bind_internal.h"
#include "policy/defer_fs_mount.h"

/*
 * Whether the cache alone is not enough to let the pod share the claim. Access modes never change,
 * but the claim may have been deleted and created again as ReadWriteOncePod while its watch is
 * late. With one replica, that does harm only if another pod has the claim, and the cache knows
 * such a pod. Replicas do not know each other's pods, so with claimLock each claim is confirmed.
 */
static bool sharing_needs_confirmation(const struct binding *binding, const struct claim *claim)
{
    return binding->call.state->config->read_write_once_pod.claim_lock == CLAIM_LOCK_ANNOTATION ||
           claim->refs != 0 || claim->sharers != 0 || claim_is_reserved(claim);
}

/*
 * Lists the claims that the pod shares, if one of them has to be confirmed: then all of them, since
 * another pod may get one claim while the API server is asked about the others. Of a pod that may
 * be deferred, lists all: a deferral is decided by the storage class of a claim, and another claim
 * may have come under its name.
 */
static int list_claims(struct binding *binding, const struct view *view,
                       const struct pod_object *pod, struct error *err)
{
    bool may_defer = defer_may_match(view, pod), is_needed = may_defer;
    const bool *exclusive = binding->verdict.exclusive;
    struct kept_reference *claims = NULL;
    char text[UID_TEXT_BYTES];

    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct claim *claim =
            cluster_find_claim(view->cluster, pod->meta.ns, pod->claims[i].name);
        bool is_shared = exclusive == NULL || !exclusive[i];
        if (claim == NULL || !(is_shared || may_defer))
            continue;
        struct object_reference reference = {KIND_CLAIM, name_text(claim->ns), claim_name(claim),
                                             uid_text(&claim->uid, text)};
        is_needed = is_needed || sharing_needs_confirmation(binding, claim);
        if (!object_reference_keep(&claims, &reference, binding->call.arena))
            return error_no_memory(err);
    }
    binding->to_confirm = is_needed ? claims : NULL;
    return 0;
}

/*
 * Whether a pod that the cache does not have may hold the claim, because it owns it. The claim of a
 * generic ephemeral volume is created after its pod. A pod that is created with its node holds it
 * from that moment, so nobody can reserve or lock it for the pod, but for the replica that has
 * reviewed the pod. The watch of pods may be late.
 */
static bool may_be_held_by_owner(const struct cluster *cluster, const struct pod_object *pod,
                                 const struct claim *claim)
{
    struct slice uid = name_slice(claim_owner_uid(claim));
    const struct pod *owner =
        cluster_find_pod(cluster, name_text(claim->ns), name_slice(claim_owner_name(claim)));

    return uid.len != 0 && !slice_equal(uid, pod->meta.uid) &&
           (owner == NULL || !uid_is(&owner->uid, uid));
}

/* Lists the pods that may hold claims so. Not by their UIDs, which anyone may have written into a
 * claim: that there is no such pod would be reported as the end of the pod with that UID. */
static int list_owners(struct binding *binding, const struct pod_object *pod, struct error *err)
{
    const struct cluster *cluster = &binding->call.state->cluster;

    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct claim *claim = cluster_find_claim(cluster, pod->meta.ns, pod->claims[i].name);
        if (claim == NULL || !may_be_held_by_owner(cluster, pod, claim))
            continue;
        struct object_reference owner = {KIND_POD, name_text(claim->ns),
                                         name_slice(claim_owner_name(claim)), SLICE("")};
        if (!object_reference_keep(&binding->to_confirm, &owner, binding->call.arena))
            return error_no_memory(err);
    }
    return 0;
}

int bind_check_confirmed(struct binding *binding, const struct view *view,
                         const struct pod_object *pod, struct error *err)
{
    binding->is_of_owners = false;
    if (binding->call.state->api == NULL)
        return 0;
    if (!binding->is_claims_confirmed && list_claims(binding, view, pod, err) < 0)
        return err->code;
    if (binding->to_confirm == NULL && !binding->is_owners_confirmed) {
        binding->is_of_owners = true;
        if (list_owners(binding, pod, err) < 0)
            return err->code;
    }
    return binding->to_confirm == NULL
               ? 0
               : error_set(err, ERROR_UNAVAILABLE,
                           "the claims of pod %.*s have to be confirmed with the API server",
                           SLICE_ARG(pod->meta.name));
}
