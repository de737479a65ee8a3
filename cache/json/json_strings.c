/*
 * Arrays of strings: the node names of a filter call, which are most of its body.
 *
 * Programs write them with only a comma between two strings, without escapes. There, whether a
 * quote opens or closes a string follows from what is before it: `",` or not. So whole blocks of 64
 * bytes are read with a few operations on bits and without branches that depend on the lengths of
 * the names, and only what does not look like that is read string by string. Tests hold both
 * against jansson.
 */
#include <stdint.h>

#include "cache/json/json_blocks.h"
#include "cache/json/json_text.h"

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

/* Where reading by blocks has come to. */
struct walk {
    const char *open;                 /* the quote that opens the present string */
    uint64_t quotes, commas, closing; /* of the block before */
    unsigned empty;                   /* blocks without a quote before this one */
};

/*
 * The quotes of the block that open strings, in *opening. False: the block has to be read string by
 * string.
 *
 * A quote behind a comma opens a string, and any other quote closes one, if each that opens is two
 * bytes behind one that closes, and the other way round: then they alternate. A string is not empty
 * if no two quotes are adjacent. It may be too long only if there are two blocks without a quote.
 */
static inline bool find_opening(struct walk *walk, const struct json_block *block,
                                uint64_t *opening)
{
    uint64_t quotes = block->quotes;
    uint64_t behind_comma = block->commas << 1 | walk->commas >> 63;
    uint64_t behind_quote = quotes << 1 | walk->quotes >> 63;
    uint64_t closing = quotes & ~behind_comma;

    *opening = quotes & behind_comma;
    if (block->is_odd || *opening != (closing << 2 | walk->closing >> 62) ||
        (quotes & behind_quote) != 0)
        return false;
    walk->empty = quotes != 0 ? 0 : walk->empty + 1;
    walk->quotes = quotes;
    walk->commas = block->commas;
    walk->closing = closing;
    return walk->empty < 2;
}

/* Bits that are set; without the processor's own instruction for it, the compiler calls a function.
 */
static inline unsigned count_bits(uint64_t bits)
{
    bits -= bits >> 1 & UINT64_C(0x5555555555555555);
    bits = (bits & UINT64_C(0x3333333333333333)) + (bits >> 2 & UINT64_C(0x3333333333333333));
    bits = (bits + (bits >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(bits * UINT64_C(0x0101010101010101) >> 56);
}

/* Each string ends two bytes before the next one opens. */
static inline void take_strings(struct walk *walk, const char *p, uint64_t opening, size_t *count,
                                struct json_join *join)
{
    if (join == NULL && opening != 0) {
        *count += count_bits(opening);
        walk->open = p + 63 - __builtin_clzll(opening);
        return;
    }
    for (; opening != 0; opening &= opening - 1) {
        const char *open = p + __builtin_ctzll(opening);
        take_string(walk->open, open - 1, count, join);
        walk->open = open;
    }
}

enum { BLOCKS_AT_ONCE = 16 };

/* Reads strings from the opening quote at p. Returns the opening quote of the first string that it
 * has not read. */
static const char *read_blocks(const char *p, const char *end, size_t *count,
                               struct json_join *join)
{
    /* as if a string had ended before this one */
    struct walk walk = {.open = p, .commas = UINT64_C(1) << 63, .closing = UINT64_C(1) << 62};
    uint64_t first = 1; /* is not the end of a string */
    struct json_block blocks[BLOCKS_AT_ONCE];

    while (end - p >= JSON_BLOCK) {
        size_t n = (size_t)(end - p) / JSON_BLOCK;
        n = n < BLOCKS_AT_ONCE ? n : BLOCKS_AT_ONCE;
        json_blocks_read(p, n, blocks);
        for (size_t i = 0; i < n; i++, p += JSON_BLOCK) {
            uint64_t opening;
            if (!find_opening(&walk, &blocks[i], &opening))
                return walk.open;
            take_strings(&walk, p, opening & ~first, count, join);
            first = 0;
        }
    }
    return walk.open;
}

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
        p = read_blocks(p, end, count, join);
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
