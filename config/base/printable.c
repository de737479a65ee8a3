#include "config/base/printable.h"

#include <stdbool.h>
#include <stddef.h>

/* How many bytes the control character at `at` has; 0: it is none. */
static size_t control_length(const unsigned char *at)
{
    if (*at < 0x20 || *at == 0x7f)
        return 1;
    if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f)
        return 2;
    if (at[0] == 0xd8 && at[1] == 0x9c) /* U+061C */
        return 2;
    if (at[0] != 0xe2)
        return 0;
    bool is_mark = at[1] == 0x80 && (at[2] == 0x8e || at[2] == 0x8f); /* U+200E, U+200F */
    bool is_embedding = at[1] == 0x80 && at[2] >= 0xaa && at[2] <= 0xae;
    bool is_isolate = at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9;
    return is_mark || is_embedding || is_isolate ? 3 : 0;
}

void make_printable(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at != '\0'; at++)
        for (size_t left = control_length(at); left != 0; left--, at += left != 0)
            *at = '?';
}
