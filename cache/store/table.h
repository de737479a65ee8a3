/*
 * table: a compact hash set of records: open addressing, 5 bytes a slot, at most 3/4 full. It is
 * used for pods, claims, nodes and names, of which there are hundreds of thousands: a uthash handle
 * would add 56 bytes to each. It is used for reservations because uthash moves all records at once
 * when it grows, with the cluster's lock held.
 *
 * It grows and shrinks a page at a time (extendible hashing): the first bits of a hash choose the
 * page, the last bits the slot. A full page is split in two, and two nearly empty pages are joined.
 * So no operation moves more than TABLE_PAGE_SLOTS records at any size. Only the directory is
 * copied as a whole: 8 bytes for about 50 records.
 *
 * Each record starts with its 32-bit hash, and is from a pool, so a slot has the 32 bits of its
 * reference (pool.h). The table owns its pages, not the records.
 *
 * Threads: many readers or one writer.
 */
#ifndef CACHE_STORE_TABLE_H
#define CACHE_STORE_TABLE_H

#include <stdint.h>

#include "cache/store/pool.h"
#include "config/base/slice.h"

enum { TABLE_PAGE_SLOTS = 128 };

struct table_record {
    uint32_t hash;
};

struct table_page;

/* All zero, apart from the pool: empty. */
struct table {
    struct pool *pool; /* of its pages and its records */
    struct table_page *
        *pages; /* 2^depth, by the hash's first bits; a page may appear several times */
    uint32_t count;
    uint32_t page_count;
    uint32_t deepest; /* pages that appear once; without them, the directory can be halved */
    uint8_t depth;
};

/* Whether the record has that key. */
typedef bool table_match(const void *record, const void *key);

/* hash32 of the bytes, seeded for this process, so that names chosen to collide do not. */
uint32_t table_hash(struct slice bytes, uint32_t seed);

/* Free the table; table_free_records also frees the records, each a block of its pool. */
void table_dispose(struct table *table);
void table_free_records(struct table *table);

/* The record; NULL: there is none. */
void *table_find(const struct table *table, uint32_t hash, table_match *match, const void *key);

/* Adds a record that is not in the table yet. False when there is no memory for it. */
bool table_add(struct table *table, const struct table_record *record) MUST_USE;

/* Adds a new record of the table's pool: zeroed but for its hash. NULL: no memory. */
void *table_make(struct table *table, uint32_t hash, size_t bytes);

/* Removes a record that is in the table; table_delete also frees it. */
void table_remove(struct table *table, const struct table_record *record);
void table_delete(struct table *table, struct table_record *record);

/*
 * A walk through all records, in no order:
 *
 *     struct table_walk walk = {.at = 0};
 *     struct table_record *record;
 *     while ((record = table_next(table, &walk)) != NULL)
 *         table_delete(table, record); // the record may be removed, and freed
 *
 * Between two pages, the table may change: a new walk {.at = walk.at}, from the end of a page,
 * continues there. It visits all records that are in the table from the beginning to the end of the
 * walk, some of them perhaps twice.
 */
struct table_walk {
    uint64_t at; /* the hash at which the next page begins */
    uint32_t next, count;
    struct table_record *records[TABLE_PAGE_SLOTS]; /* of the page */
};

/* The next record; NULL: there is none. */
void *table_next(const struct table *table, struct table_walk *walk);

/* Reads the next page: records[next] to records[count - 1]. False: there is none. */
bool table_next_page(const struct table *table, struct table_walk *walk);

#endif
