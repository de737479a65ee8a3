/* DeferFSMount: the ten rules and the KEP's stories by name, and every combination of what a pod
 * needs and an entry supports. */
#include "unit/policy/defer_volume.h"

static void check(const struct row *row)
{
    struct config *config =
        load_config(or_else(row->apply, "Auto"), or_else(row->entries, SUPPORTS_ALL));
    struct cluster cluster;
    struct arena arena;
    struct decision decision;
    char text[4096];

    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    load_volume(&cluster, row);
    struct pod_object pod = read_pod(row, &arena, text, sizeof text);
    struct view view = {.cluster = &cluster, .config = config};
    defer_decide(&view, &pod, &pod.mounts->volumes[1], &decision);
    struct slice reason = defer_reason(&pod, &decision, &arena);
    cr_expect_eq(decision.rule == RULE_NONE, row->reason == NULL, "%.*s", SLICE_ARG(reason));
    if (row->reason != NULL)
        cr_expect(slice_equal(reason, slice_of(row->reason)), "reason: %.*s", SLICE_ARG(reason));
    arena_dispose(&arena);
    cluster_dispose(&cluster);
    config_free(config);
}

#define RULE(name, ...) \
    Test(rules, name) \
    { \
        check(&(struct row){__VA_ARGS__}); \
    }

RULE(all_of_them_hold, NULL)

RULE(rule_1_source,
     .reason = "rule 1, source: it is no persistentVolumeClaim, ephemeral or csi volume",
     .source = "\"configMap\":{\"name\":\"data\"}")
RULE(rule_1_source_ephemeral_takes_the_pod_s_claim,
     .reason = "rule 2, entry: persistentvolumeclaim \"web-0-data\" not found",
     .source = "\"ephemeral\":{\"volumeClaimTemplate\":{}}")
RULE(rule_1_source_csi_inline, NULL,
     .entries = "{csiDriver: inline.example.com, runtimeClass: microvm}",
     .source = "\"csi\":{\"driver\":\"inline.example.com\"}")

RULE(rule_2_entry_no_runtime_class, .reason = "rule 2, entry: the pod has no runtimeClassName",
     .pod = "")
RULE(rule_2_entry_another_runtime_class,
     .reason = "rule 2, entry: none is for storage class \"fast-storage\" and runtime class "
               "\"runc\"",
     .pod = ",\"runtimeClassName\":\"runc\"")
RULE(rule_2_entry_another_storage_class,
     .reason = "rule 2, entry: none is for storage class \"slow\" and runtime class \"microvm\"",
     .claim = "\"spec\":{\"storageClassName\":\"slow\"}")
RULE(rule_2_entry_another_driver,
     .reason = "rule 2, entry: none is for CSI driver \"x\" and runtime class \"microvm\"",
     .entries = "{csiDriver: inline.example.com, runtimeClass: microvm}",
     .source = "\"csi\":{\"driver\":\"x\"}")
RULE(rule_2_entry_a_driver_s_name_is_no_storage_class,
     .reason = "rule 2, entry: none is for CSI driver \"fast-storage\" and runtime class "
               "\"microvm\"",
     .source = "\"csi\":{\"driver\":\"fast-storage\"}")

RULE(rule_3_volume_mode, .reason = "rule 3, volumeMode: it is Block",
     .claim = CLAIM("ReadWriteOncePod", ",\"volumeMode\":\"Block\""))
RULE(rule_3_volume_mode_comes_before_rule_4, .reason = "rule 3, volumeMode: it is Block",
     .claim = "\"spec\":{\"storageClassName\":\"fast-storage\",\"volumeMode\":\"Block\"}")
RULE(rule_3_volume_mode_filesystem, NULL,
     .claim = CLAIM("ReadWriteOncePod", ",\"volumeMode\":\"Filesystem\""))

#define UNBOUND \
    "rule 4, csi: claim \"data\" is not bound to a volume that is known: decided again when it is"
RULE(rule_4_csi_unbound, .reason = UNBOUND,
     .claim = "\"spec\":{\"storageClassName\":\"fast-storage\"},\"status\":{\"phase\":\"Pending\"}")
RULE(rule_4_csi_the_volume_is_not_known, .reason = UNBOUND,
     .claim = "\"spec\":{\"storageClassName\":\"fast-storage\",\"volumeName\":\"pv-2\"},\"status\":"
              "{\"phase\":\"Bound\"}")
RULE(rule_4_csi_the_volume_is_another_claim_s, .reason = UNBOUND,
     .volume = "\"claimRef\":{\"namespace\":\"default\",\"name\":\"x\"}," CSI)
