#include "config/base/base64.h"

#include <stdint.h>

/* The value of a digit; 64 if the character is not one. */
static unsigned digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (unsigned)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (unsigned)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool base64_decode(struct slice text, struct arena *arena, struct slice *out)
{
    char *bytes = arena_alloc(arena, text.len / 4 * 3 + 4);
    uint32_t bits = 0;
    size_t digits = 0, padding = 0, length = 0;

    if (bytes == NULL)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (is_space(text.ptr[i]))
            continue;
        unsigned digit = digit_of(text.ptr[i]);
        bool is_padding = text.ptr[i] == '=';
        if ((digit == 64 && !is_padding) || (padding != 0 && !is_padding))
            return false;
        padding += is_padding;
        bits = bits << 6 | (is_padding ? 0 : digit);
        if (++digits % 4 != 0)
            continue;
        bytes[length++] = (char)(bits >> 16 & 0xff);
        bytes[length++] = (char)(bits >> 8 & 0xff);
        bytes[length++] = (char)(bits & 0xff);
    }
    if (digits % 4 != 0 || padding > 2 || padding > length)
        return false;
    *out = (struct slice){bytes, length - padding};
    bytes[out->len] = '\0';
    return true;
}
