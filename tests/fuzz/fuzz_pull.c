/*
 * The JSON reader against jansson: both accept the same texts and read the same strings.
 *
 * Ours accepts what Go does. Where jansson is stricter, the text is put right first, as Go does
 * when it reads (lone surrogates, bytes that are no UTF-8), or jansson says that its own limit was
 * the reason: numbers that do not fit, 2,048 levels, a NUL in a key. A NUL byte as such is refused
 * by ours everywhere; jansson overlooks one behind a number.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/pull.h"
#include "config/base/buf.h"
#include "config/base/utf8.h"
#include "fuzz.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

static void check(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "differs: %s\n", what);
        abort();
    }
}

static bool is_string_array(const json_t *value)
{
    const json_t *item;
    size_t i;

    if (!json_is_array(value))
        return false;
    json_array_foreach (value, i, item)
        if (!json_is_string(item))
            return false;
    return true;
}

static unsigned long unit_at(const char *p)
{
    char hex[5] = {p[2], p[3], p[4], p[5], '\0'}, *end = NULL;
    unsigned long unit = strtoul(hex, &end, 16);

    return end == hex + 4 && hex[0] != '+' && hex[0] != '-' && hex[0] != ' ' ? unit : 0;
}

/* What stands for the escape at p (a backslash) when Go reads it; *length is what it takes. */
static struct slice escape_at(const char *p, size_t left, size_t *length)
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
static void put_right(struct buf *out, struct slice text)
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
            piece = SLICE(replacement);
        buf_put(out, piece);
        i += length;
    }
}

/* Whether jansson refused the text for a limit that is its own. */
static bool is_own_limit(const json_error_t *error)
{
    enum json_error_code code = json_error_code(error);

    return code == json_error_numeric_overflow || code == json_error_stack_overflow ||
           code == json_error_null_byte_in_key;
}

/* The string that jansson read, as ours reads it: without a NUL. */
static void compare_strings(struct slice ours, const json_t *value)
{
    struct slice theirs = {json_string_value(value), json_string_length(value)};
    struct buf wanted;

    buf_init(&wanted, 4 * theirs.len + 16);
    for (size_t i = 0; i < theirs.len; i++)
        buf_put(&wanted,
                theirs.ptr[i] == '\0' ? SLICE(replacement) : (struct slice){theirs.ptr + i, 1});
    check(slice_equal(ours, buf_slice(&wanted)), "text of a string");
    buf_dispose(&wanted);
}

static void compare_string_arrays(struct slice text, const json_t *value, bool is_accepted)
{
    struct pull json;
    struct slice extent;
    size_t count = 0;

    pull_init(&json, text);
    bool is_ours = pull_string_array(&json, &extent, &count) && pull_finish(&json);
    bool is_utf8 = json.problem == NULL || !slice_has(slice_of(json.problem), SLICE("UTF-8"));
    check(is_ours == (is_accepted && is_string_array(value) && is_utf8), "array of strings");
    if (!is_ours)
        return;
    check(count == json_array_size(value), "count of strings");
    struct json_join join = {malloc(extent.len + 1), SLICE("")};
    char *begin = join.to;
    (void)json_text_strings(extent.ptr, extent.ptr + extent.len, &count, &join);
    check(count == json_array_size(value), "count of strings that were copied");
    check((size_t)(join.to - begin) <= extent.len, "length of strings that were copied");
    free(begin);
}

static void compare(struct slice text, const json_t *value, bool is_ours)
{
    struct arena arena;
    struct pull json;
    struct slice string = {NULL, 0};

    compare_string_arrays(text, value, is_ours);
    if (!json_is_string(value))
        return;
    arena_init(&arena, 1 << 20);
    pull_init(&json, text);
    check(pull_string(&json, &arena, &string), "a string is read");
    compare_strings(string, value);
    arena_dispose(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    json_error_t error = {.text = ""};
    struct pull json;
    struct buf right;

    pull_init(&json, text);
    bool is_ours = pull_skip(&json) && pull_finish(&json);
    if (size != 0 && memchr(data, '\0', size) != NULL) {
        check(!is_ours, "a NUL byte is refused");
        return 0;
    }
    put_right(&right, text);
    json_t *value = json_loadb(right.len == 0 ? "" : right.bytes, right.len,
                               JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    if (value != NULL || !is_own_limit(&error)) {
        check(is_ours == (value != NULL), "accepted");
        compare(text, value, is_ours);
    }
    json_decref(value);
    buf_dispose(&right);
    return 0;
}
