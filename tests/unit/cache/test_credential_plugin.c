/* What a plugin gets, how it ends, and what it may do wrong. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include "unit/cache/credentials_bench.h"

TestSuite(credential_plugin, .init = setup, .fini = teardown);

Test(credential_plugin, a_plugin_may_give_a_certificate_and_gets_the_cluster)
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
    cr_assert(get(&credentials, 0, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.cert.data, SLICE("C")) &&
              slice_equal(credentials.key.data, SLICE("K")));
    credentials_dispose(&credentials);
}

Test(credential_plugin, a_plugin_s_own_environment_goes_before_ours)
{
    const char *argv[2];
    const char *env[] = {"AWS_PROFILE=lost", "PATH=/nowhere", "AWS_PROFILE=prod",
                         "KUBERNETES_EXEC_INFO=mine", NULL};
    struct kubeconfig kubeconfig =
        plugin("[ \"$AWS_PROFILE\" = prod ] && [ \"$PATH\" = /nowhere ] || exit 9\n"
               "[ \"$(/usr/bin/env | /bin/grep -c '^AWS_PROFILE=')\" = 1 ] || exit 8\n"
               "case $KUBERNETES_EXEC_INFO in *" V1 "*) ;; *) exit 7 ;; esac\n"
               "[ \"$OTHER\" = ours ] || exit 6\n" ANSWER("{\"token\":\"t\"}"),
               argv);
    struct credentials credentials;
    struct error err = {0};

    kubeconfig.exec.env = env;
    (void)setenv("AWS_PROFILE", "test", 1);
    (void)setenv("OTHER", "ours", 1);
    credentials_init(&credentials, &kubeconfig);
    cr_expect(get(&credentials, 0, &err) == 0, "%s", err.message);
    credentials_dispose(&credentials);
}

Test(credential_plugin, a_plugin_of_v1beta1_is_asked_in_its_own_version)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin("case $KUBERNETES_EXEC_INFO in *" V1BETA1
               "*) ;; *) exit 9 ;; esac\n" ANSWER_AS(V1BETA1, "{\"token\":\"t\"}"),
               argv);
    struct credentials credentials;
    struct error err = {0};

    kubeconfig.exec.api_version = V1BETA1;
    credentials_init(&credentials, &kubeconfig);
    cr_expect(get(&credentials, 0, &err) == 0, "%s", err.message);
    credentials_dispose(&credentials);
}

/* The process whose number the plugin has written. */
static pid_t read_pid(void)
{
    char path[128], line[16] = "";

    (void)snprintf(path, sizeof path, "%s/pid", folder);
    FILE *file = fopen(path, "re");
    for (int i = 0; file == NULL && i < 1000; i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        file = fopen(path, "re");
    }
    cr_assert(file != NULL);
    while (fgets(line, sizeof line, file) == NULL)
        rewind(file);
    (void)fclose(file);
    return (pid_t)strtol(line, NULL, 10);
}

static bool is_alive(pid_t pid)
{
    char path[64], line[512] = "";

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool is_read = fgets(line, sizeof line, file) != NULL;
    (void)fclose(file);
    return is_read && strstr(line, ") Z ") == NULL;
}

