/* claimguard certificates into a folder, and a server that uses them. The real program. */
#include <criterion/criterion.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/certificates.h"
#include "support/process.h"

enum { PATH_BYTES = CERTIFICATES_PATH_BYTES, FILES = 6 };

static const char *const files[FILES] = {"ca.crt",  "ca.key",     "tls.crt",
                                         "tls.key", "client.crt", "client.key"};

static char folder[CERTIFICATES_FOLDER_BYTES];
static struct daemon server;

struct run {
    int status;
    char *out, *err;
};

static void setup(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/claimguard-tls-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void teardown(void)
{
    if (server.pid != 0)
        cr_expect_eq(daemon_stop(&server), 0);
    certificates_remove(folder);
}

TestSuite(certificate_files, .init = setup, .fini = teardown);

static void run_free(struct run *run)
{
    free(run->out);
    free(run->err);
}

/* No part of a key is ever shown. */
static struct run run_with(const char *const *arguments)
{
    struct run run;

    run.status = process_run(arguments, NULL, &run.out, &run.err);
    cr_expect(strstr(run.out, "PRIVATE") == NULL && strstr(run.err, "PRIVATE") == NULL);
    return run;
}

#define RUN(...) \
    run_with((const char *const[]){"certificates", "--output", folder, __VA_ARGS__, NULL})

/* Runs it with the option; the lines are of authority, server and client. */
static void expect_actions(const char *option, const char *value, const char *authority,
                           const char *leaf, const char *other_leaf)
{
    const char *expected[] = {authority, leaf, other_leaf};
    struct run run = RUN("--format", "json", option, value);
    json_t *lines = json_loads(run.out, 0, NULL);

    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_eq(json_array_size(lines), 3, "%s", run.out);
    for (size_t i = 0; i < 3; i++)
        cr_expect_str_eq(json_string_value(json_object_get(json_array_get(lines, i), "action")),
                         expected[i], "line %zu of %s", i, run.out);
    json_decref(lines);
    run_free(&run);
}

static unsigned mode_of(const char *file)
{
    char path[PATH_BYTES];
    struct stat status;

    certificates_path(path, folder, file);
    cr_assert_eq(stat(path, &status), 0, "%s", file);
    return status.st_mode & 07777;
}

static bool is_there(const char *file)
{
    char path[PATH_BYTES];

    certificates_path(path, folder, file);
    return access(path, F_OK) == 0;
}

/* ---- files ---- */

Test(certificate_files, a_first_call_writes_six_files_and_a_second_keeps_them)
{
    char *before[FILES];

    (void)umask(0);
    expect_actions(NULL, NULL, "created", "created", "created");
    for (int i = 0; i < FILES; i++) {
        cr_expect_eq(mode_of(files[i]), strstr(files[i], ".key") != NULL ? 0600 : 0644, "%s: %o",
                     files[i], mode_of(files[i]));
        before[i] = read_file_in(folder, files[i]);
    }
    expect_actions(NULL, NULL, "kept", "kept", "kept");
    for (int i = 0; i < FILES; i++) {
        char *after = read_file_in(folder, files[i]);
        cr_expect_str_eq(after, before[i], "%s", files[i]);
        free(after);
        free(before[i]);
    }
    cr_expect(!is_there("ca.crt.partial") && !is_there("ca.key.partial"));
}

Test(certificate_files, the_table_has_a_line_for_each_thing)
{
    struct run run = RUN("--host", "node-1.example.org");

    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_eq(strncmp(run.out, "NAME       ACTION   UNTIL                 WHERE", 47), 0, "%s",
                 run.out);
    cr_expect_not_null(strstr(run.out, "\nauthority  created  20"), "%s", run.out);
    cr_expect_not_null(strstr(run.out, "/tls.crt "), "%s", run.out);
    cr_expect_str_eq(run.err, "");
    run_free(&run);
    run = RUN("--host", "node-2.example.org");
    cr_expect_not_null(strstr(run.out, "\nserver     renewed  20"), "%s", run.out);
    cr_expect_not_null(strstr(run.out, "  it was not for node-2.example.org\n"), "%s", run.out);
    cr_expect_not_null(strstr(run.out, "\nclient     kept     20"), "%s", run.out);
    run_free(&run);
    run = RUN("--format", "yaml");
    cr_expect_not_null(strstr(run.out, "action: \"kept\""), "%s", run.out);
    run_free(&run);
}

Test(certificate_files, a_renewal_keeps_the_authority_and_what_its_readers_may_do)
{
    char path[PATH_BYTES];

    expect_actions(NULL, NULL, "created", "created", "created");
    char *authority = read_file_in(folder, "ca.crt"), *key = read_file_in(folder, "ca.key"),
         *old = read_file_in(folder, "tls.key");
    certificates_path(path, folder, "tls.key");
    cr_assert_eq(chmod(path, 0644), 0);
    certificates_path(path, folder, "client.key");
    cr_assert_eq(chmod(path, 0640), 0);
    certificates_path(path, folder, "client.crt");
    cr_assert_eq(chmod(path, 0600), 0);
    if (geteuid() == 0)
        cr_assert_eq(chown(path, 65532, 65532), 0);
    expect_actions("--renew-before", "8760h", "kept", "renewed", "renewed");
    cr_expect_eq(mode_of("tls.key"), 0640, "without the rights of others");
    cr_expect_eq(mode_of("client.key"), 0640);
    cr_expect_eq(mode_of("client.crt"), 0600);
    struct stat status;
    cr_expect(stat(path, &status) == 0 && (geteuid() != 0 || status.st_uid == 65532));
    char *authority_now = read_file_in(folder, "ca.crt"), *key_now = read_file_in(folder, "ca.key"),
         *now = read_file_in(folder, "tls.key");
    cr_expect_str_eq(authority, authority_now);
    cr_expect_str_eq(key, key_now);
    cr_expect_str_neq(old, now);
    free(authority), free(key), free(old), free(authority_now), free(key_now), free(now);
}

Test(certificate_files, a_dry_run_writes_nothing)
{
    struct run run = RUN("--dry-run");

    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.out, "authority  created"), "%s", run.out);
    cr_expect_str_eq(run.err, "claimguard: dry run: nothing was written\n");
    for (int i = 0; i < FILES; i++)
        cr_expect(!is_there(files[i]), "%s", files[i]);
    run_free(&run);
    cr_assert_eq(rmdir(folder), 0);
    run = RUN("--dry-run");
    cr_expect_eq(run.status, 0, "%s", run.err);
    cr_expect_neq(access(folder, F_OK), 0, "the folder is not made");
    run_free(&run);
    expect_actions(NULL, NULL, "created", "created", "created");
}