RULE(rule_4_csi_another_source, .reason = "rule 4, csi: volume \"pv-1\" has no csi source",
     .volume = PV("\"hostPath\":{\"path\":\"/x\"}"))

RULE(rule_5_fs_group,
     .reason = "rule 5, fsGroup: the pod sets it, and the entry does not support it",
     .entries = ENTRY_BEGIN "}", .security = "\"fsGroup\":100")
RULE(rule_5_fs_group_of_zero_is_set,
     .reason = "rule 5, fsGroup: the pod sets it, and the entry does not support it",
     .entries = ENTRY_BEGIN "}", .security = "\"fsGroup\":0")
RULE(rule_5_fs_group_change_policy_is_always_if_unset,
     .reason = "rule 5, fsGroup: the entry's fsGroupChangePolicies do not have the pod's, Always",
     .entries = ENTRY_BEGIN
     ", postMountConfig: {fsGroup: true, fsGroupChangePolicies: [OnRootMismatch]}}",
     .security = "\"fsGroup\":100")
RULE(rule_5_fs_group_change_policy_is_not_in_the_list,
     .reason =
         "rule 5, fsGroup: the entry's fsGroupChangePolicies do not have the pod's, OnRootMismatch",
     .entries = ENTRY_BEGIN ", postMountConfig: {fsGroup: true, fsGroupChangePolicies: [Always]}}",
     .security = "\"fsGroup\":100,\"fsGroupChangePolicy\":\"OnRootMismatch\"")
RULE(rule_5_a_policy_without_fs_group_asks_for_nothing, NULL, .entries = ENTRY_BEGIN "}",
     .security = "\"fsGroupChangePolicy\":\"OnRootMismatch\"")

#define SUB_PATH \
    "rule 6, subPath: a container mounts it with subPath or subPathExpr, and the entry does not " \
    "support it"
RULE(rule_6_sub_path, .reason = SUB_PATH, .entries = ENTRY_BEGIN "}", .mount = ",\"subPath\":\"a\"")
RULE(rule_6_sub_path_expr, .reason = SUB_PATH, .entries = ENTRY_BEGIN "}",
     .mount = ",\"subPathExpr\":\"$(X)\"")
RULE(rule_6_sub_path_of_an_init_container, .reason = SUB_PATH, .entries = ENTRY_BEGIN "}",
     .pod = ",\"runtimeClassName\":\"microvm\",\"initContainers\":[{\"volumeMounts\":[{\"name\":"
            "\"data\",\"subPath\":\"a\"}]}]")
RULE(rule_6_sub_path_of_an_ephemeral_container, .reason = SUB_PATH, .entries = ENTRY_BEGIN "}",
     .pod = ",\"runtimeClassName\":\"microvm\",\"ephemeralContainers\":[{\"volumeMounts\":[{"
            "\"name\":\"data\",\"subPath\":\"a\"}]}]")
RULE(rule_6_sub_path_of_another_volume, NULL, .entries = ENTRY_BEGIN "}")
RULE(rule_6_an_empty_sub_path_is_none, NULL, .entries = ENTRY_BEGIN "}",
     .mount = ",\"subPath\":\"\"")

#define SELINUX \
    "rule 7, seLinuxOptions: the pod or a container that mounts it sets them, and the entry does " \
    "not support it"
RULE(rule_7_selinux_of_the_pod, .reason = SELINUX, .entries = ENTRY_BEGIN "}",
     .security = "\"seLinuxOptions\":{\"level\":\"s0\"}")
RULE(rule_7_selinux_of_a_container_that_mounts_it, .reason = SELINUX, .entries = ENTRY_BEGIN "}",
     .pod = ",\"runtimeClassName\":\"microvm\",\"initContainers\":[{\"volumeMounts\":[{\"name\":"
            "\"data\"}],\"securityContext\":{\"seLinuxOptions\":{}}}]")
RULE(rule_7_selinux_of_a_container_that_does_not, NULL, .entries = ENTRY_BEGIN "}",
     .pod = ",\"runtimeClassName\":\"microvm\",\"initContainers\":[{\"securityContext\":{"
            "\"seLinuxOptions\":{}}}]")

RULE(rule_8_fs_type, .reason = "rule 8, fsType: the entry's fsTypes do not have \"ext4\"",
     .entries = ENTRY_BEGIN ", fsTypes: [xfs]}")
RULE(rule_8_fs_type_of_a_volume_that_names_none,
     .reason = "rule 8, fsType: the entry's fsTypes do not have \"\"",
     .entries = ENTRY_BEGIN ", fsTypes: [xfs]}",
     .volume = PV("\"csi\":{\"driver\":\"plugin1.example.com\"}"))
