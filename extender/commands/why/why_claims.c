/* Causes: what deletes a pod, a claim or its volume, and claims that cannot be used. */
#include "cache/cluster/allowance.h"
#include "extender/commands/why/why_internal.h"

/* ---- finalizers ---- */

/* They go by themselves, when no pod uses the claim, and no claim the volume. */
#define CLAIM_PROTECTION  "kubernetes.io/pvc-protection"
#define VOLUME_PROTECTION "kubernetes.io/pv-protection"

static void help_by_finalizers(struct why_pod *pod, const struct pull_items *finalizers,
                               const char *what)
{
    const struct slice *items = finalizers->items;

    for (size_t i = 0; i < finalizers->count; i++)
        if (!slice_equal(items[i], SLICE(CLAIM_PROTECTION)) &&
            !slice_equal(items[i], SLICE(VOLUME_PROTECTION)))
            why_help(pod, "finalizer %.*s keeps the %s: it has to be removed by %s",
                     SLICE_ARG(items[i]), what, who_removes(items[i]));
}

void why_finalizers(struct why_pod *pod)
{
    const struct pull_items *finalizers = &pod->who.details.finalizers;

    if (!pod->pod->is_terminating || finalizers->count == 0)
        return;
    why_add(pod, WHY_BLOCKS, why_pod_reference(pod),
            "pod %.*s/%.*s is being deleted, and finalizers keep it", POD_ARG(pod->pod));
    help_by_finalizers(pod, finalizers, "pod");
}

/* ---- a claim that cannot be used ---- */

static void help_missing(struct why_pod *pod, const struct why_claim *claim)
{
    if (claim->use->is_ephemeral)
        why_help(
            pod,
            "wait: kube-controller-manager creates the claim of a generic ephemeral volume; if "
            "it does not, the pod's events say why (a quota?)");
    else if (who_is_of_template(&pod->who, claim->who.claim))
        why_help(pod,
                 "wait: StatefulSet %.*s creates it from its volumeClaimTemplates; if it does not, "
                 "its events say why",
                 SLICE_ARG(pod->who.owner.name));
    else
        why_help(pod,
                 "create PersistentVolumeClaim %.*s in namespace %.*s, or correct the name in the "
                 "pod's volumes",
                 SLICE_ARG(claim_name(claim->who.claim)),
                 SLICE_ARG(name_text(claim->who.claim->ns)));
}

void why_claim_missing(struct why_pod *pod, const struct why_claim *claim)
{
    struct object_reference reference = why_claim_reference(claim);
    if (claim->who.claim->exists || !why_knows(pod, KIND_CLAIM) ||
        allowance_is_over(&pod->inquiry->cluster, reference.ns))
        return;
    why_add(pod, WHY_BLOCKS, reference, "claim %.*s/%.*s does not exist", CLAIM_ARG(claim));
    help_missing(pod, claim);
}

void why_claim_of_another(struct why_pod *pod, const struct why_claim *claim)
{
    struct slice owner = name_slice(claim_owner_uid(claim->who.claim));
    struct slice name = name_slice(claim_owner_name(claim->who.claim));
    if (!claim->who.claim->exists || !claim->use->is_ephemeral ||
        (owner.len != 0 && uid_is(&pod->pod->uid, owner)))
        return;
    bool is_earlier = slice_equal(name, pod_name(pod->pod));
    why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
            "claim %.*s/%.*s has the name of the pod's generic ephemeral volume, and %s%.*s%s",
            CLAIM_ARG(claim),
            owner.len == 0 ? "nothing owns it: somebody has made it"
            : is_earlier   ? "an earlier pod "
                           : "pod ",
            SLICE_ARG(name), owner.len == 0 ? "" : " owns it");
    if (is_earlier)
        why_help(pod, claim->who.claim->is_deleting
                          ? "wait: the claim is being deleted, and is then made for this pod"
                          : "wait: the claim is deleted with that pod, and then made for this one");
    else
        why_help(pod, "name the pod or its volume differently: the claim's data is not of this "
                      "pod");
    if (claim->who.claim->is_deleting)
        help_by_finalizers(pod, &claim->who.details.finalizers, "claim");
    pod->is_hopeless = true;
}