/* ---- what is refused ---- */

static void expect_failure(const char *text)
{
    struct run run = RUN("--host", "refused.example.org");

    cr_expect_eq(run.status, 2);
    cr_expect_str_eq(run.out, "");
    cr_expect_not_null(strstr(run.err, text), "expected %s in %s", text, run.err);
    run_free(&run);
}

static void put(const char *file, const char *text)
{
    char path[PATH_BYTES];

    certificates_path(path, folder, file);
    FILE *out = fopen(path, "we");
    cr_assert(out != NULL && fputs(text, out) >= 0 && fclose(out) == 0);
}

Test(certificate_files, wrong_files_are_named_and_nothing_is_written)
{
    char path[PATH_BYTES];

    expect_actions(NULL, NULL, "created", "created", "created");
    char *certificate = read_file_in(folder, "tls.crt"), *key = read_file_in(folder, "ca.key"),
         *other = read_file_in(folder, "tls.key");
    put("ca.key", other);
    expect_failure("/ca.key: is not the key of the first certificate in /tmp/");
    put("ca.key", "nonsense\n");
    expect_failure("/ca.key: ");
    certificates_path(path, folder, "ca.key");
    cr_assert_eq(unlink(path), 0);
    expect_failure("/ca.key: restore that, or remove both");
    put("ca.key", key);
    put("tls.crt", key);
    expect_failure("/tls.crt: ");
    put("tls.crt", certificate);
    certificates_path(path, folder, "ca.crt");
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    expect_failure("/ca.crt: Is a directory");
    cr_assert_eq(rmdir(path), 0);
    cr_assert_eq(symlink("nowhere", path), 0);
    expect_failure("/ca.crt: No such file or directory");
    char *after = read_file_in(folder, "tls.crt");
    cr_expect_str_eq(after, certificate);
    free(certificate), free(key), free(other), free(after);
}

