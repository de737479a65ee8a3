#include "policy/defer_fs_mount.h"

/* ---- entries ---- */

static bool has_key(const struct defer_entry *entry, const struct pod_volume *volume,
                    struct slice storage_class)
{
    return volume->source == VOLUME_SOURCE_CSI
               ? entry->csi_driver.len != 0 && slice_equal(entry->csi_driver, volume->driver)
               : entry->storage_class.len != 0 && slice_equal(entry->storage_class, storage_class);
}

/* The next entry for the volume behind `from`, or the first; NULL: there is no other. */
static const struct defer_entry *next_entry(const struct view *view, const struct defer_entry *from,
                                            const struct pod_volume *volume,
                                            struct slice storage_class, struct slice runtime_class)
{
    const struct defer_entry *entries = view->config->defer_fs_mount.entries;
    size_t count = view->config->defer_fs_mount.entry_count;

    for (size_t i = from == NULL ? 0 : (size_t)(from - entries) + 1; i < count; i++)
        if (runtime_class.len != 0 && slice_equal(entries[i].runtime_class, runtime_class) &&
            has_key(&entries[i], volume, storage_class))
            return &entries[i];
    return NULL;
}

static struct slice storage_class_of(const struct claim *claim)
{
    return name_slice(claim == NULL ? NULL : claim->storage_class);
}

/* ---- the rules that an entry decides ---- */

static bool has_driver(const struct decision *decision)
{
    return decision->volume->source == VOLUME_SOURCE_CSI ||
           (decision->persistent != NULL &&
            decision->persistent->attributes[VOLUME_DRIVER] != NULL);
}

static bool has_secret(const struct decision *decision)
{
    return decision->volume->source == VOLUME_SOURCE_CSI
               ? decision->volume->has_secret
               : decision->persistent->attributes[VOLUME_PUBLISH_SECRET] != NULL;
}

static bool is_block(const struct decision *decision)
{
    const struct resource *persistent = decision->persistent;

    return (decision->claim != NULL && decision->claim->is_block) ||
           (persistent != NULL &&
            slice_equal(name_slice(persistent->attributes[VOLUME_MODE]), SLICE("Block")));
}

static struct slice fs_type_of(const struct decision *decision)
{
    return decision->volume->source == VOLUME_SOURCE_CSI
               ? decision->volume->fs_type
               : name_slice(decision->persistent->attributes[VOLUME_FS_TYPE]);
}

static struct slice change_policy_of(const struct pod_mounts *mounts)
{
    return mounts->fs_group_change_policy.len == 0 ? SLICE("Always")
                                                   : mounts->fs_group_change_policy;
}

static bool supports_change_policy(const struct defer_entry *entry, struct slice policy)
{
    unsigned bit = slice_equal(policy, SLICE("Always"))           ? FS_GROUP_ALWAYS
                   : slice_equal(policy, SLICE("OnRootMismatch")) ? FS_GROUP_ON_ROOT_MISMATCH
                                                                  : 0;
    return (entry->fs_group_change_policies & bit) != 0;
}

static bool lists_fs_type(const struct defer_entry *entry, struct slice fs_type)
{
    for (size_t i = 0; i < entry->fs_type_count; i++)
        if (slice_equal(entry->fs_types[i], fs_type))
            return true;
    return entry->fs_type_count == 0;
}

/* The first rule from the fifth on that does not hold. */
static enum defer_rule ask_entry(const struct defer_entry *entry, const struct pod_mounts *mounts,
                                 const struct decision *decision)
{
    const struct pod_volume *volume = decision->volume;

    if (mounts->has_fs_group &&
        (!entry->supports_fs_group || !supports_change_policy(entry, change_policy_of(mounts))))
        return RULE_FS_GROUP;
    if (volume->has_sub_path && !entry->supports_sub_path)
        return RULE_SUB_PATH;
    if ((mounts->has_selinux || volume->has_selinux) && !entry->supports_selinux_relabel)
        return RULE_SELINUX;
    if (!lists_fs_type(entry, fs_type_of(decision)))
        return RULE_FS_TYPE;
    if (has_secret(decision))
        return RULE_SECRET;
    if (decision->claim != NULL && !decision->claim->is_rwop &&
        entry->non_exclusive_claims == NON_EXCLUSIVE_REFUSE)
        return RULE_ACCESS_MODE;
    return RULE_NONE;
}

/* Asks all entries that match, from decision->entry on: the first of which all rules hold, else the
 * one that holds the longest. */
static void ask_entries(const struct view *view, const struct pod_mounts *mounts,
                        struct decision *decision)
{
    const struct defer_entry *entry = decision->entry;
    struct slice storage_class = storage_class_of(decision->claim);

