/*
 * config: the configuration file (apiVersion claimguard.io/v1alpha1, kind ClaimguardConfiguration).
 * docs/configuration.md lists the keys. A key that the file leaves out has its default. Unknown and
 * duplicate keys, wrong types, and numbers without the right unit are errors.
 *
 * Threads: any. A struct config does not change after it is loaded; a reload makes another one.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdint.h>

#include "config/base/arena.h"
#include "config/base/buf.h"
#include "config/base/error.h"

#define CONFIG_API_VERSION "claimguard.io/v1alpha1"

enum switch_state { SWITCH_ENABLED, SWITCH_DISABLED };
enum certificates_in { CERTIFICATES_FILES, CERTIFICATES_SECRETS };
enum reviews_mode { REVIEWS_ENFORCE, REVIEWS_OBSERVE };
enum claim_lock { CLAIM_LOCK_LOCAL, CLAIM_LOCK_ANNOTATION };
enum defer_apply { DEFER_AUTO, DEFER_FIELD, DEFER_ANNOTATION, DEFER_DISABLED };
enum non_exclusive { NON_EXCLUSIVE_REFUSE, NON_EXCLUSIVE_EXCLUSIVE, NON_EXCLUSIVE_ALLOW };
enum policy_mode { MODE_OFF, MODE_WARN, MODE_ENFORCE };
enum missing_csi_node { MISSING_CSI_NODE_ALLOW, MISSING_CSI_NODE_REJECT };
/* Storage classes with nonExclusiveClaims: Exclusive, of which claimguards agree: each has a key of
 * a ConfigMap, "exclusive.CLASS". */
enum { EXCLUSIVE_CLASSES_MAX = 100, EXCLUSIVE_CLASS_LEN_MAX = 243 };
enum { FS_GROUP_ALWAYS = 1, FS_GROUP_ON_ROOT_MISMATCH = 2 }; /* bits */

/* One triple of KEP-2857: storage class (or CSI driver), runtime class, and what they support. */
struct defer_entry {
    struct slice storage_class; /* either this or csi_driver is set */
    struct slice csi_driver;
    struct slice runtime_class;
    bool supports_fs_group;
    unsigned fs_group_change_policies; /* bits */
    bool supports_sub_path;
    bool supports_selinux_relabel;
    struct slice *fs_types; /* none: any type */
    size_t fs_type_count;
    int non_exclusive_claims; /* enum non_exclusive */
};

/* A server's certificate, and who may connect. Without cert: no TLS. */
struct tls_files {
    struct slice cert, key;
    struct slice client_ca; /* empty: anyone */
};

struct config {
    struct arena arena; /* owns the texts and lists below */
    struct slice api_version, kind;
    int certificates; /* enum certificates_in; SECRETS: tls of server and admission is empty */
    struct {
        struct slice listen;         /* ADDRESS:PORT */
        struct slice metrics_listen; /* ADDRESS:PORT */
        struct tls_files tls;
        int64_t max_request_bytes;
        bool debug_endpoints;
    } server;
    struct {
        int64_t max_namespace_bytes, max_bytes; /* cache/cluster/allowance.h */
    } cache;
    struct {
        int preemption; /* enum switch_state */
        int64_t preemption_grace_ms;
        bool respects_budgets;
        int64_t reservation_ttl_ms;
        int claim_lock; /* enum claim_lock */
    } read_write_once_pod;
    struct {
        int apply; /* enum defer_apply */
        struct defer_entry *entries;
        size_t entry_count;
    } defer_fs_mount;
    struct {
        int mode; /* enum policy_mode */
    } read_write_once;
    struct {
        int mode;             /* enum policy_mode */
        int missing_csi_node; /* enum missing_csi_node */
    } csi_volumes;
    struct {
        int mode; /* enum policy_mode */
        bool waits_for_modify;
    } volume_attributes_classes;
    struct {
        struct slice listen; /* ADDRESS:PORT; empty: admission is not served */
        struct tls_files tls;
        struct slice own_user; /* whose Bindings are claimguard's own */
        int mode;              /* enum reviews_mode */
    } admission;
};

/*
 * Reads the file, or the files *.yaml of a folder, as if they were one file (apiVersion and kind
 * are in each); a key that two of them set is an error. NULL gives the defaults. Ownership:
 * config_free. Errors: ERROR_INVALID "FILE:LINE:COL: what is wrong", ERROR_SYSTEM, ERROR_NO_MEMORY.
 */
int config_load(struct config **out, const char *path, struct error *err);
void config_free(struct config *config);

struct yaml_node;

/* A file of a ConfigMap. */
struct config_text {
    const char *path;
    struct slice text; /* NULL: that of the file at path */
};

/* Where a configuration comes from; paths and texts are borrowed, also by the tree. */
struct config_source {
    const char *path; /* of the file or folder; with texts, the name of the whole; NULL: defaults */
    const struct config_text *texts; /* NULL: the path is read */
    size_t count;
};

/* The same, with the tree of which it is made: it is the configuration's, as long as that lives.
 * Each file is read once. */
int config_load_with_tree(struct config **out, struct yaml_node **root,
                          const struct config_source *from, struct error *err);

/* Writes the configuration, with its defaults, as YAML that config_load can read. */
void config_print(const struct config *config, struct buf *out);

/* The word of an enum claim_lock in a file. */
const char *config_claim_lock_text(int claim_lock);

/* Whether a port has TLS: from files, or from the Secrets that claimguard keeps itself; and whether
 * it asks schedulers for certificates. */
static inline bool config_has_tls(const struct config *config, const struct tls_files *files)
{
    return files->cert.len != 0 || config->certificates == CERTIFICATES_SECRETS;
}

static inline bool config_asks_clients(const struct config *config)
{
    return config->server.tls.client_ca.len != 0 || config->certificates == CERTIFICATES_SECRETS;
}

/* Whether one of the first `count` entries makes each claim of that storage class one that could be
 * deferred alone (nonExclusiveClaims: Exclusive). With apply: Disabled, no further mount is
 * deferred, so none does. Inline, for policies. */
static inline bool config_makes_exclusive(const struct config *config, struct slice storage_class,
                                          size_t count)
{
    const struct defer_entry *entries = config->defer_fs_mount.entries;

    for (size_t i = 0; config->defer_fs_mount.apply != DEFER_DISABLED && i < count; i++)
        if (entries[i].non_exclusive_claims == NON_EXCLUSIVE_EXCLUSIVE &&
            entries[i].storage_class.len != 0 &&
            slice_equal(entries[i].storage_class, storage_class))
            return true;
    return false;
}

/* Whether the entry of that index is the first that does, for its storage class. */
static inline bool config_adds_exclusive(const struct config *config, size_t index)
{
    struct slice storage_class = config->defer_fs_mount.entries[index].storage_class;

    return config_makes_exclusive(config, storage_class, index + 1) &&
           !config_makes_exclusive(config, storage_class, index);
}

/* Splits "127.0.0.1:8888", "[::1]:8888" or ":8888" (any address). With port 0, the system chooses.
 * False if the text has another form. */
bool config_split_address(struct slice text, struct slice *host, uint16_t *port);

#endif
