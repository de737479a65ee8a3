#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache/client/kubeconfig.h"
#include "config/base/text.h"

#define CONTEXT \
    "apiVersion: v1\nkind: Config\ncurrent-context: a\n" \
    "contexts:\n- {name: a, context: {cluster: c, user: u}}\n- {name: b, context: {cluster: d, " \
    "user: u}}\n"
#define CLUSTER "clusters:\n- {name: c, cluster: {server: 'https://one:6443/'}}\n"
#define USER    "users:\n- {name: u, user: {token: secret}}\n"

static char path[64];

static void write_file(const char *text)
{
    (void)snprintf(path, sizeof path, "/tmp/kubeconfig-test-%d", (int)getpid());
    FILE *file = fopen(path, "we");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static struct kubeconfig *load(const char *text)
{
    struct kubeconfig *kubeconfig = NULL;
    struct error err = {0};

    write_file(text);
    int rc = kubeconfig_load(&kubeconfig, path, NULL, false, &err);
    cr_assert(rc == 0, "%s", err.message);
    (void)unlink(path);
    return kubeconfig;
}

static void refused(const char *text, const char *message)
{
    struct kubeconfig *kubeconfig = NULL;
    struct error err = {0};

    write_file(text);
    cr_expect(kubeconfig_load(&kubeconfig, path, NULL, false, &err) < 0, "%s", message);
    cr_expect(strstr(err.message, message) != NULL && strncmp(err.message, path, strlen(path)) == 0,
              "got: %s, want: %s", err.message, message);
    (void)unlink(path);
}

Test(kubeconfig, reads_the_current_context)
{
    struct kubeconfig *kubeconfig = load(CONTEXT CLUSTER USER);

    cr_expect_str_eq(kubeconfig->server, "https://one:6443");
    cr_expect_str_eq(kubeconfig->token, "secret");
    cr_expect(kubeconfig->proxy_url == NULL && kubeconfig->server_name == NULL);
    cr_expect(!kubeconfig->skips_verification && kubeconfig->exec.argv == NULL);
    kubeconfig_free(kubeconfig);
}

Test(kubeconfig, reads_the_namespace_of_the_context)
{
    struct kubeconfig *kubeconfig = load(CONTEXT CLUSTER USER);

    cr_expect_null(kubeconfig->ns);
    kubeconfig_free(kubeconfig);
    kubeconfig = load("current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u, "
                      "namespace: shop}}\n" CLUSTER USER);
    cr_expect_str_eq(kubeconfig->ns, "shop");
    kubeconfig_free(kubeconfig);
    refused("current-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u, namespace: "
            "[]}}\n" CLUSTER USER,
            "contexts[a].namespace: expected a string");
}

Test(kubeconfig, reads_every_field_of_a_cluster_and_a_user)
{
    struct kubeconfig *kubeconfig = load(
        CONTEXT
        "clusters:\n- name: c\n  cluster:\n    server: https://one\n    tls-server-name: two\n"
        "    proxy-url: http://three:3128\n    certificate-authority-data: Q0E=\n"
        "users:\n- name: u\n  user:\n    tokenFile: tokens/t\n    client-certificate: /abs/cert\n"
        "    client-key-data: S0VZ\n");

    cr_expect_str_eq(kubeconfig->server_name, "two");
    cr_expect_str_eq(kubeconfig->proxy_url, "http://three:3128");
    cr_expect(slice_equal(kubeconfig->ca.data, SLICE("CA")));
    cr_expect_str_eq(kubeconfig->token_file, "/tmp/tokens/t", "relative to the kubeconfig");
    cr_expect_str_eq(kubeconfig->cert.file, "/abs/cert");
    cr_expect(slice_equal(kubeconfig->key.data, SLICE("KEY")));
    kubeconfig_free(kubeconfig);
}

Test(kubeconfig, reads_a_credential_plugin)
{
    struct kubeconfig *kubeconfig = load(
        CONTEXT CLUSTER
        "users:\n- name: u\n  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/v1\n"
        "      command: get-token\n      args: [--cluster, prod]\n"
        "      env: [{name: REGION, value: north}]\n      provideClusterInfo: true\n"
        "      interactiveMode: Never\n");

    cr_assert(kubeconfig->exec.argv != NULL);
    cr_expect_str_eq(kubeconfig->exec.argv[0], "get-token");
    cr_expect_str_eq(kubeconfig->exec.argv[2], "prod");
    cr_expect(kubeconfig->exec.argv[3] == NULL);
    cr_expect_str_eq(kubeconfig->exec.env[0], "REGION=north");
    cr_expect(kubeconfig->exec.wants_cluster_info);
    cr_expect_str_eq(kubeconfig->exec.api_version, "client.authentication.k8s.io/v1");
    kubeconfig_free(kubeconfig);
}

Test(kubeconfig, a_server_without_a_usable_host_is_an_error)
{
    static const char *const servers[] = {
        "https://",     "http:///",        "https:////", "https:///path",          "https://a b",
        "https://[::1", "https://a:99999", "https://:1", "https://user:password@a"};
    char text[512];

    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        (void)snprintf(text, sizeof text,
                       CONTEXT "clusters:\n- {name: c, cluster: {server: '%s'}}\n" USER,
                       servers[i]);
        refused(text, "8:31: clusters[c].server: expected https://HOST:PORT");
    }
}

