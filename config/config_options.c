/* The keys of the configuration file: one table for each mapping. */
#include <stdio.h>

#include "config/base/nearest.h"
#include "config/config_internal.h"
#include "config/yaml_node.h"

enum {
    ENTRIES_MAX = 1000, /* each is compared with each at load, and read for each verdict */
    FS_TYPES_MAX = 16,
};

#define AT(member)    offsetof(struct config, member)
#define ENTRY(member) offsetof(struct defer_entry, member)
#define SECTION(key_, members_) \
    { \
        .key = (key_), .type = OPTION_SECTION, .members = (members_) \
    }

static const char *const switch_words[] = {"Enabled", "Disabled", NULL};
static const char *const claim_lock_words[] = {
    [CLAIM_LOCK_LOCAL] = "Local", [CLAIM_LOCK_ANNOTATION] = "Annotation", NULL};

const char *config_claim_lock_text(int claim_lock)
{
    return claim_lock_words[claim_lock];
}

static const char *const apply_words[] = {"Auto", "Field", "Annotation", "Disabled", NULL};
static const char *const non_exclusive_words[] = {"Refuse", "Exclusive", "Allow", NULL};
static const char *const mode_words[] = {"Off", "Warn", "Enforce", NULL};
static const char *const missing_csi_node_words[] = {"Allow", "Reject", NULL};
static const char *const fs_group_words[] = {"Always", "OnRootMismatch", NULL};

