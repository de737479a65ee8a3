/*
 * http_guard: looks at a request's headers for what libmicrohttpd 0.9.75 accepts and nobody who
 * means well sends: it could make us and a proxy in front of us disagree on where a request ends.
 */
#ifndef EXTENDER_HTTP_HTTP_GUARD_H
#define EXTENDER_HTTP_HTTP_GUARD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Returns 0 when the headers are fine, with the announced size of the body (0 when it comes in
 * chunks); else the HTTP status to refuse with, and why (a static string).
 *   400  several Content-Length, Transfer-Encoding or Host; Content-Length with Transfer-Encoding
 *   411  needs_body and there is neither
 *   413  Content-Length over body_max
 *   501  a Transfer-Encoding other than chunked
 */
unsigned http_guard(struct MHD_Connection *connection, bool needs_body, size_t body_max,
                    size_t *body_bytes, const char **problem);

#endif