    decision->rule = RULE_SOURCE;
    for (; entry != NULL && decision->rule != RULE_NONE;
         entry = next_entry(view, entry, decision->volume, storage_class, mounts->runtime_class)) {
        enum defer_rule rule = ask_entry(entry, mounts, decision);
        if (rule != RULE_NONE && rule <= decision->rule)
            continue;
        decision->rule = rule;
        decision->entry = entry;
    }
}

/* ---- a decision ---- */

static bool is_of_claim(const struct resource *volume, const struct claim *claim)
{
    return slice_equal(name_slice(volume->attributes[VOLUME_CLAIM_NAMESPACE]),
                       name_slice(claim->ns)) &&
           slice_equal(name_slice(volume->attributes[VOLUME_CLAIM_NAME]), claim_name(claim));
}

/* The volume that the claim is bound to, and that is bound to the claim; NULL: not yet. Where one
 * side says nothing (a hand-written snapshot), the other one's word counts. */
static const struct resource *find_bound(const struct view *view, const struct claim *claim)
{
    bool may_be =
        claim != NULL && (claim->phase == CLAIM_BOUND || claim->phase == CLAIM_PHASE_UNKNOWN);
    const struct resource *volume = may_be ? cluster_find_volume(view->cluster, claim) : NULL;

    if (volume == NULL || is_of_claim(volume, claim))
        return volume;
    return volume->attributes[VOLUME_CLAIM_NAME] == NULL && claim->phase == CLAIM_BOUND ? volume
                                                                                        : NULL;
}

/* What the pod says itself, or the operator; RULE_NONE: neither does. */
static enum defer_rule ask_user(const struct view *view, const struct pod_object *pod,
                                const struct pod_volume *volume)
{
    if (view->config->defer_fs_mount.apply == DEFER_DISABLED)
        return RULE_IS_DISABLED;
    if (mounts_opt_out(pod->mounts))
        return RULE_OPTED_OUT;
    return volume->field == DEFER_FIELD_FALSE ? RULE_SET_TO_FALSE : RULE_NONE;
}

/* By the rules, without regard to the pod's other volumes. */
static void decide(const struct view *view, const struct pod_object *pod,
                   const struct pod_volume *volume, struct decision *out)
{
    *out = (struct decision){.volume = volume, .rule = RULE_SOURCE};
    if (volume->source == VOLUME_SOURCE_OTHER)
        return;
    if (volume->source != VOLUME_SOURCE_CSI)
        out->claim = cluster_find_claim(view->cluster, pod->meta.ns, volume->claim);
    out->entry =
        next_entry(view, NULL, volume, storage_class_of(out->claim), pod->mounts->runtime_class);
    out->is_set = volume_is_deferred(volume);
    out->rule = out->is_set ? RULE_NONE : ask_user(view, pod, volume);
    if (out->is_set || out->rule != RULE_NONE)
        return;
    out->rule = RULE_ENTRY;
    if (out->entry == NULL)
        return;
    out->persistent = find_bound(view, out->claim);
    out->rule = RULE_VOLUME_MODE;
    if (is_block(out))
        return;
    out->rule = RULE_CSI;
    out->is_undecided = volume->source != VOLUME_SOURCE_CSI && out->persistent == NULL;
    if (out->is_undecided || !has_driver(out))
        return;
    ask_entries(view, pod->mounts, out);
}

/* Another volume of the pod that has the same claim and is not deferred; NULL: there is none. */
static const struct pod_volume *find_node_mount(const struct view *view,
                                                const struct pod_object *pod,
                                                const struct pod_volume *volume)
{
    struct decision decision;

    for (uint32_t i = 0; i < pod->mounts->volume_count; i++) {
        const struct pod_volume *other = &pod->mounts->volumes[i];
        if (other == volume || other->claim.len == 0 || !slice_equal(other->claim, volume->claim))
            continue;
        decide(view, pod, other, &decision);
        if (decision.rule != RULE_NONE)
            return other;
    }
    return NULL;
}

void defer_decide(const struct view *view, const struct pod_object *pod,
                  const struct pod_volume *volume, struct decision *out)
{
    decide(view, pod, volume, out);
    if (out->rule != RULE_NONE || out->is_set || out->claim == NULL)
        return;
    out->node_mount = find_node_mount(view, pod, volume);
    if (out->node_mount != NULL)
        out->rule = RULE_ACCESS_MODE;
}

/* ---- reasons ---- */

static struct slice say_access_mode(const struct decision *decision, struct arena *arena)
{
    if (decision->node_mount != NULL)
        return arena_printf(arena,
                            "rule 10, accessMode: the node mounts claim \"%.*s\", too, for volume "
                            "\"%.*s\", which is not deferred",
                            SLICE_ARG(decision->volume->claim),
                            SLICE_ARG(decision->node_mount->name));
    return arena_printf(arena,
                        "rule 10, accessMode: claim \"%.*s\" is not ReadWriteOncePod, and the "
                        "entry's nonExclusiveClaims is Refuse",
                        SLICE_ARG(decision->volume->claim));
}

