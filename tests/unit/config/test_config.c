#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/config.h"

#define HEAD "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n"

#define LETTERS_61  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LETTERS_244 LETTERS_61 LETTERS_61 LETTERS_61 LETTERS_61

static int load_text(struct config **out, const char *text, char path[32], struct error *err)
{
    (void)snprintf(path, 32, "/tmp/claimguard-XXXXXX");
    int fd = mkstemp(path);

    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
    int rc = config_load(out, path, err);
    (void)unlink(path);
    return rc;
}

Test(config, without_a_file_has_the_defaults)
{
    struct config *config;
    struct error err = {0};

    cr_assert_eq(config_load(&config, NULL, &err), 0, "%s", err.message);
    cr_expect(slice_equal(config->server.listen, SLICE("127.0.0.1:8888")));
    cr_expect(slice_equal(config->server.metrics_listen, SLICE("127.0.0.1:8889")));
    cr_expect_eq(config->server.max_request_bytes, 64 << 20);
    cr_expect_not(config->server.debug_endpoints);
    cr_expect_eq(config->cache.max_namespace_bytes, 16 << 20);
    cr_expect_eq(config->cache.max_bytes, 64 << 20);
    cr_expect_eq(config->read_write_once_pod.preemption, SWITCH_ENABLED);
    cr_expect(config->read_write_once_pod.respects_budgets);
    cr_expect_eq(config->read_write_once_pod.reservation_ttl_ms, 30000);
    cr_expect_eq(config->read_write_once_pod.claim_lock, CLAIM_LOCK_LOCAL);
    cr_expect_eq(config->defer_fs_mount.apply, DEFER_AUTO);
    cr_expect_eq(config->defer_fs_mount.entry_count, 0);
    config_free(config);
}

static const char complete[] =
    HEAD "server:\n"
         "  listen: '[::1]:1'\n"
         "  metricsListen: :2\n"
         "  tls: {certFile: a.pem, keyFile: b.pem, clientCAFile: c.pem}\n"
         "  maxRequestBytes: 1Mi\n"
         "  debugEndpoints: true\n"
         "cache: {maxNamespaceBytes: 32Mi, maxBytes: 1Gi}\n"
         "readWriteOncePod:\n"
         "  preemption: Disabled\n"
         "  respectPodDisruptionBudgets: false\n"
         "  reservationTTL: 1m30s\n"
         "  claimLock: Annotation\n"
         "deferFSMount:\n"
         "  apply: Field\n"
         "  entries:\n"
         "  - storageClass: fast-storage\n"
         "    runtimeClass: microvm\n"
         "    postMountConfig:\n"
         "      fsGroup: true\n"
         "      fsGroupChangePolicies: [Always, OnRootMismatch]\n"
         "      subPath: true\n"
         "      seLinuxRelabel: true\n"
         "    fsTypes: [ext4, xfs]\n"
         "    nonExclusiveClaims: Exclusive\n"
         "  - {csiDriver: inline.csi.example.com, runtimeClass: microvm}\n"
         "admission:\n"
         "  listen: 0.0.0.0:8443\n"
         "  tls: {certFile: d.pem, keyFile: e.pem, clientCAFile: f.pem}\n"
         "  ownUser: system:serviceaccount:a:b\n"
         "  mode: Observe\n";

