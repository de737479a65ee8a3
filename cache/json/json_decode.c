/* The text of a string: its escapes, and bytes that are not UTF-8. */
#include "cache/json/json_text.h"
#include "config/base/utf8.h"

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
    int32_t unit = json_text_hex4(p + 2);

    *length = 6;
    if (unit == 0)
        return REPLACEMENT;
    if (!is_surrogate(unit, 0xD800))
        return is_surrogate(unit, 0xDC00) ? REPLACEMENT : (uint32_t)unit;
    int32_t low = end - p >= 12 && p[6] == '\\' && p[7] == 'u' ? json_text_hex4(p + 8) : -1;
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
