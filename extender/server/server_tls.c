/* TLS: shows the certificate, checks clients, and logs refusals. */
#include <stdio.h>

#include "config/base/log.h"
#include "extender/http/tls.h"
#include "extender/server/server_internal.h"

enum { REFUSALS_PER_SECOND = 1 /* in the log */ };

void server_tls_init(struct server *server)
{
    (void)pthread_mutex_init(&server->refusals_lock, NULL);
    rate_init(&server->refusals, REFUSALS_PER_SECOND, REFUSALS_PER_SECOND, monotonic_ns());
}

void server_tls_dispose(struct server *server)
{
    (void)pthread_mutex_destroy(&server->refusals_lock);
}

/* Limits the log, because anyone who can reach the port can cause failed handshakes. */
static bool may_log(struct server *server)
{
    (void)pthread_mutex_lock(&server->refusals_lock);
    bool may = rate_take(&server->refusals, monotonic_ns());
    (void)pthread_mutex_unlock(&server->refusals_lock);
    return may;
}

static void log_refused(struct server *server, struct MHD_Connection *mhd, const char *problem)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info == NULL ? NULL : info->client_addr;
    char client[NI_MAXHOST] = "";

    if (!may_log(server))
        return;
    if (address != NULL)
        (void)getnameinfo(address,
                          address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                         : sizeof(struct sockaddr_in),
                          client, sizeof client, NULL, 0, NI_NUMERICHOST);
    log_warn("a client's certificate is refused", LOG_STR("client", client),
             LOG_STR("problem", problem));
}

/* The client has shown its certificate. Returns 0 to accept the client. */
static int on_client(gnutls_session_t session)
{
    struct MHD_Connection *mhd = gnutls_session_get_ptr(session); /* libmicrohttpd sets it */
    const struct connection *connection = server_connection(mhd);
    char problem[256];

    if (tls_admits(connection->identity, session, problem, sizeof problem))
        return 0;
    log_refused(connection->server, mhd, problem);
    (void)gnutls_alert_send(session, GNUTLS_AL_FATAL, GNUTLS_A_BAD_CERTIFICATE);
    return GNUTLS_E_CERTIFICATE_ERROR;
}

/* NOLINTNEXTLINE(readability-function-size): GnuTLS's parameters */
int server_tls_hello(gnutls_session_t session, const gnutls_datum_t *authorities, int count,
                     const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                     gnutls_pcert_st **chain, unsigned *chain_count, gnutls_privkey_t *key)
{
    struct connection *connection = server_connection(gnutls_session_get_ptr(session));

    (void)authorities;
    (void)count;
    (void)algorithms;
    (void)algorithm_count;
    if (connection == NULL)
        return GNUTLS_E_MEMORY_ERROR;
    if (connection->identity == NULL)
        connection->identity = tls_hold(connection->server->tls);
    return tls_show(connection->identity, session, on_client, chain, chain_count, key);
}

void server_tls_log(void *context, const char *format, va_list args)
{
    struct server *server = context;
    char message[256];

    int length = vsnprintf(message, sizeof message, format, args);
    while (length > 0 && (size_t)length < sizeof message && message[length - 1] == '\n')
        message[--length] = '\0';
    log_debug("http", LOG_STR("message", message));
    /* libmicrohttpd logs this text for each handshake that fails */
    if (strstr(message, "handshake message out of context") == NULL)
        return;
    atomic_fetch_add(&server->state->metrics.handshakes_refused, 1);
    if (may_log(server))
        log_info("a TLS handshake failed: no client certificate, plain text, or an old version",
                 LOG_NONE);
}
