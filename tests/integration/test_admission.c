/* The admission port: TLS only, reviews only, certificates that change. The real program, with a
 * snapshot: what is allowed is bound in its memory. */
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

enum { PATH_BYTES = CERTIFICATES_PATH_BYTES };

static char folder[CERTIFICATES_FOLDER_BYTES];
static struct daemon server;
static uint16_t port;

static void write_file(const char *name, const char *text)
{
    char path[PATH_BYTES], next[PATH_BYTES];

    certificates_path(path, folder, name);
    certificates_path(next, folder, "next");
    FILE *file = fopen(next, "we");
    cr_assert(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    cr_assert_eq(rename(next, path), 0);
}

static void copy_file(const char *from, const char *to)
{
    char path[PATH_BYTES];

    certificates_path(path, folder, from);
    char *text = read_file(path);
    write_file(to, text);
    free(text);
}

/* A port that is free now. */
static uint16_t free_port(void)
{
    struct daemon other;

    cr_assert(daemon_start(
        &other,
        (const char *const[]){"--snapshot", SOURCE_DIR "/docs/example/snapshot.yaml", NULL}));
    cr_assert_eq(daemon_stop(&other), 0);
    return other.port;
}

static void write_config(const char *client_ca, const char *more)
{
    char text[1024];

    (void)snprintf(text, sizeof text,
                   "apiVersion: claimguard.io/v1alpha1\nkind: ClaimguardConfiguration\n"
                   "admission:\n  listen: 127.0.0.1:%u\n"
                   "  tls: {certFile: %s/tls.crt, keyFile: %s/tls.key%s%s}\n%s",
                   port, folder, folder, client_ca[0] == '\0' ? "" : ", clientCAFile: ", client_ca,
                   more);
    write_file("claimguard.yaml", text);
}

static void start(const char *client_ca)
{
    static char config[PATH_BYTES];
    bool has_started = false;

    certificates_path(config, folder, "claimguard.yaml");
    for (int i = 0; i < 10 && !has_started; i++) { /* tests beside this one may take the port */
        port = free_port();
        write_config(client_ca, "");
        has_started = daemon_start(
            &server, (const char *const[]){"--snapshot", SOURCE_DIR "/docs/example/snapshot.yaml",
                                           "--config", config, NULL});
    }
    cr_assert(has_started);
}

static void setup(void)
{
    static const struct certificate certificates[] = {
        {.name = "ca", .is_authority = true},
        {.name = "server", .issuer = "ca"},
        {.name = "server-2", .issuer = "ca"},
        {.name = "client", .issuer = "ca", .is_for_clients = true},
    };

    certificates_make(folder, certificates, sizeof certificates / sizeof *certificates);
    copy_file("server.crt", "tls.crt");
    copy_file("server.key", "tls.key");
}

static void teardown(void)
{
    if (server.pid != 0)
        cr_expect_eq(daemon_stop(&server), 0);
    certificates_remove(folder);
}

TestSuite(admission, .init = setup, .fini = teardown);

/* ---- a client ---- */

struct answer {
    long status;       /* 0: none */
    bool shows_second; /* the server's certificate is server-2 */
    struct received received;
};

static void note_certificate(CURL *easy, struct answer *out)
{
    struct curl_certinfo *info = NULL;

    (void)curl_easy_getinfo(easy, CURLINFO_CERTINFO, &info);
    for (const struct curl_slist *line = info->num_of_certs == 0 ? NULL : info->certinfo[0];
         line != NULL; line = line->next)
        out->shows_second = out->shows_second || (strncmp(line->data, "Subject:", 8) == 0 &&
                                                  strstr(line->data, "server-2") != NULL);
}

/* body: NULL: GET. client: whose certificate it shows; NULL: none. */
static struct answer call(const char *path, const char *body, const char *client)
{
    char ca[PATH_BYTES], cert[PATH_BYTES], key[PATH_BYTES], url[PATH_BYTES];
    struct answer out = {.status = 0};
    CURL *easy = curl_easy_init();

    certificates_path(ca, folder, "ca.crt");
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%u%s", port, path);
    (void)snprintf(cert, sizeof cert, "%s/%s.crt", folder, client == NULL ? "" : client);
    (void)snprintf(key, sizeof key, "%s/%s.key", folder, client == NULL ? "" : client);
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10000L);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_CERTINFO, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, received_take);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, &out.received);
    if (client != NULL) {
        (void)curl_easy_setopt(easy, CURLOPT_SSLCERT, cert);
        (void)curl_easy_setopt(easy, CURLOPT_SSLKEY, key);
    }
    if (body != NULL)
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    if (curl_easy_perform(easy) == CURLE_OK)
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &out.status);
    if (out.status != 0)
        note_certificate(easy, &out);
    curl_easy_cleanup(easy);
    return out;
}