RULE(rule_8_fs_type_of_an_inline_volume,
     .reason = "rule 8, fsType: the entry's fsTypes do not have \"ext4\"",
     .entries = "{csiDriver: i, runtimeClass: microvm, fsTypes: [xfs]}",
     .source = "\"csi\":{\"driver\":\"i\",\"fsType\":\"ext4\"}")
RULE(rule_8_fs_type_decides_between_entries, NULL,
     .entries = ENTRY_BEGIN ", fsTypes: [xfs]}, " ENTRY_BEGIN ", fsTypes: [ext3, ext4]}")
RULE(rule_8_the_entry_that_holds_the_longest_is_named, .reason = SUB_PATH,
     .entries = ENTRY_BEGIN ", fsTypes: [ext4]}, " ENTRY_BEGIN ", fsTypes: [xfs]}",
     .mount = ",\"subPath\":\"a\"")

#define SECRET \
    "rule 9, secret: the volume needs one on the node, which would be written to its disk " \
    "in clear text"
RULE(rule_9_secret, .reason = SECRET,
     .volume = PV("\"csi\":{\"driver\":\"plugin1.example.com\",\"nodePublishSecretRef\":{\"name\":"
                  "\"s\",\"namespace\":\"n\"}}"))
RULE(rule_9_secret_of_an_inline_volume, .reason = SECRET,
     .entries = "{csiDriver: i, runtimeClass: microvm}",
     .source = "\"csi\":{\"driver\":\"i\",\"nodePublishSecretRef\":{\"name\":\"s\"}}")

RULE(rule_10_access_mode,
     .reason = "rule 10, accessMode: claim \"data\" is not ReadWriteOncePod, and the entry's "
               "nonExclusiveClaims is Refuse",
     .claim = CLAIM("ReadWriteOnce", ""))
RULE(rule_10_access_mode_exclusive, NULL, .entries = ENTRY_BEGIN ", nonExclusiveClaims: Exclusive}",
     .claim = CLAIM("ReadWriteOnce", ""))
RULE(rule_10_access_mode_allow, NULL, .entries = ENTRY_BEGIN ", nonExclusiveClaims: Allow}",
     .claim = CLAIM("ReadWriteMany", ""))

#define TWICE(mount_) \
    .source = "\"persistentVolumeClaim\":{\"claimName\":\"data\"}},{\"name\":\"again\"," \
              "\"persistentVolumeClaim\":{\"claimName\":\"data\"}", \
    .pod = ",\"runtimeClassName\":\"microvm\",\"initContainers\":[{\"volumeMounts\":[{\"name\":" \
           "\"again\"" mount_ "}]}]"

RULE(rule_10_a_claim_in_two_volumes_of_which_the_node_would_mount_one,
     .reason =
         "rule 10, accessMode: the node also mounts claim \"data\" for volume \"again\", which "
         "is not deferred",
     .entries = ENTRY_BEGIN "}", TWICE(",\"subPath\":\"a\""))
RULE(rule_10_a_claim_in_two_volumes_that_are_both_deferred, NULL, .entries = ENTRY_BEGIN "}",
     TWICE(""))
RULE(rule_4_csi_a_hand_written_claim_has_no_status, NULL,
     .claim = "\"spec\":{\"storageClassName\":\"fast-storage\",\"volumeName\":\"pv-1\","
              "\"accessModes\":[\"ReadWriteOncePod\"]}")
RULE(rule_4_csi_a_hand_written_volume_has_no_claim_ref, NULL, .volume = CSI)

RULE(the_pod_opts_out, .reason = "the pod opts out: claimguard.io/defer-fs-mount is disabled",
     .metadata = ",\"annotations\":{\"claimguard.io/defer-fs-mount\":\" disabled \"}")
RULE(the_pod_says_false, .reason = "the pod says deferFSMount: false",
     .source = "\"persistentVolumeClaim\":{\"claimName\":\"data\",\"deferFSMount\":false}")
RULE(a_user_s_own_field_is_kept, NULL, .entries = "",
     .source = "\"persistentVolumeClaim\":{\"claimName\":\"data\",\"deferFSMount\":true}")
RULE(a_user_s_own_annotation_is_kept, NULL, .entries = "",
     .metadata = ",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"logs, data\"}")
RULE(disabled, .reason = "deferFSMount.apply is Disabled", .apply = "Disabled")
RULE(disabled_takes_nothing_back, NULL, .apply = "Disabled",
     .metadata = ",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"data\"}")

