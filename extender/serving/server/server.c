#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "config/base/log.h"
#include "extender/serving/http/tls.h"
#include "extender/serving/server/server_internal.h"

enum {
    QUIET_STEP_NS = 5 * (int)NS_PER_MS, /* a shutdown waits for 100 ms without requests, */
    QUIET_STEPS = 20,                   /* and checks so often in that time */
    CLOSING_MAX = 32,                   /* closed connections whose threads have not ended yet */
    REFUSALS_PER_SECOND = 1,            /* of a client's TLS, in the log */
};

/* ---- connections ---- */

/* NULL if there was no memory when the connection was accepted. */
static struct connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

/* The request line has arrived. The result is *request at the first call of on_request. */
static void *on_line(void *context, const char *uri, struct MHD_Connection *mhd)
{
    struct connection *connection = connection_of(mhd);

    (void)context;
    (void)uri;
    if (connection != NULL)
        server_enter(connection, STAGE_HEADERS);
    return NULL;
}

/* MHD_AccessHandlerCallback: called for the headers, for each part of the body, and at its end.
 * NOLINTNEXTLINE(readability-function-size): libmicrohttpd's parameters */
static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **request)
{
    struct connection *connection = connection_of(mhd);

    (void)context;
    (void)version;
    if (connection == NULL)
        return MHD_NO;
    if (*request == NULL) {
        *request = connection;
        return server_begin_request(connection, mhd, path, method);
    }
    if (*size != 0)
        return server_take_body(connection, data, size);
    return server_end_request(connection, mhd); /* only what is POSTed gets here */
}

/* Leaves a text with %00 encoded: decoded, "/filter%00x" would end at the NUL, and be "/filter". */
static size_t on_escapes(void *context, struct MHD_Connection *mhd, char *text)
{
    (void)context;
    (void)mhd;
    return strstr(text, "%00") != NULL ? strlen(text) : MHD_http_unescape(text);
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **request,
                         enum MHD_RequestTerminationCode code)
{
    struct connection *connection = connection_of(mhd);

    (void)context;
    (void)request;
    (void)code;
    if (connection == NULL)
        return;
    pieces_free(connection->rest);
    connection->rest = NULL;
    scratch_reset(&connection->scratch);
    server_enter(connection, STAGE_IDLE);
}

static_assert(ADMISSION_CONNECTIONS_MAX * REVIEW_SMALL_BYTES <= REVIEWS_RESERVE_BYTES,
              "no small review lacks memory");

/* Before a thread and TLS are spent on it. */
static enum MHD_Result on_accept(void *context, const struct sockaddr *address, socklen_t length)
{
    struct server *server = context;

    (void)length;
    return connections_may_add(&server->connections, address) ? MHD_YES : MHD_NO;
}

static void *open_connection(struct server *server, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *address =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct connection *connection = calloc(1, sizeof *connection);

    if (connection == NULL || fd == NULL) {
        free(connection);
        return NULL;
    }
    connection->server = server;
    scratch_init(&connection->scratch, 0,
                 server->role == SERVER_ADMISSION ? &server->state->review_memory
                                                  : &server->state->call_memory);
    connection->scratch.takes_pieces = true;
    connections_add(&server->connections, &connection->entry, fd->connect_fd,
                    address == NULL ? NULL : address->client_addr);
    return connection;
}

/* Called while the socket is still open. */
static void close_connection(struct server *server, struct connection *connection)
{
    connections_remove(&server->connections, &connection->entry);
    tls_let_go(connection->identity);
    pieces_free(connection->rest);
    scratch_dispose(&connection->scratch);
    free(connection);
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        *socket_context = open_connection(context, mhd);
    else if (*socket_context != NULL)
        close_connection(context, *socket_context);
}

/* ---- TLS: the certificate, clients, refusals ---- */

/* Limits the log, because anyone who can reach the port can cause failed handshakes. */
static bool may_log(struct server *server)
{
    SCOPED_LOCK(&server->refusals_lock);
    return rate_take(&server->refusals, monotonic_ns());
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
    const struct connection *connection = connection_of(mhd);
    char problem[256];

    if (tls_admits(connection->identity, session, problem, sizeof problem))
        return 0;
    log_refused(connection->server, mhd, problem);
    (void)gnutls_alert_send(session, GNUTLS_AL_FATAL, GNUTLS_A_BAD_CERTIFICATE);
    return GNUTLS_E_CERTIFICATE_ERROR;
}

/* A handshake has begun: chooses the certificate. Its parameters are those of
 * gnutls_certificate_retrieve_function2.
 * NOLINTNEXTLINE(readability-function-size): GnuTLS's parameters */
static int on_hello(gnutls_session_t session, const gnutls_datum_t *authorities, int count,
                    const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                    gnutls_pcert_st **chain, unsigned *chain_count, gnutls_privkey_t *key)
{
    struct connection *connection = connection_of(gnutls_session_get_ptr(session));

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

/* Gets each log message of libmicrohttpd. Failed handshakes are counted and logged. */
__attribute__((format(printf, 2, 0))) static void on_log(void *context, const char *format,
                                                         va_list args)
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

/* ---- starting and stopping ---- */

static int resolve(struct addrinfo **out, struct slice address, struct error *err)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
    char host_text[64], port_text[8];
    struct slice host;
    uint16_t port;

    if (!config_split_address(address, &host, &port) || host.len >= sizeof host_text)
        return error_set(err, ERROR_INVALID, "%.*s: expected ADDRESS:PORT, such as 127.0.0.1:8888",
                         SLICE_ARG(address));
    (void)snprintf(host_text, sizeof host_text, "%.*s", SLICE_ARG(host));
    (void)snprintf(port_text, sizeof port_text, "%u", port);
    int rc = getaddrinfo(host.len == 0 ? NULL : host_text, port_text, &hints, out);
    if (rc != 0 || *out == NULL)
        return error_set(err, ERROR_INVALID, "%.*s: %s (expected an IP address)",
                         SLICE_ARG(address), gai_strerror(rc));
    return 0;
}