static struct slice say_entry(const struct pod_object *pod, const struct decision *decision,
                              struct arena *arena)
{
    struct slice runtime_class = pod->mounts->runtime_class;

    if (runtime_class.len == 0)
        return arena_printf(arena, "rule 2, entry: the pod has no runtimeClassName");
    if (decision->volume->source == VOLUME_SOURCE_CSI)
        return arena_printf(arena,
                            "rule 2, entry: none is for CSI driver \"%.*s\" and runtime class "
                            "\"%.*s\"",
                            SLICE_ARG(decision->volume->driver), SLICE_ARG(runtime_class));
    if (decision->claim == NULL)
        return arena_printf(arena, "rule 2, entry: persistentvolumeclaim \"%.*s\" not found",
                            SLICE_ARG(decision->volume->claim));
    return arena_printf(
        arena, "rule 2, entry: none is for storage class \"%.*s\" and runtime class \"%.*s\"",
        SLICE_ARG(storage_class_of(decision->claim)), SLICE_ARG(runtime_class));
}

static struct slice say_csi(const struct decision *decision, struct arena *arena)
{
    if (decision->is_undecided)
        return arena_printf(arena,
                            "rule 4, csi: claim \"%.*s\" is not bound to a volume that is known: "
                            "decided again when it is",
                            SLICE_ARG(decision->volume->claim));
    return arena_printf(arena, "rule 4, csi: volume \"%.*s\" has no csi source",
                        SLICE_ARG(name_slice(decision->persistent->key.name)));
}

static struct slice say_fs_group(const struct pod_object *pod, const struct decision *decision,
                                 struct arena *arena)
{
    if (!decision->entry->supports_fs_group)
        return arena_printf(arena,
                            "rule 5, fsGroup: the pod sets it, and the entry does not support it");
    return arena_printf(arena,
                        "rule 5, fsGroup: the entry's fsGroupChangePolicies do not have the "
                        "pod's, %.*s",
                        SLICE_ARG(change_policy_of(pod->mounts)));
}

static struct slice say_set(const struct decision *decision, struct arena *arena)
{
    return arena_printf(arena, decision->entry != NULL
                                   ? "deferred already"
                                   : "deferred already, and no entry is for it (any more)");
}

struct slice defer_reason(const struct pod_object *pod, const struct decision *decision,
                          struct arena *arena)
{
    switch (decision->rule) {
    case RULE_NONE:
        return decision->is_set ? say_set(decision, arena)
                                : arena_printf(arena, "the entry supports all that the pod needs");
    case RULE_SOURCE:
        return arena_printf(arena, "rule 1, source: it is no persistentVolumeClaim, ephemeral or "
                                   "csi volume");
    case RULE_ENTRY: return say_entry(pod, decision, arena);
    case RULE_VOLUME_MODE: return arena_printf(arena, "rule 3, volumeMode: it is Block");
    case RULE_CSI: return say_csi(decision, arena);
    case RULE_FS_GROUP: return say_fs_group(pod, decision, arena);
    case RULE_SUB_PATH:
        return arena_printf(arena, "rule 6, subPath: a container mounts it with subPath or "
                                   "subPathExpr, and the entry does not support it");
    case RULE_SELINUX:
        return arena_printf(arena, "rule 7, seLinuxOptions: the pod or a container that mounts it "
                                   "sets them, and the entry does not support it");
    case RULE_FS_TYPE:
        return arena_printf(arena, "rule 8, fsType: the entry's fsTypes do not have \"%.*s\"",
                            SLICE_ARG(fs_type_of(decision)));
    case RULE_SECRET:
        return arena_printf(arena, "rule 9, nodePublishSecret: the volume needs one, which would "
                                   "be written to the node's disk in clear text");
    case RULE_ACCESS_MODE: return say_access_mode(decision, arena);
    case RULE_OPTED_OUT:
        return arena_printf(arena, "the pod opts out: " DEFER_FS_MOUNT_ANNOTATION
                                   " is " DEFER_FS_MOUNT_OPT_OUT);
    case RULE_SET_TO_FALSE: return arena_printf(arena, "the pod says deferFSMount: false");
    case RULE_IS_DISABLED: return arena_printf(arena, "deferFSMount.apply is Disabled");
    }
    return (struct slice){NULL, 0};
}

struct slice defer_entry_name(const struct defer_entry *entry, struct arena *arena)
{
    if (entry == NULL)
        return SLICE("");
    return arena_printf(arena, "%.*s%.*s/%.*s", SLICE_ARG(entry->storage_class),
                        SLICE_ARG(entry->csi_driver), SLICE_ARG(entry->runtime_class));
}

