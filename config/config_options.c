/* The keys of the configuration file: one table for each mapping; and the configuration as a file,
 * which is printed by these tables. */
#include <stdio.h>

#include "config/base/quantity.h"
#include "config/base/text.h"
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

static const char *const certificates_words[] = {"Files", "Secrets", NULL};
static const char *const reviews_mode_words[] = {"Enforce", "Observe", NULL};
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
    {"certFile", OPTION_STRING, .offset = offsetof(struct tls_files, cert)},
    {"keyFile", OPTION_STRING, .offset = offsetof(struct tls_files, key)},
    {"clientCAFile", OPTION_STRING, .offset = offsetof(struct tls_files, client_ca)},
    {.key = NULL},
};
static const struct option server_options[] = {
    {"listen", OPTION_STRING, .offset = AT(server.listen), .preset = "127.0.0.1:8888"},
    {"metricsListen", OPTION_STRING, .offset = AT(server.metrics_listen),
     .preset = "127.0.0.1:8889"},
    {"tls", OPTION_SECTION, .offset = AT(server.tls), .members = tls_options},
    {"maxRequestBytes", OPTION_BYTES, .offset = AT(server.max_request_bytes), .preset = "64Mi",
     .least = 4096, .most = 1 << 30},
    {"debugEndpoints", OPTION_BOOLEAN, .offset = AT(server.debug_endpoints)},
    {.key = NULL},
};
static const struct option cache_options[] = {
    {"maxNamespaceBytes", OPTION_BYTES, .offset = AT(cache.max_namespace_bytes), .preset = "16Mi",
     .least = 1 << 20, .most = 1 << 30},
    {"maxBytes", OPTION_BYTES, .offset = AT(cache.max_bytes), .preset = "64Mi", .least = 1 << 20,
     .most = 4LL << 30},
    {.key = NULL},
};
static const struct option read_write_once_pod_options[] = {
    {"preemption", OPTION_WORD, .offset = AT(read_write_once_pod.preemption), .words = switch_words,
     .preset = "Enabled"},
    {"preemptionGrace", OPTION_DURATION, .offset = AT(read_write_once_pod.preemption_grace_ms),
     .preset = "1s", .least = 10, .most = 300000},
    {"respectPodDisruptionBudgets", OPTION_BOOLEAN,
     .offset = AT(read_write_once_pod.respects_budgets), .preset = "true"},
    {"reservationTTL", OPTION_DURATION, .offset = AT(read_write_once_pod.reservation_ttl_ms),
     .preset = "30s", .least = 1000, .most = 3600000},
    {"claimLock", OPTION_WORD, .offset = AT(read_write_once_pod.claim_lock),
     .words = claim_lock_words, .preset = "Local"},
    {.key = NULL},
};
static const struct option post_mount_options[] = {
    {"fsGroup", OPTION_BOOLEAN, .offset = ENTRY(supports_fs_group)},
    {"fsGroupChangePolicies", OPTION_WORDS, .offset = ENTRY(fs_group_change_policies),
     .words = fs_group_words},
    {"subPath", OPTION_BOOLEAN, .offset = ENTRY(supports_sub_path)},
    {"seLinuxRelabel", OPTION_BOOLEAN, .offset = ENTRY(supports_selinux_relabel)},
    {.key = NULL},
};
static const struct option entry_options[] = {
    {"storageClass", OPTION_STRING, .offset = ENTRY(storage_class)},
    {"csiDriver", OPTION_STRING, .offset = ENTRY(csi_driver)},
    {"runtimeClass", OPTION_STRING, .offset = ENTRY(runtime_class)},
    SECTION("postMountConfig", post_mount_options),
    {"fsTypes", OPTION_STRINGS, .offset = ENTRY(fs_types), .most = FS_TYPES_MAX},
    {"nonExclusiveClaims", OPTION_WORD, .offset = ENTRY(non_exclusive_claims),
     .words = non_exclusive_words, .preset = "Refuse"},
    {.key = NULL},
};
static const struct option defer_options[] = {
    {"apply", OPTION_WORD, .offset = AT(defer_fs_mount.apply), .words = apply_words,
     .preset = "Auto"},
    {"entries", OPTION_ENTRIES, .offset = AT(defer_fs_mount.entries), .members = entry_options,
     .most = ENTRIES_MAX},
    {.key = NULL},
};
static const struct option read_write_once_options[] = {
    {"mode", OPTION_WORD, .offset = AT(read_write_once.mode), .words = mode_words,
     .preset = "Warn"},
    {.key = NULL},
};
static const struct option csi_volumes_options[] = {
    {"mode", OPTION_WORD, .offset = AT(csi_volumes.mode), .words = mode_words, .preset = "Enforce"},
    {"missingCSINode", OPTION_WORD, .offset = AT(csi_volumes.missing_csi_node),
     .words = missing_csi_node_words, .preset = "Allow"},
    {.key = NULL},
};
static const struct option volume_attributes_classes_options[] = {
    {"mode", OPTION_WORD, .offset = AT(volume_attributes_classes.mode), .words = mode_words,
     .preset = "Enforce"},
    {"waitForModify", OPTION_BOOLEAN, .offset = AT(volume_attributes_classes.waits_for_modify)},
    {.key = NULL},
};
static const struct option admission_options[] = {
    {"listen", OPTION_STRING, .offset = AT(admission.listen)},
    {"tls", OPTION_SECTION, .offset = AT(admission.tls), .members = tls_options},
    {"ownUser", OPTION_STRING, .offset = AT(admission.own_user),
     .preset = "system:serviceaccount:claimguard:claimguard"},
    {"mode", OPTION_WORD, .offset = AT(admission.mode), .words = reviews_mode_words,
     .preset = "Enforce"},
    {.key = NULL},
};
const struct option file_options[] = {
    {"apiVersion", OPTION_STRING, .offset = AT(api_version), .preset = CONFIG_API_VERSION},
    {"kind", OPTION_STRING, .offset = AT(kind), .preset = "ClaimguardConfiguration"},
    {"certificates", OPTION_WORD, .offset = AT(certificates), .words = certificates_words,
     .preset = "Files"},
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

int option_unknown(const struct option *options, const struct yaml_node *node, struct error *err)
{
    char typed[NEAREST_BYTES_MAX + 1], hint[NEAREST_HINT_BYTES];
    struct nearest nearest = {.typed = typed};

    (void)snprintf(typed, sizeof typed, "%.*s", SLICE_ARG(node->key));
    for (; options->key != NULL; options++)
        nearest_offer(&nearest, options->key);
    return yaml_fail_key(err, node, "unknown key \"%.*s\"%s", SLICE_ARG(node->key),
                         nearest_hint(&nearest, "", hint));
}

/* ---- the configuration as a file ---- */

static void print_section(const struct option *options, const void *from, unsigned indent,
                          bool in_item, struct buf *out);

static void print_words(const struct option *option, unsigned bits, struct buf *out)
{
    const char *separator = "";

    buf_put(out, SLICE("["));
    for (unsigned i = 0; option->words[i] != NULL; i++) {
        if ((bits >> i & 1U) == 0)
            continue;
        buf_printf(out, "%s%s", separator, option->words[i]);
        separator = ", ";
    }
    buf_put(out, SLICE("]"));
}

static void print_strings(const struct slice *const *strings, struct buf *out)
{
    size_t count = *(const size_t *)(const void *)(strings + 1);

    buf_put(out, SLICE("["));
    for (size_t i = 0; i < count; i++) {
        buf_put(out, i == 0 ? SLICE("") : SLICE(", "));
        buf_json(out, (*strings)[i]);
    }
    buf_put(out, SLICE("]"));
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables above */
static void print_entries(const struct option *option, struct defer_entry *const *entries,
                          unsigned indent, struct buf *out)
{
    size_t count = *(const size_t *)(const void *)(entries + 1);

    buf_put(out, count == 0 ? SLICE(" []\n") : SLICE("\n"));
    for (size_t i = 0; i < count; i++)
        print_section(option->members, &(*entries)[i], indent + 2, true, out);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables above */
static void print_value(const struct option *option, const void *from, unsigned indent,
                        struct buf *out)
{
    const void *at = (const char *)from + option->offset;
    char text[QUANTITY_TEXT_BYTES];

    if (option->type == OPTION_SECTION) {
        buf_put(out, SLICE("\n"));
        print_section(option->members, at, indent + 2, false, out);
        return;
    }
    if (option->type == OPTION_ENTRIES) {
        print_entries(option, at, indent, out);
        return;
    }
    buf_put(out, SLICE(" "));
    switch (option->type) {
    case OPTION_STRING: buf_json(out, *(const struct slice *)at); break;
    case OPTION_BOOLEAN: buf_printf(out, "%s", *(const bool *)at ? "true" : "false"); break;
    case OPTION_BYTES:
        buf_printf(out, "%s", quantity_bytes_text(*(const int64_t *)at, text));
        break;
    case OPTION_DURATION:
        buf_printf(out, "%s", quantity_duration_text(*(const int64_t *)at, text));
        break;
    case OPTION_WORD: buf_printf(out, "%s", option->words[*(const int *)at]); break;
    case OPTION_WORDS: print_words(option, *(const unsigned *)at, out); break;
    default: print_strings(at, out); break;
    }
    buf_put(out, SLICE("\n"));
}

/* A string or a list that the file left out is not printed, since no value means "none". */
static bool is_printed(const struct option *option, const void *from)
{
    const void *at = (const char *)from + option->offset;

    if (option->type == OPTION_STRING)
        return ((const struct slice *)at)->len != 0;
    if (option->type == OPTION_STRINGS)
        return *(const void *const *)at != NULL;
    if (option->type != OPTION_SECTION)
        return true;
    for (const struct option *member = option->members; member->key != NULL; member++)
        if (member->type != OPTION_STRING ||
            ((const struct slice *)(const void *)((const char *)at + member->offset))->len != 0)
            return true;
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables above */
static void print_section(const struct option *options, const void *from, unsigned indent,
                          bool in_item, struct buf *out)
{
    for (const struct option *option = options; option->key != NULL; option++) {
        if (!is_printed(option, from))
            continue;
        buf_printf(out, "%*s%s:", (int)indent, in_item ? "- " : "", option->key);
        in_item = false;
        print_value(option, from, indent, out);
    }
}

void config_print(const struct config *config, struct buf *out)
{
    print_section(file_options, config, 0, false, out);
}
