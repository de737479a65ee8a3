/*
 * Arrays of strings: the node names of a filter call, which are most of its body.
 *
 * Programs write them with only a comma between two strings, without escapes. There, whether a
 * quote opens or closes a string follows from what is before it: `",` or not. So whole blocks of
 * bytes are read with a few operations on bits and without branches that depend on the lengths of
 * the names (json_blocks.h), and only what does not look like that is read string by string. Tests
 * hold both against jansson.
 *
 * A join puts a text between the names. Strings that no block takes, and those near the end of the
 * room, are joined one by one.
 */
#include <stdint.h>

#include "cache/json/json_blocks.h"
#include "cache/json/json_text.h"

/* How many blocks are read at once: few at first, because where the strings look different, they
 * are read in vain. 0: the text ends before. */
static size_t choose_blocks(size_t before, size_t bytes)
{
    size_t most = bytes < JSON_JOIN_ROOM ? 0 : (bytes - JSON_JOIN_ROOM) / JSON_BLOCK / 2 * 2;
    size_t wanted = before == 0 ? 2 : before < JSON_BLOCKS_MAX ? 2 * before : JSON_BLOCKS_MAX;

    return wanted < most ? wanted : most;
}

/* Reads blocks from p, after `before` of them. Returns how many; 0: they look different. */
static size_t next_blocks(const char *p, const char *end, size_t before, struct json_blocks *out)
{
    size_t count = choose_blocks(before, (size_t)(end - p));

    return count != 0 && json_blocks_read(p, count, out) ? count : 0;
}

/* Whether a string begins at p as blocks continue it: it is not empty. */
static bool can_begin(const char *p, const char *end)
{
    return end - p >= JSON_BLOCK_BEFORE && p[1] != '"' && p[2] != '"';
}

/* ---- counting, and what is inside ---- */

/* The quote that opens the last string that opens in the blocks. */
static const char *find_last(const char *p, const struct json_blocks *blocks, size_t count,
                             const char *open)
{
    while (count-- != 0)
        if (blocks->opening[count] != 0)
            return p + count * JSON_BLOCK + 63 - __builtin_clzll(blocks->opening[count]);
    return open;
}

/* Notes the strings before those that open in a block. *open: the quote that opens the first of
 * them; then that of the last that opens. Each ends two bytes before the next. */
static inline struct slice *take_insides(const char **open, const char *block, uint64_t opening,
                                         struct slice *inside)
{
    for (; opening != 0; opening &= opening - 1) {
        const char *begin = *open + 1;
        *open = block + __builtin_ctzll(opening);
        *inside++ = (struct slice){begin, (size_t)(*open - 2 - begin)};
    }
    return inside;
}

/* Reads strings from the opening quote at p. Returns the opening quote of the first string that it
 * has not read. */
static const char *read_blocks(const char *p, const char *end, size_t *count, struct slice *inside)
{
    struct json_blocks blocks;
    const char *open = p;
    size_t n = 0;

    if (!can_begin(p, end))
        return p;
    for (p += JSON_BLOCK_BEFORE;; p += n * JSON_BLOCK) {
        n = next_blocks(p, end, n, &blocks);
        if (n == 0)
            return open;
        struct slice *next = inside == NULL ? NULL : inside + *count;
        for (size_t i = 0; next != NULL && i < n; i++)
            next = take_insides(&open, p + i * JSON_BLOCK, blocks.opening[i], next);
        if (next == NULL)
            open = find_last(p, &blocks, n, open);
        *count += blocks.strings;
    }
}

/* What is wrong with a string, its quotes included, as a name; NULL: nothing. */
static const char *find_problem(size_t length, unsigned oddities)
{
    if ((oddities & JSON_INVALID_UTF8) != 0)
        return "invalid UTF-8 in a name";
    if (length == 2)
        return "an empty name";
    return length - 2 > JSON_NAME_BYTES_MAX ? "a name of over 253 bytes" : NULL;
}

/* Skips white space, and counts it. */
static const char *skip_space(const char *p, const char *end, size_t *spaces)
{
    const char *behind = json_text_space(p, end);

    *spaces += (size_t)(behind - p);
    return behind;
}

struct json_scan json_text_strings(const char *p, const char *end, struct json_strings *found,
                                   struct slice *inside)
{
    const char *begin = p;
    size_t spaces = 0, count = 0;
    unsigned oddities = 0;

    *found = (struct json_strings){0};
    p = skip_space(p + 1, end, &spaces);
    if (p < end && *p == ']')
        return (struct json_scan){p + 1, NULL};
    for (;;) {
        if (p == end)
            return (struct json_scan){p, json_text_ended};
        if (*p != '"')
            return (struct json_scan){p, "expected a string"};
        p = read_blocks(p, end, &count, inside);
        struct json_scan scan = json_text_string(p, end, &oddities);
        if (scan.problem != NULL)
            return scan;
        size_t length = (size_t)(scan.at - p);
        scan.problem = find_problem(length, oddities);
        if (scan.problem != NULL)
            return (struct json_scan){p, scan.problem};
        if (inside != NULL)
            inside[count] = (struct slice){p + 1, length - 2};
        count++;
        p = skip_space(scan.at, end, &spaces);
        if (p == end)
            return (struct json_scan){p, json_text_ended};
        if (*p == ']')
            break;
        if (*p != ',')
            return (struct json_scan){p, "expected ',' or ']'"};
        p = skip_space(p + 1, end, &spaces);
    }
    *found = (struct json_strings){count, (size_t)(p - begin) - count - spaces};
    return (struct json_scan){p + 1, NULL};
}

/* ---- joining ---- */

/* Joins strings from the opening quote at p, each behind join->between. Returns the opening quote
 * of the first string that it has not joined. */
static const char *join_blocks(const char *p, const char *end, struct json_join *join)
{
    struct json_blocks blocks;
    const char *open = p;
    size_t n = 0;

    if (!can_begin(p, end))
        return p;
    for (p += JSON_BLOCK_BEFORE;; p += n * JSON_BLOCK) {
        n = next_blocks(p, end, n, &blocks);
        if (n == 0 || !json_blocks_join(&open, p, &blocks, n, join))
            return open;
    }
}

/* Joins the string at p behind `between`. Returns the next string, or the ']'; p: no room. */
static const char *join_string(const char *p, const char *end, struct slice between,
                               struct json_join *join)
{
    unsigned oddities = 0;
    const char *behind = json_text_string(p, end, &oddities).at;
    size_t length = (size_t)(behind - p);

    if ((size_t)(join->end - join->to) < between.len + length)
        return p;
    memcpy(join->to, between.ptr, between.len);
    memcpy(join->to + between.len, p, length);
    join->to += between.len + length;
    p = json_text_space(behind, end);
    return *p == ',' ? json_text_space(p + 1, end) : p;
}

const char *json_text_join(const char *p, const char *end, struct json_join *join)
{
    const char *next;

    if (*p == '[') {
        const char *first = json_text_space(p + 1, end);
        next = *first == ']' ? first : join_string(first, end, SLICE(""), join);
        if (next == first)
            return *first == ']' ? first : p;
        p = next;
    }
    while (*p == '"') {
        p = join_blocks(p, end, join);
        next = join_string(p, end, join->between, join);
        if (next == p)
            break;
        p = next;
    }
    return p;
}
