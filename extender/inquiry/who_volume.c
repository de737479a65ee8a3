/* A claim whose volume is not there, or was an earlier claim's: how it gets it, and its data. */
#include "extender/inquiry/who_advice.h"

static struct advice_words words_of(const struct who_claim *claim)
{
    return (struct advice_words){.ns = name_text(claim->claim->ns),
                                 .claim = claim_name(claim->claim),
                                 .name = claim->volume};
}

/* Without a claimRef, any claim could get the volume, and the data of this one. */
static void advise_reservation(struct advice *advice, const struct who_claim *claim)
{
    const struct volume_details *volume = &claim->volume_details;
    struct advice_words words = words_of(claim);

    if (volume->deletion_timestamp.len != 0) {
        advice_add(advice, json_sprintf("volume %.*s was an earlier claim's, and is being deleted: "
                                        "see whether its storage is still there",
                                        SLICE_ARG(words.name)));
        advice_command(advice, ADVICE_SEE_VOLUME, &words);
        return;
    }
    if (!slice_equal(volume->reclaim_policy, SLICE("Retain"))) {
        words.before = volume->reclaim_policy;
        advice_add(advice, json_sprintf("first keep volume %.*s, which is deleted while it is no "
                                        "claim's (reclaim policy %.*s)",
                                        SLICE_ARG(words.name),
                                        SLICE_ARG(words.before.len == 0 ? SLICE("not known")
                                                                        : words.before)));
        advice_command(advice, ADVICE_KEEP_VOLUME, &words);
    }
    advice_add(advice,
               json_sprintf("volume %.*s has the data of an earlier claim %.*s/%.*s. If this claim "
                            "is to have that data, reserve the volume for it",
                            SLICE_ARG(words.name), SLICE_ARG(words.ns), SLICE_ARG(words.claim)));
    advice_command(advice, ADVICE_RESERVE_VOLUME, &words);
    advice_add(advice, json_string("else create the claim again, without volumeName or with that "
                                   "of another volume"));
}

/* kube-controller-manager binds a Lost claim again when a volume of that name has a claimRef with
 * the claim's UID. */
static void advise_again(struct advice *advice, const struct who_claim *claim)
{
    const struct advice_words words = words_of(claim);
    char uid[UID_TEXT_BYTES];

    advice_add(advice,
               json_sprintf("volume %.*s is gone. If its storage still exists, create the "
                            "PersistentVolume for it again, with claimRef: {namespace: %.*s, name: "
                            "%.*s, uid: %.*s}: the claim is bound to it again, with its data",
                            SLICE_ARG(words.name), SLICE_ARG(words.ns), SLICE_ARG(words.claim),
                            SLICE_ARG(uid_text(&claim->claim->uid, uid))));
    advice_add(advice, json_string("else delete the claim, create it again for a new volume, and "
                                   "restore the data from a backup"));
    advice_command(advice, ADVICE_DELETE_LOST_CLAIM, &words);
}

static void advise_look(struct advice *advice, const struct who_claim *claim, bool is_there)
{
    const struct advice_words words = words_of(claim);

    advice_add(advice, is_there
                           ? json_sprintf("volume %.*s is bound to another claim, or to none: its "
                                          "claimRef says to which one",
                                          SLICE_ARG(words.name))
                           : json_sprintf("whether volume %.*s is there is not known from this "
                                          "input: see it first",
                                          SLICE_ARG(words.name)));
    advice_command(advice, ADVICE_SEE_VOLUME, &words);
}

void advice_of_volume(struct advice *advice, const struct who_claim *claim)
{
    bool is_there =
        cluster_find_resource(&claim->inquiry->cluster, KIND_VOLUME, claim->volume) != NULL;

    if (claim->claim->is_deleting)
        advice_add(advice, json_string("the claim is being deleted: create it again when it is "
                                       "gone, and ask again"));
    else if (claim->is_of_earlier)
        advise_reservation(advice, claim);
    else if (is_there || !inquiry_knows(claim->inquiry, KIND_VOLUME))
        advise_look(advice, claim, is_there);
    else
        advise_again(advice, claim);
}