Test(certificate_files, a_file_of_another_authority_is_left_alone)
{
    static const struct certificate other = {.name = "tls"};
    char made[CERTIFICATES_FOLDER_BYTES], own[CERTIFICATES_FOLDER_BYTES];

    expect_actions(NULL, NULL, "created", "created", "created");
    certificates_make(made, &other, 1);
    memcpy(own, folder, sizeof own);
    memcpy(folder, made, sizeof made);
    char *foreign = read_file_in(folder, "tls.crt");
    expect_failure("/tls.crt is there without its authority");
    memcpy(folder, own, sizeof own);
    put("tls.crt", foreign);
    expect_failure("/tls.crt: is not from the authority in /tmp/");
    free(foreign);
    certificates_remove(made);
}

Test(certificate_files, two_at_a_time_do_not_mix)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    cr_assert_eq(flock(fd, LOCK_EX), 0);
    expect_failure("another claimguard certificates is at work in it");
    (void)close(fd);
    expect_actions(NULL, NULL, "created", "created", "created");
}

Test(certificate_files, what_a_killed_call_left_is_replaced)
{
    put("tls.key.partial", "half a key");
    put("ca.key.partial", "half a key");
    expect_actions(NULL, NULL, "created", "created", "created");
    cr_expect(!is_there("tls.key.partial") && !is_there("ca.key.partial"));
}

static const struct {
    const char *arguments[6];
    const char *err;
} usage_rows[] = {
    {{"--host", "10.0.0.7:8888"}, "--host: 10.0.0.7:8888: neither a DNS name nor an IP address"},
    {{"--life", "1y"}, "--life 1y: expected a duration from 1h to 876000h, such as 720h"},
    {{"--life", "59m"}, "--life 59m: expected"},
    {{"--authority-life", "876001h"}, "--authority-life 876001h: expected"},
    {{"--renew-before", "0h"}, "--renew-before 0h: expected"},
    {{"--renew-before", "87600h"}, "--life and --renew-before have to be below --authority-life"},
    {{"--life", "48h", "--authority-life", "24h"}, "have to be below --authority-life 24h"},
    {{"--format", "wide"}, "--format: expected table, json or yaml"},
    {{"--kubeconfig", "x"}, "--output and --kubeconfig: give only one of them"},
    {{"--context", "x"}, "--output and --kubeconfig: give only one of them"},
    {{"--namespace", ""}, "--namespace: claimguard..svc: neither"},
};

Test(certificate_files, bad_usage_exits_with_2_and_one_line)
{
    for (size_t i = 0; i < sizeof usage_rows / sizeof *usage_rows; i++) {
        const char *const *more = usage_rows[i].arguments;
        struct run run = RUN(more[0], more[1], more[2], more[3]);
        cr_expect_eq(run.status, 2, "row %zu", i);
        cr_expect_not_null(strstr(run.err, usage_rows[i].err), "row %zu: %s", i, run.err);
        run_free(&run);
    }
    cr_expect(!is_there("ca.key"));
}

/* ---- with them ---- */

/* The HTTP status of a client of the authority in ca.crt; 0: it is refused. name: of its
 * certificate; NULL: none. */
