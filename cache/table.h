/*
 * table: a compact hash set of records: open addressing, 8 bytes a slot, at most 3/4 full. For what
 * the cluster has hundreds of thousands of (pods, claims, names), where the 56 bytes that a uthash
 * handle adds to each record are most of the memory budget; everything smaller uses uthash.
 *
 * Each record starts with its 32-bit hash. The table owns its slots, not the records.
 *
 * Threads: many readers or one writer.
 */
#ifndef CACHE_TABLE_H
#define CACHE_TABLE_H

#include <stdint.h>

#include "config/base/slice.h"

struct table_record {
    uint32_t hash;
};

struct table {
    struct table_record **slots; /* NULL: free */
    uint32_t capacity;           /* a power of two, or 0 */
    uint32_t count;
};

/* Whether the record is the one that key means. */
typedef bool table_match(const struct table_record *record, const void *key);

/* hash32 of the bytes, seeded for this process, so that names chosen to collide do not. */
uint32_t table_hash(struct slice bytes, uint32_t seed);

void table_dispose(struct table *table);

struct table_record *table_find(const struct table *table, uint32_t hash, table_match *match,
                                const void *key);

/* Adds a record that is not in the table yet. False when there is no memory for it. */
bool table_add(struct table *table, struct table_record *record) MUST_USE;

/* Removes a record that is in the table. */
void table_remove(struct table *table, const struct table_record *record);

/* The records in slot order: start with *cursor = 0; NULL at the end. */
struct table_record *table_next(const struct table *table, uint32_t *cursor);

#endif
