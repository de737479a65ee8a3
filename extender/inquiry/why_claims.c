/* Causes: the claims themselves, and what they are bound to. */
#include "cache/cluster/allowance.h"
#include "extender/inquiry/why_internal.h"

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
            why_help(pod, json_sprintf("finalizer %.*s keeps the %s: what has set it has to remove "
                                       "it",
                                       SLICE_ARG(items[i]), what));
}

void why_finalizers(struct why_pod *pod)
{
    struct object_reference reference = why_pod_reference(pod);
    const struct pull_items *finalizers = &pod->who.details.finalizers;

    if (!pod->pod->is_terminating || finalizers->count == 0)
        return;
    why_add(pod, WHY_BLOCKS, &reference,
            json_sprintf("pod %.*s/%.*s is being deleted, and finalizers keep it",
                         WHY_POD_ARG(pod->pod)));
    help_by_finalizers(pod, finalizers, "pod");
}

/* ---- a claim that cannot be used ---- */

/* Whether the pod's StatefulSet makes the claim, from volumeClaimTemplates: TEMPLATE-POD. */
static bool is_of_template(const struct why_pod *pod, const struct why_claim *claim)
{
    struct slice name = claim_name(claim->who.claim), of_pod = pod_name(pod->pod);

    return slice_equal(pod->who.owner.kind, SLICE("StatefulSet")) && name.len > of_pod.len + 1 &&
           slice_ends_with(name, of_pod) && name.ptr[name.len - of_pod.len - 1] == '-';
}

static void help_missing(struct why_pod *pod, const struct why_claim *claim)
{
    if (claim->use->is_ephemeral)
        why_help(pod, json_sprintf("wait: kube-controller-manager creates the claim of a generic "
                                   "ephemeral volume"));
    else if (is_of_template(pod, claim))
        why_help(pod, json_sprintf("wait: StatefulSet %.*s creates it from its "
                                   "volumeClaimTemplates; if it does not, its events say why",
                                   SLICE_ARG(pod->who.owner.name)));
    else
        why_help(pod, json_sprintf("create PersistentVolumeClaim %.*s in namespace %.*s, or "
                                   "correct the name in the pod's volumes",
                                   SLICE_ARG(claim_name(claim->who.claim)),
                                   SLICE_ARG(name_text(claim->who.claim->ns))));
}

void why_claim_missing(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        struct object_reference reference = why_claim_reference(claim);
        if (claim->who.claim->exists || !why_knows(pod, KIND_CLAIM) ||
            allowance_is_over(&pod->inquiry->cluster, reference.ns))
            continue;
        why_add(pod, WHY_BLOCKS, &reference,
                json_sprintf("claim %.*s/%.*s does not exist", CLAIM_ARG(claim)));
        help_missing(pod, claim);
    }
}

void why_claim_of_another(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        struct slice owner = name_slice(claim_owner_uid(claim->who.claim));
        struct object_reference reference = why_claim_reference(claim);
        if (!claim->who.claim->exists || !claim->use->is_ephemeral ||
            (owner.len != 0 && uid_is(&pod->pod->uid, owner)))
            continue;
        why_add(pod, WHY_BLOCKS, &reference,
                json_sprintf("claim %.*s/%.*s is the name of the pod's generic ephemeral volume, "
                             "and another object owns it",
                             CLAIM_ARG(claim)));
        why_help(pod, json_sprintf("wait, if an earlier pod of that name owns it, and it is being "
                                   "collected; else name the pod or its volume differently. The "
                                   "claim's data is not of this pod: see who uses it"));
        why_command(pod, ADVICE_SEE_CLAIM, &CLAIM_WORDS(claim));
    }
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
        why_help(pod, json_sprintf("finalizer " CLAIM_PROTECTION " keeps the claim until pod "
                                   "%.*s/%.*s on node %.*s has ended",
                                   WHY_POD_ARG(holder), SLICE_ARG(pod_node(holder))));
    }
    if (claim->who.holder_count > WHY_NAMES_SHOWN_MAX)
        why_help(pod, json_sprintf("%zu pods hold it", claim->who.holder_count));
}

