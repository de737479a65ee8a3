/*
 * json_text: the bytes of JSON. Where a token or a value ends, and whether it is well-formed;
 * nothing is kept. This is the hot loop of the program: a filter call with 5,000 node names and a
 * snapshot of gigabytes are mostly passed over here. pull.h is the reader built on it.
 *
 * Well-formed is what Go's encoding/json takes, since that is what an API server takes and sends:
 * any escape, NUL and lone surrogates too; bytes that are no UTF-8; numbers of any size; arrays and
 * objects 10,000 deep. There is no recursion: a level costs a bit.
 *
 * Each function takes the first byte of what it scans and the end of the text, and reads no
 * further. Strings are scanned 16 bytes at a time where SSE2 is there (every x86-64), else one by
 * one.
 */
#ifndef CACHE_JSON_JSON_TEXT_H
#define CACHE_JSON_JSON_TEXT_H

#include "config/base/slice.h"

/* Where a scan stopped, and why: behind the value with a NULL problem, else at the offending byte.
 */
struct json_scan {
    const char *at;
    const char *problem; /* a static string */
};

enum {
    /* Go stops at 10,000, which it counts for each value by itself: a list and an event go around
     * one. A multiple of 64. */
    JSON_LEVELS_MAX = 10240,
    JSON_DECODED_PER_BYTE = 3, /* bytes that one byte of a string may become */
};

/* What makes a string's text differ from its bytes: bits. */
enum { JSON_ESCAPE = 1, JSON_INVALID_UTF8 = 2 };

extern const char json_text_ended[];    /* the text ended inside a value */
extern const char json_text_too_deep[]; /* more levels than there was room for */

/* Behind the white space at p. */
static inline const char *json_text_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* A string, from its opening quote. Sets those bits of *oddities that are true of it. */
struct json_scan json_text_string(const char *p, const char *end, unsigned *oddities);

/* A number, true, false or null. */
struct json_scan json_text_scalar(const char *p, const char *end);

/* Any value, of at most `room` levels of arrays and objects. */
struct json_scan json_text_value(const char *p, const char *end, unsigned room);

/* Where json_text_strings copies each string to, quotes included, with the same tail behind each.
 * The caller has made room for all of it. */
struct json_join {
    char *to; /* moves on */
    struct slice tail;
};

enum { JSON_NAME_BYTES_MAX = 253 }; /* the API server takes no longer name */

/* An array of strings, from its '['; counts them, and copies them when join is not NULL. They are
 * names, copied into answers as they came: so they have to be UTF-8, are not empty, and are
 * bounded. */
struct json_scan json_text_strings(const char *p, const char *end, size_t *count,
                                   struct json_join *join);

/*
 * Decodes the inside of a string that json_text_string accepted into out, which has room for
 * JSON_DECODED_PER_BYTE * raw.len bytes; returns the length of the result, which is UTF-8. Where Go
 * puts U+FFFD (a lone surrogate, a byte that is no UTF-8), so do we; and for NUL, too: no name can
 * have one, and so nothing that is kept is ever cut short where it is taken for a C string.
 */
size_t json_text_decode(char *out, struct slice raw);

#endif
