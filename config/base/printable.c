#include "config/base/printable.h"

#include <stdbool.h>

void make_printable(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at != '\0'; at++) {
        bool is_control = *at < 0x20 || *at == 0x7f;
        bool is_high_control = at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f;
        if (is_high_control)
            at[1] = '?';
        if (is_control || is_high_control)
            *at = '?';
    }
}
