/* One request on a connection: its headers, its body, and its answer. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "extender/serving/server/server_internal.h"

enum {
    PIECE_BYTES = 16 * 1024,
    BODY_FIRST_BYTES = 64 * 1024, /* of a body that is expected; more follows as it arrives */
};

static const char json_type[] = "application/json";
static const char body_too_big[] =
    "the body is over server.maxRequestBytes (of a review: over 12 MiB)";

/*
 * ---- the headers ----
 *
 * Refuses requests that libmicrohttpd 0.9.75 accepts, but whose end is ambiguous: with
 * them, a client could make claimguard and a proxy before it disagree where a request ends (HTTP
 * request smuggling, RFC 9112, section 11.2). No honest client sends them.
 */

/* The headers that matter here; a count for each, and the last value. */
struct seen {
    unsigned lengths, encodings, hosts;
    const char *length;
    const char *encoding;
};

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
    struct seen *seen = context;

    (void)kind;
    if (strcasecmp(key, "Content-Length") == 0) {
        seen->lengths++;
        seen->length = value;
    } else if (strcasecmp(key, "Transfer-Encoding") == 0) {
        seen->encodings++;
        seen->encoding = value;
    } else if (strcasecmp(key, "Host") == 0) {
        seen->hosts++;
    }
    return MHD_YES;
}

/*
 * Returns 0 if the headers are good, and the announced size of the body in *body_bytes (0 if it
 * comes in chunks). Otherwise returns the HTTP status of the refusal, and its reason in *problem, a
 * static string:
 *   400  several Content-Length, Transfer-Encoding or Host; Content-Length with Transfer-Encoding
 *   411  needs_body, but neither Content-Length nor Transfer-Encoding
 *   413  Content-Length over body_max
 *   501  a Transfer-Encoding other than chunked
 */
static unsigned check_headers(struct MHD_Connection *connection, bool needs_body, size_t body_max,
                              size_t *body_bytes, const char **problem)
{
    struct seen seen = {0};

    *body_bytes = 0;
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, &seen);
    if (seen.lengths > 1 || seen.encodings > 1 || seen.hosts > 1) {
        *problem = "Content-Length, Transfer-Encoding or Host appears twice";
        return 400;
    }
    if (seen.lengths != 0 && seen.encodings != 0) {
        *problem = "both Content-Length and Transfer-Encoding";
        return 400;
    }
    if (seen.encodings != 0 &&
        (seen.encoding == NULL || strcasecmp(seen.encoding, "chunked") != 0)) {
        *problem = "Transfer-Encoding is not chunked";
        return 501;
    }
    if (needs_body && seen.lengths == 0 && seen.encodings == 0) {
        *problem = "neither Content-Length nor Transfer-Encoding";
        return 411;
    }
    if (seen.length != NULL) {
        unsigned long long length = strtoull(seen.length, NULL, 10); /* checked by libmicrohttpd */
        if (length > body_max) {
            *problem = body_too_big;
            return 413;
        }
        *body_bytes = (size_t)length;
    }
    return 0;
}

/* ---- answers ---- */

void server_enter(struct connection *connection, enum stage stage)
{
    connections_enter(&connection->server->connections, &connection->entry, stage);
}

/* The status and the headers of an answer. */
struct answer_head {
    unsigned status;
    const char *content_type;
    const char *allow; /* the header Allow; NULL: none */
    bool closes;       /* the connection, after the answer */
};

/* Queues the response, and frees it. */
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
    server_enter(connection, STAGE_ANSWER);
    if (ok == MHD_YES)
        ok = MHD_queue_response(mhd, head->status, response);
    MHD_destroy_response(response);
    return ok;
}

/* Sends the answer, whose bytes must not change until the request is completed. */
static enum MHD_Result send_answer(struct connection *connection, struct MHD_Connection *mhd,
                                   struct slice answer, const struct answer_head *head)
{
    return send_response(connection, mhd,
                         MHD_create_response_from_buffer(answer.len, (void *)(uintptr_t)answer.ptr,
                                                         MHD_RESPMEM_PERSISTENT),
                         head);
}

