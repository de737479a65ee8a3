#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "extender/http/http_guard.h"
#include "extender/http/tls.h"
#include "extender/server/server_internal.h"
#include "extender/zpages/zpages.h"

enum {
    QUIET_STEP_NS = 5000000, /* a moment without requests: 100 ms */
    QUIET_STEPS = 20,
    PIECE_BYTES = 16 * 1024,
    CLOSING_MAX = 32, /* connections that were closed, and are not cleaned up yet */
};

static const char json_type[] = "application/json";

/* ---- answers ---- */

static void enter(struct connection *connection, enum stage stage)
{
    connections_enter(&connection->server->connections, &connection->entry, stage);
}

/* How an answer is sent, beside its text. */
struct answer_head {
    unsigned status;
    const char *content_type;
    const char *allow; /* NULL: no such header */
    bool closes;
};

/* Frees the response. */
static enum MHD_Result send_response(struct connection *connection, struct MHD_Connection *mhd,
                                     struct MHD_Response *response, const struct answer_head *head)
{
    const struct server *server = connection->server;

    if (response == NULL)
        return MHD_NO;
    enum MHD_Result ok = MHD_add_response_header(response, "Content-Type", head->content_type);
    if (head->allow != NULL && ok == MHD_YES)
        ok = MHD_add_response_header(response, "Allow", head->allow);
    if ((head->closes || atomic_load(&server->state->is_draining)) && ok == MHD_YES)
        ok = MHD_add_response_header(response, "Connection", "close");
    enter(connection, STAGE_ANSWER);
    if (ok == MHD_YES)
        ok = MHD_queue_response(mhd, head->status, response);
    MHD_destroy_response(response);
    return ok;
}

/* Sends the answer, which stays as it is until the request is completed. */
static enum MHD_Result send_answer(struct connection *connection, struct MHD_Connection *mhd,
                                   struct slice answer, const struct answer_head *head)
{
    return send_response(connection, mhd,
                         MHD_create_response_from_buffer(answer.len, (void *)(uintptr_t)answer.ptr,
                                                         MHD_RESPMEM_PERSISTENT),
                         head);
}

/* Writes what comes next of a page, or has failed. False: that was all. */
static bool write_on(struct connection *connection)
{
    struct buf *answer = &connection->scratch.answer;

    buf_reset(answer, SCRATCH_KEEP_BYTES);
    connection->sent = 0;
    while (connection->rest != NULL && answer->len < PIECE_BYTES && !answer->failed) {
        if (connection->rest->next(connection->rest, answer))
            continue;
        pieces_free(connection->rest);
        connection->rest = NULL;
    }
    return answer->len != 0 || answer->failed;
}

static ssize_t on_room(void *context, uint64_t position, char *out, size_t most)
{
    struct connection *connection = context;
    struct buf *answer = &connection->scratch.answer;

    (void)position;
    if (connection->sent == answer->len && !write_on(connection))
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (answer->failed)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t count = answer->len - connection->sent;
    count = count < most ? count : most;
    memcpy(out, answer->bytes + connection->sent, count);
    connection->sent += count;
    return (ssize_t)count;
}

/* The same for a page that is written while it is sent. */
static enum MHD_Result send_pieces(struct connection *connection, struct MHD_Connection *mhd,
                                   const struct answer_head *head)
{
    connection->sent = 0;
    return send_response(
        connection, mhd,
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_BYTES, on_room, connection, NULL),
        head);
}

