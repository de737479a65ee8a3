#include "extender/server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "config/base/log.h"
#include "extender/http_guard.h"
#include "extender/pages.h"
#include "extender/tls.h"
#include "extender/verbs.h"

enum {
    QUIET_STEP_NS = 5000000, /* a moment without requests: 100 ms */
    QUIET_STEPS = 20,
    REFUSALS_PER_SECOND = 1 /* that are logged */
};

struct server {
    struct state *state;
    enum server_role role;
    struct MHD_Daemon *daemon;
    atomic_int in_flight;          /* requests between their headers and the end of their answer */
    pthread_mutex_t refusals_lock; /* guards refusals */
    struct rate refusals;
    char address[NI_MAXHOST + 16];
};

/* A connection and the request on it; requests on one connection follow one another. */
struct connection {
    struct server *server;
    struct tls_identity *identity; /* NULL: plain text, or no handshake yet */
    bool has_asked;                /* a first request */
    struct scratch scratch;
    enum verb verb;       /* of the request, once its headers were let through */
    uint64_t deadline_ns; /* of its body */
};

#define NS_PER_SECOND UINT64_C(1000000000)

static const char json_type[] = "application/json";

/* ---- answers ---- */

/* Sends the answer, which stays as it is until the request is completed. */
static enum MHD_Result send_answer(const struct server *server, struct MHD_Connection *mhd,
                                   struct slice answer, unsigned status, const char *content_type,
                                   const char *allow, bool closes)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer.len, (void *)(uintptr_t)answer.ptr, MHD_RESPMEM_PERSISTENT);

    if (response == NULL)
        return MHD_NO;
    enum MHD_Result ok = MHD_add_response_header(response, "Content-Type", content_type);
    if (allow != NULL && ok == MHD_YES)
        ok = MHD_add_response_header(response, "Allow", allow);
    if ((closes || atomic_load(&server->state->is_draining)) && ok == MHD_YES)
        ok = MHD_add_response_header(response, "Connection", "close");
    if (ok == MHD_YES)
        ok = MHD_queue_response(mhd, status, response);
    MHD_destroy_response(response);
    return ok;
}

/* {"error": ...}, and the connection is closed: what follows on it could be anything. */
static enum MHD_Result refuse(const struct server *server, struct MHD_Connection *mhd,
                              struct connection *connection, unsigned status, const char *message,
                              const char *allow)
{
    buf_reset(&connection->scratch.answer, SCRATCH_KEEP_BYTES);
    verb_write_failure(&connection->scratch.answer, message);
    return send_answer(server, mhd, buf_slice(&connection->scratch.answer), status, json_type,
                       allow, true);
}

/* ---- routes ---- */

static bool find_verb(const struct server *server, const char *path, enum verb *verb)
{
    if (server->role != SERVER_VERBS || path[0] != '/')
        return false;
    for (int i = 0; i < VERB_COUNT; i++) {
        if (strcmp(path + 1, verb_text((enum verb)i)) == 0) {
            *verb = (enum verb)i;
            return true;
        }
    }
    return false;
}

