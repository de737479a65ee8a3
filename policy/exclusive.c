#include "policy/exclusive.h"

#include "policy/defer_fs_mount.h"

static const struct agreed_class *find_agreed(const struct view *view, struct slice storage_class)
{
    for (size_t i = 0; view->agreed != NULL && i < view->agreed->count; i++)
        if (slice_equal(view->agreed->items[i].name, storage_class))
            return &view->agreed->items[i];
    return NULL;
}

bool exclusive_by_class(const struct view *view, const struct claim *claim)
{
    struct slice storage_class = name_slice(claim_storage_class(claim));

    return (storage_class.len != 0 && find_agreed(view, storage_class) != NULL) ||
           config_makes_exclusive(view->config, storage_class,
                                  view->config->defer_fs_mount.entry_count);
}

/* A claim's lock stores one holder, so no pod shares a claim that could be deferred alone. */
bool exclusive_by_lock(const struct view *view, const struct claim *claim)
{
    return view->config->read_write_once_pod.claim_lock == CLAIM_LOCK_ANNOTATION &&
           exclusive_by_class(view, claim);
}

bool exclusive_is_announced(const struct view *view, const struct claim *claim)
{
    if (view->agreed == NULL || claim->is_rwop || !exclusive_by_lock(view, claim))
        return false;
    const struct agreed_class *agreed = find_agreed(view, name_slice(claim_storage_class(claim)));
    return agreed == NULL || !agreed->is_in_force;
}

/* How entries for a volume treat a claim that is not ReadWriteOncePod. */
struct sharing {
    bool is_matched, has_exclusive, has_other; /* other: than Allow */
};

static struct sharing sharing_of(const struct view *view, const struct pod_volume *volume,
                                 const struct claim *claim, struct slice runtime_class)
{
    struct slice storage_class = name_slice(claim_storage_class(claim));
    struct sharing sharing = {.is_matched = false};

    for (const struct defer_entry *entry = NULL;
         (entry = defer_next_entry(view, entry, volume, storage_class, runtime_class)) != NULL;) {
        sharing.is_matched = true;
        sharing.has_exclusive |= entry->non_exclusive_claims == NON_EXCLUSIVE_EXCLUSIVE;
        sharing.has_other |= entry->non_exclusive_claims != NON_EXCLUSIVE_ALLOW;
    }
    return sharing;
}

/* Whether the pod's volume would make its claim exclusive. */
static bool wants_exclusive(const struct view *view, const struct pod_object *pod,
                            const struct pod_volume *volume)
{
    struct decision decision;

    defer_decide(view, pod, volume, &decision);
    if (decision.claim == NULL || decision.claim->is_rwop)
        return false;
    if (decision.rule == RULE_NONE && !decision.is_set)
        return decision.entry->non_exclusive_claims == NON_EXCLUSIVE_EXCLUSIVE;
    struct sharing sharing = sharing_of(view, volume, decision.claim, pod->mounts->runtime_class);
    return decision.is_set ? !sharing.is_matched || sharing.has_other
                           : decision.is_undecided && sharing.has_exclusive;
}

/* Whether one of the pod's volumes would make the claim of that name exclusive. Of a pod whose
 * mounts are not known, each deferral does. */
static bool is_wanted(const struct view *view, const struct pod_object *pod, struct slice name)
{
    for (size_t i = 0; pod->mounts == NULL && i < pod->claim_count; i++)
        if (pod->claims[i].is_deferred && slice_equal(pod->claims[i].name, name))
            return true;
    for (uint32_t i = 0; pod->mounts != NULL && i < pod->mounts->volume_count; i++) {
        const struct pod_volume *volume = &pod->mounts->volumes[i];
        if (volume->source != VOLUME_SOURCE_CSI && slice_equal(volume->claim, name) &&
            wants_exclusive(view, pod, volume))
            return true;
    }
    return false;
}

bool exclusive_is_unlocked(const struct view *view, const struct pod_object *pod, struct slice name,
                           const struct claim *claim)
{
    return view->config->read_write_once_pod.claim_lock == CLAIM_LOCK_ANNOTATION &&
           !exclusive_by_class(view, claim) && is_wanted(view, pod, name);
}

bool exclusive_is_needed(const struct view *view, const struct pod_object *pod, size_t index,
                         const struct claim *claim)
{
    if (claim->is_rwop || exclusive_by_lock(view, claim))
        return true;
    return (view->config->defer_fs_mount.entry_count != 0 || pod->claims[index].is_deferred) &&
           is_wanted(view, pod, pod->claims[index].name);
}

bool exclusive_is_held(const struct view *view, const struct use *use)
{
    static const struct pod_volume by_claim = {.source = VOLUME_SOURCE_CLAIM};
    const struct pod_mounts *mounts = pod_mounts(use_pod(use));

    if (!use->is_deferred)
        return false;
    if (mounts == NULL)
        return true;
    struct sharing sharing =
        sharing_of(view, &by_claim, claim_at(use->claim), mounts->runtime_class);
    return !sharing.is_matched || sharing.has_other;
}

/* The use of a pod that holds the claim for itself; NULL: there is none. */
static const struct use *find_exclusive_use(const struct view *view, const struct claim *claim)
{
    if (claim->is_rwop || !exclusive_may_be_held(claim))
        return NULL;
    for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next))
        if (pod_holds(use_pod(use)) && exclusive_is_held(view, use))
            return use;
    return NULL;
}

bool exclusive_is_violated(const struct view *view, const struct claim *claim)
{
    return claim->exists && claim->refs > 1 && find_exclusive_use(view, claim) != NULL;
}