static const struct option tls_options[] = {
    {.key = "certFile", .type = OPTION_STRING, .offset = AT(server.tls.cert)},
    {.key = "keyFile", .type = OPTION_STRING, .offset = AT(server.tls.key)},
    {.key = "clientCAFile", .type = OPTION_STRING, .offset = AT(server.tls.client_ca)},
    {.key = NULL},
};
static const struct option server_options[] = {
    {.key = "listen",
     .type = OPTION_STRING,
     .offset = AT(server.listen),
     .preset = "127.0.0.1:8888"},
    {.key = "metricsListen",
     .type = OPTION_STRING,
     .offset = AT(server.metrics_listen),
     .preset = "127.0.0.1:8889"},
    SECTION("tls", tls_options),
    {.key = "maxRequestBytes",
     .type = OPTION_BYTES,
     .offset = AT(server.max_request_bytes),
     .preset = "64Mi",
     .least = 4096,
     .most = 1 << 30},
    {.key = "debugEndpoints", .type = OPTION_BOOLEAN, .offset = AT(server.debug_endpoints)},
    {.key = NULL},
};
static const struct option cache_options[] = {
    {.key = "maxNamespaceBytes",
     .type = OPTION_BYTES,
     .offset = AT(cache.max_namespace_bytes),
     .preset = "16Mi",
     .least = 1 << 20,
     .most = 1 << 30},
    {.key = "maxBytes",
     .type = OPTION_BYTES,
     .offset = AT(cache.max_bytes),
     .preset = "64Mi",
     .least = 1 << 20,
     .most = 4LL << 30},
    {.key = NULL},
};
static const struct option read_write_once_pod_options[] = {
    {.key = "preemption",
     .type = OPTION_WORD,
     .offset = AT(read_write_once_pod.preemption),
     .words = switch_words,
     .preset = "Enabled"},
    {.key = "preemptionGrace",
     .type = OPTION_DURATION,
     .offset = AT(read_write_once_pod.preemption_grace_ms),
     .preset = "1s",
     .least = 10,
     .most = 300000},
    {.key = "respectPodDisruptionBudgets",
     .type = OPTION_BOOLEAN,
     .offset = AT(read_write_once_pod.respects_budgets),
     .preset = "true"},
    {.key = "reservationTTL",
     .type = OPTION_DURATION,
     .offset = AT(read_write_once_pod.reservation_ttl_ms),
     .preset = "30s",
     .least = 1000,
     .most = 3600000},
    {.key = "claimLock",
     .type = OPTION_WORD,
     .offset = AT(read_write_once_pod.claim_lock),
     .words = claim_lock_words,
     .preset = "Local"},
    {.key = NULL},
};
static const struct option post_mount_options[] = {
    {.key = "fsGroup", .type = OPTION_BOOLEAN, .offset = ENTRY(supports_fs_group)},
    {.key = "fsGroupChangePolicies",
     .type = OPTION_WORDS,
     .offset = ENTRY(fs_group_change_policies),
     .words = fs_group_words},
    {.key = "subPath", .type = OPTION_BOOLEAN, .offset = ENTRY(supports_sub_path)},
    {.key = "seLinuxRelabel", .type = OPTION_BOOLEAN, .offset = ENTRY(supports_selinux_relabel)},
    {.key = NULL},
};
static const struct option entry_options[] = {
    {.key = "storageClass", .type = OPTION_STRING, .offset = ENTRY(storage_class)},
    {.key = "csiDriver", .type = OPTION_STRING, .offset = ENTRY(csi_driver)},
    {.key = "runtimeClass", .type = OPTION_STRING, .offset = ENTRY(runtime_class)},
    SECTION("postMountConfig", post_mount_options),
    {.key = "fsTypes", .type = OPTION_STRINGS, .offset = ENTRY(fs_types), .most = FS_TYPES_MAX},
    {.key = "nonExclusiveClaims",
     .type = OPTION_WORD,
     .offset = ENTRY(non_exclusive_claims),
     .words = non_exclusive_words,
     .preset = "Refuse"},
    {.key = NULL},
};
static const struct option defer_options[] = {
    {.key = "apply",
     .type = OPTION_WORD,
     .offset = AT(defer_fs_mount.apply),
     .words = apply_words,
     .preset = "Auto"},
    {.key = "entries",
     .type = OPTION_ENTRIES,
     .offset = AT(defer_fs_mount.entries),
     .members = entry_options,
     .most = ENTRIES_MAX},
    {.key = NULL},
};
static const struct option read_write_once_options[] = {
    {.key = "mode",
     .type = OPTION_WORD,
     .offset = AT(read_write_once.mode),
     .words = mode_words,
     .preset = "Warn"},
    {.key = NULL},
};
static const struct option csi_volumes_options[] = {
    {.key = "mode",
     .type = OPTION_WORD,
     .offset = AT(csi_volumes.mode),
     .words = mode_words,
     .preset = "Enforce"},
    {.key = "missingCSINode",
     .type = OPTION_WORD,
     .offset = AT(csi_volumes.missing_csi_node),
     .words = missing_csi_node_words,
     .preset = "Allow"},
    {.key = NULL},
};
static const struct option volume_attributes_classes_options[] = {
    {.key = "mode",
     .type = OPTION_WORD,
     .offset = AT(volume_attributes_classes.mode),
     .words = mode_words,
     .preset = "Enforce"},
    {.key = "waitForModify",
     .type = OPTION_BOOLEAN,
     .offset = AT(volume_attributes_classes.waits_for_modify)},
    {.key = NULL},
};
static const struct option admission_tls_options[] = {
    {.key = "certFile", .type = OPTION_STRING, .offset = AT(admission.tls.cert)},
    {.key = "keyFile", .type = OPTION_STRING, .offset = AT(admission.tls.key)},
    {.key = "clientCAFile", .type = OPTION_STRING, .offset = AT(admission.tls.client_ca)},
    {.key = NULL},
};
static const struct option admission_options[] = {
    {.key = "listen", .type = OPTION_STRING, .offset = AT(admission.listen)},
    SECTION("tls", admission_tls_options),
    {.key = "ownUser",
     .type = OPTION_STRING,
     .offset = AT(admission.own_user),
     .preset = "system:serviceaccount:claimguard:claimguard"},
    {.key = NULL},
};
const struct option file_options[] = {
    {.key = "apiVersion",
     .type = OPTION_STRING,
     .offset = AT(api_version),
     .preset = CONFIG_API_VERSION},
    {.key = "kind", .type = OPTION_STRING, .offset = AT(kind), .preset = "ClaimguardConfiguration"},
    SECTION("server", server_options),
    SECTION("cache", cache_options),
    SECTION("readWriteOncePod", read_write_once_pod_options),
    SECTION("deferFSMount", defer_options),
    SECTION("readWriteOnce", read_write_once_options),
    SECTION("csiVolumes", csi_volumes_options),
    SECTION("volumeAttributesClasses", volume_attributes_classes_options),
    SECTION("admission", admission_options),
    {.key = NULL},
};

const struct option *option_find(const struct option *options, struct slice key)
{
    while (options->key != NULL && !slice_equal(key, slice_of(options->key)))
        options++;
    return options->key == NULL ? NULL : options;
}

int option_unknown(const struct option *options, const char *path, const struct yaml_node *node,
                   struct error *err)
{
    char typed[NEAREST_BYTES_MAX + 1], hint[NEAREST_HINT_BYTES];
    struct nearest nearest = {.typed = typed};

    (void)snprintf(typed, sizeof typed, "%.*s", SLICE_ARG(node->key));
    for (; options->key != NULL; options++)
        nearest_offer(&nearest, options->key);
    return yaml_fail_key(err, path, node, "unknown key \"%.*s\"%s", SLICE_ARG(node->key),
                         nearest_hint(&nearest, "", hint));
}
