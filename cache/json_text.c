#include "cache/json_text.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "config/base/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

const char json_text_ended[] = "unexpected end of the text";
const char json_text_too_deep[] = "arrays and objects nested too deep (at most 100 levels)";

enum { LEVELS_MAX = 128 };

static struct json_scan good(const char *at)
{
    return (struct json_scan){at, NULL};
}

static struct json_scan bad(const char *at, const char *problem)
{
    return (struct json_scan){at, problem};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Behind the bytes that need no look: not a quote, a backslash, a control or a non-ASCII byte. */
static inline const char *plain_bytes(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    const __m128i last_control = _mm_set1_epi8(0x1f);
    while (end - p >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i special = _mm_or_si128(
            _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
            _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes));
        /* movemask takes the sign bits: those of `bytes` itself mark what is not ASCII */
        unsigned mask = (unsigned)_mm_movemask_epi8(_mm_or_si128(special, bytes));
        if (mask != 0)
            return p + __builtin_ctz(mask);
        p += 16;
    }
#endif
    while (p < end && (unsigned char)(*p - 0x20) < 0x60 && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* Four hexadecimal digits, or -1. */
static int32_t hex4(const char *p)
{
    int32_t value = 0;

    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int32_t digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* \uXXXX, or a pair of surrogates; p is at the backslash. NUL and lone surrogates are refused, as
 * jansson refuses them: no Kubernetes string has one. */
static struct json_scan unicode_escape(const char *p, const char *end)
{
    if (end - p < 6)
        return bad(p, json_text_ended);
    int32_t unit = hex4(p + 2);
    if (unit < 0)
        return bad(p, "invalid \\u escape");
    if (unit == 0)
        return bad(p, "\\u0000 is not allowed");
    if (unit >= 0xDC00 && unit <= 0xDFFF)
        return bad(p, "lone surrogate in a \\u escape");
    if (unit < 0xD800 || unit > 0xDFFF)
        return good(p + 6);
    if (end - p < 12)
        return bad(p, json_text_ended);
    int32_t low = p[6] == '\\' && p[7] == 'u' ? hex4(p + 8) : -1;
    if (low < 0xDC00 || low > 0xDFFF)
        return bad(p, "lone surrogate in a \\u escape");
    return good(p + 12);
}

static struct json_scan escape(const char *p, const char *end)
{
    if (end - p < 2)
        return bad(p, json_text_ended);
    if (p[1] == 'u')
        return unicode_escape(p, end);
    if (p[1] == '\0' || strchr("\"\\/bfnrt", p[1]) == NULL)
        return bad(p, "invalid escape");
    return good(p + 2);
}

static struct json_scan utf8_sequence(const char *p, const char *end)
{
    int length = utf8_length(p, (size_t)(end - p));

    if (length > 0)
        return good(p + length);
    return bad(p, length == UTF8_CUT_OFF ? json_text_ended : "invalid UTF-8");
}

static inline struct json_scan scan_string(const char *p, const char *end, bool *has_escape)
{
    p++;
    for (;;) {
        p = plain_bytes(p, end);
        if (p == end)
            return bad(p, json_text_ended);
        if (*p == '"')
            return good(p + 1);
        struct json_scan scan;
        if (*p == '\\') {
            *has_escape = true;
            scan = escape(p, end);
        } else if ((unsigned char)*p >= 0x80) {
            scan = utf8_sequence(p, end);
        } else {
            return bad(p, "control character in a string");
        }
        if (scan.problem != NULL)
            return scan;
        p = scan.at;
    }
}

struct json_scan json_text_string(const char *p, const char *end, bool *has_escape)
{
    return scan_string(p, end, has_escape);
}

static struct json_scan literal(const char *p, const char *end, struct slice word)
{
    size_t left = (size_t)(end - p);
    size_t same = 0;

    while (same < word.len && same < left && p[same] == word.ptr[same])
        same++;
    if (same == word.len)
        return good(p + same);
    return bad(p, same == left ? json_text_ended : "expected a value");
}

/* Whether the number's value fits what jansson would store it in. */
static bool number_fits(const char *begin, const char *end, bool is_real)
{
    size_t length = (size_t)(end - begin);
    char small[64];
    char *copy = small;

    if (!is_real && length <= 18)
        return true;
    if (length >= sizeof small && (copy = malloc(length + 1)) == NULL)
        return false;
    memcpy(copy, begin, length);
    copy[length] = '\0';
    errno = 0;
    bool fits;
    if (is_real) {
        double value = strtod(copy, NULL);
        fits = !(errno == ERANGE && (value >= HUGE_VAL || value <= -HUGE_VAL));
    } else {
        (void)strtoll(copy, NULL, 10);
        fits = errno != ERANGE;
    }
    if (copy != small)
        free(copy);
    return fits;
}

static const char *digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* The part of a number from the decimal point or the exponent on. */
static struct json_scan fraction_and_exponent(const char *p, const char *end)
{
    if (*p == '.') {
        const char *first = ++p;
        p = digits(p, end);
        if (p == first)
            return bad(p, p == end ? json_text_ended : "expected a digit after '.'");
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        const char *first = p;
        p = digits(p, end);
        if (p == first)
            return bad(p, p == end ? json_text_ended : "expected a digit in the exponent");
    }
    return good(p);
}

static struct json_scan number(const char *p, const char *end)
{
    const char *begin = p;

    if (*p == '-')
        p++;
    if (p == end)
        return bad(p, json_text_ended);
    if (!is_digit(*p))
        return bad(begin, "expected a value");
    if (*p == '0') {
        p++;
        if (p < end && is_digit(*p))
            return bad(begin, "a number with a leading zero");
    }
    p = digits(p, end);
    bool is_real = p < end && (*p == '.' || *p == 'e' || *p == 'E');
    if (is_real) {
        struct json_scan scan = fraction_and_exponent(p, end);
        if (scan.problem != NULL)
            return scan;
        p = scan.at;
    }
    if (!number_fits(begin, p, is_real)) /* at the end of the text, ".5" may follow */
        return bad(begin, p == end ? json_text_ended : "number out of range");
    return good(p);
}

struct json_scan json_text_scalar(const char *p, const char *end)
{
    switch (*p) {
    case 't': return literal(p, end, SLICE("true"));
    case 'f': return literal(p, end, SLICE("false"));
    case 'n': return literal(p, end, SLICE("null"));
    default: return number(p, end);
    }
}

/* A member's key and the colon behind it. */
static struct json_scan key_and_colon(const char *p, const char *end)
{
    bool has_escape = false;

    p = json_text_space(p, end);
    if (p == end)
        return bad(p, json_text_ended);
    if (*p != '"')
        return bad(p, "expected a key in double quotes");
    struct json_scan scan = scan_string(p, end, &has_escape);
    if (scan.problem != NULL)
        return scan;
    p = json_text_space(scan.at, end);
    if (p == end)
        return bad(p, json_text_ended);
    if (*p != ':')
        return bad(p, "expected ':' after the key");
    return good(p + 1);
}

/* The levels of arrays and objects that a value is inside of, as their closing brackets. */
struct levels {
    unsigned depth, room;
    char close[LEVELS_MAX];
};

/* What follows a value: closing brackets, then a comma (and the next key) or the end of it all. */
static struct json_scan after_value(const char *p, const char *end, struct levels *levels)
{
    while (levels->depth != 0) {
        p = json_text_space(p, end);
        if (p == end)
            return bad(p, json_text_ended);
        char close = levels->close[levels->depth - 1];
        if (*p == ',')
            return close == '}' ? key_and_colon(p + 1, end) : good(p + 1);
        if (*p != close)
            return bad(p, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        p++;
        levels->depth--;
    }
    return good(p);
}

/* Enters the array or object at p. *is_empty: it was closed at once. */
static struct json_scan open_level(const char *p, const char *end, struct levels *levels,
                                   bool *is_empty)
{
    char close = *p == '{' ? '}' : ']';

    if (levels->depth == levels->room || levels->depth == LEVELS_MAX)
        return bad(p, json_text_too_deep);
    p = json_text_space(p + 1, end);
    if (p == end)
        return bad(p, json_text_ended);
    *is_empty = *p == close;
    if (*is_empty)
        return good(p + 1);
    levels->close[levels->depth++] = close;
    return close == '}' ? key_and_colon(p, end) : good(p);
}

struct json_scan json_text_value(const char *p, const char *end, unsigned room)
{
    struct levels levels;
    struct json_scan scan = good(p);

    levels.depth = 0;
    levels.room = room;
    do {
        bool is_closed = true; /* the scan is behind a whole value */
        bool has_escape = false;

        p = json_text_space(scan.at, end);
        if (p == end)
            return bad(p, json_text_ended);
        if (*p == '"')
            scan = scan_string(p, end, &has_escape);
        else if (*p == '{' || *p == '[')
            scan = open_level(p, end, &levels, &is_closed);
        else
            scan = json_text_scalar(p, end);
        if (scan.problem == NULL && is_closed)
            scan = after_value(scan.at, end, &levels);
        if (scan.problem != NULL)
            return scan;
    } while (levels.depth != 0);
    return scan;
}

static size_t put_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

/* The character of the escape at p (a backslash); *length is how many bytes the escape takes. */
static uint32_t escaped_character(const char *p, size_t *length)
{
    *length = 2;
    switch (p[1]) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'u': break;
    default: return (unsigned char)p[1];
    }
    uint32_t unit = (uint32_t)hex4(p + 2);
    *length = 6;
    if (unit < 0xD800 || unit > 0xDFFF)
        return unit;
    *length = 12;
    return 0x10000 + ((unit - 0xD800) << 10) + ((uint32_t)hex4(p + 8) - 0xDC00);
}

size_t json_text_unescape(char *out, struct slice raw)
{
    size_t written = 0;

    for (size_t i = 0; i < raw.len;) {
        if (raw.ptr[i] != '\\') {
            out[written++] = raw.ptr[i++];
            continue;
        }
        size_t length = 0;
        written += put_utf8(out + written, escaped_character(raw.ptr + i, &length));
        i += length;
    }
    return written;
}
