#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/client/credentials.h"
#include "config/base/clock.h"

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

#define V1      "client.authentication.k8s.io/v1"
#define V1BETA1 "client.authentication.k8s.io/v1beta1"

/* A plugin that answers so, and counts its runs in a file. */
static struct kubeconfig plugin(const char *script, const char **argv)
{
    static const char *const none[] = {NULL};
    char text[2048];

    (void)snprintf(text, sizeof text, "#!/bin/sh\necho run >>%s/runs\n%s\n", folder, script);
    argv[0] = write_file("plugin", text, 0700);
    argv[1] = NULL;
    return (struct kubeconfig){
        .server = "https://x",
        .exec = {.argv = argv, .env = (const char **)(uintptr_t)none, .api_version = V1}};
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

#define ANSWER_AS(version_, status_) \
    "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" version_ "\",\"status\":" status_ "}'"
#define ANSWER(status_) ANSWER_AS(V1, status_)

/* Times of the tests: from the start, on both clocks. */
static const int64_t start_ms = INT64_C(1795168800000); /* 2026-11-20T10:00:00Z */

static const uint64_t second_ns = UINT64_C(1000000000);

static uint64_t at_ns(unsigned second)
{
    return (1000000 + second) * second_ns; /* up for some days */
}

/* As credentials_get, so many seconds after the start, once no plugin runs any more. */
static int get(struct credentials *credentials, unsigned second, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    int rc = 0;

    *err = (struct error){.code = 0};
    do {
        rc = credentials_get(credentials, at_ns(second), start_ms + second * 1000, err);
        (void)nanosleep(&pause, NULL);
    } while (credentials_are_coming(credentials));
    return rc == CREDENTIALS_COME
               ? credentials_get(credentials, at_ns(second), start_ms + second * 1000, err)
               : rc;
}

Test(credentials, a_token_file_is_read_anew_after_a_second)
{
    struct kubeconfig kubeconfig = {.token_file = write_file("token", "first\n", 0600)};
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_assert(get(&credentials, 0, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.token, SLICE("first")));
    (void)write_file("token", "second", 0600);
    cr_assert(get(&credentials, 0, &err) == 0);
    cr_expect(slice_equal(credentials.token, SLICE("first")));
    cr_assert(get(&credentials, 1, &err) == 0);
    cr_expect(slice_equal(credentials.token, SLICE("second")));
    (void)write_file("token", "third", 0600);
    credentials_reject(&credentials, credentials.generation, at_ns(1));
    cr_assert(get(&credentials, 1, &err) == 0);
    cr_expect(slice_equal(credentials.token, SLICE("third")), "the API server has refused it");
    (void)write_file("token", "\n", 0600);
    cr_expect(get(&credentials, 2, &err) == ERROR_INVALID);
    (void)unlink(kubeconfig.token_file);
    cr_expect(get(&credentials, 2, &err) == ERROR_SYSTEM);
    cr_expect(strstr(err.message, "/token: No such file") != NULL, "%s", err.message);
    credentials_dispose(&credentials);
}

Test(credentials, a_plugin_runs_again_before_its_answer_expires)
{
    const char *argv[2];
    struct kubeconfig kubeconfig = plugin(
        ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-20T12:05:00+02:00\"}"), argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    for (unsigned second = 0; second < 240; second += 60)
        cr_assert(get(&credentials, second, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.token, SLICE("t")));
    cr_expect_eq(runs(), 1);
    cr_expect(credentials_get(&credentials, at_ns(241), 0, &err) == CREDENTIALS_READY,
              "what it gave is good while it runs");
    cr_assert(get(&credentials, 242, &err) == 0);
    cr_expect_eq(runs(), 2);
    credentials_dispose(&credentials);
}

Test(credentials, what_lasts_for_centuries_is_good_for_a_year)
{
    static const char *const answers[] = {
        ANSWER(
            "{\"token\":\"t\",\"expirationTimestamp\":\"2611-06-11T09:35:04Z\"}"), /* 2^64 ns, and a
                                                                                      bit */
        ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"9999-12-31T23:59:59Z\"}"),
    };

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const char *argv[2];
        struct kubeconfig kubeconfig = plugin(answers[i], argv);
        struct credentials credentials;
        struct error err = {0};
        credentials_init(&credentials, &kubeconfig);
        for (unsigned day = 0; day < 300; day += 100)
            cr_assert(get(&credentials, day * 86400, &err) == 0, "%s", err.message);
        cr_expect_eq(runs(), i + 1);
        credentials_dispose(&credentials);
    }
}

Test(credentials, a_step_of_the_wall_clock_changes_nothing)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin(ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-20T11:00:00Z\"}"), argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_assert(get(&credentials, 0, &err) == 0, "%s", err.message);
    for (int64_t step_ms = -86400000; step_ms <= 86400000; step_ms += 86400000)
        cr_expect(credentials_get(&credentials, at_ns(60), start_ms + step_ms, &err) == 0);
    cr_expect_eq(runs(), 1);
    credentials_dispose(&credentials);
}