/* Stores the address for server_address, with the port that the system chose. */
static void note_address(struct server *server, const struct addrinfo *address)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    char host[NI_MAXHOST] = "";

    (void)getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof host, NULL, 0,
                      NI_NUMERICHOST);
    (void)snprintf(server->address, sizeof server->address,
                   address->ai_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
                   info == NULL ? 0U : (unsigned)info->port);
}

static struct MHD_Daemon *start_daemon(struct server *server, const struct addrinfo *address)
{
    bool is_tls = server->tls != NULL;
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG |
                     (address->ai_family == AF_INET6 ? (unsigned)MHD_USE_IPv6 : 0U) |
                     (is_tls ? (unsigned)MHD_USE_TLS : 0U);
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(uintptr_t)on_hello},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_END, 0, NULL},
    };

    errno = 0;
    return MHD_start_daemon(
        flags, 0, on_accept, server, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, server,
        MHD_OPTION_SOCK_ADDR, address->ai_addr, MHD_OPTION_CONNECTION_LIMIT,
        server->connections.limits.max + CLOSING_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BUFFER_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, on_line, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_UNESCAPE_CALLBACK,
        on_escapes, NULL, MHD_OPTION_ARRAY, is_tls ? tls : &tls[2], MHD_OPTION_END);
}

static int start_connections(struct server *server, struct error *err)
{
    static const struct {
        enum port port;
        struct connection_limits limits;
    } rows[] = {
        /* several schedulers may share one address, so the verbs have no limit per address */
        [SERVER_VERBS] = {PORT_EXTENDER, {VERB_CONNECTIONS_MAX, 0, 0, VERB_CONNECTIONS_MAX / 2}},
        [SERVER_PAGES] = {PORT_METRICS,
                          {PAGE_CONNECTIONS_MAX, PAGE_CONNECTIONS_PER_ADDRESS_MAX, 0,
                           PAGE_CONNECTIONS_MAX / 8}},
        [SERVER_ADMISSION] = {PORT_ADMISSION,
                              {ADMISSION_CONNECTIONS_MAX, 0, ADMISSION_CONNECTIONS_MAX / 4 * 3,
                               ADMISSION_CONNECTIONS_MAX / 8}},
    };
    struct metrics *metrics = &server->state->metrics;
    enum port port = rows[server->role].port;

    metrics->connections_max[port] = rows[server->role].limits.max;
    return connections_start(&server->connections, &rows[server->role].limits,
                             &metrics->connections[port], err);
}

static void server_free(struct server *server)
{
    connections_stop(&server->connections);
    (void)pthread_mutex_destroy(&server->refusals_lock);
    free(server);
}

static int listen_on(struct server *server, struct slice address, struct error *err)
{
    struct addrinfo *resolved = NULL;

    if (resolve(&resolved, address, err) < 0 || resolved == NULL)
        return err->code;
    server->daemon = start_daemon(server, resolved);
    if (server->daemon != NULL)
        note_address(server, resolved);
    else
        (void)error_system(err, errno == 0 ? EADDRINUSE : errno, "listen on %.*s",
                           SLICE_ARG(address));
    freeaddrinfo(resolved);
    return server->daemon == NULL ? err->code : 0;
}

int server_start(struct server **out, struct state *state, struct slice address,
                 enum server_role role, struct error *err)
{
    struct server *server = calloc(1, sizeof *server);

    *out = NULL;
    if (server == NULL)
        return error_no_memory(err);
    server->state = state;
    server->role = role;
    server->tls = role == SERVER_VERBS       ? state->tls
                  : role == SERVER_ADMISSION ? state->admission_tls
                                             : NULL;
    if (start_connections(server, err) < 0) {
        free(server);
        return err->code;
    }
    (void)pthread_mutex_init(&server->refusals_lock, NULL);
    rate_init(&server->refusals, REFUSALS_PER_SECOND, REFUSALS_PER_SECOND, monotonic_ns());
    if (listen_on(server, address, err) < 0) {
        server_free(server);
        return err->code;
    }
    *out = server;
    return 0;
}

const char *server_address(const struct server *server)
{
    return server->address;
}

void server_stop(struct server *server)
{
    const struct timespec pause = {.tv_nsec = QUIET_STEP_NS};
    int quiet = 0;

    if (server == NULL)
        return;
    uint64_t seconds = server->role == SERVER_PAGES ? PAGES_DRAIN_SECONDS_MAX : DRAIN_SECONDS_MAX;
    uint64_t deadline_ns = monotonic_ns() + seconds * NS_PER_SECOND;
    MHD_socket socket = MHD_quiesce_daemon(server->daemon);
    connections_hurry(&server->connections);
    /* One moment without requests is not enough: a client may be about to send one on a connection
     * that was accepted just before. */
    while (quiet < QUIET_STEPS && monotonic_ns() <= deadline_ns) {
        quiet = connections_busy(&server->connections) == 0 ? quiet + 1 : 0;
        (void)nanosleep(&pause, NULL);
    }
    requests_interrupt(server->state->api);
    MHD_stop_daemon(server->daemon); /* waits for the calls that are left */
    if (socket != MHD_INVALID_SOCKET)
        (void)close(socket);
    server_free(server);
}