static bool is_read(const char *method)
{
    return strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

static enum MHD_Result answer_page(const struct server *server, struct MHD_Connection *mhd,
                                   struct connection *connection, const char *path)
{
    const char *accept = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Accept");
    const char *content_type;
    /* "?verbose" has a key and no value, which a plain look-up does not tell from its absence */
    struct page_request request = {
        .path = slice_of(path),
        .is_verbose = MHD_lookup_connection_value_n(mhd, MHD_GET_ARGUMENT_KIND, "verbose", 7, NULL,
                                                    NULL) == MHD_YES,
        .wants_open_metrics =
            accept != NULL && strstr(accept, "application/openmetrics-text") != NULL,
    };
    unsigned status =
        page_answer(server->state, &request, &connection->scratch.answer, &content_type);

    return send_answer(server, mhd, buf_slice(&connection->scratch.answer), status, content_type,
                       NULL, false);
}

/* ---- a request ---- */

/* At the headers: what is refused is refused before its body is read. */
static enum MHD_Result begin_request(struct server *server, struct MHD_Connection *mhd,
                                     struct connection *connection, const char *path,
                                     const char *method)
{
    const char *problem = NULL;
    char message[160];

    (void)pthread_rwlock_rdlock(&server->state->lock);
    size_t body_max = (size_t)server->state->config->server.max_request_bytes;
    (void)pthread_rwlock_unlock(&server->state->lock);
    scratch_reset(&connection->scratch);
    connection->scratch.body.max_bytes = body_max;
    connection->deadline_ns = monotonic_ns() + REQUEST_SECONDS_MAX * NS_PER_SECOND;

    size_t body_bytes = 0;
    bool has_body = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    unsigned status = http_guard(mhd, has_body, body_max, &body_bytes, &problem);
    if (status != 0)
        return refuse(server, mhd, connection, status, problem, NULL);
    if (find_verb(server, path, &connection->verb)) {
        if (!has_body)
            return refuse(server, mhd, connection, 405, "this path takes POST only", "POST");
        if (!buf_reserve(&connection->scratch.body, body_bytes))
            return refuse(server, mhd, connection, 503, "out of memory", NULL);
        return MHD_YES; /* the body comes next */
    }
    if (!page_exists(slice_of(path))) {
        (void)snprintf(message, sizeof message, "no such path: %.100s", path);
        return refuse(server, mhd, connection, 404, message, NULL);
    }
    if (!is_read(method))
        return refuse(server, mhd, connection, 405, "this path takes GET only", "GET, HEAD");
    return answer_page(server, mhd, connection, path);
}

/* What is over the limit is read all the same, so that the sender hears the answer. */
static enum MHD_Result take_body(struct connection *connection, const char *data, size_t *size)
{
    if (monotonic_ns() > connection->deadline_ns)
        return MHD_NO; /* too slow: closed */
    buf_put(&connection->scratch.body, (struct slice){data, *size});
    *size = 0;
    return MHD_YES;
}

static enum MHD_Result end_request(const struct server *server, struct MHD_Connection *mhd,
                                   struct connection *connection)
{
    if (connection->scratch.body.failed)
        return refuse(server, mhd, connection, 413, "the body is over server.maxRequestBytes",
                      NULL);
    unsigned status = verb_answer(server->state, connection->verb, &connection->scratch);
    return send_answer(server, mhd, connection->scratch.result, status, json_type, NULL, false);
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

/* ---- TLS ---- */

/* Whoever can reach the port can fail as often as he likes. */
static bool may_tell(struct server *server)
{
    (void)pthread_mutex_lock(&server->refusals_lock);
    bool may = rate_take(&server->refusals, monotonic_ns());
    (void)pthread_mutex_unlock(&server->refusals_lock);
    return may;
}

static void tell_refused(struct server *server, struct MHD_Connection *mhd, const char *problem)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info == NULL ? NULL : info->client_addr;
    char client[NI_MAXHOST] = "";

    if (!may_tell(server))
        return;
    if (address != NULL)
        (void)getnameinfo(address,
                          address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                         : sizeof(struct sockaddr_in),
                          client, sizeof client, NULL, 0, NI_NUMERICHOST);
    log_warn("a client's certificate is refused", LOG_STR("client", client),
             LOG_STR("problem", problem));
}

/* The client has shown its certificate: 0 lets it in. */
static int on_client(gnutls_session_t session)
{
    struct MHD_Connection *mhd = gnutls_session_get_ptr(session); /* libmicrohttpd sets it */
    const struct connection *connection = connection_of(mhd);
    char problem[256];

    if (tls_admits(connection->identity, session, problem, sizeof problem))
        return 0;
    tell_refused(connection->server, mhd, problem);
    (void)gnutls_alert_send(session, GNUTLS_AL_FATAL, GNUTLS_A_BAD_CERTIFICATE);
    return GNUTLS_E_CERTIFICATE_ERROR;
}

/* A handshake has begun: which certificate is shown. */
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
        connection->identity = tls_hold(connection->server->state->tls);
    return tls_show(connection->identity, session, on_client, chain, chain_count, key);
}

/* ---- connections ---- */

static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **request)
{
    struct server *server = context;
    struct connection *connection = connection_of(mhd);

    (void)version;
    if (connection == NULL)
        return MHD_NO; /* no memory when it was accepted */
    if (*request == NULL) {
        *request = connection;
        if (!connection->has_asked) /* once: it takes a lock of the daemon */
            (void)MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT,
                                            (unsigned)IDLE_SECONDS_MAX);
        connection->has_asked = true;
        atomic_fetch_add(&server->in_flight, 1);
        return begin_request(server, mhd, connection, path, method);
    }
    if (*size != 0)
        return take_body(connection, data, size);
    return end_request(server, mhd, connection); /* all but verbs was answered before */
}

