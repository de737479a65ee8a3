#include "cache/store/table.h"

#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

#include "cache/store/tag_group.h"

enum {
    FULL = TABLE_PAGE_SLOTS / 4 * 3,
    SPARSE = TABLE_PAGE_SLOTS / 8 * 3, /* two pages with so few records together are joined */
    HASH_BITS = 32,
    DEPTH_MAX = 25, /* the bits that do not choose the slot */
};

struct table_page {
    uint16_t count;
    uint8_t depth; /* how many of their first bits the hashes have in common */
    uint8_t
        tags[TABLE_PAGE_SLOTS]; /* 0: free; a tag saves reading most records that do not match */
    uint32_t slots[TABLE_PAGE_SLOTS]; /* space_step of the record */
};

/* With its header, a page of the pool has room for six. */
_Static_assert(sizeof(struct table_page) <= 648, "it wastes no memory");

static uint64_t process_seed;

/* Before main, so that no lookup has to ask whether it is chosen. */
__attribute__((constructor)) static void choose_process_seed(void)
{
    if (getrandom(&process_seed, sizeof process_seed, 0) != (ssize_t)sizeof process_seed)
        process_seed = (uintptr_t)&process_seed; /* still not a constant, thanks to ASLR */
}

uint32_t table_hash(struct slice bytes, uint32_t seed)
{
    return (uint32_t)XXH3_64bits_withSeed(bytes.ptr, bytes.len, process_seed ^ seed);
}

/* The hash's first bits. */
static uint32_t first_bits(uint32_t hash, unsigned bits)
{
    return (uint32_t)((uint64_t)hash >> (HASH_BITS - bits));
}

static struct table_page *page_of(const struct table *table, uint32_t hash)
{
    return table->pages[first_bits(hash, table->depth)];
}

static uint8_t tag_of(uint32_t hash)
{
    return (uint8_t)(hash / TABLE_PAGE_SLOTS | 1);
}

/* The record in a slot that is not free. */
static struct table_record *record_in(const struct table_page *page, unsigned slot)
{
    return (struct table_record *)(void *)(space_base +
                                           (size_t)page->slots[slot] * SPACE_STEP_BYTES);
}

static unsigned next_slot(unsigned slot)
{
    return (slot + 1) % TABLE_PAGE_SLOTS;
}

void table_dispose(struct table *table)
{
    uint32_t size = table->pages == NULL ? 0 : UINT32_C(1) << table->depth;

    for (uint32_t i = 0; i < size;) {
        struct table_page *page = table->pages[i];
        i += UINT32_C(1) << (table->depth - page->depth);
        pool_free(table->pool, page);
    }
    free((void *)table->pages);
    *table = (struct table){.pool = table->pool};
}

void *table_find(const struct table *table, uint32_t hash, table_match *match, const void *key)
{
    if (table->count == 0)
        return NULL;
    const struct table_page *page = page_of(table, hash);
    unsigned slot = hash % TABLE_PAGE_SLOTS, group = slot - slot % TAG_GROUP;
    uint32_t behind = UINT32_MAX << slot % TAG_GROUP;
    for (uint32_t empty = 0; empty == 0; group = (group + TAG_GROUP) % TABLE_PAGE_SLOTS) {
        empty = tag_group_find(page->tags + group, 0) & behind;
        uint32_t before_empty = (empty & -empty) - 1;
        uint32_t found = tag_group_find(page->tags + group, tag_of(hash)) & behind & before_empty;
        for (; found != 0; found &= found - 1) {
            struct table_record *record = record_in(page, group + (unsigned)__builtin_ctz(found));
            if (record->hash == hash && match(record, key))
                return record;
        }
        behind = UINT32_MAX;
    }
    return NULL;
}

static void place(struct table_page *page, const struct table_record *record)
{
    unsigned i = record->hash % TABLE_PAGE_SLOTS;

    while (page->tags[i] != 0)
        i = next_slot(i);
    page->slots[i] = space_step(record);
    page->tags[i] = tag_of(record->hash);
    page->count++;
}

/* ---- the directory ---- */

/* Enters the page in the directory for all hashes whose first page->depth bits are those of hash.
 */
static void enter(struct table *table, struct table_page *page, uint32_t hash)
{
    unsigned rest = table->depth - page->depth;
    uint32_t first = first_bits(hash, page->depth) << rest;

    for (uint32_t i = 0; i < UINT32_C(1) << rest; i++)
        table->pages[first + i] = page;
}

static bool begin(struct table *table)
{
    table->pages = (struct table_page **)calloc(1, sizeof *table->pages);
    struct table_page *page = pool_alloc(table->pool, sizeof *page);

    if (table->pages == NULL || page == NULL) {
        free((void *)table->pages);
        pool_free(table->pool, page);
        table->pages = NULL;
        return false;
    }
    table->pages[0] = page;
    table->page_count = table->deepest = 1;
    return true;
}

static bool double_directory(struct table *table)
{
    size_t size = (size_t)1 << table->depth;
    struct table_page **pages = (struct table_page **)malloc(2 * size * sizeof *pages);

    if (pages == NULL)
        return false;
    for (size_t i = 0; i < size; i++)
        pages[2 * i] = pages[2 * i + 1] = table->pages[i];
    free((void *)table->pages);
    table->pages = pages;
    table->depth++;
    table->deepest = 0;
    return true;
}

