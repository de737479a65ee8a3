/*
 * pool: memory for a cluster's records, of which there are millions. To take one and to give it
 * back cost the same whatever happened before, and pages whose records are all gone go back to the
 * system, some at a time (pool_trim). malloc does neither: after many records have gone, it puts
 * their pieces together in one go (over 100 ms were seen, with the cluster's lock held), and keeps
 * what lies between two that are still there.
 *
 * A page of 4 KiB has records of one size; what is over POOL_RECORD_MAX comes from malloc.
 *
 * A pool that is NULL stands for malloc and free: so it is under the sanitizers, which see each
 * record then, and where allocations are made to fail.
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
    POOL_SPARE_PAGES = 64, /* kept, so that records that come and go cost no system call */
};

struct pool_page;
struct pool_region;

/* All zero: empty. */
struct pool {
    struct pool_page *open[POOL_SIZES + 1]; /* pages with room, by size */
    struct pool_region *regions;            /* with pages to take */
    struct pool_page *spare;                /* pages without a record */
    size_t spare_count;
    size_t page_count; /* with records */
};

/* size bytes, zeroed, aligned for any type; NULL: no memory. */
void *pool_alloc(struct pool *pool, size_t size);

/* Takes it back; NULL is fine. */
void pool_free(struct pool *pool, void *memory);

/* Gives pages without a record to the system, `most` at most, which takes some microseconds each.
 * True: there are more than are kept. */
bool pool_trim(struct pool *pool, unsigned most);

/* Gives all of them back, when all memory has been taken back. */
void pool_dispose(struct pool *pool);

#endif
