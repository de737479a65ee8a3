/* The scheduler's port over TLS: who is let in, and certificates that change. The real program. */
#include <criterion/criterion.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/certificates.h"
#include "support/http.h"
#include "support/process.h"
#include "support/received.h"

enum { NAME_BYTES = 64, PATH_BYTES = CERTIFICATES_PATH_BYTES };

static char folder[CERTIFICATES_FOLDER_BYTES];
static struct daemon server;

/* Puts one file in the place of another, at once. */
static void put_file(const char *from, const char *to)
{
    char source[PATH_BYTES], target[PATH_BYTES], next[PATH_BYTES];

    certificates_path(source, folder, from);
    certificates_path(target, folder, to);
    certificates_path(next, folder, "next");
    char *text = read_file(source);
    FILE *file = fopen(next, "we");
    cr_assert(text != NULL && file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    cr_assert_eq(rename(next, target), 0);
    free(text);
}

static void put_pair(const char *name)
{
    char file[NAME_BYTES];

    (void)snprintf(file, sizeof file, "%s.crt", name);
    put_file(file, "tls.crt");
    (void)snprintf(file, sizeof file, "%s.key", name);
    put_file(file, "tls.key");
}

/* The names of the files, each with a slash before it; no authority: "". */
static void write_names(const char *cert, const char *key, const char *authority)
{
    char path[PATH_BYTES];

    certificates_path(path, folder, "claimguard.yaml");
    FILE *file = fopen(path, "we");
    cr_assert_not_null(file);
    (void)fprintf(file,
                  "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\nserver:\n"
                  "  tls: {certFile: %s%s, keyFile: %s%s%s%s%s}\n",
                  folder, cert, folder, key, authority[0] == '\0' ? "" : ", clientCAFile: ",
                  authority[0] == '\0' ? "" : folder, authority);
    cr_assert_eq(fclose(file), 0);
}

static void write_config(const char *authority)
{
    write_names("/tls.crt", "/tls.key", authority);
}

static const char *const *arguments(void)
{
    static char config[PATH_BYTES];
    static const char *const all[] = {"--snapshot", SOURCE_DIR "/docs/example/snapshot.yaml",
                                      "--config", config, NULL};

    certificates_path(config, folder, "claimguard.yaml");
    return all;
}

static void start(const char *tls)
{
    write_config(tls);
    cr_assert(daemon_start(&server, arguments()));
}

static void setup(void)
{
    static const struct certificate certificates[] = {
        {.name = "ca", .is_authority = true},
        {.name = "other-ca", .is_authority = true},
        {.name = "middle", .issuer = "ca", .is_authority = true},
        {.name = "server", .issuer = "ca"},
        {.name = "server-2", .issuer = "ca"},
        {.name = "client", .issuer = "ca", .is_for_clients = true},
        {.name = "distant-client", .issuer = "middle", .is_for_clients = true},
        {.name = "stranger", .issuer = "other-ca", .is_for_clients = true},
        {.name = "not-for-clients", .issuer = "ca"},
        {.name = "self-signed", .is_for_clients = true},
        {.name = "expired", .issuer = "ca", .is_for_clients = true, .begins_s = -9, .ends_s = -1},
        {.name = "early", .issuer = "ca", .is_for_clients = true, .begins_s = 999, .ends_s = 9999},
    };

    certificates_make(folder, certificates, sizeof certificates / sizeof *certificates);
    put_pair("server");
    put_file("ca.crt", "client-ca.crt");
}

static void teardown(void)
{
    if (server.pid != 0)
        cr_expect_eq(daemon_stop(&server), 0);
    certificates_remove(folder);
}

TestSuite(tls, .init = setup, .fini = teardown);

/* ---- a client ---- */

struct client {
    CURL *easy;
    char ca[PATH_BYTES], cert[PATH_BYTES], key[PATH_BYTES], url[PATH_BYTES];
    struct received received;
};

/* name: whose certificate it shows; NULL: none. */
static void client_init(struct client *client, const char *name)
{
    char file[NAME_BYTES];

    memset(client, 0, sizeof *client);
    client->easy = curl_easy_init();
    cr_assert_not_null(client->easy);
    certificates_path(client->ca, folder, "ca.crt");
    (void)curl_easy_setopt(client->easy, CURLOPT_CAINFO, client->ca);
    (void)curl_easy_setopt(client->easy, CURLOPT_TIMEOUT_MS, 10000L);
    (void)curl_easy_setopt(client->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(client->easy, CURLOPT_CERTINFO, 1L);
    (void)curl_easy_setopt(client->easy, CURLOPT_WRITEFUNCTION, received_take);
    (void)curl_easy_setopt(client->easy, CURLOPT_WRITEDATA, &client->received);
    if (name == NULL)
        return;
    (void)snprintf(file, sizeof file, "%s.crt", name);
    certificates_path(client->cert, folder, file);
    (void)snprintf(file, sizeof file, "%s.key", name);
    certificates_path(client->key, folder, file);
    (void)curl_easy_setopt(client->easy, CURLOPT_SSLCERT, client->cert);
    (void)curl_easy_setopt(client->easy, CURLOPT_SSLKEY, client->key);
}

/* The HTTP status; 0: there was no answer. */
static long call(struct client *client, const char *path, const char *body)
{
    long status = 0;

    (void)snprintf(client->url, sizeof client->url, "https://127.0.0.1:%u%s", server.port, path);
    (void)curl_easy_setopt(client->easy, CURLOPT_URL, client->url);
    if (body != NULL)
        (void)curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS, body);
    client->received.len = 0;
    if (curl_easy_perform(client->easy) != CURLE_OK)
        return 0;
    (void)curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static long status_for(const char *name)
{
    struct client client;

    client_init(&client, name);
    long status = call(&client, "/livez", NULL);
    curl_easy_cleanup(client.easy);
    return status;
}

/* Whether the server's certificate is of that name. */
static bool shows(struct client *client, const char *name)
{
    struct curl_certinfo *info = NULL;
    bool is_found = false;

    (void)curl_easy_getinfo(client->easy, CURLINFO_CERTINFO, &info);
    for (const struct curl_slist *line = info->num_of_certs == 0 ? NULL : info->certinfo[0];
         line != NULL; line = line->next)
        is_found = is_found || (strncmp(line->data, "Subject:", 8) == 0 &&
                                strcmp(strrchr(line->data, ' ') + 1, name) == 0);
    return is_found;
}

/* ---- who is let in ---- */

Test(tls, a_scheduler_with_a_certificate_of_the_authority_is_answered)
{
    struct client client;
    char *body = read_file(SOURCE_DIR "/docs/example/filter-request.json");

    start("/client-ca.crt");
    client_init(&client, "client");
    cr_expect_eq(call(&client, "/filter", body), 200);
    cr_expect_not_null(strstr(client.received.bytes, "is in use by pod default/db-0"), "%s",
                       client.received.bytes);
    curl_easy_cleanup(client.easy);
    free(body);
}

static void expect_refused(int count)
{
    char line[64];
    struct response response;
    bool is_there = false;

    (void)snprintf(line, sizeof line, "\nclaimguard_tls_handshakes_refused_total %d\n", count);
    for (int i = 0; i < 200 && !is_there; i++) { /* the client knows first */
        http_call(server.metrics_port, "GET", "/metrics", NULL, &response);
        is_there = strstr(response.body, line) != NULL;
        response_free(&response);
        if (!is_there)
            (void)usleep(50 * 1000);
    }
    cr_expect(is_there, "%s", line);
}

Test(tls, nobody_else_is_let_in_where_the_authority_is_configured)
{
    static const struct {
        const char *name;
        long status;
    } rows[] = {
        {"client", 200}, {NULL, 0},          {"stranger", 0}, {"not-for-clients", 0},
        {"expired", 0},  {"self-signed", 0}, {"early", 0},    {"distant-client", 0},
    };

    start("/client-ca.crt");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(status_for(rows[i].name), rows[i].status, "%s",
                     rows[i].name == NULL ? "no certificate" : rows[i].name);
    expect_refused(7);
}

Test(tls, a_client_may_show_the_chain_up_to_the_authority)
{
    char path[PATH_BYTES], middle[PATH_BYTES];

    certificates_path(path, folder, "distant-client.crt");
    certificates_path(middle, folder, "middle.crt");
    char *text = read_file(middle);
    FILE *file = fopen(path, "ae");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    free(text);
    start("/client-ca.crt");
    cr_expect_eq(status_for("distant-client"), 200);
}

Test(tls, without_an_authority_anyone_is_let_in_over_tls_and_nobody_without)
{
    struct response response;
    struct client client;

    start("");
    cr_expect_eq(status_for(NULL), 200);
    cr_expect_eq(status_for("stranger"), 200);
    http_call(server.port, "GET", "/livez", NULL, &response);
    cr_expect_eq(response.status, 0, "plain text");
    response_free(&response);
    client_init(&client, NULL);
    (void)curl_easy_setopt(client.easy, CURLOPT_SSLVERSION,
                           (long)(CURL_SSLVERSION_TLSv1_2 | CURL_SSLVERSION_MAX_TLSv1_2));
    cr_expect_eq(call(&client, "/livez", NULL), 200, "TLS 1.2");
    (void)curl_easy_setopt(client.easy, CURLOPT_FRESH_CONNECT, 1L);
    (void)curl_easy_setopt(client.easy, CURLOPT_SSL_CIPHER_LIST, "DEFAULT@SECLEVEL=0");
    (void)curl_easy_setopt(client.easy, CURLOPT_SSLVERSION,
                           (long)(CURL_SSLVERSION_TLSv1 | CURL_SSLVERSION_MAX_TLSv1_1));
    cr_expect_eq(call(&client, "/livez", NULL), 0, "TLS 1.1");
    curl_easy_cleanup(client.easy);
}

/* So that nobody without a certificate can keep connections from the scheduler. */
Test(tls, a_handshake_that_stops_is_closed_after_ten_seconds)
{
    static const char half[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03";

    start("/client-ca.crt");
    int silent = http_connect(server.port), stopped = http_connect(server.port);
    cr_expect_eq(http_send(stopped, half, sizeof half - 1), 0);
    int seconds = http_seconds_until_closed(silent, 20);
    cr_expect(seconds >= 8 && seconds <= 19, "%d", seconds);
    cr_expect_geq(http_seconds_until_closed(stopped, 4), 0);
    (void)close(silent);
    (void)close(stopped);
}

Test(tls, probes_and_scrapes_stay_plain)
{
    struct response response;

    start("/client-ca.crt");
    http_call(server.metrics_port, "GET", "/metrics", NULL, &response);
    cr_expect_eq(response.status, 200);
    cr_expect_not_null(strstr(
        response.body, "\nclaimguard_certificate_not_after_timestamp_seconds{port=\"extender\"} "));
    response_free(&response);
}

/* ---- files that change ---- */

Test(tls, a_new_certificate_is_shown_to_new_connections_and_old_ones_go_on)
{
    struct client kept, fresh;

    start("/client-ca.crt");
    client_init(&kept, "client");
    cr_expect_eq(call(&kept, "/livez", NULL), 200);
    cr_expect(shows(&kept, "server"));
    put_pair("server-2");
    cr_expect(daemon_wait_for(&server, "certificate reloaded"));
    cr_expect_eq(call(&kept, "/livez", NULL), 200);
    client_init(&fresh, "client");
    cr_expect_eq(call(&fresh, "/livez", NULL), 200);
    cr_expect(shows(&fresh, "server-2"));
    curl_easy_cleanup(kept.easy);
    curl_easy_cleanup(fresh.easy);
}

Test(tls, a_new_authority_decides_who_is_let_in_from_then_on)
{
    start("/client-ca.crt");
    cr_expect(status_for("client") == 200 && status_for("stranger") == 0);
    put_file("other-ca.crt", "client-ca.crt");
    cr_expect(daemon_wait_for(&server, "certificate reloaded"));
    cr_expect(status_for("client") == 0 && status_for("stranger") == 200);
}

Test(tls, a_pair_that_does_not_belong_together_is_not_taken_until_it_does)
{
    start("/client-ca.crt");
    put_file("server-2.key", "tls.key");
    cr_expect(daemon_wait_for(&server, "the certificate is not reloaded"));
    cr_expect_eq(status_for("client"), 200, "what was in force stays");
    put_file("server-2.crt", "tls.crt");
    cr_expect(daemon_wait_for(&server, "certificate reloaded"));
    cr_expect_eq(status_for("client"), 200);
}

/* ---- files that cannot be used ---- */

/* A Secret may be mounted a moment after the ConfigMap that names it. */
Test(tls, a_configuration_is_taken_when_the_file_that_it_names_is_there)
{
    start("/client-ca.crt");
    write_config("/later.crt");
    cr_expect(daemon_wait_for(&server, "the configuration is not reloaded"));
    put_file("client-ca.crt", "later.crt");
    cr_expect(daemon_wait_for(&server, "a new server.tls takes effect only after a restart"));
    write_config("/later.crt"); /* not in force even now */
    cr_expect(daemon_wait_for(&server, "a new server.tls takes effect only after a restart"));
}

Test(tls, another_file_takes_effect_only_after_a_restart)
{
    const char *const names[][3] = {{"/other.crt", "/tls.key", "/client-ca.crt"},
                                    {"/tls.crt", "/other.key", "/client-ca.crt"},
                                    {"/tls.crt", "/tls.key", "/other-ca.crt"}};

    start("/client-ca.crt");
    put_file("server.crt", "other.crt");
    put_file("server.key", "other.key");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_names(names[i][0], names[i][1], names[i][2]);
        cr_expect(daemon_wait_for(&server, "a new server.tls takes effect only after a restart"));
    }
}

static void expect_no_start(const char *expected)
{
    const char *all[] = {"serve",        arguments()[0], arguments()[1],
                         arguments()[2], arguments()[3], NULL};
    char *out, *err;

    write_config("/client-ca.crt");
    cr_expect_eq(process_run(all, NULL, &out, &err), 2);
    cr_expect_not_null(strstr(err, expected), "expected %s in %s", expected, err);
    free(out);
    free(err);
}

Test(tls, what_cannot_be_used_is_named_at_the_start)
{
    char path[PATH_BYTES];

    put_file("client.key", "tls.key");
    expect_no_start("tls.key: is not the key of the certificate in certFile");
    put_file("ca.crt", "tls.key");
    expect_no_start("server.tls.keyFile ");
    put_file("claimguard.yaml", "tls.crt");
    expect_no_start("server.tls.certFile ");
    put_pair("server");
    put_file("client.key", "client-ca.crt");
    expect_no_start("server.tls.clientCAFile ");
    certificates_path(path, folder, "client-ca.crt");
    (void)unlink(path);
    expect_no_start("client-ca.crt: No such file or directory");
    certificates_path(path, folder, "tls.crt");
    (void)unlink(path);
    expect_no_start("tls.crt: No such file or directory");
}
