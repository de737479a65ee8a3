/* http: a small client on a plain socket, that can send what no proper client would. */
#ifndef TESTS_SUPPORT_HTTP_H
#define TESTS_SUPPORT_HTTP_H

#include <stddef.h>
#include <stdint.h>

struct response {
    int status; /* 0: no answer */
    char *head; /* status line and headers, NUL-terminated */
    char *body; /* NUL-terminated */
    size_t body_len;
};

/* A connection to the port on loopback; aborts when there is none. */
int http_connect(uint16_t port);

/* The same from another address of loopback, "127.0.0.2". */
int http_connect_from(const char *address, uint16_t port);

/* Sends all bytes; 0, or -1 when the peer closed. */
int http_send(int socket, const void *bytes, size_t len);

/* Reads one response, with a Content-Length or in chunks. Ownership: response_free. */
void http_receive(int socket, struct response *out);

/* Seconds until the peer closes, reading whatever comes; -1: it has not after at_most. */
int http_seconds_until_closed(int socket, int at_most);

/* One request on a connection of its own. body may be NULL. */
void http_call(uint16_t port, const char *method, const char *path, const char *body,
               struct response *out);

/* Sends these very bytes on a connection of their own and reads one response. */
void http_raw(uint16_t port, const void *bytes, size_t len, struct response *out);

void response_free(struct response *response);

/* A GET, and its status alone. Ownership: response_free. */
struct response http_get(uint16_t port, const char *path);
int http_get_status(uint16_t port, const char *path);

/* A sample of /metrics, by its name with the line break before and the blank behind it; -1: there
 * is none. */
double http_metric(uint16_t port, const char *name);

#endif