/* A path ends at its first NUL: decoded, "/filter%00x" would be "/filter". */
static size_t on_escapes(void *context, struct MHD_Connection *mhd, char *text)
{
    (void)context;
    (void)mhd;
    return strstr(text, "%00") != NULL ? strlen(text) : MHD_http_unescape(text);
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **request,
                         enum MHD_RequestTerminationCode code)
{
    struct server *server = context;

    (void)mhd;
    (void)code;
    if (*request != NULL)
        atomic_fetch_sub(&server->in_flight, 1);
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct connection *connection = *socket_context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        connection = calloc(1, sizeof *connection);
        if (connection != NULL) {
            connection->server = context;
            scratch_init(&connection->scratch, 0);
        }
        *socket_context = connection;
        (void)MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT,
                                        (unsigned)HELLO_SECONDS_MAX);
    } else if (connection != NULL) {
        tls_let_go(connection->identity);
        scratch_dispose(&connection->scratch);
        free(connection);
    }
}

/* ---- starting and stopping ---- */

__attribute__((format(printf, 2, 0))) static void on_log(void *context, const char *format,
                                                         va_list args)
{
    char message[256];

    int length = vsnprintf(message, sizeof message, format, args);
    while (length > 0 && (size_t)length < sizeof message && message[length - 1] == '\n')
        message[--length] = '\0';
    log_debug("http", LOG_STR("message", message));
    /* what libmicrohttpd says of any handshake that fails */
    if (strstr(message, "handshake message out of context") != NULL && may_tell(context))
        log_info("a TLS handshake failed: no client certificate, plain text, or an old version",
                 LOG_NONE);
}

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
        return error_set(err, ERROR_INVALID, "%.*s: %s (an IP address is needed)",
                         SLICE_ARG(address), gai_strerror(rc));
    return 0;
}

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
    bool is_verbs = server->role == SERVER_VERBS, is_tls = is_verbs && server->state->tls != NULL;
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
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, server,
        MHD_OPTION_SOCK_ADDR, address->ai_addr, MHD_OPTION_CONNECTION_LIMIT,
        is_verbs ? (unsigned)VERB_CONNECTIONS_MAX : (unsigned)PAGE_CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BUFFER_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_UNESCAPE_CALLBACK,
        on_escapes, NULL, MHD_OPTION_ARRAY, is_tls ? tls : &tls[2], MHD_OPTION_END);
}

static void server_free(struct server *server)
{
    (void)pthread_mutex_destroy(&server->refusals_lock);
    free(server);
}

int server_start(struct server **out, struct state *state, struct slice address,
                 enum server_role role, struct error *err)
{
    struct server *server = calloc(1, sizeof *server);
    struct addrinfo *resolved = NULL;

    *out = NULL;
    if (server == NULL)
        return error_no_memory(err);
    if (resolve(&resolved, address, err) < 0 || resolved == NULL) {
        free(server);
        return err->code;
    }
    server->state = state;
    server->role = role;
    (void)pthread_mutex_init(&server->refusals_lock, NULL);
    rate_init(&server->refusals, REFUSALS_PER_SECOND, REFUSALS_PER_SECOND, monotonic_ns());
    server->daemon = start_daemon(server, resolved);
    if (server->daemon != NULL)
        note_address(server, resolved);
    freeaddrinfo(resolved);
    if (server->daemon == NULL) {
        server_free(server);
        return error_system(err, errno == 0 ? EADDRINUSE : errno, "listen on %.*s",
                            SLICE_ARG(address));
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
    uint64_t deadline_ns = monotonic_ns() + DRAIN_SECONDS_MAX * NS_PER_SECOND;
    int quiet = 0;

    if (server == NULL)
        return;
    MHD_socket socket = MHD_quiesce_daemon(server->daemon);
    /* Quiet for a moment, not once: a connection may have been accepted whose request is on its
     * way. */
    while (quiet < QUIET_STEPS && monotonic_ns() <= deadline_ns) {
        quiet = atomic_load(&server->in_flight) == 0 ? quiet + 1 : 0;
        (void)nanosleep(&pause, NULL);
    }
    MHD_stop_daemon(server->daemon);
    if (socket != MHD_INVALID_SOCKET)
        (void)close(socket);
    server_free(server);
}
