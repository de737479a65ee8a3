#include "cache/store/pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <utlist.h>
#ifdef POOL_CHECKED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, size)   ((void)(memory), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#endif

enum {
    REGION_PAGES = SPACE_CHUNK_BYTES / POOL_PAGE_BYTES,
    WORD_BITS = 64,
    REGIONS_TRIED = 8, /* for adjacent pages, before a new region is taken */
    NO_SLOT = UINT16_MAX,
#ifdef POOL_CHECKED
    REUSES_AT_ONCE = false, /* so that a reference to a freed record finds no other one */
#else
    REUSES_AT_ONCE = true,
#endif
};

/* A chunk of the space. */
struct pool_region {
    struct pool_region *prev, *next; /* regions with unused pages (utlist) */
    char *memory;
    uint64_t taken[REGION_PAGES / WORD_BITS]; /* a bit for each page */
    uint16_t taken_count;
};

/* The beginning of a page, or of the adjacent pages of one record. */
struct pool_page {
    struct pool_page *prev; /* in pool.open, if a record is free (utlist) */
    struct pool_page *next; /* the same; or in pool.spare */
    struct pool_region *region;
    uint16_t size; /* of a record, in POOL_STEP_BYTES; 0: one record, which has all of it */
    uint16_t used;
    uint16_t begun; /* slots from this one on were never used; of one record: its pages */
    uint16_t
        first_free; /* of the slots before; each has the number of the next in its first bytes */
};

_Static_assert(sizeof(struct pool_page) <= POOL_HEADER_BYTES, "the header fits");
_Static_assert(POOL_RECORD_MAX + POOL_HEADER_BYTES + POOL_REDZONE_BYTES <= SPACE_CHUNK_BYTES,
               "the largest record fits");

/* ---- the space ---- */

enum { CHUNKS_MAX = 1 << 13 };

_Static_assert((uint64_t)CHUNKS_MAX *SPACE_CHUNK_BYTES == (UINT64_C(1) << 32) * SPACE_STEP_BYTES,
               "each step of the range has a number of 32 bits");

char *space_base;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t chunk_count;                     /* of the range; 0: it is not reserved */
static uint64_t taken[CHUNKS_MAX / WORD_BITS]; /* a bit for each chunk */
static size_t first_word;                      /* the words before have no free chunk */

/* How many chunks the range may have: under `ulimit -v`, the rest of the process needs addresses,
 * too. */
static size_t most_chunks(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) != 0 ||
        limit.rlim_cur / 2 / SPACE_CHUNK_BYTES >= (rlim_t)CHUNKS_MAX)
        return CHUNKS_MAX;
    return (size_t)(limit.rlim_cur / 2 / SPACE_CHUNK_BYTES);
}

static bool reserve(void)
{
    for (size_t count = most_chunks(); count != 0; count /= 2) {
        void *range = mmap(NULL, count * SPACE_CHUNK_BYTES, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED)
            continue;
        space_base = range;
        chunk_count = count;
        return true;
    }
    return false;
}

/* The number of a chunk that was free; chunk_count: there is none. */
static size_t mark_taken(void)
{
    for (; first_word * WORD_BITS < chunk_count; first_word++) {
        if (taken[first_word] == UINT64_MAX)
            continue;
        unsigned bit = (unsigned)__builtin_ctzll(~taken[first_word]);
        size_t number = first_word * WORD_BITS + bit;
        if (number >= chunk_count)
            break;
        taken[first_word] |= UINT64_C(1) << bit;
        return number;
    }
    return chunk_count;
}

static void mark_free(size_t number)
{
    size_t word = number / WORD_BITS;

    taken[word] &= ~(UINT64_C(1) << number % WORD_BITS);
    first_word = word < first_word ? word : first_word;
}

static void *take(void)
{
    size_t number = chunk_count != 0 || reserve() ? mark_taken() : 0;

    if (number == chunk_count)
        return NULL;
    char *chunk = space_base + number * SPACE_CHUNK_BYTES;
    if (mprotect(chunk, SPACE_CHUNK_BYTES, PROT_READ | PROT_WRITE) != 0) {
        mark_free(number);
        return NULL;
    }
    /* a huge page would stay in use until each of its 512 pages is empty */
    (void)madvise(chunk, SPACE_CHUNK_BYTES, MADV_NOHUGEPAGE);
    return chunk;
}

void *space_take_chunk(void)
{
    (void)pthread_mutex_lock(&lock);
    void *chunk = take();
    (void)pthread_mutex_unlock(&lock);
    return chunk;
}

