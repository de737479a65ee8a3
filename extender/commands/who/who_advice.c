/* What would free a claim: by its own state, and that of its volume. */
#include "extender/commands/who/who_advice.h"

#include <stdlib.h>

#include "cache/cluster/reservation.h"
#include "config/base/text.h"
#include "policy/volume.h"

enum { ADVISED_HOLDERS_MAX = 20, KEEPERS_SHOWN_MAX = 5 };

/* Whether the claim is of a generic ephemeral volume of the pod. */
static bool is_own(const struct who_claim *claim, const struct pod *pod)
{
    for (size_t i = 0; i < pod->use_count; i++)
        if (claim_at(pod->uses[i].claim) == claim->claim && pod->uses[i].is_ephemeral)
            return true;
    return false;
}

void advice_warn_of_loss(struct advice_list *advice, const struct who_claim *claim,
                         const struct pod *pod)
{
    if (claim == NULL)
        return;
    if (is_own(claim, pod))
        advice_list_warn(advice,
                         "the claim is of a generic ephemeral volume of this pod: it is deleted "
                         "with the pod, and its data is lost");
    else if (!claim->claim->is_deleting)
        return;
    else if (claim->has_volume &&
             slice_equal(claim->volume_details.reclaim_policy, SLICE("Delete")))
        advice_list_warn(
            advice,
            "the claim is being deleted: when its last pod is gone, volume %.*s and its "
            "data are deleted, too",
            SLICE_ARG(claim->volume));
    else
        advice_list_warn(advice,
                         "the claim is being deleted: it is gone when its last pod is gone");
}

/* ---- the holders ---- */

/* How many holders have advice of their own. */
static size_t advised_count(const struct who_claim *claim)
{
    return claim->holder_count < ADVISED_HOLDERS_MAX ? claim->holder_count : ADVISED_HOLDERS_MAX;
}

/* Its kubelet ends it when its grace is over, at the latest. */
static void advise_grace(struct advice_list *advice, const struct who_pod *pod, int64_t now_ms)
{
    struct slice end = pod->details.deletion_timestamp, node = pod_node(pod->pod);
    long long left_s = (long long)(time_parse(end) - now_ms) / 1000;

    if (time_parse(end) == 0)
        advice_list_add(advice, "pod %.*s/%.*s is terminating", POD_ARG(pod->pod));
    else if (now_ms != 0 && left_s >= 0)
        advice_list_add(advice, "wait: pod %.*s/%.*s is terminating, with %lld s of grace left",
                        POD_ARG(pod->pod), left_s);
    else if (now_ms == 0)
        advice_list_add(
            advice,
            "wait: pod %.*s/%.*s is terminating, and its grace ends at %.*s; if that is "
            "past, the kubelet's log on node %.*s says why it cannot end it, or "
            "unmount its volumes (a deletion by force leaves them mounted)",
            POD_ARG(pod->pod), SLICE_ARG(end), SLICE_ARG(node));
    else
        advice_list_add(advice,
                        "pod %.*s/%.*s is terminating, and its grace ended %lld s ago: the "
                        "kubelet's log on node %.*s says why it cannot end it, or unmount its "
                        "volumes (a deletion by force leaves them mounted)",
                        POD_ARG(pod->pod), -left_s, SLICE_ARG(node));
}

struct advice_list who_ended_by(const struct who_pod *pod, const struct who_claim *claim,
                                int64_t now_ms, struct arena *arena)
{
    struct advice_list advice = {.arena = arena};

    advice_of_node(&advice, claim, pod);
    bool is_answered = !who_has_lost_node(pod) && pod->node_state != NODE_NOT_READY;
    if (is_answered && pod->details.finalizers.count == 0)
        advise_grace(&advice, pod, now_ms);
    return advice;
}

