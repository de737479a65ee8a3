#include <stdlib.h>
#include <time.h>

#include "config/base/clock.h"

enum { MINUTES_OF_DAY = 1440 };

/* "Z", or "+02:00". */
static bool parse_offset(const char *text, int64_t *out_minutes)
{
    static const char form[] = "+00:00";
    int64_t minutes;

    *out_minutes = 0;
    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0)
        return true;
    if (strlen(text) != sizeof form - 1 || (text[0] != '+' && text[0] != '-') || text[3] != ':' ||
        strspn(text + 1, "0123456789") != 2 || strspn(text + 4, "0123456789") != 2)
        return false;
    minutes = strtol(text + 1, NULL, 10) * 60 + strtol(text + 4, NULL, 10);
    *out_minutes = text[0] == '-' ? -minutes : minutes;
    return minutes < MINUTES_OF_DAY && text[4] < '6';
}

int64_t time_parse(struct slice text)
{
    char copy[48];
    struct tm tm = {0};
    int64_t offset_minutes;

    if (text.len < sizeof "2026-11-20T10:00:00Z" - 1 || text.len >= sizeof copy)
        return 0;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    const char *end = strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm);
    if (end != NULL && *end == '.')
        end += 1 + strspn(end + 1, "0123456789");
    if (end == NULL || !parse_offset(end, &offset_minutes))
        return 0;
    return ((int64_t)timegm(&tm) - offset_minutes * 60) * 1000;
}
