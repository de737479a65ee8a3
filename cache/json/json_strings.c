/*
 * Arrays of strings: the node names of a filter call, which are most of its body.
 *
 * Programs write them with only a comma between two strings, without escapes. There, whether a
 * quote opens or closes a string follows from what is before it: `",` or not. So whole blocks of
 * bytes are read with a few operations on bits and without branches that depend on the lengths of
 * the names (json_blocks.h), and only what does not look like that is read string by string. Tests
 * hold both against jansson.
 *
 * A join copies a name and its tail by whole vectors, with the bytes behind them, which the next
 * copy overwrites: with a call of memcpy for each, of a length that cannot be predicted, it takes a
 * third longer where the answer is not in the processor's cache.
 */
#include <stdint.h>

#include "cache/json/json_blocks.h"
#include "cache/json/json_text.h"

/* Counts a string of the array, and joins it. */
static void take_string(const char *begin, const char *end, size_t *count, struct json_join *join)
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

/* Copies at least `length` bytes: JSON_JOIN_ROOM at a time. Returns the end of the copy. */
static inline char *copy_roughly(char *to, const char *from, size_t length)
{
    for (size_t i = 0; i < length; i += JSON_JOIN_ROOM)
        memcpy(to + i, from + i, JSON_JOIN_ROOM);
    return to + length;
}

/* Joins the strings before those that open in a block; `index`: of the first of them. *open: the
 * quote that opens it; then that of the last that opens. Each ends two bytes before the next. */
static inline size_t take_strings(const char **open, const char *block, uint64_t opening,
                                  size_t index, struct json_join *join)
{
    for (; opening != 0; opening &= opening - 1) {
        const char *begin = *open;
        *open = block + __builtin_ctzll(opening);
        size_t length = (size_t)(*open - 1 - begin);
        if (join->inside != NULL)
            join->inside[index++] = (struct slice){begin + 1, length - 2};
        if (join->to != NULL) {
            join->to = copy_roughly(join->to, begin, length);
            join->to = copy_roughly(join->to, join->tail.ptr, join->tail.len);
        }
    }
    return index;
}

/* The quote that opens the last string that opens in the blocks. */
static const char *find_last(const char *p, const struct json_blocks *blocks, size_t count,
                             const char *open)
{
    while (count-- != 0)
        if (blocks->opening[count] != 0)
            return p + count * JSON_BLOCK + 63 - __builtin_clzll(blocks->opening[count]);
    return open;
}

/* How many blocks are read at once: few at first, because where the strings look different, they
 * are read in vain. 0: the text ends before. */
static size_t choose_blocks(size_t before, size_t bytes)
{
    size_t most = bytes < JSON_JOIN_ROOM ? 0 : (bytes - JSON_JOIN_ROOM) / JSON_BLOCK / 2 * 2;
    size_t wanted = before == 0 ? 2 : before < JSON_BLOCKS_MAX ? 2 * before : JSON_BLOCKS_MAX;

    return wanted < most ? wanted : most;
}

/* Reads strings from the opening quote at p, that are of two bytes at least. Returns the opening
 * quote of the first string that it has not read. */
static const char *read_blocks(const char *p, const char *end, size_t *count,
                               struct json_join *join)
{
    struct json_blocks blocks;
    const char *open = p;
    size_t n = 0;

    if (end - p < JSON_BLOCK_BEFORE || p[1] == '"' || p[2] == '"')
        return p;
    for (p += JSON_BLOCK_BEFORE;; p += n * JSON_BLOCK) {
        n = choose_blocks(n, (size_t)(end - p));
        if (n == 0 || !json_blocks_read(p, n, &blocks))
            return open;
        *count += blocks.strings;
        if (join == NULL)
            open = find_last(p, &blocks, n, open);
        size_t index = *count - blocks.strings;
        for (size_t i = 0; join != NULL && i < n; i++)
            index = take_strings(&open, p + i * JSON_BLOCK, blocks.opening[i], index, join);
    }
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