static long status_of(const char *name, const char *host)
{
    char url[PATH_BYTES], ca[PATH_BYTES], crt[PATH_BYTES], key[PATH_BYTES], file[32], to[64];
    long status = 0;
    CURL *curl = curl_easy_init();

    certificates_path(ca, folder, "ca.crt");
    (void)snprintf(url, sizeof url, "https://%s:%u/livez", host, server.port);
    (void)snprintf(to, sizeof to, "::127.0.0.1:%u", server.port);
    struct curl_slist *connect_to = curl_slist_append(NULL, to);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_CONNECT_TO, connect_to);
    (void)curl_easy_setopt(curl, CURLOPT_CAINFO, ca);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10000L);
    (void)curl_easy_setopt(curl, CURLOPT_NOBODY, 0L);
    if (name != NULL) {
        (void)snprintf(file, sizeof file, "%s.crt", name);
        certificates_path(crt, folder, file);
        (void)snprintf(file, sizeof file, "%s.key", name);
        certificates_path(key, folder, file);
        (void)curl_easy_setopt(curl, CURLOPT_SSLCERT, crt);
        (void)curl_easy_setopt(curl, CURLOPT_SSLKEY, key);
    }
    if (curl_easy_perform(curl) == CURLE_OK)
        (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(connect_to);
    curl_easy_cleanup(curl);
    return status;
}

static void start(void)
{
    static char config[PATH_BYTES];
    static const char *const arguments[] = {"--snapshot", SOURCE_DIR "/docs/example/snapshot.yaml",
                                            "--config", config, NULL};
    char text[1024];

    (void)snprintf(text, sizeof text,
                   "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\nserver:\n"
                   "  tls: {certFile: %s/tls.crt, keyFile: %s/tls.key, clientCAFile: %s/ca.crt}\n",
                   folder, folder, folder);
    put("claimguard.yaml", text);
    certificates_path(config, folder, "claimguard.yaml");
    cr_assert(daemon_start(&server, arguments));
}

Test(certificate_files, a_server_with_them_answers_its_client_and_nobody_else)
{
    expect_actions("--host", "guard.example.org", "created", "created", "created");
    start();
    cr_expect_eq(status_of("client", "guard.example.org"), 200);
    cr_expect_eq(status_of("client", "claimguard.claimguard.svc"), 200);
    cr_expect_eq(status_of("client", "127.0.0.1"), 200);
    cr_expect_eq(status_of("client", "other.example.org"), 0, "not a name of the server");
    cr_expect_eq(status_of(NULL, "127.0.0.1"), 0, "no certificate");
    cr_expect_eq(status_of("tls", "127.0.0.1"), 0, "the server's own is none of a client");
    expect_actions("--renew-before", "8760h", "kept", "renewed", "renewed");
    cr_expect(daemon_wait_for(&server, "certificate reloaded"));
    cr_expect_eq(status_of("client", "guard.example.org"), 200);
}

Test(certificate_files, openssl_accepts_the_chain)
{
    char command[1024];

    if (system("command -v openssl >/dev/null") != 0) /* NOLINT(cert-env33-c) */
        cr_skip_test("there is no openssl");
    expect_actions(NULL, NULL, "created", "created", "created");
    (void)snprintf(command, sizeof command,
                   "cd %s && exec >openssl.log 2>&1 &&"
                   "openssl verify -x509_strict -CAfile ca.crt -purpose sslserver "
                   "-verify_hostname claimguard.claimguard.svc tls.crt && "
                   "openssl verify -x509_strict -CAfile ca.crt -purpose sslserver "
                   "-verify_ip 127.0.0.1 tls.crt && "
                   "openssl verify -x509_strict -CAfile ca.crt -purpose sslclient client.crt && "
                   "! openssl verify -CAfile ca.crt -purpose sslserver client.crt",
                   folder);
    int status = system(command); /* NOLINT(cert-env33-c) */
    char *log = read_file_in(folder, "openssl.log");
    cr_expect_eq(status, 0, "%s", log);
    free(log);
}