static void await_end(pid_t pid)
{
    for (int i = 0; is_alive(pid) && i < 1000; i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    cr_expect(!is_alive(pid), "what the plugin started still runs");
}

/* One that closes its output and sleeps; what it started goes with it. */
Test(credential_plugin, a_plugin_that_hangs_is_killed_with_what_it_started)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin("exec >&-\nsleep 1000 &\necho $! >$(dirname $0)/pid\nwait", argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_expect(credentials_get(&credentials, at_ns(0), start_ms, &err) == CREDENTIALS_COME);
    pid_t pid = read_pid();
    cr_expect(credentials_get(&credentials, at_ns(29), start_ms, &err) == CREDENTIALS_COME);
    cr_expect(credentials_get(&credentials, at_ns(30), start_ms, &err) == ERROR_TIMEOUT);
    cr_expect(strstr(err.message, "has not ended after 30 s") != NULL, "%s", err.message);
    await_end(pid);
    credentials_dispose(&credentials);
}

Test(credential_plugin, a_plugin_is_killed_at_the_end)
{
    const char *argv[2];
    struct kubeconfig kubeconfig = plugin("sleep 1000 &\necho $! >$(dirname $0)/pid\nwait", argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_expect(credentials_get(&credentials, at_ns(0), start_ms, &err) == CREDENTIALS_COME);
    pid_t pid = read_pid();
    credentials_dispose(&credentials);
    await_end(pid);
}

/* A helper of a plugin may keep its output open for longer than the plugin lives. */
Test(credential_plugin, a_plugin_is_done_when_it_has_ended)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin("sleep 1000 &\necho $! >$(dirname $0)/pid\n" ANSWER("{\"token\":\"t\"}"), argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_expect(get(&credentials, 0, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.token, SLICE("t")));
    cr_expect(is_alive(read_pid()), "and what it left behind may be of use to it");
    (void)kill(read_pid(), SIGKILL);
    credentials_dispose(&credentials);
}

Test(credential_plugin, a_plugin_inherits_nothing_that_it_should_not_have)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin("[ ! -e /proc/$$/fd/50 ] || exit 9\n"
               "grep -q 'SigIgn:.*[13579bdf]...$' /proc/$$/status && exit 8\n" /* SIGPIPE */
               ANSWER("{\"token\":\"t\"}"),
               argv);
    struct credentials credentials;
    struct error err = {0};

    cr_assert(fcntl(STDERR_FILENO, F_DUPFD, 50) == 50);
    (void)signal(SIGPIPE, SIG_IGN);
    credentials_init(&credentials, &kubeconfig);
    cr_expect(get(&credentials, 0, &err) == 0, "%s", err.message);
    credentials_dispose(&credentials);
}

Test(credential_plugin, what_a_plugin_does_wrong_is_said_without_what_it_printed)
{
    static const struct {
        const char *script, *message;
    } rows[] = {
        {"exit 3", "failed with exit status 3"},
        {"echo secret", "its output is not an ExecCredential"},
        {"echo '{\"secret\":1}'", "printed no client.authentication.k8s.io/v1 ExecCredential"},
        {ANSWER_AS(V1BETA1, "{\"token\":\"secret\"}"), "printed no " V1 " ExecCredential"},
        {"kill -9 $$", "was ended by signal 9"},
        {ANSWER("{}"), "neither a token nor a certificate"},
        {ANSWER("{\"clientCertificateData\":\"secret\"}"), "neither a token nor a certificate"},
        {ANSWER("{\"token\":\"secret\",\"expirationTimestamp\":\"soon\"}"),
         "expirationTimestamp is no RFC 3339 time"},
        {"head -c 2000000 /dev/zero", "printed over"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *argv[2];
        struct kubeconfig kubeconfig = plugin(rows[i].script, argv);
        struct credentials credentials;
        struct error err = {0};
        credentials_init(&credentials, &kubeconfig);
        cr_expect(get(&credentials, 0, &err) < 0, "%s", rows[i].script);
        cr_expect(strstr(err.message, rows[i].message) != NULL, "%s: %s", rows[i].script,
                  err.message);
        cr_expect(strstr(err.message, "secret") == NULL, "%s", err.message);
        credentials_dispose(&credentials);
    }
}

Test(credential_plugin, one_that_does_not_exist_is_said_with_its_hint)
{
    if (getenv("CLAIMGUARD_EMULATED") != NULL)
        cr_skip_test("the emulator makes vfork a fork: posix_spawn cannot say what exec said");
    const char *argv[] = {"no-such-plugin", NULL};
    const char *env[] = {NULL};
    struct kubeconfig kubeconfig = {
        .exec = {.argv = argv, .env = env, .install_hint = "install it", .api_version = V1}};
    struct credentials credentials;
    struct error err = {0};
    credentials_init(&credentials, &kubeconfig);
    cr_expect(get(&credentials, 0, &err) == ERROR_SYSTEM);
    cr_expect_str_eq(err.message,
                     "credential plugin no-such-plugin: install it: No such file or directory");
    credentials_dispose(&credentials);
}
