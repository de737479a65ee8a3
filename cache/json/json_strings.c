/*
 * Arrays of strings: the node names of a filter call, which are most of its body.
 */
#include <stdint.h>

#include "cache/json/json_text.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Counts a string of the array, and joins it. */
static inline void take_string(const char *begin, const char *end, size_t *count,
                               struct json_join *join)
{
    size_t length = (size_t)(end - begin), index = (*count)++;

    if (join == NULL)
        return;
    if (join->inside != NULL)
        join->inside[index] = (struct slice){begin + 1, length - 2};
    if (join->to == NULL)
        return;
    memcpy(join->to, begin, length);
    memcpy(join->to + length, join->tail.ptr, join->tail.len);
    join->to += length + join->tail.len;
}

#ifdef __SSE2__
/* For 64 bytes at p: a bit for each quote, and a bit for each byte that must be checked. */
static inline void classify(const char *p, uint64_t *quotes, uint64_t *specials)
{
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    const __m128i last_control = _mm_set1_epi8(0x1f);

    *quotes = *specials = 0;
    for (size_t i = 0; i < 4; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        __m128i special = _mm_or_si128(_mm_cmpeq_epi8(bytes, backslash),
                                       _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes));
        uint64_t found = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, quote));
        uint64_t odd = (unsigned)_mm_movemask_epi8(_mm_or_si128(special, bytes));
        *quotes |= found << (16 * i);
        *specials |= odd << (16 * i);
    }
}

/*
 * Skips plain strings with only a comma between them, as all programs write them, from the opening
 * quote at p: 64 bytes at a time. Returns the opening quote of the first string that it cannot
 * skip.
 */
static const char *skip_plain_strings(const char *p, const char *end, size_t *count,
                                      struct json_join *join)
{
    const char *open = p;  /* quote of the present string */
    uint64_t consumed = 1; /* quotes of the block that were read already: the one at p */

    for (; end - p >= 64 + 3; p += 64) {
        uint64_t quotes, specials;
        classify(p, &quotes, &specials);
        uint64_t before_special = specials == 0 ? ~UINT64_C(0) : (specials & -specials) - 1;
        uint64_t closing = quotes & before_special & ~consumed;
        consumed = 0;
        while (closing != 0) {
            unsigned i = (unsigned)__builtin_ctzll(closing);
            /* a string that may be too long, or empty (its length wraps around), is checked by the
             * caller */
            if (p[i + 1] != ',' || p[i + 2] != '"' ||
                (size_t)(p + i - open) - 2 > JSON_NAME_BYTES_MAX - 2)
                return open;
            take_string(open, p + i + 1, count, join);
            open = p + i + 2;
            if (i + 2 >= 64) { /* it opens in the next block */
                consumed = UINT64_C(1) << (i + 2 - 64);
                break;
            }
            closing &= ~(UINT64_C(5) << i);
        }
        if (specials != 0)
            return open;
    }
    return open;
}
#endif

struct json_scan json_text_strings(const char *p, const char *end, size_t *count,
                                   struct json_join *join)
{
    unsigned oddities = 0;

    *count = 0;
    p = json_text_space(p + 1, end);
    if (p < end && *p == ']')
        return (struct json_scan){p + 1, NULL};
    for (;;) {
        if (p == end)
            return (struct json_scan){p, json_text_ended};
        if (*p != '"')
            return (struct json_scan){p, "expected a string"};
#ifdef __SSE2__
        p = skip_plain_strings(p, end, count, join);
#endif
        struct json_scan scan = json_text_string(p, end, &oddities);
        if (scan.problem != NULL)
            return scan;
        if ((oddities & JSON_INVALID_UTF8) != 0)
            return (struct json_scan){p, "invalid UTF-8 in a name"};
        if (scan.at - p == 2)
            return (struct json_scan){p, "an empty name"};
        if (scan.at - p - 2 > JSON_NAME_BYTES_MAX)
            return (struct json_scan){p, "a name of over 253 bytes"};
        take_string(p, scan.at, count, join);
        p = json_text_space(scan.at, end);
        if (p == end)
            return (struct json_scan){p, json_text_ended};
        if (*p == ']')
            return (struct json_scan){p + 1, NULL};
        if (*p != ',')
            return (struct json_scan){p, "expected ',' or ']'"};
        p = json_text_space(p + 1, end);
    }
}
