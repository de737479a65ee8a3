#include "config/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- UTF-8 ---- */

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

struct slice utf8_whole(struct slice text)
{
    /* of a character of four bytes, at most three are there */
    for (size_t back = 1; back <= 3 && back <= text.len; back++)
        if (utf8_length(text.ptr + text.len - back, back) == UTF8_CUT_OFF)
            return (struct slice){text.ptr, text.len - back};
    return text;
}

/* ---- for a terminal ---- */

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
            *at = *at == '\n' || *at == '\t' ? ' ' : '?';
}

/* ---- base64 ---- */

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

/* ---- times ---- */

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

/* ---- "did you mean" ---- */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Row by row of the usual table; the last three rows are kept. */
static unsigned count_edits(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned rows[3][NEAREST_BYTES_MAX + 1];

    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

void nearest_offer(struct nearest *nearest, const char *word)
{
    size_t typed_len = strlen(nearest->typed), len = strlen(word);

    if (typed_len > NEAREST_BYTES_MAX || len > NEAREST_BYTES_MAX)
        return;
    unsigned edits = count_edits(nearest->typed, typed_len, word, len);
    bool is_beginning = typed_len >= 3 && strncmp(nearest->typed, word, typed_len) == 0;
    if (is_beginning && edits > NEAREST_EDITS_MAX)
        edits = NEAREST_EDITS_MAX;
    bool is_near = is_beginning || (edits <= NEAREST_EDITS_MAX && edits <= len / 3);
    if (is_near && (nearest->word == NULL || edits < nearest->edits ||
                    (edits == nearest->edits && strcmp(word, nearest->word) < 0))) {
        nearest->word = word;
        nearest->edits = edits;
    }
}

void nearest_offer_copy(struct nearest *nearest, struct slice word)
{
    char text[NEAREST_BYTES_MAX + 1];

    if (word.len > NEAREST_BYTES_MAX)
        return;
    (void)snprintf(text, sizeof text, "%.*s", SLICE_ARG(word));
    nearest_offer(nearest, text);
    if (nearest->word == text) {
        (void)snprintf(nearest->copy, sizeof nearest->copy, "%s", text);
        nearest->word = nearest->copy;
    }
}

const char *nearest_hint(const struct nearest *nearest, const char *before,
                         char out[static NEAREST_HINT_BYTES])
{
    out[0] = '\0';
    if (nearest->word != NULL)
        (void)snprintf(out, NEAREST_HINT_BYTES, "; did you mean %s%s?", before, nearest->word);
    return out;
}
