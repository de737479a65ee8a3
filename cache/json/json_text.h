/*
 * json_text: scans JSON: where a token or a value ends, and whether it is well-formed. This is the
 * hot loop of the program: it skips most of a filter call with 5,000 node names, or of a snapshot
 * of gigabytes. pull.h is the reader that uses it.
 *
 * A text is well-formed if Go's encoding/json accepts it, because API servers and schedulers use
 * it: any escape, including NUL and lone surrogates; bytes that are not UTF-8; numbers of any size;
 * arrays and objects 10,000 deep. There is no recursion: a level costs one bit.
 *
 * Each function gets the first byte and the end of the text, and reads no further. Strings are
 * scanned 16 bytes at a time with SSE2 (on every x86-64), else byte by byte; arrays of names in
 * blocks (json_blocks.h), and so are values that nobody reads (json_skip.h). Threads: any.
 */
#ifndef CACHE_JSON_JSON_TEXT_H
#define CACHE_JSON_JSON_TEXT_H

#include <stdint.h>

#include "config/base/slice.h"

/* Where a scan stopped: after the value; or at the wrong byte, then with a problem. */
struct json_scan {
    const char *at;
    const char *problem; /* a static string */
};

enum {
    /* Go allows 10,000 in each object; a list or an event adds some around it. A multiple of 64. */
    JSON_LEVELS_MAX = 10240,
    JSON_DECODED_PER_BYTE = 3, /* bytes that one byte of a string may become */
};

/* Flags: why a string's text differs from its bytes. */
enum { JSON_ESCAPE = 1, JSON_INVALID_UTF8 = 2 };

extern const char json_text_ended[];    /* the text ended inside a value */
extern const char json_text_too_deep[]; /* more levels than allowed */

/* Skips the white space at p. In compact text there is none; indentation is a long run. */
const char *json_text_space_run(const char *p, const char *end);
static inline const char *json_text_space(const char *p, const char *end)
{
    return p < end && (unsigned char)*p > ' ' ? p : json_text_space_run(p, end);
}

/* A string, from its opening quote. Sets the flags in *oddities. */
struct json_scan json_text_string(const char *p, const char *end, unsigned *oddities);

/* A number, true, false or null. */
struct json_scan json_text_scalar(const char *p, const char *end);

/* Whether the byte at p ends an escape behind a backslash, or begins the rest of one: \uXXXX. */
bool json_text_is_escape(const char *p, const char *end);

/* Any value, with at most `room` levels of arrays and objects. */
struct json_scan json_text_value(const char *p, const char *end, unsigned room);

/* The same, of a value that json_text_value has accepted, alone or within another. Of an array or
 * an object, looks only for the end. */
struct json_scan json_text_checked_value(const char *p, const char *end);

enum { JSON_NAME_BYTES_MAX = 253 }; /* the API server accepts no longer name */

/* What json_text_strings has found. */
struct json_strings {
    size_t count;
    size_t bytes; /* of all strings, with their quotes */
};

/* An array of names, from its '[': counts them, and notes in `inside`, if it is not NULL, what is
 * between the quotes of each, as it stands. Names are copied into answers unchanged, so they must
 * be UTF-8, not empty, and of limited length. */
struct json_scan json_text_strings(const char *p, const char *end, struct json_strings *found,
                                   struct slice *inside);

enum { JSON_JOIN_ROOM = 32 }; /* so many bytes behind `between` are read too */

/* Where json_text_join puts strings. */
struct json_join {
    char *to;             /* the end of the copies */
    char *end;            /* of the room for them; nothing is written from here on */
    struct slice between; /* stands between two strings, in place of the comma */
};

/* Joins the strings of an array that json_text_strings has accepted, quotes included, as many as
 * there is room for. p: its '[', or what an earlier call has returned: p if not even the first
 * string has room, else the string, behind `between`, that comes next; or the ']' at the end. */
const char *json_text_join(const char *p, const char *end, struct json_join *join);

/*
 * Decodes the inside of a string that json_text_string accepted. out has room for
 * JSON_DECODED_PER_BYTE * raw.len bytes. Returns the length of the result, which is UTF-8. As in
 * Go, a lone surrogate and a byte that is not UTF-8 become U+FFFD. So does NUL: no name contains
 * it, and no stored text ends early when it is used as a C string.
 */
size_t json_text_decode(char *out, struct slice raw);

#endif
