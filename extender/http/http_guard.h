/*
 * http_guard: refuses requests that libmicrohttpd 0.9.75 accepts, but whose end is ambiguous: with
 * them, a client could make claimguard and a proxy before it disagree where a request ends (HTTP
 * request smuggling, RFC 9112, section 11.2). No honest client sends them.
 *
 * Threads: any.
 */
#ifndef EXTENDER_HTTP_HTTP_GUARD_H
#define EXTENDER_HTTP_HTTP_GUARD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#define HTTP_BODY_TOO_BIG "the body is over server.maxRequestBytes (of a review: over 16 MiB)"

/*
 * Returns 0 if the headers are good, and the announced size of the body in *body_bytes (0 if it
 * comes in chunks). Otherwise returns the HTTP status of the refusal, and its reason in *problem, a
 * static string:
 *   400  several Content-Length, Transfer-Encoding or Host; Content-Length with Transfer-Encoding
 *   411  needs_body, but neither Content-Length nor Transfer-Encoding
 *   413  Content-Length over body_max
 *   501  a Transfer-Encoding other than chunked
 */
unsigned http_guard(struct MHD_Connection *connection, bool needs_body, size_t body_max,
                    size_t *body_bytes, const char **problem);

#endif
