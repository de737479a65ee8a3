/* The API server over TLS: whom claimguard believes to be it, by the kubeconfig. The real program,
 * before a server that has a certificate and nothing to say. */
#include <criterion/criterion.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/certificates.h"
#include "support/process.h"

enum { PATH_BYTES = CERTIFICATES_PATH_BYTES, WAIT_MS = 20000 };

static char folder[CERTIFICATES_FOLDER_BYTES];
static struct MHD_Daemon *api;
static unsigned api_port;
static atomic_uint requests, certified; /* certified: by a client that has shown a certificate */
static struct daemon server;

/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd's parameters */
static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *body,
                              size_t *body_bytes, void **request)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    const union MHD_ConnectionInfo *tls =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    unsigned count = 0;

    (void)context, (void)url, (void)method, (void)version, (void)body, (void)body_bytes;
    (void)request;
    if (gnutls_certificate_get_peers(tls->tls_session, &count) != NULL && count != 0)
        atomic_fetch_add(&certified, 1);
    atomic_fetch_add(&requests, 1);
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_SERVICE_UNAVAILABLE, response);
    MHD_destroy_response(response);
    return result;
}

static void setup(void)
{
    static const struct certificate certificates[] = {
        {.name = "ca", .is_authority = true},
        {.name = "other-ca", .is_authority = true},
        {.name = "api", .issuer = "ca"}, /* for 127.0.0.1, not for localhost */
        {.name = "client", .issuer = "ca", .is_for_clients = true},
    };

    certificates_make(folder, certificates, sizeof certificates / sizeof *certificates);
    char *key = read_file_in(folder, "api.key"), *certificate = read_file_in(folder, "api.crt"),
         *ca = read_file_in(folder, "ca.crt");
    api = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_TLS, 0, NULL, NULL, answer,
                           NULL, MHD_OPTION_HTTPS_MEM_KEY, key, MHD_OPTION_HTTPS_MEM_CERT,
                           certificate, MHD_OPTION_HTTPS_MEM_TRUST, ca, MHD_OPTION_END);
    cr_assert_not_null(api);
    api_port = MHD_get_daemon_info(api, MHD_DAEMON_INFO_BIND_PORT)->port;
    free(key), free(certificate), free(ca);
}

static void teardown(void)
{
    if (server.pid != 0)
        cr_expect_eq(daemon_stop(&server), 0);
    MHD_stop_daemon(api);
    certificates_remove(folder);
}

TestSuite(api_tls, .init = setup, .fini = teardown);

/* Follows the API server by that name, with these fields of the kubeconfig's cluster and user.
 * Paths are relative to its folder. */
static void start(const char *host, const char *cluster, const char *user)
{
    static char path[PATH_BYTES];
    static const char *const arguments[] = {"--kubeconfig", path, NULL};

    certificates_path(path, folder, "kubeconfig");
    FILE *file = fopen(path, "we");
    cr_assert_not_null(file);
    (void)fprintf(file,
                  "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
                  "contexts: [{name: x, context: {cluster: x, user: x}}]\n"
                  "clusters: [{name: x, cluster: {server: 'https://%s:%u'%s}}]\n"
                  "users: [{name: x, user: {%s}}]\n",
                  host, api_port, cluster, user);
    cr_assert_eq(fclose(file), 0);
    cr_assert(daemon_start(&server, arguments));
}

static bool is_asked(const atomic_uint *count)
{
    for (int ms = 0; ms < WAIT_MS && atomic_load(count) == 0; ms += 10)
        (void)usleep(10000);
    return atomic_load(count) != 0;
}

static void expect_refused(void)
{
    cr_expect(daemon_wait_for(&server, "certificate"), "the log says why");
    cr_expect_eq(atomic_load(&requests), 0, "no request is sent to it");
}

Test(api_tls, an_api_server_of_the_authority_is_asked)
{
    start("127.0.0.1", ", certificate-authority: ca.crt", "");
    cr_expect(is_asked(&requests));
    cr_expect_eq(atomic_load(&certified), 0);
}

Test(api_tls, one_of_another_authority_is_sent_no_request)
{
    start("127.0.0.1", ", certificate-authority: other-ca.crt", "");
    expect_refused();
}

Test(api_tls, one_of_an_unknown_authority_is_sent_no_request)
{
    start("127.0.0.1", "", "");
    expect_refused();
}

Test(api_tls, one_of_another_name_is_sent_no_request)
{
    start("localhost", ", certificate-authority: ca.crt", "");
    expect_refused();
}

Test(api_tls, one_that_has_the_name_of_tls_server_name_is_asked)
{
    start("localhost", ", certificate-authority: ca.crt, tls-server-name: 127.0.0.1", "");
    cr_expect(is_asked(&requests));
}

Test(api_tls, any_is_asked_with_insecure_skip_tls_verify)
{
    start("localhost", ", insecure-skip-tls-verify: true", "");
    cr_expect(is_asked(&requests));
}

Test(api_tls, a_client_certificate_is_shown)
{
    start("127.0.0.1", ", certificate-authority: ca.crt",
          "client-certificate: client.crt, client-key: client.key");
    cr_expect(is_asked(&certified));
}