/* What `aws eks update-kubeconfig` writes. */
Test(kubeconfig, reads_a_credential_plugin_of_v1beta1)
{
    struct kubeconfig *kubeconfig =
        load(CONTEXT CLUSTER
             "users:\n- name: u\n  user:\n    exec:\n      apiVersion: "
             "client.authentication.k8s.io/v1beta1\n      command: aws\n      args: [eks, "
             "get-token]\n");

    cr_expect_str_eq(kubeconfig->exec.api_version, "client.authentication.k8s.io/v1beta1");
    kubeconfig_free(kubeconfig);
}

Test(kubeconfig, errors_name_the_place_and_the_field)
{
    refused("current-context: x\n", "1:1: contexts: there is no \"x\"");
    refused("contexts: []\n", "1:1: current-context is missing");
    refused(CONTEXT USER, "1:1: clusters: there is no \"c\"");
    refused(CONTEXT "clusters:\n- {name: c, cluster: {server: one}}\n" USER,
            "clusters[c].server: expected https://HOST:PORT");
    refused(CONTEXT "clusters:\n- {name: c, cluster: {server: 'https://x', "
                    "certificate-authority-data: '@'}}\n" USER,
            "8:72: clusters[c].certificate-authority-data: is not base64");
    refused(CONTEXT "clusters:\n- {name: c, cluster: {server: 'https://x', "
                    "insecure-skip-tls-verify: maybe}}\n" USER,
            "insecure-skip-tls-verify: expected true or false");
    refused(CONTEXT
            "clusters:\n- {name: c, cluster: {server: 'https://x', insecure-skip-tls-verify: true, "
            "certificate-authority: /ca}}\n" USER,
            "insecure-skip-tls-verify: contradicts certificate-authority");
    refused(CONTEXT CLUSTER "users:\n- {name: u, user: {client-certificate: /c}}\n",
            "users[u].client-key: is missing");
    refused(CONTEXT CLUSTER "users:\n- {name: u, user: {<<: {token: secret}}}\n",
            ":10:20: merge keys (<<) are not supported");
    refused(CONTEXT CLUSTER "users:\n- {name: u, user: {as: admin}}\n",
            "users[u].as: is not supported");
    refused(CONTEXT CLUSTER "users:\n- {name: u, user: {password: x}}\n",
            "users[u].password: is not supported");
    refused(CONTEXT CLUSTER "users:\n- {name: u, user: {auth-provider: {name: x}}}\n", "use exec");
    refused(CONTEXT CLUSTER
            "users:\n- {name: u, user: {exec: {command: x, apiVersion: v1beta1}}}\n",
            "users[u].exec.apiVersion: expected client.authentication.k8s.io/v1");
    refused(CONTEXT CLUSTER
            "users:\n- {name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1}}}\n",
            "users[u].exec.command: is missing");
    refused(CONTEXT CLUSTER "users:\n- {name: u, user: {token: [1]}}\n",
            "users[u].token: expected a string");
    refused("current-context: NULL\n", "current-context is missing");
    refused("- 1\n", "1:1: expected a kubeconfig");
    refused("a: [\n", "did not find expected");
}