/* A name that a provisioner gives is not stored with the claim; the reason has it. */
Test(rules, rule_4_csi_names_a_provisioned_volume)
{
    struct config *config = load_config("Auto", SUPPORTS_ALL);
    struct cluster cluster;
    struct arena arena;
    struct decision decision;
    char text[4096];

    cluster_init(&cluster);
    arena_init(&arena, 1 << 20);
    load_text(
        &cluster,
        "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\",\"kind\":"
        "\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"data\",\"uid\":\"c\"},\"spec\":{"
        "\"storageClassName\":\"fast-storage\",\"volumeName\":\"pvc-c\"},\"status\":{\"phase\":"
        "\"Bound\"}},{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":"
        "\"pvc-c\"},\"spec\":{\"claimRef\":{\"namespace\":\"default\",\"name\":\"data\"}}}]}");
    struct pod_object pod = read_pod(&(struct row){.pod = NULL}, &arena, text, sizeof text);
    defer_decide(&(struct view){.cluster = &cluster, .config = config}, &pod,
                 &pod.mounts->volumes[1], &decision);
    struct slice reason = defer_reason(&pod, &decision, &arena);
    cr_expect(slice_equal(reason, SLICE("rule 4, csi: volume \"pvc-c\" has no csi source")), "%.*s",
              SLICE_ARG(reason));
    arena_dispose(&arena);
    cluster_dispose(&cluster);
    config_free(config);
}

/* ---- the KEP's stories ---- */

#define STORY_POD \
    .security = "\"fsGroup\":100,\"fsGroupChangePolicy\":\"OnRootMismatch\"", \
    .mount = ",\"subPath\":\"database\""

RULE(story_1_all_pod_spec_requirements_are_met_by_csi_plugin_and_runtime, NULL, STORY_POD)
RULE(story_2_the_runtime_cannot_surface_a_sub_path, .reason = SUB_PATH, STORY_POD,
     .entries = ENTRY_BEGIN ", postMountConfig: {fsGroup: true, fsGroupChangePolicies: [Always, "
                            "OnRootMismatch]}}")
RULE(story_2_the_runtime_cannot_apply_fs_group,
     .reason = "rule 5, fsGroup: the pod sets it, and the entry does not support it", STORY_POD,
     .entries = ENTRY_BEGIN ", postMountConfig: {subPath: true}}")
RULE(story_3_the_csi_plugin_cannot_defer,
     .reason = "rule 2, entry: none is for storage class \"fast-storage\" and runtime class "
               "\"microvm\"",
     STORY_POD, .entries = "{storageClass: other-storage, runtimeClass: microvm}")
/* stories 4 to 6: the same before and after the configuration is changed; pods that are deferred
 * stay so */
RULE(story_4_before_the_upgrade,
     .reason = "rule 2, entry: none is for storage class \"fast-storage\" and runtime class "
               "\"microvm\"",
     STORY_POD, .entries = "")
RULE(story_4_after_the_upgrade, NULL, STORY_POD)
RULE(story_5_a_pod_that_was_deferred_before_the_downgrade_stays_so, NULL, STORY_POD, .entries = "",
     .metadata = ",\"annotations\":{\"claimguard.io/defer-fs-mount\":\"data\"}")
RULE(story_6_a_pod_that_comes_after_the_change_is_not_deferred,
     .reason = "rule 2, entry: none is for storage class \"fast-storage\" and runtime class "
               "\"microvm\"",
     STORY_POD, .entries = "")

/* ---- every combination ---- */

/* What a pod may need, and an entry may support: a bit each. */
enum {
    NEEDS_ALWAYS = 1,      /* fsGroup with that change policy */
    NEEDS_ON_MISMATCH = 2, /* or with that one */
    NEEDS_SUB_PATH = 4,
    NEEDS_SELINUX = 8,
    NEEDS_ALL = 16,
};

struct combination {
    struct cluster cluster;
    struct config config;
    struct defer_entry entry;
    struct slice fs_types[2];
    struct pod_mounts mounts;
    struct pod_volume volume;
    struct pod_object pod;
};

static void put_object(struct combination *c, struct object object)
{
    struct error err = {0};
    cr_assert_eq(cluster_apply(&c->cluster, &object, &err), 0);
}

