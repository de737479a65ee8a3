/*
 * json_text: the bytes of JSON. Where a token or a value ends, and whether it is well-formed;
 * nothing is kept. This is the hot loop of the program: a filter call with 5,000 node names and a
 * snapshot of gigabytes are mostly passed over here. pull.h is the reader built on it; no one else
 * includes this.
 *
 * Each function takes the first byte of what it scans and the end of the text, and reads no
 * further. Strings are scanned 16 bytes at a time where SSE2 is there (every x86-64), else one by
 * one.
 */
#ifndef CACHE_JSON_TEXT_H
#define CACHE_JSON_TEXT_H

#include "config/base/slice.h"

/* Where a scan stopped, and why: behind the value with a NULL problem, else at the offending byte.
 */
struct json_scan {
    const char *at;
    const char *problem; /* a static string */
};

extern const char json_text_ended[];    /* the text ended inside a value */
extern const char json_text_too_deep[]; /* more levels than there was room for */

/* Behind the white space at p. */
static inline const char *json_text_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

/* A string, from its opening quote. *has_escape is set when it holds a backslash. */
struct json_scan json_text_string(const char *p, const char *end, bool *has_escape);

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

/* An array of strings, from its '['; counts them, and copies them when join is not NULL. */
struct json_scan json_text_strings(const char *p, const char *end, size_t *count,
                                   struct json_join *join);

/* Decodes the inside of a string that json_text_string accepted into out, which has room for
 * raw.len bytes; returns the length of the result. */
size_t json_text_unescape(char *out, struct slice raw);

#endif