/* {"error": ...}, and the connection is closed: what follows on it could be anything. */
static enum MHD_Result refuse(struct connection *connection, struct MHD_Connection *mhd,
                              unsigned status, const char *message, const char *allow)
{
    buf_reset(&connection->scratch.answer, SCRATCH_KEEP_BYTES);
    verb_write_failure(&connection->scratch.answer, message);
    return send_answer(connection, mhd, buf_slice(&connection->scratch.answer),
                       &(struct answer_head){status, json_type, allow, true});
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

static enum MHD_Result answer_page(struct connection *connection, struct MHD_Connection *mhd,
                                   const char *path, const char *method)
{
    const char *accept = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Accept");
    struct answer_head head = {.allow = NULL};
    /* "?verbose" has a key and no value, which a plain look-up does not tell from its absence */
    struct zpage_request request = {
        .path = slice_of(path),
        .is_verbose = MHD_lookup_connection_value_n(mhd, MHD_GET_ARGUMENT_KIND, "verbose", 7, NULL,
                                                    NULL) == MHD_YES,
        .wants_open_metrics =
            accept != NULL && strstr(accept, "application/openmetrics-text") != NULL,
        .share = &connection->scratch.share,
    };

    enter(connection, STAGE_WORK);
    head.status = zpage_answer(connection->server->state, &request, &connection->scratch.answer,
                               &head.content_type, &connection->rest);
    if (connection->scratch.answer.failed) /* a part of a page is none */
        return refuse(connection, mhd, 503, "other requests take too much memory", NULL);
    if (connection->rest == NULL)
        return send_answer(connection, mhd, buf_slice(&connection->scratch.answer), &head);
    /* libmicrohttpd ends the chunks of an answer to HEAD, too, so nothing may come behind it */
    head.closes = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    return send_pieces(connection, mhd, &head);
}

/* ---- a request ---- */

static enum MHD_Result refuse_body(struct connection *connection, struct MHD_Connection *mhd)
{
    return connection->scratch.share.was_refused
               ? refuse(connection, mhd, 503, "other requests take too much memory", NULL)
               : refuse(connection, mhd, 413, "the body is over server.maxRequestBytes", NULL);
}

/* A call's headers are good: its body of so many bytes (0: in chunks) comes next. What was only
 * announced is not reserved, but for what most calls need. */
static enum MHD_Result begin_body(struct connection *connection, struct MHD_Connection *mhd,
                                  bool has_body, size_t bytes)
{
    struct buf *body = &connection->scratch.body;
    size_t whole = bytes + BODY_TAIL_BYTES;

    if (!has_body)
        return refuse(connection, mhd, 405, "this path takes POST only", "POST");
    body->max_bytes = bytes == 0 ? atomic_load(&connection->server->state->body_bytes_max) : whole;
    if (!buf_reserve(body, whole < SCRATCH_KEEP_BYTES ? whole : SCRATCH_KEEP_BYTES))
        return refuse_body(connection, mhd);
    enter(connection, STAGE_BODY);
    return MHD_YES;
}

/* At the headers: what is refused is refused before its body is read. */
static enum MHD_Result begin_request(struct connection *connection, struct MHD_Connection *mhd,
                                     const char *path, const char *method)
{
    const struct server *server = connection->server;
    size_t body_max = atomic_load(&server->state->body_bytes_max), body_bytes = 0;
    bool has_body = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    const char *problem = NULL;
    char message[160];

    unsigned status = http_guard(mhd, has_body, body_max, &body_bytes, &problem);
    if (status != 0)
        return refuse(connection, mhd, status, problem, NULL);
    if (find_verb(server, path, &connection->verb))
        return begin_body(connection, mhd, has_body, body_bytes);
    if (!zpage_exists(slice_of(path))) {
        (void)snprintf(message, sizeof message, "no such path: %.100s", path);
        return refuse(connection, mhd, 404, message, NULL);
    }
    if (!is_read(method))
        return refuse(connection, mhd, 405, "this path takes GET only", "GET, HEAD");
    return answer_page(connection, mhd, path, method);
}

/* What is over the limit is read as well, so that the sender hears the answer; it is not kept. */
static enum MHD_Result take_body(struct connection *connection, const char *data, size_t *size)
{
    struct buf *body = &connection->scratch.body;

    buf_put(body, (struct slice){data, *size});
    if (body->failed) {
        buf_dispose(body);
        body->failed = true;
    }
    *size = 0;
    return MHD_YES;
}

static enum MHD_Result end_request(struct connection *connection, struct MHD_Connection *mhd)
{
    struct scratch *scratch = &connection->scratch;

    if (scratch->body.failed)
        return refuse_body(connection, mhd);
    enter(connection, STAGE_WORK);
    unsigned status = verb_answer(connection->server->state, connection->verb, scratch);
    return send_answer(connection, mhd, scratch->result,
                       &(struct answer_head){status, json_type, NULL, false});
}

/* ---- connections ---- */

struct connection *server_connection(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

/* A request's line is there. Returns what on_request gets in *request. */
static void *on_line(void *context, const char *uri, struct MHD_Connection *mhd)
{
    struct connection *connection = server_connection(mhd);

    (void)context;
    (void)uri;
    if (connection != NULL)
        enter(connection, STAGE_HEADERS);
    return NULL;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **request)
{
    struct connection *connection = server_connection(mhd);

    (void)context;
    (void)version;
    if (connection == NULL)
        return MHD_NO;
    if (*request == NULL) {
        *request = connection;
        return begin_request(connection, mhd, path, method);
    }
    if (*size != 0)
        return take_body(connection, data, size);
    return end_request(connection, mhd); /* all but verbs was answered before */
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
    struct connection *connection = server_connection(mhd);

    (void)context;
    (void)request;
    (void)code;
    if (connection == NULL)
        return;
    pieces_free(connection->rest);
    connection->rest = NULL;
    scratch_reset(&connection->scratch);
    enter(connection, STAGE_IDLE);
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
    scratch_init(&connection->scratch, 0, &server->state->call_memory);
    connections_add(&server->connections, &connection->entry, fd->connect_fd,
                    address == NULL ? NULL : address->client_addr);
    return connection;
}

/* The socket is still open. */
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
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(uintptr_t)server_tls_hello},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_END, 0, NULL},
    };

    errno = 0;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, server_tls_log,
        server, MHD_OPTION_SOCK_ADDR, address->ai_addr, MHD_OPTION_CONNECTION_LIMIT,
        server->connections.max + CLOSING_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BUFFER_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, on_line, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_UNESCAPE_CALLBACK,
        on_escapes, NULL, MHD_OPTION_ARRAY, is_tls ? tls : &tls[2], MHD_OPTION_END);
}