#define BINDING(pod_, uid_) \
    "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{" \
    "\"uid\":\"r\",\"namespace\":\"default\",\"name\":\"" pod_ "\",\"operation\":\"CREATE\"," \
    "\"resource\":{\"version\":\"v1\",\"resource\":\"pods\"},\"subResource\":\"binding\"," \
    "\"object\":{\"metadata\":{\"name\":\"" pod_ "\",\"uid\":\"" uid_ "\"},\"target\":{" \
    "\"kind\":\"Node\",\"name\":\"node-1\"}}}}"

#define WEB_1 BINDING("web-1", "6d1a0d3e-3f0b-4a39-8a5c-000000000031")
#define DB_1  BINDING("db-1", "6d1a0d3e-3f0b-4a39-8a5c-000000000032")

Test(admission, a_binding_is_allowed_or_denied)
{
    start("");
    struct answer answer = call("/admit/binding?timeout=10s", WEB_1, NULL);
    cr_expect_eq(answer.status, 200, "%s", answer.received.bytes);
    cr_expect_not_null(strstr(answer.received.bytes, "\"uid\":\"r\",\"allowed\":true"), "%s",
                       answer.received.bytes);
    answer = call("/admit/binding", DB_1, NULL);
    cr_expect_eq(answer.status, 200, "%s", answer.received.bytes);
    cr_expect_not_null(
        strstr(answer.received.bytes,
               "\"allowed\":false,\"status\":{\"status\":\"Failure\",\"code\":409,"
               "\"reason\":\"Conflict\",\"message\":\"claim default/db-data is in use "
               "by pod default/db-0 on node-2\"}"),
        "%s", answer.received.bytes);
    cr_expect_eq(http_metric(server.metrics_port,
                             "\nclaimguard_admission_reviews_total{path=\"/admit/binding\","
                             "result=\"denied\"} "),
                 1);
}

/* ---- a client that takes its time ---- */

static CURL *connect_tls(void)
{
    CURL *easy = curl_easy_init();
    char ca[PATH_BYTES], url[PATH_BYTES];

    certificates_path(ca, folder, "ca.crt");
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%u", port);
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    cr_assert_eq(curl_easy_perform(easy), CURLE_OK);
    return easy;
}

/* Waits 20 s at most. The server may have closed the connection. */
static void send_all(CURL *easy, const char *bytes, size_t count)
{
    for (int waits = 0; count != 0 && waits < 20000;) {
        size_t sent = 0;
        CURLcode code = curl_easy_send(easy, bytes, count, &sent);
        if (code != CURLE_OK && code != CURLE_AGAIN)
            return;
        if (code == CURLE_AGAIN && waits++ >= 0)
            (void)usleep(1000);
        bytes += sent;
        count -= sent;
    }
    cr_assert_eq(count, 0);
}

/* Announces a body of so many bytes. */
static CURL *begin_review(size_t bytes, const char *query)
{
    CURL *easy = connect_tls();
    char head[256];

    (void)snprintf(head, sizeof head,
                   "POST /admit/binding%s HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n",
                   query, bytes);
    send_all(easy, head, strlen(head));
    return easy;
}

static void expect_status(CURL *easy, const char *status)
{
    char line[16] = "";
    size_t received = 0;

    for (int waits = 0; received < 12 && waits < 10000; waits++) {
        size_t more = 0;
        if (curl_easy_recv(easy, line + received, sizeof line - 1 - received, &more) != CURLE_OK)
            (void)usleep(1000);
        received += more;
    }
    cr_expect_eq(strncmp(line, "HTTP/1.1 ", 9), 0, "%s", line);
    cr_expect_eq(strncmp(line + 9, status, 3), 0, "%s", line);
}

Test(admission, an_answer_that_is_too_late_allows_nothing)
{
    start("");
    CURL *slow = begin_review(strlen(WEB_1), "?timeout=1s");
    (void)usleep(1100000);
    send_all(slow, WEB_1, strlen(WEB_1));
    expect_status(slow, "500");
    curl_easy_cleanup(slow);
}

/* Anyone who reaches the port may send them, unless clientCAFile is set. */
Test(admission, reviews_take_no_memory_from_filter_calls, .timeout = 120)
{
    enum { CLIENTS = 8, BYTES = (16 << 20) - 4096, CALL_BYTES = 1 << 20 };
    char *part = calloc(1, BYTES),
         *call = read_file(SOURCE_DIR "/docs/example/filter-request.json");
    size_t length = strlen(call);
    struct response response;
    CURL *clients[CLIENTS];

    cr_assert_not_null(call = realloc(call, length + CALL_BYTES + 1));
    memset(call + length, ' ', CALL_BYTES); /* white space after it */
    call[length + CALL_BYTES] = '\0';
    start("");
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = begin_review(BYTES, "");
        send_all(clients[i], part, BYTES - 1);
    }
    http_call(server.port, "POST", "/filter", call, &response);
    cr_expect_eq(response.status, 200, "%s", response.body);
    response_free(&response);
    for (int i = 0; i < CLIENTS; i++)
        curl_easy_cleanup(clients[i]);
    free(call);
    free(part);
}

