/*
 * pool: memory for the records of a cluster, of which there are millions. Allocating and freeing a
 * record always costs the same, and empty pages return to the system, some at a time (pool_trim).
 * malloc guarantees neither: after many records were freed, it joins them all at once (this took
 * over 100 ms, with the cluster's lock held), and it keeps memory between records in use.
 *
 * A page of 4 KiB has records of one size. Records over POOL_RECORD_MAX come from malloc.
 *
 * NULL for a pool means malloc and free. This is used under sanitizers, which then check each
 * record, and in tests where allocations fail.
 *
 * Threads: one at a time.
 */
#ifndef CACHE_STORE_POOL_H
#define CACHE_STORE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    POOL_PAGE_BYTES = 4096,
    POOL_STEP_BYTES = 16, /* sizes are rounded up to these */
    POOL_RECORD_MAX = 1344,
    POOL_SIZES = POOL_RECORD_MAX / POOL_STEP_BYTES,
    POOL_SPARE_PAGES = 64, /* empty pages that are kept, to save system calls */
};

struct pool_page;
struct pool_region;

/* All zero: empty. */
struct pool {
    struct pool_page *open[POOL_SIZES + 1]; /* pages with a free record, by size */
    struct pool_region *regions;            /* with unused pages */
    struct pool_page *spare;                /* pages without a record */
    size_t spare_count;
    size_t page_count; /* with records */
};

/* size bytes, zeroed, aligned for any type; NULL: no memory. */
void *pool_alloc(struct pool *pool, size_t size);

/* Frees a record; NULL is ignored. */
void pool_free(struct pool *pool, void *memory);

/* Returns up to `most` empty pages to the system; a page takes some microseconds. True: there are
 * still more than POOL_SPARE_PAGES. */
bool pool_trim(struct pool *pool, unsigned most);

/* Returns all pages, when all records are freed. */
void pool_dispose(struct pool *pool);

#endif