/* The pods for which the API server keeps a claim that is being deleted. */
static void help_by_users(struct why_pod *pod, const struct why_claim *claim)
{
    size_t shown = 0;

    for (size_t i = 0; i < claim->who.holder_count && shown < WHY_NAMES_SHOWN_MAX; i++) {
        const struct pod *holder = claim->who.holders[i].pod;
        if (holder == pod->pod)
            continue;
        shown++;
        why_help(pod,
                 "finalizer " CLAIM_PROTECTION
                 " keeps the claim until pod %.*s/%.*s on node %.*s has ended",
                 POD_ARG(holder), SLICE_ARG(pod_node(holder)));
    }
    if (claim->who.holder_count > WHY_NAMES_SHOWN_MAX)
        why_help(pod, "%zu pods hold it", claim->who.holder_count);
}

void why_claim_deleting(struct why_pod *pod, const struct why_claim *claim)
{
    bool is_running = pod->stage == WHY_RUNNING;
    if (!claim->who.claim->exists || !claim->who.claim->is_deleting)
        return;
    why_add(pod, is_running ? WHY_LATER : WHY_BLOCKS, why_claim_reference(claim),
            is_running ? "claim %.*s/%.*s is being deleted: it goes when this pod ends, and no new "
                         "pod can use it"
                       : "claim %.*s/%.*s is being deleted: no new pod can use it",
            CLAIM_ARG(claim));
    help_by_users(pod, claim);
    why_help_all(pod, who_deletion(&claim->who, pod->texts));
    help_by_finalizers(pod, &claim->who.details.finalizers, "claim");
    why_help_all(pod, who_made_again(&claim->who, pod->texts));
}

void why_claim_lost(struct why_pod *pod, const struct why_claim *claim)
{
    if (!claim->who.claim->exists || claim_phase(claim->who.claim) != CLAIM_LOST)
        return;
    const struct resource *volume =
        cluster_find_resource(&pod->inquiry->cluster, KIND_VOLUME, claim->who.volume);
    struct slice other = volume == NULL ? SLICE("") : resource_attribute(volume, VOLUME_CLAIM_NAME);
    if (other.len == 0)
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is Lost: its volume %.*s is gone%s", CLAIM_ARG(claim),
                SLICE_ARG(claim->who.volume),
                volume == NULL && why_knows(pod, KIND_VOLUME) ? ""
                                                              : ", or is bound to another claim");
    else
        why_add(pod, WHY_BLOCKS, why_claim_reference(claim),
                "claim %.*s/%.*s is Lost: its volume %.*s is of claim %.*s/%.*s", CLAIM_ARG(claim),
                SLICE_ARG(claim->who.volume),
                SLICE_ARG(resource_attribute(volume, VOLUME_CLAIM_NAMESPACE)), SLICE_ARG(other));
    why_help_all(pod, who_bound_by(&claim->who, pod->texts));
}

/* ---- its volume ---- */

void why_volume_missing(struct why_pod *pod, const struct why_claim *claim)
{
    const struct cluster *cluster = &pod->inquiry->cluster;
    const struct claim *record = claim->who.claim;
    if (!record->exists || claim_phase(record) == CLAIM_LOST || !claim->is_bound ||
        claim->volume != NULL || !why_knows(pod, KIND_VOLUME))
        return;
    const struct resource *other = cluster_find_resource(cluster, KIND_VOLUME, claim->who.volume);
    if (other == NULL)
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "volume %.*s of claim %.*s/%.*s does not exist", SLICE_ARG(claim->who.volume),
                CLAIM_ARG(claim));
    else
        why_add(pod, WHY_BLOCKS, why_volume_reference(claim),
                "claim %.*s/%.*s names volume %.*s, which is not bound to it%s", CLAIM_ARG(claim),
                SLICE_ARG(claim->who.volume),
                claim->who.is_of_earlier ? ": its claimRef.uid is that of an earlier claim" : "");
    why_help_all(pod, who_bound_by(&claim->who, pod->texts));
}

void why_volume_deleting(struct why_pod *pod, const struct why_claim *claim)
{
    bool is_late = pod->stage != WHY_RUNNING && who_is_attachable(&claim->who);
    if (claim->volume_details->deletion_timestamp.len == 0)
        return;
    why_add(pod, is_late && pod->stage == WHY_STARTING ? WHY_BLOCKS : WHY_LATER,
            why_volume_reference(claim),
            "volume %.*s of claim %.*s/%.*s is being deleted: it goes when the claim does%s",
            SLICE_ARG(claim->who.volume), CLAIM_ARG(claim),
            is_late ? ", and is attached to no node any more" : "");
    why_help_all(pod, who_deletion(&claim->who, pod->texts));
}
