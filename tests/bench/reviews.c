/* Reviews over TLS, against a webhook that does nothing: the API server keeps its connection. */
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "extender/serving/http/tls.h"
#include "programs.h"
#include "support/certificates.h"
#include "support/http.h"

enum { ANSWER_BYTES = 65536, DAY_SECONDS = 86400 };

/* ---- a client ---- */

struct client {
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
    int fd;
};

static void must(int rc, const char *what)
{
    if (rc < 0)
        bench_die(what);
}

static void client_open(struct client *client, uint16_t port)
{
    client->fd = http_connect(port);
    must(gnutls_certificate_allocate_credentials(&client->credentials), "credentials");
    must(gnutls_init(&client->session, GNUTLS_CLIENT), "a TLS session");
    must(gnutls_priority_set_direct(client->session, TLS_PRIORITIES, NULL), "priorities");
    must(gnutls_credentials_set(client->session, GNUTLS_CRD_CERTIFICATE, client->credentials),
         "credentials");
    gnutls_transport_set_int(client->session, client->fd);
    must(gnutls_handshake(client->session), "a TLS handshake");
}

static void client_close(struct client *client)
{
    gnutls_deinit(client->session);
    gnutls_certificate_free_credentials(client->credentials);
    (void)close(client->fd);
}

/* Reads an answer; returns how long its body is. */
static size_t receive(const struct client *client, char in[ANSWER_BYTES])
{
    static const char key[] = "Content-Length: ";
    size_t len = 0;

    for (;;) {
        ssize_t count = gnutls_record_recv(client->session, in + len, ANSWER_BYTES - 1 - len);
        if (count == GNUTLS_E_AGAIN || count == GNUTLS_E_INTERRUPTED)
            continue;
        if (count <= 0)
            bench_die("a server closed the connection");
        len += (size_t)count;
        in[len] = '\0';
        const char *end = strstr(in, "\r\n\r\n"), *length = strstr(in, key);
        size_t body = length == NULL ? 0 : strtoul(length + sizeof key - 1, NULL, 10);
        if (end != NULL && length != NULL && len == (size_t)(end + 4 - in) + body)
            return body;
    }
}

/* Returns the microseconds; *bytes: of the answer's body. */
static double call(const struct client *client, struct slice request, char in[ANSWER_BYTES],
                   size_t *bytes)
{
    double started = bench_now_us();

    if (gnutls_record_send(client->session, request.ptr, request.len) != (ssize_t)request.len)
        bench_die("a request was not sent");
    *bytes = receive(client, in);
    return bench_now_us() - started;
}

/* ---- the rows ---- */

struct servers {
    struct child claimguard, noop;
};

/* The next pod that waits, and whose claim, if it has one, is exclusive. */
static unsigned next_pod(const struct model *model, unsigned i)
{
    do
        i++;
    while (i < model->pods && (model_pod_is_assigned(model, i) ||
                               (model->claims != 0 && !model_claim_is_exclusive(model, i))));
    if (i == model->pods)
        bench_die("the model has too few pods");
    return i;
}

/* Each call is for another pod, since the first one takes its claim. */
static void measure(const struct model *model, const struct servers *servers, double *ours,
                    double *bound)
{
    static char in[ANSWER_BYTES];
    struct buf body, request, noop_request;
    char path[32];
    unsigned pod = 0;
    size_t bytes;

    buf_init(&body, 1 << 20);
    buf_init(&request, 1 << 20);
    buf_init(&noop_request, 1 << 20);
    for (int c = 0; c < CONNECTIONS; c++) {
        struct client client, noop;
        client_open(&client, servers->claimguard.admission_port);
        client_open(&noop, servers->noop.port);
        for (int i = -WARM_UP; i < CALLS; i++) {
            pod = next_pod(model, pod);
            buf_reset(&body, SIZE_MAX);
            model_put_review(model, pod, &body);
            bench_make_request(&request, "/admit/binding?timeout=10s", buf_slice(&body));
            double a = call(&client, buf_slice(&request), in, &bytes);
            if (strstr(in, "\"allowed\":true") == NULL)
                bench_die(in);
            (void)snprintf(path, sizeof path, "/%zu", bytes);
            bench_make_request(&noop_request, path, buf_slice(&body));
            double b = call(&noop, buf_slice(&noop_request), in, &bytes);
            if (i >= 0) {
                ours[c * CALLS + i] = a;
                bound[c * CALLS + i] = b;
            }
        }
        client_close(&client);
        client_close(&noop);
    }
    buf_dispose(&body);
    buf_dispose(&request);
    buf_dispose(&noop_request);
}

static void measure_row(const struct model *model, const char *folder, const char *what)
{
    static double ours[ROUNDS], bound[ROUNDS];
    char snapshot[512], config[512], text[512], certificate[128], key[128];

    (void)snprintf(certificate, sizeof certificate, "%s/server.crt", folder);
    (void)snprintf(key, sizeof key, "%s/server.key", folder);
    (void)snprintf(text, sizeof text,
                   "admission:\n  listen: 127.0.0.1:0\n  tls: {certFile: %s, keyFile: %s}\n",
                   certificate, key);
    bench_generate(model, snapshot, sizeof snapshot);
    bench_write_config(text, config, sizeof config);
    struct servers servers = {bench_start_claimguard("claimguard", snapshot, config),
                              bench_start_noop(certificate, key)};
    measure(model, &servers, ours, bound);
    double median = bench_percentile(ours, ROUNDS, 0.5),
           noop_median = bench_percentile(bound, ROUNDS, 0.5);
    (void)printf("| %s | %.0f µs | %.0f µs | **%.2f** | %.0f / %.0f µs |\n", what, median,
                 noop_median, median / noop_median, bench_percentile(ours, ROUNDS, 0.99),
                 bench_percentile(bound, ROUNDS, 0.99));
    (void)fflush(stdout);
    bench_stop(servers.claimguard);
    bench_stop(servers.noop);
}

void bench_reviews(const char *where)
{
    static const struct certificate server = {
        .name = "server", .begins_s = -DAY_SECONDS, .ends_s = DAY_SECONDS};
    struct model model = {.nodes = 500, .pods = 60000, .pending_share = 0.1, .seed = 1};
    char folder[CERTIFICATES_FOLDER_BYTES];

    certificates_make(folder, &server, 1);
    bench_pin(bench_client_core);
    (void)printf(
        "\n## Round trip of a review, %s\n\nA Binding's AdmissionReview over TLS on a kept "
        "connection; the no-op webhook reads the same\nbody and writes as many bytes. "
        "Medians of %d calls, measured alternately.\n\n"
        "| pod | claimguard | no-op | ratio | p99 |\n|---|---|---|---|---|\n",
        where, ROUNDS);
    measure_row(&model, folder, "without claims");
    model.claims = model.pods;
    model.exclusive_share = 0.5;
    measure_row(&model, folder, "a free exclusive claim");
    certificates_remove(folder);
}
