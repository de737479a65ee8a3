#include "policy/defer_fs_mount.h"

#include "policy/volume.h"

/* ---- entries ---- */

static bool has_key(const struct defer_entry *entry, const struct pod_volume *volume,
                    struct slice storage_class)
{
    return volume->source == VOLUME_SOURCE_CSI
               ? entry->csi_driver.len != 0 && slice_equal(entry->csi_driver, volume->driver)
               : entry->storage_class.len != 0 && slice_equal(entry->storage_class, storage_class);
}

const struct defer_entry *defer_next_entry(const struct view *view, const struct defer_entry *from,
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

/* Empty: the claim is not known, or has none. */
static struct slice storage_class_of(const struct claim *claim)
{
    return name_slice(claim == NULL ? NULL : claim_storage_class(claim));
}

/* ---- the rules that an entry decides ---- */

/* Of the volume that the claim is bound to; empty: none. */
static struct slice attribute(const struct decision *decision, enum volume_attribute index)
{
    return decision->persistent == NULL ? SLICE("")
                                        : resource_attribute(decision->persistent, index);
}

static bool has_driver(const struct decision *decision)
{
    return decision->volume->source == VOLUME_SOURCE_CSI ||
           attribute(decision, VOLUME_DRIVER).len != 0;
}

static bool has_secret(const struct decision *decision)
{
    return decision->volume->source == VOLUME_SOURCE_CSI
               ? decision->volume->has_secret
               : decision->persistent != NULL &&
                     (resource_number(decision->persistent) & VOLUME_HAS_SECRET) != 0;
}

static bool is_block(const struct decision *decision)
{
    const struct resource *persistent = decision->persistent;

    return (decision->claim != NULL && decision->claim->is_block) ||
           (persistent != NULL && (resource_number(persistent) & VOLUME_IS_BLOCK) != 0);
}

static struct slice fs_type_of(const struct decision *decision)
{
    return decision->volume->source == VOLUME_SOURCE_CSI ? decision->volume->fs_type
                                                         : attribute(decision, VOLUME_FS_TYPE);
}

/* The pod's fsGroupChangePolicy, or what its absence means. */
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
    if (entry->fs_type_count != 0 &&
        !slice_is_among(fs_type_of(decision), entry->fs_types, entry->fs_type_count))
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
         entry = defer_next_entry(view, entry, decision->volume, storage_class,
                                  mounts->runtime_class)) {
        enum defer_rule rule = ask_entry(entry, mounts, decision);
        if (rule != RULE_NONE && rule <= decision->rule)
            continue;
        decision->rule = rule;
        decision->entry = entry;
    }
}

/* ---- a decision ---- */

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

/* Whether claimguard has deferred the volume for an earlier claim of that name. */
static bool is_for_former(const struct pod_volume *volume, const struct claim *claim)
{
    char text[UID_TEXT_BYTES];
    struct slice uid = claim == NULL ? SLICE("") : uid_text(&claim->uid, text);

    return volume_is_deferred(volume) && volume->deferred_for.len != 0 && uid.len != 0 &&
           !slice_equal(volume->deferred_for, uid);
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
    out->entry = defer_next_entry(view, NULL, volume, storage_class_of(out->claim),
                                  pod->mounts->runtime_class);
    out->is_of_former = is_for_former(volume, out->claim);
    out->is_set = volume_is_deferred(volume) && !out->is_of_former;
    out->rule = out->is_set ? RULE_NONE : ask_user(view, pod, volume);
    if (out->is_set || out->rule != RULE_NONE)
        return;
    out->rule = RULE_ENTRY;
    if (out->entry == NULL)
        return;
    out->persistent = out->claim == NULL ? NULL : volume_of(view->cluster, out->claim);
    out->rule = RULE_VOLUME_MODE;
    if (is_block(out))
        return;
    out->rule = RULE_CSI;
    out->is_undecided = volume->source != VOLUME_SOURCE_CSI && out->persistent == NULL;
    if (out->is_undecided || !has_driver(out))
        return;
    ask_entries(view, pod->mounts, out);
}

enum { TRAITS_MAX = 512 };