const char *who_removes(struct slice finalizer)
{
    static const struct {
        const char *finalizer, *by;
    } rows[] = {
        {"batch.kubernetes.io/job-tracking",
         "kube-controller-manager (its Job controller): its log says why it does not"},
        {"snapshot.storage.kubernetes.io/pvc-as-source-protection",
         "snapshot-controller, which does so when the VolumeSnapshot of the claim is made, or "
         "deleted"},
        {"foregroundDeletion",
         "kube-controller-manager, when the objects that it owns are deleted"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (slice_equal(finalizer, slice_of(rows[i].finalizer)))
            return rows[i].by;
    return "what has set it";
}

/* ", and its Job train is gone", if it is. */
static struct slice gone_job_text(const struct who_claim *claim, const struct who_pod *pod)
{
    const struct owner *owner = &pod->owner;
    const struct workload_answer *job = owner_is_kind(owner, SLICE("Job"))
                                            ? workloads_find(claim->inquiry->workloads, owner->kind,
                                                             name_text(pod->pod->ns), owner->name)
                                            : NULL;

    return job != NULL && job->state == WORKLOAD_GONE
               ? arena_printf(claim->arena, ", and its Job %.*s is gone", SLICE_ARG(owner->name))
               : SLICE("");
}

/* Of a pod that is being deleted. */
static void advise_finalizers(struct advice_list *advice, const struct who_claim *claim,
                              const struct who_pod *pod)
{
    const struct slice *finalizers = pod->details.finalizers.items;
    struct slice gone = gone_job_text(claim, pod);

    for (size_t i = 0; i < pod->details.finalizers.count; i++)
        advice_list_add(advice,
                        "pod %.*s/%.*s is terminating%.*s: its finalizer %.*s has to be removed by "
                        "%s",
                        POD_ARG(pod->pod), SLICE_ARG(gone), SLICE_ARG(finalizers[i]),
                        who_removes(finalizers[i]));
}

static void advise_terminating(struct advice_list *advice, const struct who_claim *claim,
                               const struct who_pod *holder)
{
    const struct advice_list ended =
        who_ended_by(holder, claim, claim->inquiry->now_ms, advice->arena);

    advice_list_append(advice, &ended);
    advise_finalizers(advice, claim, holder);
    advice_of_return(advice, claim, holder);
}

/* Whether the pod, of a claim that is for one pod, may be a copy that was bound past the scheduler:
 * it has no controller, has not started, and another holder has one. */
static bool is_copy(const struct who_claim *claim, const struct who_pod *pod)
{
    bool has_other = false;

    for (size_t i = 0; i < claim->holder_count; i++)
        has_other = has_other ||
                    (claim->holders[i].pod != pod->pod && claim->holders[i].owner.name.len != 0);
    return has_other && claim->access == ACCESS_ONE_POD && pod_is_assigned(pod->pod) &&
           !pod->pod->is_terminating && pod->is_owner_known && pod->owner.name.len == 0 &&
           who_waits_for_mounts(pod);
}

/* Of the pod that is asked about, or of a holder. NULL: none is a copy. */
static const struct pod *advise_copy(struct advice_list *advice, const struct who_claim *claim)
{
    const struct pod *copy = NULL;
    struct who_pod asked;

    if (claim->asked != NULL) {
        bool is_read = who_pod_init(&asked, claim->inquiry, claim->asked, claim->arena);
        advice->has_failed = advice->has_failed || !is_read;
        copy = is_read && is_copy(claim, &asked) ? claim->asked : NULL;
    }
    for (size_t i = 0; claim->asked == NULL && i < claim->holder_count; i++)
        copy = is_copy(claim, &claim->holders[i]) ? claim->holders[i].pod : copy;
    if (copy == NULL)
        return NULL;
    advice_list_add(advice,
                    "pod %.*s/%.*s has no controller: if it is only a copy, delete it, and no more",
                    POD_ARG(copy));
    advice_list_row(advice, ADVICE_DELETE_POD, &POD_WORDS(copy));
    advice->is_else = true;
    return copy;
}

/* Whether the holder's controller makes it again, and no pod of the same one waits. */
static bool is_made_again(const struct who_claim *claim, const struct who_pod *holder)
{
    struct who_pod user;

    return holder->owner.name.len != 0 &&
           (!who_find_user(&user, claim) || user.pod == holder->pod ||
            !owner_is_same(&user.owner, &holder->owner));
}

static void advise_holder(struct advice_list *advice, const struct who_claim *claim,
                          const struct who_pod *holder)
{
    bool has_kubelet = holder->node_state != NODE_MISSING && holder->node_state != NODE_UNREACHABLE;

    if (holder->pod->is_terminating) {
        advise_terminating(advice, claim, holder);
        return;
    }
    advice_of_node(advice, claim, holder);
    advice_of_drain(advice, claim, holder);
    if (has_kubelet || is_made_again(claim, holder))
        advice_by_owner(advice, claim, holder);
}

static void advise_holders(struct advice_list *advice, const struct who_claim *claim)
{
    const struct pod *copy = advise_copy(advice, claim);
    size_t count = advised_count(claim);

    for (size_t i = 0; i < count; i++)
        if (claim->holders[i].pod != copy)
            advise_holder(advice, claim, &claim->holders[i]);
    if (count != claim->holder_count)
        advice_list_add(advice,
                        "%zu more pods hold the claim: when these have given it up, ask again",
                        claim->holder_count - count);
}

/* ---- preemption ---- */

/* The highest priority of a holder. */
static int32_t highest_priority(const struct who_claim *claim)
{
    int32_t highest = INT32_MIN;

    for (size_t i = 0; i < claim->holder_count; i++)
        if (claim->holders[i].pod->priority > highest)
            highest = claim->holders[i].pod->priority;
    return highest;
}

/* The pod of the highest priority that may preempt the holders; NULL: none. */
static const struct pod *find_preemptor(const struct who_claim *claim)
{
    const struct pod *preemptor = NULL;
    int32_t held = highest_priority(claim);

    for (size_t i = 0; i < claim->waiter_count; i++) {
        const struct pod *pod = claim->waiters[i].pod;
        bool may_preempt = pod->priority > held && !pod->never_preempts && !pod->is_grouped &&
                           !pod->is_gated && !pod->is_terminating;
        if (may_preempt && (preemptor == NULL || pod->priority > preemptor->priority))
            preemptor = pod;
    }
    return preemptor;
}

static void advise_preemption(struct advice_list *advice, const struct who_claim *claim)
{
    const struct pod *preemptor = find_preemptor(claim);

    for (size_t i = 0; preemptor != NULL && i < advised_count(claim); i++)
        if (!claim->holders[i].pod->is_terminating)
            advice_list_add(
                advice,
                "the scheduler may preempt pod %.*s/%.*s (priority %lld) for pod %.*s/%.*s "
                "(priority %lld)",
                POD_ARG(claim->holders[i].pod), (long long)claim->holders[i].pod->priority,
                POD_ARG(preemptor), (long long)preemptor->priority);
}

/* ---- the volume is not there, or was an earlier claim's ---- */

static struct advice_words words_of(const struct who_claim *claim)
{
    return (struct advice_words){.ns = name_text(claim->claim->ns),
                                 .claim = claim_name(claim->claim),
                                 .name = claim->volume};
}

/* What of the volume, which the claim does not name, keeps it from being bound, whatever its
 * claimRef says; empty: nothing. {NULL, 0}: no memory. */
static struct slice unfit_text(const struct who_claim *claim)
{
    const struct claim_rare *rare = claim_rare_at(claim->claim->rare);
    int64_t capacity = claim->volume_details.capacity;
    const struct resource *volume =
        cluster_find_resource(&claim->inquiry->cluster, KIND_VOLUME, claim->volume);

    if (claim_has_volume(claim->claim) || volume == NULL)
        return SLICE("");
    if (((resource_number(volume) & VOLUME_IS_BLOCK) != 0) != claim->claim->is_block)
        return SLICE("has another volumeMode");
    if (rare == NULL || capacity == 0 || capacity >= rare->requested)
        return SLICE("");
    return arena_printf(claim->arena, "is smaller (%.*s)",
                        SLICE_ARG(who_size(capacity, claim->arena)));
}

/* Without a claimRef, any claim could get the volume, and the data of this one. */
void advice_of_earlier(struct advice_list *advice, const struct who_claim *claim)
{
    const struct volume_details *volume = &claim->volume_details;
    struct advice_words words = words_of(claim);

    if (volume->deletion_timestamp.len != 0) {
        advice_list_add(advice,
                        "volume %.*s was an earlier claim's, and is being deleted: see whether its "
                        "storage is still there",
                        SLICE_ARG(words.name));
        advice_list_row(advice, ADVICE_SEE_VOLUME, &words);
        return;
    }
    struct slice unfit = unfit_text(claim);
    advice->has_failed = advice->has_failed || unfit.ptr == NULL;
    if (unfit.len != 0) {
        advice_list_add(advice,
                        "volume %.*s has the data of an earlier claim %.*s/%.*s, and %.*s: if this "
                        "claim is to have that data, create it again as the volume is",
                        SLICE_ARG(words.name), SLICE_ARG(words.ns), SLICE_ARG(words.claim),
                        SLICE_ARG(unfit));
        return;
    }
    if (!slice_equal(volume->reclaim_policy, SLICE("Retain"))) {
        words.before = volume->reclaim_policy;
        advice_list_add(
            advice,
            "first keep volume %.*s, which is deleted while it is no claim's (reclaim policy %.*s)",
            SLICE_ARG(words.name),
            SLICE_ARG(words.before.len == 0 ? SLICE("not known") : words.before));
        advice_list_row(advice, ADVICE_KEEP_VOLUME, &words);
    }
    advice_list_add(
        advice,
        "volume %.*s has the data of an earlier claim %.*s/%.*s. If this claim is to have "
        "that data, reserve the volume for it",
        SLICE_ARG(words.name), SLICE_ARG(words.ns), SLICE_ARG(words.claim));
    advice_list_row(advice, ADVICE_RESERVE_VOLUME, &words);
    if (claim_has_volume(claim->claim))
        advice_list_add(advice, "else create the claim again, without volumeName or with that of "
                                "another volume");
}

/* kube-controller-manager binds a Lost claim again when a volume of that name has a claimRef with
 * the claim's UID. */
static void advise_again(struct advice_list *advice, const struct who_claim *claim)
{
    const struct advice_words words = words_of(claim);
    char uid[UID_TEXT_BYTES];

    advice_list_add(
        advice,
        "volume %.*s is gone. If its storage is there, create the PersistentVolume again, with "
        "claimRef: {namespace: %.*s, name: %.*s, uid: %.*s}: the claim then gets its data",
        SLICE_ARG(words.name), SLICE_ARG(words.ns), SLICE_ARG(words.claim),
        SLICE_ARG(uid_text(&claim->claim->uid, uid)));
    advice_list_add(advice,
                    "else delete the claim, create it again for a new volume, and restore the "
                    "data from a backup");
    advice_list_row(advice, ADVICE_DELETE_LOST_CLAIM, &words);
}

/* volume: that the claim names; NULL: whether there is one is not known. */
static void advise_look(struct advice_list *advice, const struct who_claim *claim,
                        const struct resource *volume)
{
    const struct advice_words words = words_of(claim);
    struct slice name = volume == NULL ? SLICE("") : resource_attribute(volume, VOLUME_CLAIM_NAME);
    bool is_own = volume != NULL && slice_equal(name, words.claim) &&
                  slice_equal(resource_attribute(volume, VOLUME_CLAIM_NAMESPACE), words.ns);

    if (name.len != 0 && !is_own) {
        advice_list_add(advice,
                        "delete the claim, and create it again without volumeName and "
                        "annotations pv.kubernetes.io/* (with these, it is Lost again), or from a "
                        "snapshot of volume %.*s, which stays with its owner, claim %.*s/%.*s",
                        SLICE_ARG(words.name),
                        SLICE_ARG(resource_attribute(volume, VOLUME_CLAIM_NAMESPACE)),
                        SLICE_ARG(name));
        return;
    }
    if (volume != NULL)
        advice_list_add(
            advice,
            "volume %.*s is bound to another claim, or to none: its claimRef says to which one",
            SLICE_ARG(words.name));
    else
        advice_list_add(advice,
                        "whether volume %.*s is there is not known from this input: see it first",
                        SLICE_ARG(words.name));
    advice_list_row(advice, ADVICE_SEE_VOLUME, &words);
}

/* Its volume is not there, or was an earlier claim's. */
static void advise_volume(struct advice_list *advice, const struct who_claim *claim)
{
    const struct resource *volume =
        cluster_find_resource(&claim->inquiry->cluster, KIND_VOLUME, claim->volume);

    if (claim->claim->is_deleting)
        advice_list_add(
            advice, "the claim is being deleted: create it again when it is gone, and ask again");
    else if (claim->is_of_earlier)
        advice_of_earlier(advice, claim);
    else if (volume != NULL || !inquiry_knows(claim->inquiry, KIND_VOLUME))
        advise_look(advice, claim, volume);
    else
        advise_again(advice, claim);
}

/* ---- the claim ---- */

/* A pod that has ended keeps the claim, as long as it has a node (pvc-protection). */
static void advise_ended(struct advice_list *advice, const struct who_claim *claim,
                         const struct pod *pod)
{
    advice_list_add(advice, "delete pod %.*s/%.*s, not the claim's finalizer", POD_ARG(pod));
    advice_list_row(advice, ADVICE_DELETE_ENDED_POD, &POD_WORDS(pod));
    advice_warn_of_loss(advice, claim, pod);
}

/* Of a claim that is being deleted. */
static void advise_finished(struct advice_list *advice, const struct who_claim *claim)
{
    for (size_t i = 0, shown = 0; i < claim->finished_count && shown < ADVISED_HOLDERS_MAX; i++) {
        const struct pod *pod = claim->finished[i];
        struct who_pod ended;
        if (!pod_is_assigned(pod))
            continue;
        shown++;
        if (!pod->is_terminating)
            advise_ended(advice, claim, pod);
        else if (!who_pod_init(&ended, claim->inquiry, pod, claim->arena))
            advice->has_failed = true;
        else
            advise_finalizers(advice, claim, &ended);
    }
}

/* Before the claim's last pod is gone, its data can be kept. */
static void advise_keeping(struct advice_list *advice, const struct who_claim *claim)
{
    struct slice policy = claim->volume_details.reclaim_policy;
    const struct advice_words words = {.name = claim->volume, .before = policy};
    bool stays = claim->volume_details.deletion_timestamp.len == 0;

    if (!claim->has_volume || slice_equal(policy, SLICE("Retain")))
        return;
    if (!stays) {
        advice_list_add(advice, "the volume is being deleted: first note what its storage is");
        advice_list_row(advice, ADVICE_SEE_VOLUME, &words);
    }
    advice_list_add(
        advice,
        "volume and data %s with the claim (reclaim policy %.*s). To keep them, do this before: %s",
        policy.len == 0 ? "may go" : "go", SLICE_ARG(policy.len == 0 ? SLICE("not known") : policy),
        stays ? "then a new claim can have them, by volumeName, when the volume's "
                "claimRef.uid is removed"
              : "then the storage stays, for a new PersistentVolume");
    advice_list_row(advice, ADVICE_KEEP_VOLUME, &words);
    if (!stays)
        advice_list_stay(advice);
}

/* Appends "shop/backup-1, shop/backup-2": pods that have ended, and keep the claim. How many. */
static size_t list_keepers(const struct who_claim *claim, struct slice *text)
{
    size_t count = 0;

    for (size_t i = 0; i < claim->finished_count; i++) {
        const struct pod *pod = claim->finished[i];
        if (!pod_is_assigned(pod) || count++ >= KEEPERS_SHOWN_MAX)
            continue;
        *text = arena_printf(claim->arena, "%.*s%s%.*s/%.*s", SLICE_ARG(*text),
                             text->len == 0 ? "" : ", ", POD_ARG(pod));
    }
    if (count > KEEPERS_SHOWN_MAX)
        *text = arena_printf(claim->arena, "%.*s and %zu more", SLICE_ARG(*text),
                             count - KEEPERS_SHOWN_MAX);
    return count;
}

/* Of a claim or volume that is being deleted: how its data is kept, and what to do. */
static void advise_deleted(struct advice_list *advice, const struct who_claim *claim)
{
    struct slice set = who_set(claim);

    advise_keeping(advice, claim);
    if (claim->claim->is_deleting)
        advise_finished(advice, claim);
    else
        advice_list_add(
            advice,
            "%s%.*s%sdelete the claim, and create the PersistentVolume for its storage, and the "
            "claim again: a deletion cannot be undone",
            set.len == 0 ? "" : "scale StatefulSet ", SLICE_ARG(set),
            set.len == 0 ? "" : " to 0, which makes an empty claim else; then ");
}

/* A holder that its rollout keeps until the pod is ready, which never gets the claim; NULL: none.
 */
static const struct who_pod *find_old(const struct who_claim *claim, const struct who_pod *pod)
{
    for (size_t i = 0; i < claim->holder_count; i++) {
        const struct who_pod *holder = &claim->holders[i];
        if (holder->pod != pod->pod && !holder->pod->is_terminating &&
            owner_is_kind(&holder->owner, SLICE("Deployment")) &&
            owner_is_same(&holder->owner, &pod->owner))
            return holder;
    }
    return NULL;
}

/* ", with volumeName pv-1 after ...": how a claim that is created again gets the data that stays.
 */
static struct slice data_text(const struct who_claim *claim)
{
    return claim->has_volume && slice_equal(claim->volume_details.reclaim_policy, SLICE("Retain"))
               ? arena_printf(claim->arena,
                              " (to have the data, with volumeName %.*s, after that volume's "
                              "claimRef.uid is removed)",
                              SLICE_ARG(claim->volume))
               : SLICE("");
}

/* What makes a claim again that is being deleted. */
static void advise_remaking(struct advice_list *advice, const struct who_claim *claim)
{
    struct slice set = who_set(claim), data = data_text(claim);
    struct who_pod user;
    bool has_user = who_find_user(&user, claim);
    const struct who_pod *old = has_user ? find_old(claim, &user) : NULL;

    if (has_user && is_own(claim, user.pod))
        advice_list_add(advice,
                        "when it is gone, it is made again, empty; a deletion cannot be undone");
    else if (set.len != 0)
        advice_list_add(
            advice,
            "when it is gone, StatefulSet %.*s makes it again, empty: to make it yourself, for "
            "the volume with the data, scale that down before; a deletion cannot be undone",
            SLICE_ARG(set));
    else if (old != NULL)
        advice_list_add(advice,
                        "a deletion cannot be undone, and Deployment %.*s keeps pod %.*s until the "
                        "new one is ready: scale it to 0, create the claim again%.*s, and scale it "
                        "back",
                        SLICE_ARG(old->owner.name), SLICE_ARG(pod_name(old->pod)), SLICE_ARG(data));
    else
        advice_list_add(advice, "when it is gone, create it again%.*s; a deletion cannot be undone",
                        SLICE_ARG(data));
}

/* Of a claim that is being deleted, and that no pod keeps. */
static void advise_claim_finalizers(struct advice_list *advice, const struct who_claim *claim)
{
    const struct slice *finalizers = claim->details.finalizers.items;
    bool has_other = false;

    for (size_t i = 0; i < claim->details.finalizers.count; i++) {
        if (slice_equal(finalizers[i], SLICE("kubernetes.io/pvc-protection")))
            continue;
        if (!has_other)
            advise_keeping(advice, claim);
        has_other = true;
        advice_list_add(
            advice,
            "the claim is being deleted, no pod can use it any more, and its finalizer %.*s has to "
            "be removed by %s",
            SLICE_ARG(finalizers[i]), who_removes(finalizers[i]));
    }
    if (!has_other)
        advice_list_add(advice, "the claim is being deleted: no pod can use it any more");
}

static void advise_deletion(struct advice_list *advice, const struct who_claim *claim)
{
    bool is_retained = slice_equal(claim->volume_details.reclaim_policy, SLICE("Retain"));
    struct slice keepers = SLICE("");
    size_t count = claim->assigned_count == 0 ? list_keepers(claim, &keepers) : 0;

    advice->has_failed = advice->has_failed || keepers.ptr == NULL;
    if (claim->assigned_count == 0 && count == 0) {
        advise_claim_finalizers(advice, claim);
        return;
    }
    if (count == 0)
        advice_list_add(
            advice,
            "the claim is being deleted, and goes with its last pod; no pod that waits gets it%s",
            is_retained ? "; its volume stays (reclaim policy Retain)" : "");
    else
        advice_list_add(advice,
                        "the claim is being deleted, and pod%s %.*s, which ha%s ended, keep%s it",
                        count == 1 ? "" : "s", SLICE_ARG(keepers), count == 1 ? "s" : "ve",
                        count == 1 ? "s" : "");
    advise_deleted(advice, claim);
    if (claim->waiter_count != 0)
        advise_remaking(advice, claim);
}

static void advise_taken(struct advice_list *advice, const struct who_claim *claim)
{
    const struct reservation *reservation = reservation_at(claim->claim->reservation);
    struct slice uid, name, ns = name_text(claim->claim->ns);

    if (reservation != NULL)
        advice_list_add(
            advice,
            "the claim is reserved for pod %.*s/%.*s, until that is bound, or the reservation ends",
            SLICE_ARG(name_slice(reservation->ns)), SLICE_ARG(name_slice(reservation->name)));
    if (who_lock(claim, &uid, &name) && who_locker(claim) == NULL)
        advice_list_add(
            advice,
            "the claim is locked for pod %.*s/%.*s, which is not there: claimguard takes "
            "the lock over",
            SLICE_ARG(ns), SLICE_ARG(name));
}

/* A claim that has no volume, or none any more. */
static void advise_unbound(struct advice_list *advice, const struct who_claim *claim)
{
    const struct cluster *cluster = &claim->inquiry->cluster;
    const struct resource *named = cluster_find_resource(cluster, KIND_VOLUME, claim->volume);

    if (claim->is_of_earlier || who_lacks_volume(claim))
        advise_volume(advice, claim);
    else if (claim_phase(claim->claim) != CLAIM_BOUND && !claim_has_volume(claim->claim))
        advice_of_unbound(advice, claim);
    else if (named != NULL && volume_of(cluster, claim->claim) == NULL)
        advice_of_named(advice, claim, named);
    else if (claim_phase(claim->claim) != CLAIM_BOUND && named == NULL)
        advice_list_add(advice, "wait, if a provisioner makes it; else create the "
                                "PersistentVolume, or a new claim");
}

/* What the claim itself lacks, which is not being deleted. Whether nothing else matters. */
static bool advise_state(struct advice_list *advice, const struct who_claim *claim)
{
    if (claim->volume_details.deletion_timestamp.len != 0 && claim->has_volume) {
        advise_deleted(advice, claim);
        return true;
    }
    if (claim_phase(claim->claim) != CLAIM_PHASE_UNKNOWN)
        advise_unbound(advice, claim);
    return claim->access == ACCESS_UNKNOWN && claim_phase(claim->claim) == CLAIM_PENDING;
}

static void advise(struct advice_list *advice, const struct who_claim *claim, bool names_waiters)
{
    if (!claim->claim->exists && claim->holder_count == 0) {
        advice_list_add(advice, "the claim does not exist: create it");
        return;
    }
    if (claim->claim->is_deleting)
        advise_deletion(advice, claim);
    else if (names_waiters && advise_state(advice, claim)) /* `why` has causes for that */
        return;
    if (claim->access == ACCESS_ANY)
        return;
    if (names_waiters && claim->access == ACCESS_ONE_POD && !claim->claim->is_deleting)
        advise_preemption(advice, claim);
    advice->is_else = advice_of_sharing(advice, claim);
    if (!advice->is_else || names_waiters)
        advise_holders(advice, claim);
    advice->is_else = false;
    if (claim->holder_count == 0)
        advise_taken(advice, claim);
    if (claim->holder_count == 0 || claim->holder_count != claim->assigned_count)
        advice_of_attachments(advice, claim);
}

struct advice_list who_freed_by(const struct who_claim *claim, bool names_waiters,
                                struct arena *arena)
{
    struct advice_list advice = {.arena = arena};

    advise(&advice, claim, names_waiters);
    advice_list_leave_out_repeated(&advice); /* several holders may ask for the same */
    return advice;
}

struct advice_list who_bound_by(const struct who_claim *claim, struct arena *arena)
{
    struct advice_list advice = {.arena = arena};

    if (claim->claim->is_deleting)
        advise_volume(&advice, claim);
    else
        advise_unbound(&advice, claim);
    return advice;
}

struct advice_list who_deletion(const struct who_claim *claim, struct arena *arena)
{
    struct advice_list advice = {.arena = arena};

    advise_deleted(&advice, claim);
    advice_list_leave_out_repeated(&advice);
    return advice;
}

struct advice_list who_made_again(const struct who_claim *claim, struct arena *arena)
{
    struct advice_list advice = {.arena = arena};

    advise_remaking(&advice, claim);
    return advice;
}
