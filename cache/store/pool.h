/*
 * pool: memory for the records of a cluster, of which there are millions. Allocating and freeing a
 * record of up to a page always costs the same, and empty pages return to the system, some at a
 * time (pool_trim). malloc guarantees neither: after many records were freed, it joins them all at
 * once (this took over 100 ms, with the cluster's lock held), and it keeps memory between records
 * in use. And a reference to a record of a pool takes 32 bits.
 *
 *     a page of 4 KiB:    | header, 32 bytes | record | record | record | ...   all of one size
 *     a larger record:    | header, 32 bytes | record ...   over adjacent pages of a chunk
 *
 * POOL_CHECKED, as the builds with sanitizers define it: memory that is no record is poisoned, each
 * record has a redzone behind it, no slot and no single page is used again at once, a record that
 * was freed twice or not at all aborts, and a record is not allocated if malloc fails at that time
 * (so that tests in which allocations fail include records).
 *
 * Threads: one at a time for a pool, any for the space of all of them.
 */
#ifndef CACHE_STORE_POOL_H
#define CACHE_STORE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the space: the addresses of all records ---- */

/*
 * So a reference to a record takes 32 bits: the records of all pools lie in one range of addresses,
 * in steps of 8 bytes, and 2^32 steps are 32 GiB. A record has three or four references, and a
 * table has one to each record.
 *
 *     space_base           one chunk, 4 MiB, of some pool         of another
 *     |....................|#######################|..............|###########|.........
 *                                    ^ a record: step (record - space_base) / 8
 *
 * Addresses are not memory: chunks that are not taken can be neither read nor written, and count
 * nowhere but in `ulimit -v`. Under such a limit, the range is at most half of it. The range is
 * reserved when the first chunk is taken.
 *
 * Ownership: a chunk is the taker's until it is returned. Threads: any.
 */
enum { SPACE_STEP_BYTES = 8, SPACE_CHUNK_BYTES = 4 << 20 };

extern char *space_base;

/* Zeroed. NULL: no memory, or no addresses are left. */
void *space_take_chunk(void);
void space_return_chunk(void *chunk);

/* Step 0 is no record, because a chunk begins with a header. */
static inline void *space_record(uint32_t step)
{
    return step == 0 ? NULL : space_base + (size_t)step * SPACE_STEP_BYTES;
}

/* NULL has step 0. */
static inline uint32_t space_step(const void *record)
{
    return record == NULL
               ? 0
               : (uint32_t)((size_t)((const char *)record - space_base) / SPACE_STEP_BYTES);
}

/*
 * SPACE_REF(pod) makes the type of references to a struct pod, and its two functions:
 *
 *     | struct pod_ref ref = pod_ref(pod); // also of NULL
 *     | struct pod *pod = pod_at(ref);
 */
#define SPACE_REF(type) \
    struct type##_ref { \
        uint32_t step; \
    }; \
    static inline struct type *type##_at(struct type##_ref ref) \
    { \
        return (struct type *)space_record(ref.step); \
    } \
    static inline struct type##_ref type##_ref(const struct type *record) \
    { \
        return (struct type##_ref){space_step(record)}; \
    } \
    struct type##_ref

/* ---- pools ---- */

enum {
    POOL_PAGE_BYTES = 4096,
    POOL_HEADER_BYTES = 32,
    POOL_STEP_BYTES = SPACE_STEP_BYTES, /* sizes are rounded up to these */
    POOL_SHARED_MAX = 1344,             /* larger records have pages of their own */
    POOL_SIZES = POOL_SHARED_MAX / POOL_STEP_BYTES,
    /* The API server accepts no object over 3 MiB, and a record is smaller than its object. */
    POOL_RECORD_MAX = SPACE_CHUNK_BYTES - POOL_PAGE_BYTES,
    POOL_SPARE_PAGES = 64, /* empty pages that are kept, to save system calls */
#ifdef POOL_CHECKED
    POOL_REDZONE_BYTES = 16,
#else
    POOL_REDZONE_BYTES = 0,
#endif
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

/* size bytes, zeroed, at a multiple of POOL_STEP_BYTES; NULL: no memory, or size is over
 * POOL_RECORD_MAX. */
void *pool_alloc(struct pool *pool, size_t size);

/* Frees a record; NULL is ignored. */
void pool_free(struct pool *pool, void *memory);

/* Returns up to `most` empty pages to the system; a page takes some microseconds. True: there are
 * still more than POOL_SPARE_PAGES. */
bool pool_trim(struct pool *pool, unsigned most);

/* Returns all pages, when all records are freed. */
void pool_dispose(struct pool *pool);

#endif