Test(credentials, what_seems_to_have_expired_on_arrival_is_used_for_a_while)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin(ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-20T09:00:00Z\"}"), argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    for (unsigned second = 0; second < 15; second++)
        cr_assert(get(&credentials, second, &err) == 0, "%s", err.message);
    cr_expect_eq(runs(), 1, "a clock is wrong, and the API server may know better");
    credentials_dispose(&credentials);
}

Test(credentials, a_plugin_runs_again_after_a_refusal_and_not_too_often)
{
    const char *argv[2];
    struct kubeconfig kubeconfig = plugin(ANSWER("{\"token\":\"t\"}"), argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_assert(get(&credentials, 0, &err) == 0, "%s", err.message);
    credentials_reject(&credentials, credentials.generation - 1, at_ns(99));
    cr_assert(get(&credentials, 100, &err) == 0);
    cr_expect_eq(runs(), 1, "a former one was refused");
    credentials_reject(&credentials, credentials.generation, at_ns(100));
    cr_assert(get(&credentials, 100, &err) == 0);
    cr_expect_eq(runs(), 2, "it was good for long: at once");
    for (unsigned i = 0; i < 8; i++) {
        credentials_reject(&credentials, credentials.generation, at_ns(101 + i));
        (void)get(&credentials, 101 + i, &err);
    }
    cr_expect_eq(runs(), 4, "got %zu: after 1 s, then after 2 s", runs());
    cr_expect(get(&credentials, 109, &err) == ERROR_UNAVAILABLE &&
                  strstr(err.message, "(401)") != NULL,
              "%s", err.message);
    credentials_dispose(&credentials);
}

Test(credentials, a_plugin_that_fails_has_pauses_that_grow)
{
    const char *argv[2];
    struct kubeconfig kubeconfig = plugin("exit 3", argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    for (unsigned second = 0; second < 200; second++)
        cr_expect(get(&credentials, second, &err) == ERROR_UNAVAILABLE);
    cr_expect_eq(runs(), 9, "got %zu, want those at 0, 1, 3, 7, 15, 31, 63, 123, 183", runs());
    credentials_dispose(&credentials);
}

Test(credentials, what_is_good_stays_good_while_the_plugin_fails)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin("[ $(wc -l <$(dirname $0)/runs) = 1 ] || exit 3\n" ANSWER(
                   "{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-20T10:10:00Z\"}"),
               argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    for (unsigned second = 0; second < 600; second += 10)
        cr_assert(get(&credentials, second, &err) == 0, "%s", err.message);
    cr_expect(runs() > 1);
    cr_expect(get(&credentials, 600, &err) == ERROR_UNAVAILABLE, "it has ended");
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
    cr_assert(get(&credentials, 0, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.cert.data, SLICE("C")) &&
              slice_equal(credentials.key.data, SLICE("K")));
    credentials_dispose(&credentials);
}

Test(credentials, what_a_plugin_gives_takes_the_place_of_all_that_it_gave_before)
{
    const char *argv[2];
    struct kubeconfig kubeconfig =
        plugin("[ $(wc -l <$(dirname $0)/runs) = 1 ] || { " ANSWER(
                   "{\"token\":\"T\"}") "; exit; }\n" ANSWER("{\"clientCertificateData\":\"C\","
                                                             "\"clientKeyData\":\"K\"}"),
               argv);
    struct credentials credentials;
    struct error err = {0};

    credentials_init(&credentials, &kubeconfig);
    cr_assert(get(&credentials, 0, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.cert.data, SLICE("C")) && credentials.token.len == 0);
    credentials_reject(&credentials, credentials.generation, at_ns(99));
    cr_assert(get(&credentials, 100, &err) == 0, "%s", err.message);
    cr_expect(slice_equal(credentials.token, SLICE("T")));
    cr_expect(credentials.cert.data.len == 0 && credentials.key.data.len == 0);
    credentials_dispose(&credentials);
}

Test(credentials, a_plugin_s_own_environment_goes_before_ours)
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

Test(credentials, a_plugin_of_v1beta1_is_asked_in_its_own_version)
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
Test(credentials, a_plugin_that_hangs_is_killed_with_what_it_started)
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

Test(credentials, a_plugin_is_killed_at_the_end)
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
Test(credentials, a_plugin_is_done_when_it_has_ended)
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

Test(credentials, a_plugin_inherits_nothing_that_it_should_not_have)
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

Test(credentials, what_a_plugin_does_wrong_is_said_without_what_it_printed)
{
    static const struct {
        const char *script, *message;
    } rows[] = {
        {"exit 3", "failed with exit status 3"},
        {"echo secret", "is no ExecCredential"},
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

Test(credentials, times_are_rfc_3339)
{
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00Z")), INT64_C(86400000));
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00.999999Z")), INT64_C(86400000));
    cr_expect_eq(time_parse(SLICE("1970-01-02T02:00:00+02:00")), INT64_C(86400000));
    cr_expect_eq(time_parse(SLICE("1970-01-01T18:30:00.5-05:30")), INT64_C(86400000));
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00+0100")), 0);
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00+01:60")), 0);
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00+24:00")), 0);
    cr_expect_eq(time_parse(SLICE("1970-01-02T00:00:00")), 0);
    cr_expect_eq(time_parse(SLICE("1970-01-02")), 0);
    cr_expect_eq(time_parse(SLICE("")), 0);
}
