#include "cache/store/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { REGION_PAGES = 256, NO_SLOT = UINT16_MAX, HEADER_BYTES = 32 };

/* Adjacent pages. */
struct pool_region {
    struct pool_region *next, **link; /* regions with unused pages; link: the pointer to this one */
    char *memory;
    uint16_t begun;      /* pages from this one on were never used */
    uint16_t free_count; /* of those before */
    uint8_t free[REGION_PAGES];
};

/* The beginning of a page. A page without a region has one record, of any size. */
struct pool_page {
    struct pool_page *next, **link; /* pages with a free record; link: the pointer to this one */
    struct pool_region *region;
    uint16_t size; /* in POOL_STEP_BYTES */
    uint16_t used;
    uint16_t begun; /* slots from this one on were never used */
    uint16_t
        first_free; /* of the slots before; each has the number of the next in its first bytes */
};

_Static_assert(sizeof(struct pool_page) <= HEADER_BYTES, "the header fits");

/* ---- lists of pages and regions ---- */

static void link_page(struct pool *pool, struct pool_page *page)
{
    page->link = &pool->open[page->size];
    page->next = *page->link;
    if (page->next != NULL)
        page->next->link = &page->next;
    *page->link = page;
}

static void unlink_page(struct pool_page *page)
{
    *page->link = page->next;
    if (page->next != NULL)
        page->next->link = page->link;
}

static void link_region(struct pool *pool, struct pool_region *region)
{
    region->link = &pool->regions;
    region->next = *region->link;
    if (region->next != NULL)
        region->next->link = &region->next;
    *region->link = region;
}

static void unlink_region(struct pool_region *region)
{
    *region->link = region->next;
    if (region->next != NULL)
        region->next->link = region->link;
}

/* ---- regions ---- */

static bool is_taken_whole(const struct pool_region *region)
{
    return region->free_count == 0 && region->begun == REGION_PAGES;
}

static struct pool_region *region_new(struct pool *pool)
{
    struct pool_region *region = calloc(1, sizeof *region);

    if (region == NULL)
        return NULL;
    region->memory = mmap(NULL, (size_t)REGION_PAGES * POOL_PAGE_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region->memory == MAP_FAILED) {
        free(region);
        return NULL;
    }
    link_region(pool, region);
    return region;
}

static struct pool_page *spare_take(struct pool *pool)
{
    struct pool_page *page = pool->spare;

    pool->spare = page->next;
    pool->spare_count--;
    return page;
}

static struct pool_page *page_take(struct pool *pool)
{
    if (pool->spare != NULL)
        return spare_take(pool);
    struct pool_region *region = pool->regions != NULL ? pool->regions : region_new(pool);
    if (region == NULL)
        return NULL;
    size_t index = region->free_count != 0 ? region->free[--region->free_count] : region->begun++;
    if (is_taken_whole(region))
        unlink_region(region);
    struct pool_page *page = (void *)(region->memory + index * POOL_PAGE_BYTES);
    page->region = region;
    return page;
}

/* Returns the page to the system. */
static void page_return(struct pool *pool, struct pool_page *page)
{
    struct pool_region *region = page->region;
    size_t index = (size_t)((char *)page - region->memory) / POOL_PAGE_BYTES;

    if (is_taken_whole(region))
        link_region(pool, region);
    (void)madvise(page, POOL_PAGE_BYTES, MADV_DONTNEED);
    region->free[region->free_count++] = (uint8_t)index;
    if (region->free_count != region->begun)
        return;
    unlink_region(region);
    (void)munmap(region->memory, (size_t)REGION_PAGES * POOL_PAGE_BYTES);
    free(region);
}

/* ---- records ---- */

static struct pool_page *page_of(void *memory)
{
    return (void *)((uintptr_t)memory & ~(uintptr_t)(POOL_PAGE_BYTES - 1));
}

static char *slot_at(struct pool_page *page, size_t slot)
{
    return (char *)page + HEADER_BYTES + slot * page->size * POOL_STEP_BYTES;
}

static bool is_full(const struct pool_page *page)
{
    return page->first_free == NO_SLOT &&
           HEADER_BYTES + (page->begun + 1U) * page->size * POOL_STEP_BYTES > POOL_PAGE_BYTES;
}

static struct pool_page *open_page(struct pool *pool, size_t size)
{
    struct pool_page *page = page_take(pool);

    if (page == NULL)
        return NULL;
    *page =
        (struct pool_page){.region = page->region, .size = (uint16_t)size, .first_free = NO_SLOT};
    link_page(pool, page);
    pool->page_count++;
    return page;
}

static void *alloc_large(size_t size)
{
    struct pool_page *page = NULL;

    if (size > SIZE_MAX - HEADER_BYTES ||
        posix_memalign((void **)&page, POOL_PAGE_BYTES, HEADER_BYTES + size) != 0)
        return NULL;
    memset(page, 0, HEADER_BYTES + size);
    return (char *)page + HEADER_BYTES;
}

void *pool_alloc(struct pool *pool, size_t size)
{
    if (pool == NULL)
        return calloc(1, size);
    if (size > POOL_RECORD_MAX)
        return alloc_large(size);
    size_t steps = size == 0 ? 1 : (size + POOL_STEP_BYTES - 1) / POOL_STEP_BYTES;
    struct pool_page *page = pool->open[steps] != NULL ? pool->open[steps] : open_page(pool, steps);
    if (page == NULL)
        return NULL;
    char *memory = slot_at(page, page->first_free == NO_SLOT ? page->begun : page->first_free);
    if (page->first_free == NO_SLOT)
        page->begun++;
    else
        memcpy(&page->first_free, memory, sizeof page->first_free);
    page->used++;
    if (is_full(page))
        unlink_page(page);
    return memset(memory, 0, size);
}

void pool_free(struct pool *pool, void *memory)
{
    if (pool == NULL || memory == NULL) {
        free(memory);
        return;
    }
    struct pool_page *page = page_of(memory);
    if (page->region == NULL) {
        free(page);
        return;
    }
    if (is_full(page))
        link_page(pool, page);
    memcpy(memory, &page->first_free, sizeof page->first_free);
    size_t offset = (size_t)((char *)memory - (char *)page) - HEADER_BYTES;
    page->first_free = (uint16_t)(offset / (page->size * (size_t)POOL_STEP_BYTES));
    if (--page->used != 0)
        return;
    unlink_page(page);
    pool->page_count--;
    page->next = pool->spare;
    pool->spare = page;
    pool->spare_count++;
}

bool pool_trim(struct pool *pool, unsigned most)
{
    for (; most != 0 && pool->spare_count > POOL_SPARE_PAGES; most--)
        page_return(pool, spare_take(pool));
    return pool->spare_count > POOL_SPARE_PAGES;
}

void pool_dispose(struct pool *pool)
{
    while (pool->spare != NULL)
        page_return(pool, spare_take(pool));
}
