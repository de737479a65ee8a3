#include <criterion/criterion.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cache/store/pool.h"
#if defined(POOL_CHECKED) && defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

enum { RECORDS = 20000, SIZES_MAX = 20000 };

static struct pool pool;
static uint64_t random_state = 1;

static struct {
    unsigned char *memory;
    size_t size;
    unsigned char filling;
} records[RECORDS];

static unsigned roll(unsigned sides)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(random_state >> 33) % sides;
}

static void take(unsigned i, size_t size)
{
    records[i].memory = pool_alloc(&pool, size);
    cr_assert_not_null(records[i].memory);
    cr_assert_eq((uintptr_t)records[i].memory % POOL_STEP_BYTES, 0);
    for (size_t b = 0; b < size; b++)
        cr_assert_eq(records[i].memory[b], 0, "it is zeroed");
    records[i].size = size;
    records[i].filling = (unsigned char)roll(256);
    memset(records[i].memory, records[i].filling, size);
}

static void give_back(unsigned i)
{
    for (size_t b = 0; b < records[i].size; b++)
        cr_assert_eq(records[i].memory[b], records[i].filling, "nobody else wrote here");
    pool_free(&pool, records[i].memory);
    records[i].memory = NULL;
}

static void give_all_back(void)
{
    for (unsigned i = 0; i < RECORDS; i++)
        if (records[i].memory != NULL)
            give_back(i);
    cr_expect_eq(pool.page_count, 0);
    pool_dispose(&pool);
    cr_expect(pool.regions == NULL && pool.spare == NULL && pool.spare_count == 0);
}

Test(pool, each_record_has_memory_of_its_own)
{
    for (unsigned step = 0; step < 80000; step++) {
        unsigned i = roll(RECORDS);
        if (records[i].memory != NULL)
            give_back(i);
        else if (roll(50) == 0)
            (void)pool_trim(&pool, 3);
        else if (step < 40000 || roll(3) == 0) /* it grows, then shrinks */
            take(i, roll(8) == 0 ? roll(SIZES_MAX) : 1 + roll(300));
    }
    give_all_back();
}

Test(pool, records_of_one_size_share_pages)
{
    for (unsigned i = 0; i < 1000; i++)
        take(i, 200);
    size_t each = (POOL_PAGE_BYTES - POOL_HEADER_BYTES) / (200 + POOL_REDZONE_BYTES);
    cr_expect_eq(pool.page_count, (1000 + each - 1) / each, "%zu pages", pool.page_count);
    give_all_back();
}

/* In use by this process, in bytes. */
static size_t resident_bytes(void)
{
    unsigned long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%lu %lu", &pages, &resident), 2);
    (void)fclose(file);
    return resident * POOL_PAGE_BYTES;
}

Test(pool, a_page_goes_back_to_the_system_when_its_records_have_gone)
{
    if (getenv("CLAIMGUARD_EMULATED") != NULL)
        cr_skip_test("/proc/self is the emulator's");
    size_t before = resident_bytes();
    for (unsigned i = 0; i < RECORDS; i++)
        take(i, 500);
    size_t full = resident_bytes();
    cr_expect(full - before > (size_t)RECORDS * 500);
    for (unsigned i = 0; i < RECORDS; i++)
        if (i % 100 != 0)
            give_back(i);
    while (pool_trim(&pool, 10))
        continue;
    size_t few = resident_bytes();
    cr_expect_leq(pool.page_count, RECORDS / 100);
    cr_expect(few - before < (full - before) / 2, "%zu of %zu bytes", few - before, full - before);
    give_all_back();
}

Test(pool, each_size_up_to_the_largest)
{
    static const size_t sizes[] = {
        0, 1, POOL_SHARED_MAX - 1, POOL_SHARED_MAX + 1, 4063, 4064, 4065, 300000, POOL_RECORD_MAX};

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        take(i, sizes[i]);
    cr_expect_null(pool_alloc(&pool, POOL_RECORD_MAX + 1));
    cr_expect_null(pool_alloc(&pool, SIZE_MAX));
    pool_free(&pool, NULL);
    give_all_back();
}