/* Writes the next piece of the page into scratch.answer. False at the end of the page; if writing
 * fails, the answer is failed. */
static bool write_piece(struct connection *connection)
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

/* MHD_ContentReaderCallback: copies at most `most` bytes of the page to out. */
static ssize_t on_room(void *context, uint64_t position, char *out, size_t most)
{
    struct connection *connection = context;
    struct buf *answer = &connection->scratch.answer;

    (void)position;
    if (connection->sent == answer->len && !write_piece(connection))
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (answer->failed)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t count = answer->len - connection->sent;
    count = count < most ? count : most;
    memcpy(out, answer->bytes + connection->sent, count);
    connection->sent += count;
    return (ssize_t)count;
}

/* MHD_ContentReaderCallback: writes the next names and reasons of a rejection to out. Its room is
 * ANSWER_PIECE_BYTES, or for all that is left. */
static ssize_t on_piece_room(void *context, uint64_t position, char *out, size_t most)
{
    struct connection *connection = context;
    size_t count = protocol_next_piece(&connection->scratch.pieces, out, most);

    (void)position;
    return count == 0 ? MHD_CONTENT_READER_END_WITH_ERROR : (ssize_t)count;
}

/* Sends a rejection that is written while it is sent. */
static enum MHD_Result send_rejection(struct connection *connection, struct MHD_Connection *mhd,
                                      const struct answer_head *head)
{
    return send_response(connection, mhd,
                         MHD_create_response_from_callback(connection->scratch.pieces.bytes,
                                                           ANSWER_PIECE_BYTES, on_piece_room,
                                                           connection, NULL),
                         head);
}

/* Sends a page that is written while it is sent. */
static enum MHD_Result send_pieces(struct connection *connection, struct MHD_Connection *mhd,
                                   const struct answer_head *head)
{
    connection->sent = 0;
    return send_response(
        connection, mhd,
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_BYTES, on_room, connection, NULL),
        head);
}

/* Answers {"error": ...}, and closes the connection, because the rest of the request may follow. */
static enum MHD_Result refuse(struct connection *connection, struct MHD_Connection *mhd,
                              unsigned status, const char *message, const char *allow)
{
    buf_reset(&connection->scratch.answer, SCRATCH_KEEP_BYTES);
    verb_write_failure(&connection->scratch.answer, message);
    return send_answer(connection, mhd, buf_slice(&connection->scratch.answer),
                       &(struct answer_head){status, json_type, allow, true});
}

/* ---- routes ---- */

static bool find_admit_path(const char *path, struct admit_call *review)
{
    for (int i = 0; i < ADMIT_COUNT; i++) {
        if (strcmp(path, admit_paths[i]) == 0) {
            *review = (struct admit_call){.path = (enum admit_path)i, .started_ns = monotonic_ns()};
            return true;
        }
    }
    return false;
}

/* Whether the path takes a body on this port. */
static bool find_call(struct connection *connection, const char *path)
{
    switch (connection->server->role) {
    case SERVER_VERBS: return verb_find(&connection->verb, path);
    case SERVER_ADMISSION: return find_admit_path(path, &connection->review);
    default: return false;
    }
}