/* All that can differ between the decisions about two volumes of one claim. */
static size_t traits_of(const struct pod_volume *volume, const struct claim *claim)
{
    return (size_t)(volume->source & 3U) | (size_t)(volume->field & 3U) << 2 |
           (size_t)volume->is_annotated << 4 | (size_t)volume->has_sub_path << 5 |
           (size_t)volume->has_selinux << 6 | (size_t)volume->has_secret << 7 |
           (size_t)is_for_former(volume, claim) << 8;
}

/* Another volume of the pod that has the same claim and is not deferred, unlike this one; NULL:
 * there is none. A pod may have a thousand volumes of one claim: of those that are decided alike,
 * one is decided. */
static const struct pod_volume *find_node_mount(const struct view *view,
                                                const struct pod_object *pod,
                                                const struct decision *asked)
{
    const struct pod_volume *volume = asked->volume;
    bool is_seen[TRAITS_MAX] = {false};
    struct decision decision;

    is_seen[traits_of(volume, asked->claim)] = true;
    for (uint32_t i = 0; i < pod->mounts->volume_count; i++) {
        const struct pod_volume *other = &pod->mounts->volumes[i];
        if (other->claim.len == 0 || is_seen[traits_of(other, asked->claim)] ||
            !slice_equal(other->claim, volume->claim))
            continue;
        is_seen[traits_of(other, asked->claim)] = true;
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
    out->node_mount = find_node_mount(view, pod, out);
    if (out->node_mount != NULL)
        out->rule = RULE_ACCESS_MODE;
}

/* ---- what has to be known ---- */

bool defer_reads_volumes(const struct config *config)
{
    bool is_so = false;

    for (size_t i = 0; i < config->defer_fs_mount.entry_count; i++)
        is_so = is_so || config->defer_fs_mount.entries[i].storage_class.len != 0;
    return is_so && config->defer_fs_mount.apply != DEFER_DISABLED;
}

/* Whether an entry is for claims of pods of that runtime class. */
static bool has_entry_for(const struct view *view, struct slice runtime_class)
{
    const struct defer_entry *entries = view->config->defer_fs_mount.entries;

    for (size_t i = 0; i < view->config->defer_fs_mount.entry_count; i++)
        if (runtime_class.len != 0 && entries[i].storage_class.len != 0 &&
            slice_equal(entries[i].runtime_class, runtime_class))
            return true;
    return false;
}

bool defer_may_match(const struct view *view, const struct pod_object *pod)
{
    return view->config->defer_fs_mount.apply != DEFER_DISABLED && pod->mounts != NULL &&
           !mounts_opt_out(pod->mounts) && has_entry_for(view, pod->mounts->runtime_class);
}

bool defer_needs_claim(const struct view *view, const struct pod_object *pod,
                       const struct pod_volume *volume)
{
    return volume->claim.len != 0 && !volume_is_deferred(volume) &&
           ask_user(view, pod, volume) == RULE_NONE &&
           cluster_find_claim(view->cluster, pod->meta.ns, volume->claim) == NULL &&
           has_entry_for(view, pod->mounts->runtime_class);
}

bool defer_is_orphan(const struct view *view, const struct pod *pod,
                     const struct pod_volume *volume)
{
    const struct claim *claim = NULL;

    if (volume->source != VOLUME_SOURCE_CSI)
        claim = cluster_find_claim(view->cluster, name_text(pod->ns), volume->claim);
    return volume_is_deferred(volume) &&
           defer_next_entry(view, NULL, volume, storage_class_of(claim),
                            pod_mounts(pod)->runtime_class) == NULL;
}

/* ---- reasons ---- */

static struct slice say_access_mode(const struct decision *decision, struct arena *arena)
{
    if (decision->node_mount != NULL)
        return arena_printf(arena,
                            "rule 10, accessMode: the node also mounts claim \"%.*s\" for volume "
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
    char name[PROVISIONED_NAME_BYTES];
    return arena_printf(arena, "rule 4, csi: volume \"%.*s\" has no csi source",
                        SLICE_ARG(resource_name(decision->persistent, name)));
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
        return arena_printf(arena, "rule 9, secret: the volume needs one on the node, which would "
                                   "be written to its disk in clear text");
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
