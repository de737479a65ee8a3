#include "config/base/utf8.h"

int utf8_length(const char *p, size_t left)
{
    const unsigned char *s = (const unsigned char *)p;
    int length = s[0] < 0x80   ? 1
                 : s[0] < 0xC2 ? 0
                 : s[0] < 0xE0 ? 2
                 : s[0] < 0xF0 ? 3
                 : s[0] < 0xF5 ? 4
                               : 0;

    for (int i = 1; i < length; i++) {
        if (left <= (size_t)i)
            return UTF8_CUT_OFF;
        if ((s[i] & 0xC0) != 0x80)
            return UTF8_INVALID;
    }
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ||
        (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))
        return UTF8_INVALID;
    return length;
}
