/*
 * json_blocks: where strings open in an array of names, for JSON_BLOCK bytes at a time. With this,
 * an array of names is read by whole blocks (json_strings.c): byte by byte, or name by name,
 * reading 5,000 node names would take longer than the rest of a filter call.
 *
 * A block is what remains of 64 bytes behind the 3 bytes that say what its first bytes are. So
 * nothing is carried from block to block, which would take more instructions than the comparison
 * of the bytes: with AVX2, 43 for 61 bytes, in place of 95 for 64 with carries and a branch.
 *
 * Versions with AVX-512, AVX2, SSE2 and in plain C give the same result. The best that this
 * processor has is chosen when the program starts (AVX-512 only on processors that do not slow down
 * for it); tests/fuzz/fuzz_pull and a unit test compare them all.
 */
#ifndef CACHE_JSON_JSON_BLOCKS_H
#define CACHE_JSON_JSON_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/json/json_text.h"

enum {
    JSON_BLOCK = 61,
    JSON_BLOCK_BEFORE = 3, /* bytes before the first block, which are read as well */
    JSON_BLOCKS_MAX = 32,  /* at once */
};

/* What a reader has found. */
struct json_blocks {
    uint64_t opening[JSON_BLOCKS_MAX]; /* bit i of a block: byte i opens a string */
    size_t strings;                    /* how many open: set bits */
};

/*
 * Reads `count` blocks from p: an even number, at most JSON_BLOCKS_MAX. Returns whether they
 * continue as follows, if all was so from an opening quote, at least 3 bytes before p, up to p:
 * - quotes open and close strings in turn, and what is between two strings is one comma;
 * - no string is empty (no two quotes are adjacent);
 * - all bytes are ASCII, without backslashes and control bytes, also the 3 before;
 * - no two blocks, of each two, are without any quote: so no string is over JSON_NAME_BYTES_MAX.
 * If it returns false, the blocks have to be read string by string, and *out is of no use.
 *
 * A quote behind a comma opens a string, and any other closes one. Where each that opens is two
 * bytes behind one that closes, and the other way round, they do so in turn.
 */
typedef bool json_blocks_reader(const char *p, size_t count, struct json_blocks *out);

/* The best one; threads: any, after the start. */
extern json_blocks_reader *json_blocks_read;

/*
 * Joins the strings before those that open in the blocks, each behind join->between. *open: the
 * quote that opens the first of them; then the one that opens the first that is not joined. False:
 * there is no room for that one, with JSON_JOIN_ROOM bytes behind it.
 *
 * Strings are copied by whole vectors, with the bytes behind them, which the next copy overwrites,
 * because a call of memcpy for each, of a length that cannot be predicted, takes longer. The copies
 * of 5,000 names with a reason took 57 us with a loop over the bits of each block, whose number
 * cannot be predicted; 40 when a list of all bits is made first; 35 with AVX2.
 */
typedef bool json_blocks_joiner(const char **open, const char *p, const struct json_blocks *blocks,
                                size_t count, struct json_join *join);

/* The best one; and all, as of the readers. */
extern json_blocks_joiner *json_blocks_join;
enum { JSON_BLOCKS_JOINERS_MAX = 2 };
extern json_blocks_joiner *json_blocks_joiners[JSON_BLOCKS_JOINERS_MAX + 1];

/* All that this processor has, the plain one first; NULL ends them. */
enum { JSON_BLOCKS_READERS_MAX = 4 };
extern json_blocks_reader *json_blocks_readers[JSON_BLOCKS_READERS_MAX + 1];

#endif