void space_return_chunk(void *chunk)
{
    if (mmap(chunk, SPACE_CHUNK_BYTES, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        (void)madvise(chunk, SPACE_CHUNK_BYTES, MADV_DONTNEED); /* too many mappings */
    (void)pthread_mutex_lock(&lock);
    mark_free((size_t)((char *)chunk - space_base) / SPACE_CHUNK_BYTES);
    (void)pthread_mutex_unlock(&lock);
}

/* ---- regions ---- */

static bool is_taken(const struct pool_region *region, size_t page)
{
    return (region->taken[page / WORD_BITS] >> page % WORD_BITS & 1) != 0;
}

/* The first of so many adjacent pages that are not taken; REGION_PAGES: there are none. */
static size_t find_run(const struct pool_region *region, size_t count)
{
    size_t run = 0;

    for (size_t page = 0; page < REGION_PAGES; page++) {
        if (page % WORD_BITS == 0 && region->taken[page / WORD_BITS] == UINT64_MAX) {
            page += WORD_BITS - 1;
            run = 0;
            continue;
        }
        run = is_taken(region, page) ? 0 : run + 1;
        if (run == count)
            return page + 1 - count;
    }
    return REGION_PAGES;
}

static struct pool_region *region_new(struct pool *pool)
{
    struct pool_region *region = calloc(1, sizeof *region);

    if (region == NULL)
        return NULL;
    region->memory = space_take_chunk();
    if (region->memory == NULL) {
        free(region);
        return NULL;
    }
    ASAN_POISON_MEMORY_REGION(region->memory, SPACE_CHUNK_BYTES);
    DL_PREPEND(pool->regions, region);
    return region;
}

/* The pages of a region, from the first on, are taken, or not any more. */
static void flip_pages(struct pool *pool, struct pool_region *region, size_t first, size_t count,
                       bool take)
{
    if (region->taken_count == REGION_PAGES)
        DL_PREPEND(pool->regions, region);
    for (size_t page = first; page < first + count; page++)
        region->taken[page / WORD_BITS] ^= UINT64_C(1) << page % WORD_BITS;
    region->taken_count =
        (uint16_t)(take ? region->taken_count + count : region->taken_count - count);
    if (region->taken_count == REGION_PAGES)
        DL_DELETE(pool->regions, region);
}

static struct pool_page *spare_take(struct pool *pool)
{
    struct pool_page *page = pool->spare;

    pool->spare = page->next;
    pool->spare_count--;
    return page;
}

/* So many adjacent pages, with page->region set. NULL: no memory. */
static struct pool_page *pages_take(struct pool *pool, size_t count)
{
    if (count == 1 && pool->spare != NULL && REUSES_AT_ONCE)
        return spare_take(pool);
    struct pool_region *region = pool->regions;
    size_t first = region == NULL ? REGION_PAGES : find_run(region, count);
    for (int i = 1; first == REGION_PAGES && region != NULL && i < REGIONS_TRIED; i++) {
        region = region->next;
        first = region == NULL ? REGION_PAGES : find_run(region, count);
    }
    if (first == REGION_PAGES) {
        region = region_new(pool);
        first = 0;
    }
    if (region == NULL)
        return NULL;
    flip_pages(pool, region, first, count, true);
    struct pool_page *page = (void *)(region->memory + first * POOL_PAGE_BYTES);
    ASAN_UNPOISON_MEMORY_REGION(page, POOL_HEADER_BYTES);
    page->region = region;
    return page;
}

/* Returns the pages to the system. */
static void pages_return(struct pool *pool, struct pool_page *page, size_t count)
{
    struct pool_region *region = page->region;
    size_t first = (size_t)((char *)page - region->memory) / POOL_PAGE_BYTES;

    flip_pages(pool, region, first, count, false);
    ASAN_POISON_MEMORY_REGION(page, count * POOL_PAGE_BYTES);
    if (region->taken_count != 0) {
        (void)madvise(page, count * POOL_PAGE_BYTES, MADV_DONTNEED);
        return;
    }
    DL_DELETE(pool->regions, region);
    ASAN_UNPOISON_MEMORY_REGION(region->memory, SPACE_CHUNK_BYTES);
    space_return_chunk(region->memory);
    free(region);
}

/* The page has no record any more. */
static void page_spare(struct pool *pool, struct pool_page *page)
{
    LL_PREPEND(pool->spare, page);
    pool->spare_count++;
}

/* ---- records ---- */

static struct pool_page *page_of(void *memory)
{
    return (void *)((uintptr_t)memory & ~(uintptr_t)(POOL_PAGE_BYTES - 1));
}

static char *slot_at(struct pool_page *page, size_t slot)
{
    return (char *)page + POOL_HEADER_BYTES + slot * page->size * POOL_STEP_BYTES;
}

static bool is_full(const struct pool_page *page)
{
    return page->first_free == NO_SLOT &&
           POOL_HEADER_BYTES + (page->begun + 1U) * page->size * POOL_STEP_BYTES > POOL_PAGE_BYTES;
}

static struct pool_page *open_page(struct pool *pool, size_t size)
{
    struct pool_page *page = pages_take(pool, 1);

    if (page == NULL)
        return NULL;
    *page =
        (struct pool_page){.region = page->region, .size = (uint16_t)size, .first_free = NO_SLOT};
    DL_PREPEND(pool->open[size], page);
    pool->page_count++;
    return page;
}

static void *alloc_large(struct pool *pool, size_t size)
{
    size_t count =
        (POOL_HEADER_BYTES + size + POOL_REDZONE_BYTES + POOL_PAGE_BYTES - 1) / POOL_PAGE_BYTES;
    struct pool_page *page = pages_take(pool, count);

    if (page == NULL)
        return NULL;
    *page = (struct pool_page){.region = page->region, .begun = (uint16_t)count};
    pool->page_count += count;
    char *memory = (char *)page + POOL_HEADER_BYTES;
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    return memset(memory, 0, size);
}

static void free_large(struct pool *pool, struct pool_page *page)
{
    size_t count = page->begun;

    pool->page_count -= count;
    if (count != 1) {
        pages_return(pool, page, count);
        return;
    }
    ASAN_POISON_MEMORY_REGION(page + 1, POOL_PAGE_BYTES - sizeof *page);
    page_spare(pool, page);
}

/* Whether a test lets this allocation fail. */
static bool must_fail(void)
{
#ifdef POOL_CHECKED
    void *volatile probe = malloc(1);
    free(probe);
    return probe == NULL;
#else
    return false;
#endif
}

void *pool_alloc(struct pool *pool, size_t size)
{
    size += size == 0;
    size_t steps = (size + POOL_REDZONE_BYTES + POOL_STEP_BYTES - 1) / POOL_STEP_BYTES;

    if (size > POOL_RECORD_MAX || must_fail())
        return NULL;
    if (steps > POOL_SIZES)
        return alloc_large(pool, size);
    struct pool_page *page = pool->open[steps] != NULL ? pool->open[steps] : open_page(pool, steps);
    if (page == NULL)
        return NULL;
    char *memory = slot_at(page, page->first_free == NO_SLOT ? page->begun : page->first_free);
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    if (page->first_free == NO_SLOT)
        page->begun++;
    else
        memcpy(&page->first_free, memory, sizeof page->first_free);
    page->used++;
    if (is_full(page))
        DL_DELETE(pool->open[steps], page);
    return memset(memory, 0, size);
}

/* The record's slot is the next one to be used. */
static void reuse_slot(struct pool *pool, struct pool_page *page, char *memory)
{
    if (is_full(page))
        DL_PREPEND(pool->open[page->size], page);
    memcpy(memory, &page->first_free, sizeof page->first_free);
    size_t offset = (size_t)(memory - (char *)page) - POOL_HEADER_BYTES;
    page->first_free = (uint16_t)(offset / (page->size * (size_t)POOL_STEP_BYTES));
}

/* Aborts if the record was freed before, which ASan knows; and writes all of it, so that TSan finds
 * a thread that reads it at this time. */
static void check_end(const struct pool_page *page, void *memory)
{
#ifdef POOL_CHECKED
    size_t size = page->size == 0 ? page->begun * (size_t)POOL_PAGE_BYTES - POOL_HEADER_BYTES
                                  : page->size * (size_t)POOL_STEP_BYTES;

#ifdef __SANITIZE_ADDRESS__
    if (__asan_address_is_poisoned(memory)) {
        (void)fprintf(stderr, "pool_free: %p is no record\n", memory);
        abort();
    }
#endif
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    (void)memset(memory, 0xdd, size);
#else
    (void)page;
    (void)memory;
#endif
}

void pool_free(struct pool *pool, void *memory)
{
    if (memory == NULL)
        return;
    struct pool_page *page = page_of(memory);
    check_end(page, memory);
    if (page->size == 0) {
        free_large(pool, page);
        return;
    }
    if (REUSES_AT_ONCE)
        reuse_slot(pool, page, memory);
    ASAN_POISON_MEMORY_REGION(memory, page->size * (size_t)POOL_STEP_BYTES);
    if (--page->used != 0)
        return;
    if (!is_full(page))
        DL_DELETE(pool->open[page->size], page);
    pool->page_count--;
    page_spare(pool, page);
}

bool pool_trim(struct pool *pool, unsigned most)
{
    for (; most != 0 && pool->spare_count > POOL_SPARE_PAGES; most--)
        pages_return(pool, spare_take(pool), 1);
    return pool->spare_count > POOL_SPARE_PAGES;
}

void pool_dispose(struct pool *pool)
{
    while (pool->spare != NULL)
        pages_return(pool, spare_take(pool), 1);
#ifdef POOL_CHECKED
    if (pool->page_count != 0) {
        (void)fprintf(stderr, "pool_dispose: %zu pages have records\n", pool->page_count);
        abort();
    }
#endif
}
