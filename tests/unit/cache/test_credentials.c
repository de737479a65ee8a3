#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/credentials.h"

static char folder[64];

static void setup(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/credentials-test-XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
}

static void teardown(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(credentials, .init = setup, .fini = teardown);

static const char *write_file(const char *name, const char *text, mode_t mode)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0 &&
              chmod(path, mode) == 0);
    return path;
}

/* A plugin that answers so, and counts its runs in a file. */
static struct kubeconfig plugin(const char *script, const char **argv)
{
    static const char *const none[] = {NULL};
    char text[2048];

    (void)snprintf(text, sizeof text, "#!/bin/sh\necho run >>%s/runs\n%s\n", folder, script);
    argv[0] = write_file("plugin", text, 0700);
    argv[1] = NULL;
    return (struct kubeconfig){.server = "https://x",
                               .exec = {.argv = argv, .env = (const char **)(uintptr_t)none}};
}

static size_t runs(void)
{
    char path[128], line[16];
    size_t count = 0;

    (void)snprintf(path, sizeof path, "%s/runs", folder);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        count++;
    if (file != NULL)
        (void)fclose(file);
    return count;
}

#define ANSWER(status_) \
    "echo " \
    "'{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/" \
    "v1\",\"status\":" status_ "}'"

Test(credentials, a_token_file_is_read_anew_each_time)
{
    struct kubeconfig kubeconfig = {.token_file = write_file("token", "first\n", 0600)};
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_assert(credentials_refresh(&credentials, 0, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.token, SLICE("first")));
    (void)write_file("token", "second", 0600);
    cr_assert(credentials_refresh(&credentials, 0, &err) == 0);
    cr_expect(slice_equal(credentials.token, SLICE("second")));
    (void)write_file("token", "\n", 0600);
    cr_expect(credentials_refresh(&credentials, 0, &err) == ERROR_INVALID);
    (void)unlink(kubeconfig.token_file);
    cr_expect(credentials_refresh(&credentials, 0, &err) == ERROR_SYSTEM);
    cr_expect(strstr(err.message, "/token: No such file") != NULL, "%s", err.message);
    credentials_dispose(&credentials);
}

Test(credentials, a_plugin_runs_again_when_its_answer_expires_or_is_refused)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin(ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-20T10:00:00Z\"}"), argv);
    int64_t expires = time_parse(SLICE("2026-11-20T10:00:00Z"));
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    for (int i = 0; i < 3; i++)
        cr_assert(credentials_refresh(&credentials, expires - 120000, &err) == 0, "%s",
                  err.message);
    cr_expect(slice_equal(credentials.token, SLICE("t")));
    cr_expect_eq(runs(), 1);
    cr_assert(credentials_refresh(&credentials, expires - 30000, &err) == 0);
    cr_expect_eq(runs(), 2, "shortly before it expires");
    credentials_reject(&credentials);
    cr_assert(credentials_refresh(&credentials, expires - 120000, &err) == 0);
    cr_expect_eq(runs(), 3);
    credentials_dispose(&credentials);
}

Test(credentials, a_plugin_may_give_a_certificate_and_is_told_about_the_cluster)
{
    const char *argv[2];
    struct kubeconfig kubeconfig = plugin(
        "case $KUBERNETES_EXEC_INFO in *'\"server\":\"https://x\"'*) ;; *) exit 9 ;; esac\n" ANSWER(
            "{\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\"}"),
        argv);
    struct credentials credentials;
    struct error err = {0};

    kubeconfig.exec.wants_cluster_info = true;
    credentials_init(&credentials, &kubeconfig);
    cr_assert(credentials_refresh(&credentials, 0, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.cert.data, SLICE("C")) &&
              slice_equal(credentials.key.data, SLICE("K")));
    credentials_dispose(&credentials);
}

Test(credentials, what_a_plugin_does_wrong_is_said_without_what_it_printed)
{
    static const struct {
        const char *script, *message;
    } rows[] = {
        {"exit 3", "failed with exit status 3"},
        {"echo secret", "is no ExecCredential"},
        {"echo '{\"secret\":1}'", "printed no client.authentication.k8s.io/v1 ExecCredential"},
        {ANSWER("{}"), "neither a token nor a certificate"},
        {ANSWER("{\"clientCertificateData\":\"secret\"}"), "neither a token nor a certificate"},
        {ANSWER("{\"token\":\"secret\",\"expirationTimestamp\":\"soon\"}"),
         "expirationTimestamp is no time"},
        {"head -c 2000000 /dev/zero", "printed over"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *argv[2];
        struct kubeconfig kubeconfig = plugin(rows[i].script, argv);
        struct credentials credentials;
        struct error err = {0};
        credentials_init(&credentials, &kubeconfig);
        cr_expect(credentials_refresh(&credentials, 0, &err) < 0, "%s", rows[i].script);
        cr_expect(strstr(err.message, rows[i].message) != NULL, "%s: %s", rows[i].script,
                  err.message);
        cr_expect(strstr(err.message, "secret") == NULL, "%s", err.message);
        credentials_dispose(&credentials);
    }
    const char *argv[] = {"no-such-plugin", NULL};
    const char *env[] = {NULL};
    struct kubeconfig kubeconfig = {
        .exec = {.argv = argv, .env = env, .install_hint = "install it"}};
    struct credentials credentials;
    struct error err = {0};
    credentials_init(&credentials, &kubeconfig);
    cr_expect(credentials_refresh(&credentials, 0, &err) == ERROR_SYSTEM);
    cr_expect_str_eq(err.message,
                     "credential plugin no-such-plugin: install it: No such file or directory");
    credentials_dispose(&credentials);
}

Test(credentials, times_are_rfc_3339_in_utc)
{
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00Z")), INT64_C(86400000));
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00.999999Z")), INT64_C(86400000));
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00+01:00")), 0);
    cr_expect_eq(time_parse(SLICE("1970-01-02")), 0);
    cr_expect_eq(time_parse(SLICE("")), 0);
}