static void expect_complete(const struct config *config)
{
    const struct defer_entry *entry = config->defer_fs_mount.entries;

    cr_expect(slice_equal(config->server.tls.client_ca, SLICE("c.pem")));
    cr_expect_eq(config->server.max_request_bytes, 1 << 20);
    cr_expect(config->server.debug_endpoints);
    cr_expect_eq(config->cache.max_namespace_bytes, 32 << 20);
    cr_expect_eq(config->cache.max_bytes, 1 << 30);
    cr_expect_eq(config->read_write_once_pod.preemption, SWITCH_DISABLED);
    cr_expect_not(config->read_write_once_pod.respects_budgets);
    cr_expect_eq(config->read_write_once_pod.reservation_ttl_ms, 90000);
    cr_expect_eq(config->read_write_once_pod.claim_lock, CLAIM_LOCK_ANNOTATION);
    cr_expect_eq(config->defer_fs_mount.apply, DEFER_FIELD);
    cr_assert_eq(config->defer_fs_mount.entry_count, 2);
    cr_expect(slice_equal(entry->storage_class, SLICE("fast-storage")));
    cr_expect_eq(entry->fs_group_change_policies, FS_GROUP_ALWAYS | FS_GROUP_ON_ROOT_MISMATCH);
    cr_assert_eq(entry->fs_type_count, 2);
    cr_expect(slice_equal(entry->fs_types[1], SLICE("xfs")));
    cr_expect_eq(entry->non_exclusive_claims, NON_EXCLUSIVE_EXCLUSIVE);
    cr_expect(slice_equal(entry[1].csi_driver, SLICE("inline.csi.example.com")));
    cr_expect_eq(entry[1].non_exclusive_claims, NON_EXCLUSIVE_REFUSE);
    cr_expect(slice_equal(config->admission.listen, SLICE("0.0.0.0:8443")));
    cr_expect(slice_equal(config->admission.tls.cert, SLICE("d.pem")));
    cr_expect(slice_equal(config->admission.tls.key, SLICE("e.pem")));
    cr_expect(slice_equal(config->admission.tls.client_ca, SLICE("f.pem")));
    cr_expect(slice_equal(config->admission.own_user, SLICE("system:serviceaccount:a:b")));
    cr_expect_eq(config->admission.mode, REVIEWS_OBSERVE);
}

Test(config, reads_every_key_and_prints_a_file_that_reads_the_same)
{
    struct config *config;
    struct error err = {0};
    struct buf printed, again;
    char path[32];

    cr_assert_eq(load_text(&config, complete, path, &err), 0, "%s", err.message);
    expect_complete(config);
    buf_init(&printed, 1 << 20);
    config_print(config, &printed);
    buf_put(&printed, (struct slice){"", 1});
    config_free(config);
    cr_assert_eq(load_text(&config, printed.bytes, path, &err), 0, "%s in\n%s", err.message,
                 printed.bytes);
    expect_complete(config);
    buf_init(&again, 1 << 20);
    config_print(config, &again);
    buf_put(&again, (struct slice){"", 1});
    cr_expect_str_eq(again.bytes, printed.bytes);
    config_free(config);
    buf_dispose(&printed);
    buf_dispose(&again);
}

struct bad {
    const char *name, *text, *message; /* message: after "FILE:" */
};