Test(kubeconfig, merges_the_files_of_the_environment)
{
    struct kubeconfig *kubeconfig = NULL;
    struct error err = {0};
    char other[80], list[200];

    write_file("current-context: b\ncontexts: []\nclusters:\n- {name: d, cluster: {server: "
               "'https://first'}}\n");
    (void)snprintf(other, sizeof other, "%s-2", path);
    FILE *file = fopen(other, "we");
    cr_assert(file != NULL && fputs(CONTEXT CLUSTER USER, file) >= 0 && fclose(file) == 0);
    (void)snprintf(list, sizeof list, "/nowhere:%s:%s", path, other);
    (void)setenv("KUBECONFIG", list, 1);
    cr_assert(kubeconfig_load(&kubeconfig, NULL, NULL, false, &err) == 0, "%s", err.message);
    cr_expect_str_eq(kubeconfig->server, "https://first");
    cr_expect_str_eq(kubeconfig->token, "secret");
    kubeconfig_free(kubeconfig);
    cr_assert(kubeconfig_load(&kubeconfig, NULL, "a", false, &err) == 0, "%s", err.message);
    cr_expect_str_eq(kubeconfig->server, "https://one:6443", "the context that was asked for");
    kubeconfig_free(kubeconfig);
    (void)unlink(path);
    (void)unlink(other);
}

Test(kubeconfig, a_pod_finds_its_service_account)
{
    struct kubeconfig *kubeconfig = NULL;
    struct error err = {0};

    (void)unsetenv("KUBECONFIG");
    (void)setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    (void)setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
    cr_assert(kubeconfig_load(&kubeconfig, NULL, NULL, false, &err) == 0, "%s", err.message);
    cr_expect_str_eq(kubeconfig->server, "https://[fd00::1]:6443");
    cr_expect_str_eq(kubeconfig->proxy_url, "");
    cr_expect_str_eq(kubeconfig->token_file, "/var/run/secrets/kubernetes.io/serviceaccount/token");
    kubeconfig_free(kubeconfig);
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    cr_expect(kubeconfig_load(&kubeconfig, NULL, NULL, false, &err) == ERROR_NOT_FOUND);
}

Test(base64, decodes_what_is_base64_and_nothing_else)
{
    static const struct {
        const char *text, *bytes; /* NULL: refused */
    } rows[] = {{"", ""},        {"QQ==", "A"},       {"QUI=", "AB"},
                {"QUJD", "ABC"}, {"QU\nJD\n", "ABC"}, {"QUJ", NULL},
                {"QQ=A", NULL},  {"=QQQ", NULL},      {"Q===", NULL},
                {"QU-D", NULL},  {"====", NULL},      {"QUJDRA==", "ABCD"}};
    struct arena arena;

    arena_init(&arena, 4096);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct slice out = {NULL, 0};
        bool is_good = base64_decode(slice_of(rows[i].text), &arena, &out);
        cr_expect(is_good == (rows[i].bytes != NULL), "%s", rows[i].text);
        if (is_good && rows[i].bytes != NULL)
            cr_expect(slice_equal(out, slice_of(rows[i].bytes)), "%s", rows[i].text);
    }
    arena_dispose(&arena);
}