Test(pool, records_of_many_pages_share_chunks)
{
    size_t last = 0;

    for (unsigned i = 0; i < 1000; i++) {
        take(i, 10000); /* three pages: 341 in a chunk */
        size_t chunk = space_step(records[i].memory) / (SPACE_CHUNK_BYTES / SPACE_STEP_BYTES);
        last = chunk > last ? chunk : last;
    }
    cr_expect_leq(last, 1000 / 341 + 1);
    give_all_back();
}

SPACE_REF(number);
struct number {
    int value;
};

Test(space, a_reference_finds_its_record)
{
    struct pool others = {.regions = NULL};

    for (unsigned i = 0; i < RECORDS; i++) {
        struct number *number = pool_alloc(i % 2 == 0 ? &pool : &others, sizeof *number);
        cr_assert_not_null(number);
        cr_assert_eq(number_at(number_ref(number)), number);
        cr_assert_neq(number_ref(number).step, 0);
        records[i].memory = (unsigned char *)number;
    }
    cr_expect_null(number_at(number_ref(NULL)));
    for (unsigned i = 0; i < RECORDS; i++)
        pool_free(i % 2 == 0 ? &pool : &others, records[i].memory);
    pool_dispose(&pool);
    pool_dispose(&others);
}

Test(space, a_chunk_that_was_returned_is_taken_again)
{
    char *first = space_take_chunk(), *second = space_take_chunk();

    cr_assert(first != NULL && second != NULL && first != second);
    memset(first, 1, SPACE_CHUNK_BYTES);
    space_return_chunk(first);
    cr_assert_eq(space_take_chunk(), first);
    for (size_t i = 0; i < SPACE_CHUNK_BYTES; i++)
        cr_assert_eq(first[i], 0, "it is zeroed");
    space_return_chunk(first);
    space_return_chunk(second);
}

#ifndef POOL_CHECKED /* sanitizers need terabytes of addresses */
/* Half of the limit is left to the rest of the process. */
Test(space, under_a_limit_of_addresses_the_range_is_smaller)
{
    rlim_t limit = (rlim_t)1 << 30;
    unsigned taken = 0;

    if (getenv("CLAIMGUARD_EMULATED") != NULL)
        cr_skip_test("the limit is the emulator's, too");
    cr_assert_eq(setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit}), 0);
    while (space_take_chunk() != NULL)
        taken++;
    cr_expect_geq(taken, 64);
    cr_expect_leq(taken, limit / 2 / SPACE_CHUNK_BYTES);
    void *rest = malloc(limit / 4);
    cr_expect_not_null(rest);
    free(rest);
}
#endif

#ifdef __SANITIZE_ADDRESS__
Test(pool, under_asan_only_records_can_be_read_and_written)
{
    static const size_t sizes[] = {1, 24, 100, 500, POOL_SHARED_MAX, 4000, 9000};

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        take(i, sizes[i]);
        take(i + 100, sizes[i]); /* so that the page stays */
        unsigned char *memory = records[i].memory;
        cr_expect_null(__asan_region_is_poisoned(memory, sizes[i]));
        cr_expect(__asan_address_is_poisoned(memory + sizes[i]), "behind %zu bytes", sizes[i]);
        give_back(i);
        cr_expect(__asan_address_is_poisoned(memory), "%zu bytes, freed", sizes[i]);
        cr_expect(__asan_address_is_poisoned(memory + sizes[i] - 1), "%zu bytes, freed", sizes[i]);
        take(i, sizes[i]);
        if (sizes[i] < POOL_PAGE_BYTES - POOL_HEADER_BYTES - POOL_REDZONE_BYTES)
            cr_expect_neq(records[i].memory, memory, "%zu bytes are used again", sizes[i]);
    }
    give_all_back();
}
#endif

#ifdef __SANITIZE_ADDRESS__
Test(pool, a_record_that_is_freed_twice_is_found, .signal = SIGABRT)
{
    take(1, 100); /* so that the page stays */
    void *memory = pool_alloc(&pool, 100);
    pool_free(&pool, memory);
    pool_free(&pool, memory);
}
#endif

#ifdef POOL_CHECKED
Test(pool, a_record_that_was_not_freed_is_found, .signal = SIGABRT)
{
    (void)pool_alloc(&pool, 100);
    pool_dispose(&pool);
}
#endif