static const struct bad bad_files[] = {
    {"empty file", "", "1:1: the file is empty"},
    {"not a mapping", "[a]\n", "1:1: expected a mapping"},
    {"no apiVersion", "kind: ClaimguardConfiguration\n",
     "1:1: apiVersion is missing (claimguard.io/v1alpha1)"},
    {"another apiVersion", "apiVersion: v1\nkind: ClaimguardConfiguration\n",
     "1:13: apiVersion: expected claimguard.io/v1alpha1"},
    {"another kind", "apiVersion: claimguard.io/v1alpha1\nkind: Pod\n",
     "2:7: kind: expected ClaimguardConfiguration"},
    {"unknown key", HEAD "servers: {}\n", "3:1: unknown key \"servers\"; did you mean server?"},
    {"unknown key inside", HEAD "server:\n  listens: a\n",
     "4:3: unknown key \"listens\"; did you mean listen?"},
    {"key twice", HEAD "server: {}\nserver: {}\n", "4:1: this key appears twice"},
    {"scalar for a section", HEAD "server: yes\n", "3:9: server: expected a mapping"},
    {"bad address", HEAD "server: {listen: localhost}\n",
     "3:18: listen: expected ADDRESS:PORT, such as 127.0.0.1:8888 or [::1]:8888"},
    {"a name for an address", HEAD "server: {listen: 'localhost:8888'}\n",
     "3:18: listen: localhost is not an IP address (only :PORT: all IPv4 addresses; [::]:PORT: "
     "all IPv6 ones)"},
    {"no IPv6 address", HEAD "server: {metricsListen: '[::1::]:8888'}\n",
     "3:25: metricsListen: ::1:: is not an IP address (only :PORT: all IPv4 addresses; [::]:PORT: "
     "all IPv6 ones)"},
    {"admission in plain text", HEAD "admission: {listen: ':8443'}\n",
     "3:21: listen: needs admission.tls, or certificates: Secrets: API servers call webhooks over "
     "TLS only"},
    {"files beside Secrets",
     HEAD "certificates: Secrets\nserver: {tls: {certFile: a, keyFile: b}}\n",
     "4:15: tls: contradicts certificates: Secrets, which needs no files"},
    {"a port's files beside Secrets",
     HEAD "certificates: Secrets\nadmission: {listen: ':8443', tls: {certFile: a, keyFile: b}}\n",
     "4:35: tls: contradicts certificates: Secrets, which needs no files"},
    {"certificates elsewhere", HEAD "certificates: Secret\n",
     "3:15: certificates: expected Files or Secrets"},
    {"admission on another's port",
     HEAD "admission: {listen: '127.0.0.1:8889', tls: {certFile: a, keyFile: b}}\n",
     "3:21: listen: the port must differ from those of server"},
    {"no address for admission", HEAD "admission: {listen: here, tls: {certFile: a, keyFile: b}}\n",
     "3:21: listen: expected ADDRESS:PORT, such as 127.0.0.1:8888 or [::1]:8888"},
    {"admission without a key", HEAD "admission: {tls: {certFile: a}}\n",
     "3:18: tls: needs both certFile and keyFile"},
    {"one port for both", HEAD "server: {listen: ':8888', metricsListen: ':8888'}\n",
     "3:42: metricsListen: the port must differ from that of listen"},
    {"one port for both, written in two ways",
     HEAD "server: {listen: '0.0.0.0:8888', metricsListen: '127.0.0.1:08888'}\n",
     "3:49: metricsListen: the port must differ from that of listen"},
    {"port too large", HEAD "server: {metricsListen: ':70000'}\n",
     "3:25: metricsListen: expected ADDRESS:PORT, such as 127.0.0.1:8888 or [::1]:8888"},
    {"number without unit", HEAD "readWriteOncePod: {reservationTTL: 30}\n",
     "3:36: reservationTTL: expected a duration, such as 30s"},
    {"duration out of range", HEAD "readWriteOncePod: {reservationTTL: 2h}\n",
     "3:36: reservationTTL: expected 1s to 1h"},
    {"bad quantity", HEAD "server: {maxRequestBytes: 64MB}\n",
     "3:27: maxRequestBytes: expected a number of bytes, such as 64Mi"},
    {"quantity out of range", HEAD "server: {maxRequestBytes: 1}\n",
     "3:27: maxRequestBytes: expected 4Ki to 1Gi"},
    {"ambiguous boolean", HEAD "server: {debugEndpoints: yes}\n",
     "3:26: debugEndpoints: expected true or false"},
    {"quoted boolean", HEAD "server: {debugEndpoints: 'true'}\n",
     "3:26: debugEndpoints: expected true or false"},
    {"unknown word", HEAD "deferFSMount: {apply: auto}\n",
     "3:23: apply: expected Auto, Field, Annotation or Disabled"},
    {"ambiguous string", HEAD "server: {tls: {certFile: on, keyFile: b}}\n",
     "3:26: certFile: expected a string, not on (put quotes around it)"},
    {"ambiguous string in a list, behind a mapping",
     HEAD
     "deferFSMount:\n  entries:\n"
     "  - {storageClass: a, runtimeClass: b, postMountConfig: {subPath: true}, fsTypes: [on]}\n",
     "5:84: fsTypes: expected a string, not on (put quotes around it)"},
    {"tls without anything", HEAD "server: {tls: {}}\n",
     "3:15: tls: needs both certFile and keyFile"},
    {"half of tls", HEAD "server: {tls: {certFile: a}}\n",
     "3:15: tls: needs both certFile and keyFile"},
    {"entry without class", HEAD "deferFSMount: {entries: [{runtimeClass: microvm}]}\n",
     "3:26: an entry needs storageClass or csiDriver, but not both"},
    {"entry with both",
     HEAD "deferFSMount: {entries: [{storageClass: a, csiDriver: b, "
          "runtimeClass: c}]}\n",
     "3:26: an entry needs storageClass or csiDriver, but not both"},
    {"entry without runtimeClass", HEAD "deferFSMount: {entries: [{storageClass: a}]}\n",
     "3:26: an entry needs runtimeClass"},
    {"fsGroup without policies",
     HEAD "deferFSMount: {entries: [{storageClass: a, runtimeClass: b, postMountConfig: "
          "{fsGroup: true}}]}\n",
     "3:26: set both fsGroup: true and fsGroupChangePolicies, or neither"},
    {"a storage class that is no key of a ConfigMap",
     HEAD "deferFSMount: {entries: [{storageClass: 'a b', runtimeClass: b, nonExclusiveClaims: "
          "Exclusive}]}\n",
     "3:26: storageClass: with nonExclusiveClaims: Exclusive, expected at most 243 of the "
     "characters a-z, A-Z, 0-9, '.', '-' and '_'"},
    {"a storage class that is too long for one",
     HEAD "deferFSMount: {entries: [{storageClass: " LETTERS_244
          ", runtimeClass: b, nonExclusiveClaims: Exclusive}]}\n",
     "3:26: storageClass: with nonExclusiveClaims: Exclusive, expected at most 243 of the "
     "characters a-z, A-Z, 0-9, '.', '-' and '_'"},
    {"the same entry twice",
     HEAD "deferFSMount: {entries: [{storageClass: a, runtimeClass: b}, {storageClass: a, "
          "runtimeClass: b}]}\n",
     "3:62: the entry overlaps with entry 1, which is also for a and b: merge them, or give each "
     "its own fsTypes"},
    {"entries that overlap in one of their fsTypes",
     HEAD "deferFSMount: {entries: [{csiDriver: a, runtimeClass: b, fsTypes: [ext4, xfs]}, "
          "{csiDriver: a, runtimeClass: b, fsTypes: [xfs]}]}\n",
     "3:81: the entry overlaps with entry 1, which is also for a and b: merge them, or give each "
     "its own fsTypes"},
    {"an entry for some fsTypes beside one for all",
     HEAD "deferFSMount: {entries: [{csiDriver: a, runtimeClass: b, fsTypes: [ext4]}, "
          "{csiDriver: a, runtimeClass: b}]}\n",
     "3:76: the entry overlaps with entry 1, which is also for a and b: merge them, or give each "
     "its own fsTypes"},
    {"not a list", HEAD "deferFSMount: {entries: {}}\n", "3:25: entries: expected a list"},
    {"alias", HEAD "server: &a {}\nreadWriteOncePod: *a\n", "4:19: aliases are not supported"},
    {"merge key", HEAD "server:\n  <<: {debugEndpoints: true}\n",
     "4:3: merge keys (<<) are not supported: write the values out"},
    {"a quoted key that is none", HEAD "server: {'<<': {}}\n", "3:10: unknown key \"<<\""},
    {"the first of two that appear twice", HEAD "z: 1\na: 1\nz: 2\na: 2\n",
     "5:1: this key appears twice"},
    {"too many fsTypes",
     HEAD "deferFSMount: {entries: [{storageClass: a, runtimeClass: b, fsTypes: "
          "[a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r]}]}\n",
     "3:119: fsTypes: more than 16"},
    {"two documents", HEAD "---\n" HEAD, "3:1: a second document in the file"},
    {"bad YAML", HEAD "server: [a\n", "4:1: did not find expected ',' or ']'"},
    {"tab", HEAD "server:\n\tlisten: a\n", "4:1: found character that cannot start any token"},
};