static int start_connections(struct server *server, struct error *err)
{
    static const struct {
        enum port port;
        unsigned max, per_address_max;
    } limits[] = {
        /* schedulers, and replicas of them, may come from one address */
        [SERVER_VERBS] = {PORT_EXTENDER, VERB_CONNECTIONS_MAX, 0},
        [SERVER_PAGES] = {PORT_METRICS, PAGE_CONNECTIONS_MAX, PAGE_CONNECTIONS_PER_ADDRESS_MAX},
    };
    struct metrics *metrics = &server->state->metrics;
    enum port port = limits[server->role].port;

    metrics->connections_max[port] = limits[server->role].max;
    return connections_start(&server->connections, limits[server->role].max,
                             limits[server->role].per_address_max, &metrics->connections[port],
                             err);
}

static void server_free(struct server *server)
{
    connections_stop(&server->connections);
    server_tls_dispose(server);
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
    if (start_connections(server, err) < 0) {
        free(server);
        return err->code;
    }
    server_tls_init(server);
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
    uint64_t seconds = server->role == SERVER_VERBS ? DRAIN_SECONDS_MAX : PAGES_DRAIN_SECONDS_MAX;
    uint64_t deadline_ns = monotonic_ns() + seconds * NS_PER_SECOND;
    MHD_socket socket = MHD_quiesce_daemon(server->daemon);
    connections_hurry(&server->connections);
    /* Quiet for a moment, not once: a connection may have been accepted whose request is on its
     * way. */
    while (quiet < QUIET_STEPS && monotonic_ns() <= deadline_ns) {
        quiet = connections_busy(&server->connections) == 0 ? quiet + 1 : 0;
        (void)nanosleep(&pause, NULL);
    }
    requests_interrupt(server->state->api); /* it waits for the calls that are left */
    MHD_stop_daemon(server->daemon);
    if (socket != MHD_INVALID_SOCKET)
        (void)close(socket);
    server_free(server);
}
