#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cache/store/pool.h"

enum { RECORDS = 20000, SIZES_MAX = 3000 };

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
    cr_expect_eq(pool.page_count, (1000 + 18) / 19, "%zu pages", pool.page_count);
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

Test(pool, without_a_pool_it_is_malloc)
{
    void *memory = pool_alloc(NULL, 100);

    cr_assert_not_null(memory);
    pool_free(NULL, memory);
    pool_free(NULL, NULL);
    pool_free(&pool, NULL);
}
