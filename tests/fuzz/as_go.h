/*
 * What Go's encoding/json reads, by jansson. Ours accepts what Go does. Where jansson is stricter,
 * the text is put right first, as Go does when it reads (lone surrogates, bytes that are no UTF-8),
 * or jansson says that its own limit was the reason: numbers that do not fit, 2,048 levels, a NUL
 * in a key. It overlooks a NUL byte behind a number, which is refused everywhere by ours.
 */
#ifndef TESTS_FUZZ_AS_GO_H
#define TESTS_FUZZ_AS_GO_H

#include <jansson.h>
#include <stdlib.h>

#include "config/base/buf.h"
#include "config/base/text.h"

#define U_FFFD "\xef\xbf\xbd"

static inline unsigned long unit_at(const char *p)
{
    char hex[5] = {p[2], p[3], p[4], p[5], '\0'}, *end = NULL;
    unsigned long unit = strtoul(hex, &end, 16);

    return end == hex + 4 && hex[0] != '+' && hex[0] != '-' && hex[0] != ' ' ? unit : 0;
}

/* What stands for the escape at p (a backslash) when Go reads it; *length is what it takes. */
static inline struct slice escape_at(const char *p, size_t left, size_t *length)
{
    bool is_unicode = left >= 6 && p[1] == 'u';
    unsigned long unit = is_unicode ? unit_at(p) : 0;
    bool has_low = left >= 12 && p[6] == '\\' && p[7] == 'u' && (unit_at(p + 6) >> 10) == 0x37;

    *length = is_unicode ? 6 : left < 2 ? left : 2;
    if (unit >> 10 == 0x36 && has_low)
        *length = 12;
    else if (unit >> 11 == 0x1B)
        return SLICE("\\ufffd");
    return (struct slice){p, *length};
}

/* The text with U+FFFD for lone surrogates and for bytes that are no UTF-8. */
static inline void put_right(struct buf *out, struct slice text)
{
    buf_init(out, 4 * text.len + 16);
    for (size_t i = 0; i < text.len;) {
        const char *p = text.ptr + i;
        size_t length = 1;
        int character = (unsigned char)*p < 0x80 ? 1 : utf8_length(p, text.len - i);
        struct slice piece = {p, length};
        if (*p == '\\')
            piece = escape_at(p, text.len - i, &length);
        else if (character > 0)
            piece.len = length = (size_t)character;
        else
            piece = SLICE(U_FFFD);
        buf_put(out, piece);
        i += length;
    }
}

/* Whether jansson refused the text for a limit that is its own. */
static inline bool is_own_limit(const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);

    return code == json_error_numeric_overflow || code == json_error_stack_overflow ||
           code == json_error_null_byte_in_key;
}

/* NULL: it is none; *is_limited, if not NULL: or jansson cannot decide. Ownership: json_decref. */
static inline json_t *load_as_go(struct slice text, size_t flags, bool *is_limited)
{
    json_error_t error = {.text = ""};
    struct buf right;

    put_right(&right, text);
    json_t *value = json_loadb(right.len == 0 ? "" : right.bytes, right.len,
                               JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL | flags, &error);
    buf_dispose(&right);
    if (is_limited != NULL)
        *is_limited = value == NULL && is_own_limit(&error);
    return value;
}

#endif
