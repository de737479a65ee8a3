/*
 * table: a compact hash set of records: open addressing, 8 bytes a slot, at most 3/4 full. For what
 * the cluster has hundreds of thousands of (pods, claims, nodes, names), where the 56 bytes that a
 * uthash handle adds to each record are most of the memory budget; and for reservations, since
 * uthash moves all records at once when it grows, and the cluster's lock is held meanwhile.
 *
 * It grows and shrinks a page at a time (extendible hashing): a hash's first bits choose the page,
 * its last ones the slot. A full page becomes two, two that are nearly empty become one, so no
 * operation moves more than TABLE_PAGE_SLOTS records, however many there are, and memory goes back
 * when records do. Only the directory is ever copied as a whole: 8 bytes for about 50 records.
 *
 * Each record starts with its 32-bit hash. The table owns its pages, not the records.
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

/* All zero: empty. */
struct table {
    struct pool *pool;         /* of its pages and its records; NULL: malloc */
    struct table_page **pages; /* 2^depth, by the hash's first bits: one page may stand often */
    uint32_t count;
    uint32_t page_count;
    uint32_t deepest; /* pages that stand once: without them, half of the directory will do */
    uint8_t depth;
};

/* Whether the record is the one that key means. */
typedef bool table_match(const struct table_record *record, const void *key);

/* hash32 of the bytes, seeded for this process, so that names chosen to collide do not. */
uint32_t table_hash(struct slice bytes, uint32_t seed);

/* The table without its records; and with them, each one block of memory. */
void table_dispose(struct table *table);
void table_free_records(struct table *table);

struct table_record *table_find(const struct table *table, uint32_t hash, table_match *match,
                                const void *key);

/* Adds a record that is not in the table yet. False when there is no memory for it. */
bool table_add(struct table *table, struct table_record *record) MUST_USE;

/* Removes a record that is in the table. */
void table_remove(struct table *table, const struct table_record *record);

/*
 * A walk through all records, in no order, from {.at = 0} on:
 *
 *     struct table_walk walk = {.at = 0};
 *     struct table_record *record;
 *     while ((record = table_next(table, &walk)) != NULL)
 *         table_remove(table, record); // the record may be removed, and freed
 *
 * Between two pages anything may change: a walk {.at = walk.at}, where walk has come to a page's
 * end, goes on there. It visits all records that were there from the beginning to the end; some of
 * them maybe twice.
 */
struct table_walk {
    uint64_t at; /* the hash at which the next page begins */
    uint32_t next, count;
    struct table_record *records[TABLE_PAGE_SLOTS]; /* of the page */
};

/* The next record; NULL: that was the last. */
struct table_record *table_next(const struct table *table, struct table_walk *walk);

/* Takes the next page up: records[next] to records[count - 1]. False: there is none. */
bool table_next_page(const struct table *table, struct table_walk *walk);

#endif