#define POD(pod_, claim_) \
    "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{" \
    "\"uid\":\"r\",\"namespace\":\"default\",\"name\":\"" pod_ "\",\"operation\":\"CREATE\"," \
    "\"resource\":{\"version\":\"v1\",\"resource\":\"pods\"},\"object\":{\"metadata\":{" \
    "\"name\":\"" pod_ "\",\"uid\":\"00000000-0000-4000-8000-" pod_ "\"},\"spec\":{" \
    "\"nodeName\":\"node-1\",\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{" \
    "\"claimName\":\"" claim_ "\"}}]}}}}"

Test(admission, a_pod_that_names_its_node_is_allowed_or_denied)
{
    start("");
    struct answer answer = call("/admit/pod?timeout=10s", POD("one", "db-data"), NULL);
    cr_expect_eq(answer.status, 200, "%s", answer.received.bytes);
    cr_expect_not_null(strstr(answer.received.bytes,
                              "\"code\":409,\"reason\":\"Conflict\",\"message\":\"claim "
                              "default/db-data is in use by pod default/db-0 on node-2\"}"),
                       "%s", answer.received.bytes);
    answer = call("/admit/pod", POD("two", "web-data"), NULL);
    cr_expect_not_null(strstr(answer.received.bytes, "\"uid\":\"r\",\"allowed\":true"), "%s",
                       answer.received.bytes);
    answer = call("/admit/pod", POD("three", "web-data"), NULL);
    cr_expect_not_null(strstr(answer.received.bytes,
                              "claim default/web-data is in use by pod default/two on "
                              "node-1"),
                       "it is there, in memory: %s", answer.received.bytes);
    cr_expect_eq(http_metric(server.metrics_port,
                             "\nclaimguard_admission_reviews_total{path=\"/admit/pod\","
                             "result=\"denied\"} "),
                 2);
}

Test(admission, nothing_else_is_on_the_port)
{
    static const struct {
        const char *path, *body;
        long status;
    } rows[] = {
        {"/admit/binding", NULL, 405},
        {"/admit/binding", "{}", 400},
        {"/admit/binding", "x", 400},
        {"/admit/pod", NULL, 405},
        {"/admit/pod", "{}", 400},
        {"/admit/pod", WEB_1, 400},
        {"/admit/binding", POD("one", "db-data"), 400},
        {"/admit/bindings", "{}", 404},
        {"/admit/pods", "{}", 404},
        {"/admit", "{}", 404},
        {"/filter", "{}", 404},
        {"/bind", "{}", 404},
        {"/metrics", NULL, 404},
        {"/livez", NULL, 404},
        {"/debug/cache", NULL, 404},
        {"/", NULL, 404},
    };
    struct response response;

    start("");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(call(rows[i].path, rows[i].body, NULL).status, rows[i].status, "%s",
                     rows[i].path);
    http_call(server.port, "POST", "/admit/binding", WEB_1, &response);
    cr_expect_eq(response.status, 404, "on the scheduler's port");
    response_free(&response);
    http_call(port, "POST", "/admit/binding", WEB_1, &response);
    cr_expect_eq(response.status, 0, "plain text");
    response_free(&response);
}

Test(admission, with_an_authority_only_its_clients_are_answered)
{
    char ca[PATH_BYTES];

    certificates_path(ca, folder, "ca.crt");
    start(ca);
    cr_expect_eq(call("/admit/binding", WEB_1, NULL).status, 0);
    cr_expect_eq(call("/admit/binding", WEB_1, "client").status, 200);
}

Test(admission, a_new_certificate_is_shown_to_new_connections)
{
    start("");
    cr_expect_not(call("/admit/binding", WEB_1, NULL).shows_second);
    copy_file("server-2.crt", "tls.crt");
    copy_file("server-2.key", "tls.key");
    cr_expect(daemon_wait_for(&server, "certificate reloaded"));
    cr_expect(call("/admit/binding", WEB_1, NULL).shows_second);
}

Test(admission, another_address_needs_a_restart)
{
    start("");
    port++;
    write_config("", "");
    port--;
    cr_expect(daemon_wait_for(&server, "a new admission.listen or admission.tls takes effect only "
                                       "after a restart"));
    cr_expect_eq(call("/admit/binding", WEB_1, NULL).status, 200);
}
