/*
 * json_blocks: which of 64 bytes of JSON are quotes and commas, as bits. With these, an array of
 * names is read by whole blocks (json_strings.c): byte by byte, or name by name, reading 5,000 node
 * names would take longer than the rest of a filter call.
 *
 * Three versions give the same bits: AVX2, SSE2 (on every x86-64), and plain C. The best that this
 * processor has is chosen when the program starts; tests/fuzz/fuzz_pull compares them.
 */
#ifndef CACHE_JSON_JSON_BLOCKS_H
#define CACHE_JSON_JSON_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_BLOCK = 64 };

/* Bit i is byte i. */
struct json_block {
    uint64_t quotes, commas;
    bool is_odd; /* it has a backslash, a control byte, or a byte that is not ASCII */
};

/* Reads `count` blocks from p. */
typedef void json_blocks_reader(const char *p, size_t count, struct json_block *out);

/* The best one; threads: any, after the start. */
extern json_blocks_reader *json_blocks_read;

/* All that this processor has, the plain one first; NULL ends them. */
enum { JSON_BLOCKS_READERS_MAX = 3 };
extern json_blocks_reader *json_blocks_readers[JSON_BLOCKS_READERS_MAX + 1];

#endif