/* The claim and its volume as the other properties say. */
static void set_up(struct combination *c, bool is_rwop, bool is_block, bool has_csi,
                   bool has_secret)
{
    struct object claim = {.kind = KIND_CLAIM}, volume = {.kind = KIND_VOLUME};

    cluster_init(&c->cluster);
    claim.claim = (struct claim_object){
        .meta = {.ns = SLICE("default"), .name = SLICE("data"), .uid = SLICE("c")},
        .phase = SLICE("Bound"),
        .storage_class = SLICE("fast-storage"),
        .volume = SLICE("pv-1"),
        .volume_mode = is_block ? SLICE("Block") : SLICE("Filesystem"),
        .is_rwop = is_rwop};
    put_object(c, claim);
    volume.resource.meta.name = SLICE("pv-1");
    volume.resource.attributes[VOLUME_CLAIM_NAMESPACE] = SLICE("default");
    volume.resource.attributes[VOLUME_CLAIM_NAME] = SLICE("data");
    volume.resource.attributes[VOLUME_FS_TYPE] = SLICE("ext4");
    volume.resource.number = is_block ? VOLUME_IS_BLOCK : 0;
    if (has_csi)
        volume.resource.attributes[VOLUME_DRIVER] = SLICE("plugin1.example.com");
    if (has_secret)
        volume.resource.number |= VOLUME_HAS_SECRET;
    put_object(c, volume);
}

/* What the pod needs of the entry, and what that supports. */
static void set_needs(struct combination *c, unsigned needs, unsigned support)
{
    c->entry = (struct defer_entry){.storage_class = SLICE("fast-storage"),
                                    .runtime_class = SLICE("microvm"),
                                    .supports_fs_group = (support & 3) != 0,
                                    .fs_group_change_policies = support & 3,
                                    .supports_sub_path = (support & NEEDS_SUB_PATH) != 0,
                                    .supports_selinux_relabel = (support & NEEDS_SELINUX) != 0,
                                    .fs_types = c->fs_types};
    c->volume = (struct pod_volume){.name = SLICE("data"),
                                    .claim = SLICE("data"),
                                    .source = VOLUME_SOURCE_CLAIM,
                                    .has_sub_path = (needs & NEEDS_SUB_PATH) != 0,
                                    .has_selinux = (needs & NEEDS_SELINUX) != 0};
    c->mounts = (struct pod_mounts){.runtime_class = SLICE("microvm"),
                                    .has_fs_group = (needs & 3) != 0,
                                    .fs_group_change_policy = (needs & NEEDS_ON_MISMATCH) != 0
                                                                  ? SLICE("OnRootMismatch")
                                                                  : SLICE(""),
                                    .volumes = &c->volume,
                                    .volume_count = 1};
    c->pod = (struct pod_object){
        .meta = {.ns = SLICE("default"), .name = SLICE("web-0"), .uid = SLICE("u")},
        .mounts = &c->mounts};
    c->config = (struct config){.defer_fs_mount = {.entries = &c->entry, .entry_count = 1}};
}

static bool is_deferred(const struct combination *c)
{
    struct view view = {.cluster = &c->cluster, .config = &c->config};
    struct decision decision;

    defer_decide(&view, &c->pod, &c->volume, &decision);
    return decision.rule == RULE_NONE;
}

/* What must hold beside the needs: a bit of `bad` for each rule that is broken. */
static unsigned check_needs(struct combination *c, bool is_good, bool is_rwop)
{
    unsigned checked = 0;

    for (unsigned needs = 0; needs < NEEDS_ALL; needs++) {
        if ((needs & 3) == 3)
            continue; /* a pod has one change policy */
        for (unsigned support = 0; support < NEEDS_ALL; support++)
            for (int fs_types = 0; fs_types < 3; fs_types++)
                for (int sharing = 0; sharing < 3; sharing++) {
                    set_needs(c, needs, support);
                    c->fs_types[0] = fs_types == 1 ? SLICE("ext4") : SLICE("xfs");
                    c->entry.fs_type_count = fs_types != 0;
                    c->entry.non_exclusive_claims = sharing;
                    bool want = is_good && (needs & ~support) == 0 && fs_types != 2 &&
                                (is_rwop || sharing != NON_EXCLUSIVE_REFUSE);
                    cr_assert_eq(is_deferred(c), want, "needs %u support %u", needs, support);
                    checked++;
                }
    }
    return checked;
}

Test(rules, every_subset_of_needs_against_every_subset_of_support)
{
    unsigned checked = 0;

    for (unsigned bits = 0; bits < 16; bits++) {
        struct combination c;
        bool is_rwop = (bits & 1) != 0, is_block = (bits & 2) != 0, has_csi = (bits & 4) == 0,
             has_secret = (bits & 8) != 0;
        set_up(&c, is_rwop, is_block, has_csi, has_secret);
        checked += check_needs(&c, !is_block && has_csi && !has_secret, is_rwop);
        cluster_dispose(&c.cluster);
    }
    cr_expect_eq(checked, 16 * 12 * 16 * 9);
}