/* ---- who has a claim alone ---- */

/* With claimLock: Annotation, a claim has one holder's name on it: nobody shares one that could be
 * deferred alone. */
static bool is_locked_alone(const struct view *view, const struct claim *claim)
{
    const struct config *config = view->config;

    if (config->read_write_once_pod.claim_lock != CLAIM_LOCK_ANNOTATION)
        return false;
    for (size_t i = 0; i < config->defer_fs_mount.entry_count; i++) {
        const struct defer_entry *entry = &config->defer_fs_mount.entries[i];
        if (entry->non_exclusive_claims == NON_EXCLUSIVE_EXCLUSIVE &&
            entry->storage_class.len != 0 &&
            slice_equal(entry->storage_class, storage_class_of(claim)))
            return true;
    }
    return false;
}

/* How entries for a volume treat a claim that is not ReadWriteOncePod. */
struct sharing {
    bool is_matched, has_exclusive, has_other; /* other: than Allow */
};

static struct sharing sharing_of(const struct view *view, const struct pod_volume *volume,
                                 const struct claim *claim, struct slice runtime_class)
{
    struct slice storage_class = storage_class_of(claim);
    struct sharing sharing = {.is_matched = false};

    for (const struct defer_entry *entry = NULL;
         (entry = next_entry(view, entry, volume, storage_class, runtime_class)) != NULL;) {
        sharing.is_matched = true;
        sharing.has_exclusive |= entry->non_exclusive_claims == NON_EXCLUSIVE_EXCLUSIVE;
        sharing.has_other |= entry->non_exclusive_claims != NON_EXCLUSIVE_ALLOW;
    }
    return sharing;
}

/* Whether the pod's volume would have its claim alone. */
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

bool defer_needs_exclusive(const struct view *view, const struct pod_object *pod, size_t index,
                           const struct claim *claim)
{
    struct slice name = pod->claims[index].name;

    if (view->config->defer_fs_mount.entry_count == 0 && !pod->claims[index].is_deferred)
        return false;
    if (is_locked_alone(view, claim))
        return true;
    for (uint32_t i = 0; pod->mounts != NULL && i < pod->mounts->volume_count; i++) {
        const struct pod_volume *volume = &pod->mounts->volumes[i];
        if (volume->source != VOLUME_SOURCE_CSI && slice_equal(volume->claim, name) &&
            wants_exclusive(view, pod, volume))
            return true;
    }
    return false;
}

bool defer_has_exclusive(const struct view *view, const struct use *use)
{
    static const struct pod_volume by_claim = {.source = VOLUME_SOURCE_CLAIM};
    const struct pod_mounts *mounts = pod_mounts(use_pod(use));

    if (!use->is_deferred)
        return false;
    if (mounts == NULL)
        return true;
    struct sharing sharing = sharing_of(view, &by_claim, use->claim, mounts->runtime_class);
    return !sharing.is_matched || sharing.has_other;
}

bool defer_may_be_exclusive(const struct view *view, const struct claim *claim)
{
    bool is_allowed = false;

    if (claim->deferred == 0)
        return false;
    for (size_t i = 0; i < view->config->defer_fs_mount.entry_count; i++) {
        const struct defer_entry *entry = &view->config->defer_fs_mount.entries[i];
        if (entry->storage_class.len == 0 ||
            !slice_equal(entry->storage_class, storage_class_of(claim)))
            continue;
        if (entry->non_exclusive_claims != NON_EXCLUSIVE_ALLOW)
            return true;
        is_allowed = true;
    }
    return !is_allowed;
}

/* The use of a pod that holds the claim and has it alone; NULL: there is none. */
static const struct use *find_lone_use(const struct view *view, const struct claim *claim)
{
    if (claim->is_rwop || !defer_may_be_exclusive(view, claim))
        return NULL;
    for (const struct use *use = claim->uses; use != NULL; use = use->next)
        if (pod_holds(use_pod(use)) && defer_has_exclusive(view, use))
            return use;
    return NULL;
}

bool defer_is_violated(const struct view *view, const struct claim *claim)
{
    return claim->exists && claim->refs > 1 && find_lone_use(view, claim) != NULL;
}

bool defer_is_orphan(const struct view *view, const struct pod *pod,
                     const struct pod_volume *volume)
{
    const struct claim *claim = NULL;

    if (volume->source != VOLUME_SOURCE_CSI)
        claim = cluster_find_claim(view->cluster, name_slice(pod->ns), volume->claim);
    return volume_is_deferred(volume) && next_entry(view, NULL, volume, storage_class_of(claim),
                                                    pod_mounts(pod)->runtime_class) == NULL;
}