void why_claim_deleting(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        struct object_reference reference = why_claim_reference(claim);
        bool is_running = pod->stage == WHY_RUNNING;
        if (!claim->who.claim->exists || !claim->who.claim->is_deleting)
            continue;
        why_add(pod, is_running ? WHY_LATER : WHY_BLOCKS, &reference,
                json_sprintf(is_running ? "claim %.*s/%.*s is being deleted: it goes when this "
                                          "pod ends, and no new pod can use it"
                                        : "claim %.*s/%.*s is being deleted: no new pod can use "
                                          "it",
                             CLAIM_ARG(claim)));
        help_by_users(pod, claim);
        why_help_all(pod, who_deletion(&claim->who));
        help_by_finalizers(pod, &claim->who.details.finalizers, "claim");
        why_help(pod,
                 json_sprintf("when it is gone, create it again; a deletion cannot be undone"));
    }
}

void why_claim_lost(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        struct object_reference reference = why_claim_reference(claim);
        if (!claim->who.claim->exists || claim_phase(claim->who.claim) != CLAIM_LOST)
            continue;
        why_add(pod, WHY_BLOCKS, &reference,
                json_sprintf("claim %.*s/%.*s is Lost: its volume %.*s is gone, or is bound to "
                             "another claim",
                             CLAIM_ARG(claim), SLICE_ARG(claim->who.volume)));
        why_help_all(pod, who_bound_by(&claim->who));
    }
}

/* ---- its volume ---- */

void why_volume_missing(struct why_pod *pod)
{
    const struct cluster *cluster = &pod->inquiry->cluster;

    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        const struct claim *record = claim->who.claim;
        struct object_reference reference = why_volume_reference(claim);
        if (!record->exists || claim_phase(record) == CLAIM_LOST || !claim->is_bound ||
            claim->volume != NULL || !why_knows(pod, KIND_VOLUME))
            continue;
        const struct resource *other =
            cluster_find_resource(cluster, KIND_VOLUME, claim->who.volume);
        if (other == NULL)
            why_add(pod, WHY_BLOCKS, &reference,
                    json_sprintf("volume %.*s of claim %.*s/%.*s does not exist",
                                 SLICE_ARG(claim->who.volume), CLAIM_ARG(claim)));
        else
            why_add(pod, WHY_BLOCKS, &reference,
                    json_sprintf("claim %.*s/%.*s names volume %.*s, which is not bound to it%s",
                                 CLAIM_ARG(claim), SLICE_ARG(claim->who.volume),
                                 claim->who.is_of_earlier
                                     ? ": its claimRef.uid is that of an earlier claim"
                                     : ""));
        if (claim->who.is_of_earlier) {
            why_help_all(pod, who_bound_by(&claim->who));
            continue;
        }
        why_help(pod, json_sprintf(other == NULL ? "wait, if a provisioner makes it; else create "
                                                   "the PersistentVolume, or a new claim"
                                                 : "wait, if it is Available; else name another "
                                                   "volume in a new claim"));
    }
}

void why_volume_deleting(struct why_pod *pod)
{
    for (size_t i = 0; i < pod->claim_count; i++) {
        const struct why_claim *claim = &pod->claims[i];
        struct object_reference reference = why_volume_reference(claim);
        if (claim->volume_details.deletion_timestamp.len == 0)
            continue;
        why_add(pod, WHY_LATER, &reference,
                json_sprintf("volume %.*s of claim %.*s/%.*s is being deleted: it goes when the "
                             "claim does",
                             SLICE_ARG(claim->who.volume), CLAIM_ARG(claim)));
        help_by_finalizers(pod, &claim->volume_details.finalizers, "volume");
    }
}