Test(config, reports_errors_with_file_line_and_column)
{
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        struct config *config;
        struct error err = {0};
        char path[32], want[ERROR_MESSAGE_BYTES];
        int rc = load_text(&config, bad_files[i].text, path, &err);
        (void)snprintf(want, sizeof want, "%s:%s", path, bad_files[i].message);
        cr_expect_eq(rc, ERROR_INVALID, "%s", bad_files[i].name);
        cr_expect_str_eq(err.message, want, "%s: got %s", bad_files[i].name, err.message);
        cr_expect_null(config);
    }
}

/* Each class is an entry of what claimguards agree on, which have to fit. */
static int load_exclusive(unsigned classes, const char *claim_lock, const char *apply,
                          struct error *err)
{
    struct config *config;
    char path[32];
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_printf(&text, HEAD "readWriteOncePod: {claimLock: %s}\ndeferFSMount:\n  apply: %s\n",
               claim_lock, apply);
    buf_put(&text, SLICE("  entries:\n"));
    for (unsigned i = 0; i < 2 * classes; i++)
        buf_printf(&text,
                   "  - {storageClass: class-%u, runtimeClass: runtime-%u, nonExclusiveClaims: "
                   "Exclusive}\n",
                   i % classes, i / classes);
    buf_put(&text, SLICE("  - {storageClass: more, runtimeClass: a, nonExclusiveClaims: Allow}\n"));
    int rc = load_text(&config, buf_text(&text), path, err);
    buf_dispose(&text);
    config_free(config);
    return rc;
}

