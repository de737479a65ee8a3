/*
 * noop: the least that an extender or a webhook with libmicrohttpd can do: reads the body, answers
 * as many bytes as the path says (/12345), with the node names of the call (/filter), which
 * kube-scheduler writes last, or that a review is allowed (/admit/...). Same threading and buffers
 * as claimguard. Prints its port.
 *
 *     noop [CERTIFICATE KEY]     with TLS
 */
#include <microhttpd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TLS_PRIORITIES \
    "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" /* extender/serving/http/tls.h */

enum {
    ANSWER_BYTES_MAX = 64 * 1024 * 1024,
    BODY_BYTES_MAX = 64 * 1024 * 1024,
    PEM_BYTES = 65536,
};

static char answer[ANSWER_BYTES_MAX];

struct connection {
    char *body;
    size_t len, capacity;
};

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct connection *connection = *socket_context;

    (void)context;
    (void)mhd;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = calloc(1, sizeof *connection);
    } else if (connection != NULL) {
        free(connection->body);
        free(connection);
    }
}

static enum MHD_Result begin_body(struct MHD_Connection *mhd, struct connection *connection)
{
    const char *length = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length");
    size_t wanted = length == NULL ? 0 : strtoull(length, NULL, 10);

    if (wanted > BODY_BYTES_MAX)
        return MHD_NO;
    if (wanted > connection->capacity) {
        connection->body = realloc(connection->body, wanted);
        connection->capacity = wanted;
    }
    connection->len = 0;
    return connection->body == NULL && wanted != 0 ? MHD_NO : MHD_YES;
}

static enum MHD_Result read_body(struct connection *connection, const char *data, size_t size)
{
    if (size > connection->capacity - connection->len)
        return MHD_NO;
    memcpy(connection->body + connection->len, data, size);
    connection->len += size;
    return MHD_YES;
}

static enum MHD_Result answer_with(struct MHD_Connection *mhd, const char *from, size_t bytes,
                                   enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(bytes, (void *)(uintptr_t)from, mode);

    (void)MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result queued = MHD_queue_response(mhd, 200, response);
    MHD_destroy_response(response);
    return queued;
}

/* The API server writes the request's uid, of 36 bytes, as its first field. */
static enum MHD_Result allow(struct MHD_Connection *mhd, const struct connection *connection)
{
    static const char key[] = "\"request\":{\"uid\":\"";
    const char *uid = memmem(connection->body, connection->len, key, sizeof key - 1);
    char review[256];

    if (uid == NULL)
        return MHD_NO;
    int bytes = snprintf(review, sizeof review,
                         "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\","
                         "\"response\":{\"uid\":\"%.36s\",\"allowed\":true}}",
                         uid + sizeof key - 1);
    return answer_with(mhd, review, (size_t)bytes, MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result send_answer(struct MHD_Connection *mhd, const struct connection *connection,
                                   const char *path)
{
    size_t bytes = strtoull(path + 1, NULL, 10);
    char *from = answer;

    if (strncmp(path, "/admit/", 7) == 0)
        return allow(mhd, connection);
    if (strcmp(path, "/filter") == 0) {
        static const char key[] = ",\"NodeNames\":";
        from = memmem(connection->body, connection->len, key, sizeof key - 1);
        if (from == NULL)
            return MHD_NO;
        bytes = connection->len - (size_t)(from - connection->body);
        *from = '{';
    }
    return answer_with(mhd, from, bytes < ANSWER_BYTES_MAX ? bytes : ANSWER_BYTES_MAX,
                       MHD_RESPMEM_PERSISTENT);
}

/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd's parameters */
static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **request)
{
    struct connection *connection =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

    (void)context;
    (void)method;
    (void)version;
    if (*request == NULL) {
        *request = connection;
        return begin_body(mhd, connection);
    }
    if (*size != 0) {
        size_t len = *size;
        *size = 0;
        return read_body(connection, data, len);
    }
    return send_answer(mhd, connection, path);
}

/* A PEM file; ends the program if it cannot be read. */
static void read_pem(char text[PEM_BYTES], const char *path)
{
    FILE *file = fopen(path, "re");
    size_t len = file == NULL ? 0 : fread(text, 1, PEM_BYTES - 1, file);

    if (len == 0 || fclose(file) != 0)
        exit(2);
    text[len] = '\0';
}

int main(int argc, char **argv)
{
    static char certificate[PEM_BYTES], key[PEM_BYTES];
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_END, 0, NULL},
    };

    memset(answer, ' ', sizeof answer);
    if (argc > 2) {
        read_pem(certificate, argv[1]);
        read_pem(key, argv[2]);
        flags |= MHD_USE_TLS;
    } else {
        tls[0].option = MHD_OPTION_END;
    }
    struct MHD_Daemon *daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)(64 * 1024), MHD_OPTION_CONNECTION_TIMEOUT, 120U, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, NULL, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (daemon == NULL)
        return 1;
    (void)printf("listening address=127.0.0.1:%u\n",
                 (unsigned)MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    (void)fflush(stdout);
    (void)pause();
    MHD_stop_daemon(daemon);
    return 0;
}
