/* HTTP/1.1, as far as claimguard speaks it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "support/api_server_internal.h"

enum { HEAD_BYTES_MAX = 16384 };

bool api_send_all(int fd, const char *bytes, size_t len)
{
    while (len != 0) {
        ssize_t count = send(fd, bytes, len, MSG_NOSIGNAL);
        if (count <= 0)
            return false;
        bytes += count;
        len -= (size_t)count;
    }
    return true;
}

bool api_send_answer(int fd, unsigned status, const char *body)
{
    char head[256];
    int len = snprintf(head, sizeof head,
                       "HTTP/1.1 %u Status\r\nContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\n\r\n",
                       status, strlen(body));

    return api_send_all(fd, head, (size_t)len) && api_send_all(fd, body, strlen(body));
}

bool api_send_chunk(int fd, const char *line)
{
    char size[32];
    int len = snprintf(size, sizeof size, "%zx\r\n", strlen(line) + 1);

    return api_send_all(fd, size, (size_t)len) && api_send_all(fd, line, strlen(line)) &&
           api_send_all(fd, "\n\r\n", 3);
}

/* A header's value, or NULL. */
static const char *header(const char *head, const char *name, char *out, size_t size)
{
    const char *at = strcasestr(head, name);

    if (at == NULL)
        return NULL;
    at += strlen(name);
    at += strspn(at, " ");
    (void)snprintf(out, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    return out;
}

/* False: the connection is over. Ownership: the body is the caller's. */
bool api_read_request(int fd, struct api_request_seen *out)
{
    static _Thread_local char head[HEAD_BYTES_MAX];
    char length[32];
    size_t len = 0;

    memset(out, 0, sizeof *out);
    memset(head, 0, sizeof head);
    while (strstr(head, "\r\n\r\n") == NULL) {
        if (len + 1 == sizeof head || recv(fd, head + len, 1, 0) != 1)
            return false;
        len++;
    }
    if (sscanf(head, "%15s %8191s", out->head.method, out->head.target) != 2)
        return false;
    (void)header(head, "\r\nContent-Type:", out->head.content_type, sizeof out->head.content_type);
    size_t body_len = header(head, "\r\nContent-Length:", length, sizeof length) == NULL
                          ? 0
                          : strtoul(length, NULL, 10);
    out->body = calloc(1, body_len + 1);
    if (out->body == NULL)
        api_die("no memory");
    for (size_t got = 0; got < body_len;) {
        ssize_t count = recv(fd, out->body + got, body_len - got, 0);
        if (count <= 0)
            return false;
        got += (size_t)count;
    }
    return true;
}

bool api_is_closed(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}