static bool is_read(const char *method)
{
    return strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

static enum MHD_Result answer_page(struct connection *connection, struct MHD_Connection *mhd,
                                   const char *path, const char *method)
{
    const char *accept = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Accept");
    /* "?verbose" has no value. MHD_lookup_connection_value would return NULL, as for no key. */
    struct zpages_request request = {
        .path = slice_of(path),
        .is_verbose = MHD_lookup_connection_value_n(mhd, MHD_GET_ARGUMENT_KIND, "verbose", 7, NULL,
                                                    NULL) == MHD_YES,
        .wants_open_metrics =
            accept != NULL && strstr(accept, "application/openmetrics-text") != NULL,
        .share = &connection->scratch.share,
    };

    server_enter(connection, STAGE_WORK);
    struct zpages_answer page =
        zpages_answer(connection->server->state, &request, &connection->scratch.answer);
    struct answer_head head = {.status = page.status, .content_type = page.content_type};
    connection->rest = page.rest;
    if (connection->scratch.answer.failed)
        return refuse(connection, mhd, 503, "other requests take too much memory", NULL);
    if (connection->rest == NULL)
        return send_answer(connection, mhd, buf_slice(&connection->scratch.answer), &head);
    /* libmicrohttpd sends the last chunk even after HEAD, so no other answer may follow it */
    head.closes = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    return send_pieces(connection, mhd, &head);
}

/* ---- a request ---- */

static enum MHD_Result refuse_body(struct connection *connection, struct MHD_Connection *mhd)
{
    return connection->scratch.share.was_refused
               ? refuse(connection, mhd, 503, "other requests take too much memory", NULL)
               : refuse(connection, mhd, 413, body_too_big, NULL);
}

/* How large a body may be. */
static size_t body_bytes_max(const struct server *server)
{
    size_t max = atomic_load(&server->state->body_bytes_max);

    return server->role == SERVER_ADMISSION && max > REVIEW_BODY_BYTES_MAX ? REVIEW_BODY_BYTES_MAX
                                                                           : max;
}

/* Prepares for the body of a call, of `bytes` bytes, or in chunks (0). Memory is taken for what has
 * come, because a client can announce more than it sends. */
static enum MHD_Result begin_body(struct connection *connection, struct MHD_Connection *mhd,
                                  bool has_body, size_t bytes)
{
    struct buf *body = &connection->scratch.body;
    size_t whole = bytes + BODY_TAIL_BYTES;

    if (!has_body)
        return refuse(connection, mhd, 405, "this path accepts only POST", "POST");
    body->max_bytes = bytes == 0 ? body_bytes_max(connection->server) : whole;
    if (!buf_reserve(body, whole < BODY_FIRST_BYTES ? whole : BODY_FIRST_BYTES))
        return refuse_body(connection, mhd);
    server_enter(connection, STAGE_BODY);
    return MHD_YES;
}

/* Called at the headers, so a request is refused before its body is read. */
enum MHD_Result server_begin_request(struct connection *connection, struct MHD_Connection *mhd,
                                     const char *path, const char *method)
{
    const struct server *server = connection->server;
    size_t body_max = body_bytes_max(server), body_bytes = 0;
    bool has_body = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    const char *problem = NULL;
    char message[160];

    unsigned status = check_headers(mhd, has_body, body_max, &body_bytes, &problem);
    if (status != 0)
        return refuse(connection, mhd, status, problem, NULL);
    if (find_call(connection, path))
        return begin_body(connection, mhd, has_body, body_bytes);
    if (server->role == SERVER_ADMISSION || !zpages_exists(slice_of(path))) {
        (void)snprintf(message, sizeof message, "no such path: %.100s", path);
        return refuse(connection, mhd, 404, message, NULL);
    }
    if (!is_read(method))
        return refuse(connection, mhd, 405, "this path accepts only GET and HEAD", "GET, HEAD");
    return answer_page(connection, mhd, path, method);
}

/* A body over the limit is read to its end, so that the client can receive the answer; its bytes
 * are dropped. */
enum MHD_Result server_take_body(struct connection *connection, const char *data, size_t *size)
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

static unsigned answer_call(struct connection *connection, struct MHD_Connection *mhd)
{
    struct state *state = connection->server->state;

    if (connection->server->role == SERVER_VERBS)
        return verb_answer(state, connection->verb, &connection->scratch);
    connection->review.timeout = MHD_lookup_connection_value(mhd, MHD_GET_ARGUMENT_KIND, "timeout");
    return admit_answer(state, &connection->review, &connection->scratch);
}

enum MHD_Result server_end_request(struct connection *connection, struct MHD_Connection *mhd)
{
    struct scratch *scratch = &connection->scratch;

    if (scratch->body.failed)
        return refuse_body(connection, mhd);
    server_enter(connection, STAGE_WORK);
    struct answer_head head = {answer_call(connection, mhd), json_type, NULL, false};
    return scratch->pieces.bytes != 0 ? send_rejection(connection, mhd, &head)
                                      : send_answer(connection, mhd, scratch->result, &head);
}
