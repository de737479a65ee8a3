#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES_MAX = 16384, ANSWER_SECONDS_MAX = 60 };

int http_connect(uint16_t port)
{
    return http_connect_from("127.0.0.1", port);
}

int http_connect_from(const char *from, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in own = {.sin_family = AF_INET};
    struct timeval patience = {.tv_sec = ANSWER_SECONDS_MAX};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    /* the port is chosen when it connects: else those of the last minute's connections are in use
     */
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (fd < 0 || inet_pton(AF_INET, from, &own.sin_addr) != 1 ||
        bind(fd, (const struct sockaddr *)&own, sizeof own) != 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        perror("connect");
        abort();
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

int http_send(int socket, const void *bytes, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t count = send(socket, (const char *)bytes + sent, len - sent, MSG_NOSIGNAL);
        if (count <= 0)
            return -1;
        sent += (size_t)count;
    }
    return 0;
}

/* Reads up to and with the text; false: the peer closed before, or it is too long. */
static bool read_through(int socket, const char *text, char *out, size_t size)
{
    size_t len = 0;

    out[0] = '\0';
    while (len + 1 < size && strstr(out, text) == NULL) {
        if (recv(socket, out + len, 1, 0) != 1)
            return false;
        out[++len] = '\0';
    }
    return len + 1 < size;
}

/* Appends so many bytes to the body. */
static bool read_bytes(int socket, struct response *out, size_t bytes)
{
    out->body = realloc(out->body, out->body_len + bytes + 1);
    if (out->body == NULL)
        abort();
    while (bytes != 0) {
        ssize_t count = recv(socket, out->body + out->body_len, bytes, 0);
        if (count <= 0)
            break;
        out->body_len += (size_t)count;
        bytes -= (size_t)count;
    }
    out->body[out->body_len] = '\0';
    return bytes == 0;
}

static bool read_chunks(int socket, struct response *out)
{
    char line[64];

    while (read_through(socket, "\r\n", line, sizeof line)) {
        size_t bytes = strtoull(line, NULL, 16);
        if (!read_bytes(socket, out, bytes) || !read_through(socket, "\r\n", line, sizeof line))
            return false;
        if (bytes == 0)
            return true;
    }
    return false;
}

void http_receive(int socket, struct response *out)
{
    *out = (struct response){.head = calloc(1, HEAD_BYTES_MAX), .body = calloc(1, 1)};
    if (out->head == NULL || out->body == NULL)
        abort();
    if (!read_through(socket, "\r\n\r\n", out->head, HEAD_BYTES_MAX))
        return;
    const char *length = strcasestr(out->head, "\r\nContent-Length:");
    bool is_chunked = strcasestr(out->head, "\r\nTransfer-Encoding: chunked") != NULL;
    size_t total = length == NULL ? 0 : strtoull(length + 17, NULL, 10);
    if (is_chunked ? read_chunks(socket, out) : read_bytes(socket, out, total))
        out->status = (int)strtol(out->head + strlen("HTTP/1.1 "), NULL, 10);
}

int http_seconds_until_closed(int socket, int at_most)
{
    struct timeval patience = {.tv_sec = at_most};
    struct timespec start, end;
    char bytes[512];
    ssize_t count;

    (void)setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        count = recv(socket, bytes, sizeof bytes, 0);
    } while (count > 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    return count < 0 && errno == EAGAIN ? -1 : (int)(end.tv_sec - start.tv_sec);
}

void http_raw(uint16_t port, const void *bytes, size_t len, struct response *out)
{
    int fd = http_connect(port);

    (void)http_send(fd, bytes, len); /* an early refusal closes: what matters is the answer */
    http_receive(fd, out);
    (void)close(fd);
}

void http_call(uint16_t port, const char *method, const char *path, const char *body,
               struct response *out)
{
    size_t body_len = body == NULL ? 0 : strlen(body);
    char *request = NULL;
    int head =
        body == NULL
            ? asprintf(&request, "%s %s HTTP/1.1\r\nHost: test\r\n\r\n", method, path)
            : asprintf(&request, "%s %s HTTP/1.1\r\nHost: test\r\nContent-Length: %zu\r\n\r\n%s",
                       method, path, body_len, body);

    if (head < 0)
        abort();
    http_raw(port, request, (size_t)head, out);
    free(request);
}

void response_free(struct response *response)
{
    free(response->head);
    free(response->body);
}

struct response http_get(uint16_t port, const char *path)
{
    struct response response;

    http_call(port, "GET", path, NULL, &response);
    return response;
}

int http_get_status(uint16_t port, const char *path)
{
    struct response response = http_get(port, path);

    response_free(&response);
    return response.status;
}

double http_metric(uint16_t port, const char *name)
{
    struct response metrics = http_get(port, "/metrics");
    const char *at = strstr(metrics.body, name);
    double value = at == NULL ? -1 : strtod(at + strlen(name), NULL);

    response_free(&metrics);
    return value;
}
