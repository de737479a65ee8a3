#include "extender/http/http_guard.h"

#include <stdlib.h>
#include <strings.h>

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

unsigned http_guard(struct MHD_Connection *connection, bool needs_body, size_t body_max,
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
            *problem = HTTP_BODY_TOO_BIG;
            return 413;
        }
        *body_bytes = (size_t)length;
    }
    return 0;
}