/* Halves the directory: each page appears at least twice. */
static void halve_directory(struct table *table)
{
    struct table_page **pages = table->pages;
    size_t size = (size_t)1 << --table->depth;

    for (size_t i = 0; i < size; i++) {
        pages[i] = pages[2 * i];
        table->deepest += pages[i]->depth == table->depth;
    }
    /* never 0: NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI) */
    pages = (struct table_page **)realloc((void *)pages, size * sizeof *pages);
    if (pages != NULL) /* else the larger block stays */
        table->pages = pages;
}

/* ---- pages ---- */

/* Splits the page of the hash in two, by the next bit. False: no memory. */
static bool split(struct table *table, uint32_t hash)
{
    struct table_page *page = page_of(table, hash), former = *page;

    /* hashes with 25 equal bits fill a page: with a seed this does not happen */
    if (page->depth == DEPTH_MAX || (page->depth == table->depth && !double_directory(table)))
        return false;
    struct table_page *other = pool_alloc(table->pool, sizeof *other);
    if (other == NULL)
        return false;
    uint32_t bit = UINT32_C(1) << (HASH_BITS - 1 - former.depth);
    *page = (struct table_page){.depth = former.depth + 1};
    other->depth = page->depth;
    for (unsigned i = 0; i < TABLE_PAGE_SLOTS; i++)
        if (former.tags[i] != 0)
            place(record_in(&former, i)->hash & bit ? other : page, record_in(&former, i));
    enter(table, other, hash | bit);
    table->page_count++;
    table->deepest += other->depth == table->depth ? 2 : 0;
    return true;
}

/* Joins the page of the hash with the one that it was split from, if both have few records. */
static void join(struct table *table, uint32_t hash)
{
    struct table_page *page = page_of(table, hash);

    if (page->depth == 0)
        return;
    struct table_page *other = page_of(table, hash ^ UINT32_C(1) << (HASH_BITS - page->depth));
    if (other->depth != page->depth || page->count + other->count > SPARSE)
        return;
    for (unsigned i = 0; i < TABLE_PAGE_SLOTS; i++)
        if (other->tags[i] != 0)
            place(page, record_in(other, i));
    table->deepest -= page->depth == table->depth ? 2 : 0;
    table->page_count--;
    page->depth--;
    enter(table, page, hash);
    pool_free(table->pool, other);
}

bool table_add(struct table *table, const struct table_record *record)
{
    if (table->pages == NULL && !begin(table))
        return false;
    while (page_of(table, record->hash)->count >= FULL)
        if (!split(table, record->hash))
            return false;
    place(page_of(table, record->hash), record);
    table->count++;
    return true;
}

void *table_make(struct table *table, uint32_t hash, size_t bytes)
{
    struct table_record *record = pool_alloc(table->pool, bytes);

    if (record == NULL)
        return NULL;
    record->hash = hash;
    if (table_add(table, record))
        return record;
    pool_free(table->pool, record);
    return NULL;
}

static void take_out(struct table_page *page, const struct table_record *record)
{
    unsigned hole = record->hash % TABLE_PAGE_SLOTS;

    while (page->slots[hole] != space_step(record))
        hole = next_slot(hole);
    /* Move records that would not be found after the hole, so that no tombstones are needed. */
    for (unsigned i = next_slot(hole); page->tags[i] != 0; i = next_slot(i)) {
        unsigned home = record_in(page, i)->hash % TABLE_PAGE_SLOTS;
        if ((i - home) % TABLE_PAGE_SLOTS >= (i - hole) % TABLE_PAGE_SLOTS) {
            page->slots[hole] = page->slots[i];
            page->tags[hole] = page->tags[i];
            hole = i;
        }
    }
    page->tags[hole] = 0;
    page->slots[hole] = 0;
    page->count--;
}

void table_remove(struct table *table, const struct table_record *record)
{
    uint32_t hash = record->hash;

    take_out(page_of(table, hash), record);
    if (--table->count == 0) {
        table_dispose(table);
        return;
    }
    join(table, hash);
    while (table->deepest == 0)
        halve_directory(table);
}

void table_delete(struct table *table, struct table_record *record)
{
    table_remove(table, record);
    pool_free(table->pool, record);
}

/* ---- walks ---- */

bool table_next_page(const struct table *table, struct table_walk *walk)
{
    if (table->pages == NULL || walk->at > UINT32_MAX)
        return false;
    const struct table_page *page = page_of(table, (uint32_t)walk->at);
    uint64_t order = first_bits((uint32_t)walk->at, page->depth);
    walk->at = (order + 1) << (HASH_BITS - page->depth);
    walk->next = walk->count = 0;
    for (unsigned i = 0; i < TABLE_PAGE_SLOTS; i++)
        if (page->tags[i] != 0)
            walk->records[walk->count++] = record_in(page, i);
    return true;
}

void *table_next(const struct table *table, struct table_walk *walk)
{
    while (walk->next == walk->count)
        if (!table_next_page(table, walk))
            return NULL;
    return walk->records[walk->next++];
}

void table_free_records(struct table *table)
{
    struct table_walk walk = {.at = 0};

    for (struct table_record *record; (record = table_next(table, &walk)) != NULL;)
        pool_free(table->pool, record);
    table_dispose(table);
}
