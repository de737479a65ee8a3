#include "cache/json/json_text.h"

#include <stdint.h>

#include "cache/json/json_skip.h"
#include "config/base/text.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

const char json_text_ended[] = "unexpected end of the text";
const char json_text_too_deep[] = "arrays and objects nested too deep";

static struct json_scan good(const char *at)
{
    return (struct json_scan){at, NULL};
}

static struct json_scan bad(const char *at, const char *problem)
{
    return (struct json_scan){at, problem};
}

const char *json_text_space_run(const char *p, const char *end)
{
#ifdef __SSE2__
    while (end - p >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i is_space = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')),
                                                     _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'))),
                                        _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r')),
                                                     _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'))));
        unsigned others = ~(unsigned)_mm_movemask_epi8(is_space) & 0xffff;
        if (others != 0)
            return p + __builtin_ctz(others);
        p += 16;
    }
#endif
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Skips all bytes but quotes, backslashes, control bytes and non-ASCII bytes. */
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
        /* movemask reads the sign bits; those of `bytes` mark non-ASCII bytes */
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

/* The number in the four hexadecimal digits at p; -1: they are not. */
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

/* \uXXXX; p is at the backslash. */
static struct json_scan unicode_escape(const char *p, const char *end)
{
    if (end - p < 6)
        return bad(p, json_text_ended);
    return hex4(p + 2) < 0 ? bad(p, "invalid \\u escape") : good(p + 6);
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

bool json_text_is_escape(const char *p, const char *end)
{
    return escape(p - 1, end).problem == NULL;
}

/* Skips the character at p, or one byte that begins none. */
static const char *utf8_character(const char *p, const char *end, unsigned *oddities)
{
    int length = utf8_length(p, (size_t)(end - p));

    if (length > 0)
        return p + length;
    *oddities |= JSON_INVALID_UTF8;
    return p + 1;
}

static inline struct json_scan scan_string(const char *p, const char *end, unsigned *oddities)
{
    p++;
    for (;;) {
        p = plain_bytes(p, end);
        if (p == end)
            return bad(p, json_text_ended);
        if (*p == '"')
            return good(p + 1);
        if ((unsigned char)*p >= 0x80) {
            p = utf8_character(p, end, oddities);
            continue;
        }
        if (*p != '\\')
            return bad(p, "control character in a string");
        *oddities |= JSON_ESCAPE;
        struct json_scan scan = escape(p, end);
        if (scan.problem != NULL)
            return scan;
        p = scan.at;
    }
}

struct json_scan json_text_string(const char *p, const char *end, unsigned *oddities)
{
    return scan_string(p, end, oddities);
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

static const char *digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* A number, from its decimal point or its exponent on. */
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
    if (p < end && (*p == '.' || *p == 'e' || *p == 'E'))
        return fraction_and_exponent(p, end);
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

/* A member's key and its colon. */
static struct json_scan key_and_colon(const char *p, const char *end)
{
    unsigned ignored = 0;

    p = json_text_space(p, end);
    if (p == end)
        return bad(p, json_text_ended);
    if (*p != '"')
        return bad(p, "expected a key in double quotes");
    struct json_scan scan = scan_string(p, end, &ignored);
    if (scan.problem != NULL)
        return scan;
    p = json_text_space(scan.at, end);
    if (p == end)
        return bad(p, json_text_ended);
    if (*p != ':')
        return bad(p, "expected ':' after the key");
    return good(p + 1);
}

/* The arrays and objects around a value: a bit for each level, set for an object. Bits at or above
 * `depth` are not used. */
struct levels {
    unsigned depth, room;
    char close; /* the innermost one's closing bracket */
    uint64_t is_object[JSON_LEVELS_MAX / 64];
};

static inline void push_level(struct levels *levels, char close)
{
    uint64_t bit = UINT64_C(1) << (levels->depth % 64);
    uint64_t *word = &levels->is_object[levels->depth / 64];

    if (levels->depth % 64 == 0)
        *word = 0;
    *word = close == '}' ? *word | bit : *word & ~bit;
    levels->depth++;
    levels->close = close;
}

static inline void pop_level(struct levels *levels)
{
    if (--levels->depth == 0)
        return;
    unsigned outer = levels->depth - 1;
    levels->close = (levels->is_object[outer / 64] >> (outer % 64) & 1) != 0 ? '}' : ']';
}

/* After a value: closing brackets, then a comma (and the next key), or the end of the outer value.
 */
static struct json_scan after_value(const char *p, const char *end, struct levels *levels)
{
    while (levels->depth != 0) {
        p = json_text_space(p, end);
        if (p == end)
            return bad(p, json_text_ended);
        char close = levels->close;
        if (*p == ',')
            return close == '}' ? key_and_colon(p + 1, end) : good(p + 1);
        if (*p != close)
            return bad(p, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        p++;
        pop_level(levels);
    }
    return good(p);
}

/* Enters the array or object at p. *is_empty: it was closed at once. */
static struct json_scan open_level(const char *p, const char *end, struct levels *levels,
                                   bool *is_empty)
{
    char close = *p == '{' ? '}' : ']';

    if (levels->depth == levels->room)
        return bad(p, json_text_too_deep);
    p = json_text_space(p + 1, end);
    if (p == end)
        return bad(p, json_text_ended);
    *is_empty = *p == close;
    if (*is_empty)
        return good(p + 1);
    push_level(levels, close);
    return close == '}' ? key_and_colon(p, end) : good(p);
}

/* The plain twin of json_skip, and for what that leaves. */
static struct json_scan value_by_tokens(const char *p, const char *end, unsigned room)
{
    struct levels levels;
    struct json_scan scan = good(p);

    levels.depth = 0;
    levels.room = room < JSON_LEVELS_MAX ? room : JSON_LEVELS_MAX;
    do {
        bool is_closed = true; /* the scan is after a complete value */
        unsigned ignored = 0;

        p = json_text_space(scan.at, end);
        if (p == end)
            return bad(p, json_text_ended);
        if (*p == '"')
            scan = scan_string(p, end, &ignored);
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

struct json_scan json_text_value(const char *p, const char *end, unsigned room)
{
    unsigned ignored = 0;

    if (p < end && *p == '"')
        return scan_string(p, end, &ignored);
    bool is_group = p < end && (*p == '{' || *p == '[');
    const char *behind = is_group && json_skip != NULL ? json_skip->check(p, end, room) : NULL;
    return behind != NULL ? good(behind) : value_by_tokens(p, end, room);
}

struct json_scan json_text_checked_value(const char *p, const char *end)
{
    bool is_group = p < end && (*p == '{' || *p == '[');
    const char *behind = is_group && json_skip != NULL ? json_skip->find_end(p, end) : NULL;

    return behind != NULL ? good(behind) : json_text_value(p, end, JSON_LEVELS_MAX);
}

/* ---- the text of a string ---- */

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

enum { REPLACEMENT = 0xFFFD };

static bool is_surrogate(int32_t unit, int32_t first)
{
    return unit >= first && unit < first + 0x400;
}

/* The character of \uXXXX at p; *length is how many bytes it takes: a pair of surrogates is one. */
static uint32_t unicode_character(const char *p, const char *end, size_t *length)
{
    int32_t unit = hex4(p + 2);

    *length = 6;
    if (unit == 0)
        return REPLACEMENT;
    if (!is_surrogate(unit, 0xD800))
        return is_surrogate(unit, 0xDC00) ? REPLACEMENT : (uint32_t)unit;
    int32_t low = end - p >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8) : -1;
    if (!is_surrogate(low, 0xDC00))
        return REPLACEMENT;
    *length = 12;
    return 0x10000 + (((uint32_t)unit - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
}

/* The character of the escape at p (a backslash); *length is how many bytes the escape takes. */
static uint32_t escaped_character(const char *p, const char *end, size_t *length)
{
    *length = 2;
    switch (p[1]) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'u': return unicode_character(p, end, length);
    default: return (unsigned char)p[1];
    }
}

size_t json_text_decode(char *out, struct slice raw)
{
    const char *end = raw.ptr + raw.len;
    size_t written = 0;

    for (const char *p = raw.ptr; p < end;) {
        size_t length = 1;
        if (*p == '\\') {
            written += put_utf8(out + written, escaped_character(p, end, &length));
        } else if ((unsigned char)*p < 0x80) {
            out[written++] = *p;
        } else {
            int bytes = utf8_length(p, (size_t)(end - p));
            length = bytes > 0 ? (size_t)bytes : 1;
            if (bytes > 0)
                memcpy(out + written, p, length);
            written += bytes > 0 ? length : put_utf8(out + written, REPLACEMENT);
        }
        p += length;
    }
    return written;
}