Test(config, refuses_more_exclusive_classes_than_claimguards_can_agree_on)
{
    struct error err = {0};

    cr_expect_eq(load_exclusive(100, "Annotation", "Auto", &err), 0, "%s", err.message);
    cr_expect_eq(load_exclusive(101, "Local", "Auto", &err), 0, "%s", err.message);
    cr_expect_eq(load_exclusive(101, "Annotation", "Disabled", &err), 0, "%s", err.message);
    cr_expect_eq(load_exclusive(101, "Annotation", "Auto", &err), ERROR_INVALID);
    cr_expect_not_null(strstr(err.message,
                              ":7:3: entries: with claimLock: Annotation, at most 100 storage "
                              "classes may have nonExclusiveClaims: Exclusive"),
                       "%s", err.message);
}

Test(config, refuses_deep_nesting)
{
    struct config *config;
    struct error err = {0};
    char path[32];
    char text[10100] = HEAD "server: ";

    memset(text + strlen(text), '[', 10000);
    cr_expect_eq(load_text(&config, text, path, &err), ERROR_INVALID);
    cr_expect_not_null(strstr(err.message, "nested too deep"), "%s", err.message);
}

/* It took 38 s when each key was compared with each other key. */
Test(config, reads_many_keys_and_many_entries_quickly, .timeout = 60)
{
    struct config *config;
    struct error err = {0};
    char path[32];
    struct buf text;

    buf_init(&text, 1 << 20);
    buf_put(&text, SLICE(HEAD "server:\n"));
    for (int i = 0; i < 100000; i++)
        buf_printf(&text, " %x:\n", i);
    buf_put(&text, (struct slice){"", 1});
    cr_expect_eq(load_text(&config, text.bytes, path, &err), ERROR_INVALID);
    cr_expect_not_null(strstr(err.message, ":4:2: unknown key"), "%s", err.message);
    buf_reset(&text, SIZE_MAX);
    buf_put(&text, SLICE(HEAD "deferFSMount:\n entries:\n"));
    for (int i = 0; i < 1001; i++)
        buf_printf(&text, " - {storageClass: s%d, runtimeClass: r}\n", i);
    buf_put(&text, (struct slice){"", 1});
    cr_expect_eq(load_text(&config, text.bytes, path, &err), ERROR_INVALID);
    cr_expect_not_null(strstr(err.message, ":1005:4: entries: more than 1000"), "%s", err.message);
    buf_dispose(&text);
}

Test(config, reports_a_missing_file)
{
    struct config *config;
    struct error err = {0};

    cr_expect_eq(config_load(&config, "/nonexistent/c.yaml", &err), ERROR_SYSTEM);
    cr_expect_str_eq(err.message, "/nonexistent/c.yaml: No such file or directory");
}

Test(config, splits_addresses)
{
    static const struct {
        const char *text, *host;
        int port; /* -1: refused */
    } rows[] = {
        {"127.0.0.1:80", "127.0.0.1", 80},
        {"[::1]:80", "::1", 80},
        {":80", "", 80},
        {"::1:80", "", -1},
        {"80", "", -1},
        {"a:", "", -1},
        {"a:65536", "", -1},
        {"a:8k", "", -1},
        {"a:-1", "", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct slice host;
        uint16_t port = 0;
        bool ok = config_split_address(slice_of(rows[i].text), &host, &port);
        cr_expect_eq(ok, rows[i].port >= 0, "%s", rows[i].text);
        if (ok) {
            cr_expect_eq(port, rows[i].port);
            cr_expect(slice_equal(host, slice_of(rows[i].host)));
        }
    }
}

Test(config, accepts_entries_that_do_not_overlap)
{
    struct config *config;
    struct error err = {0};
    char path[32];

    cr_assert_eq(load_text(&config,
                           HEAD "deferFSMount:\n"
                                "  entries:\n"
                                "  - {storageClass: a, runtimeClass: b, fsTypes: [ext4]}\n"
                                "  - {storageClass: a, runtimeClass: b, fsTypes: [xfs]}\n"
                                "  - {storageClass: a, runtimeClass: c}\n"
                                "  - {csiDriver: a, runtimeClass: b}\n",
                           path, &err),
                 0, "%s", err.message);
    cr_expect_eq(config->defer_fs_mount.entry_count, 4);
    config_free(config);
}
