#include <criterion/criterion.h>

#include "cache/store/table.h"
#include "cache/store/tag_group.h"

enum { MANY = 50000 };

struct record {
    struct table_record table;
    unsigned number;
    bool is_in, was_visited;
};

static struct pool pool;
static struct record *records[MANY];
static struct table table = {.pool = &pool};
static uint64_t random_state = 1;

static unsigned roll(unsigned sides)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(random_state >> 33) % sides;
}

static void setup(void)
{
    for (unsigned i = 0; i < MANY; i++) {
        records[i] = pool_alloc(&pool, sizeof *records[i]);
        cr_assert_not_null(records[i]);
        records[i]->number = i;
        records[i]->table.hash = table_hash((struct slice){(const char *)&i, sizeof i}, 0);
    }
}

static void teardown(void)
{
    table_dispose(&table);
    for (unsigned i = 0; i < MANY; i++)
        pool_free(&pool, records[i]);
    pool_dispose(&pool);
}

TestSuite(table, .init = setup, .fini = teardown);

static bool has_number(const void *record, const void *number)
{
    return ((const struct record *)(const void *)record)->number == *(const unsigned *)number;
}

static bool is_found(const struct record *record)
{
    return table_find(&table, record->table.hash, has_number, &record->number) == &record->table;
}

static void add(struct record *record)
{
    cr_assert(table_add(&table, &record->table));
    record->is_in = true;
}

static void take_out(struct record *record)
{
    table_remove(&table, &record->table);
    record->is_in = false;
}

/* Each record that is in is found, and visited once; no other is. */
static void check_all(unsigned count)
{
    struct table_walk walk = {.at = 0};
    unsigned visited = 0;

    for (unsigned i = 0; i < MANY; i++) {
        cr_assert_eq(is_found(records[i]), records[i]->is_in, "record %u", i);
        records[i]->was_visited = false;
    }
    for (struct table_record *found; (found = table_next(&table, &walk)) != NULL; visited++) {
        struct record *record = (struct record *)(void *)found;
        cr_assert(record->is_in && !record->was_visited);
        record->was_visited = true;
    }
    cr_assert_eq(visited, count);
    cr_assert_eq(table.count, count);
}

Test(table, what_was_added_is_found_until_it_is_removed)
{
    unsigned count = 0;

    for (unsigned round = 0; round < 12; round++) {
        unsigned sides = round % 4 == 3 ? 50 : 2; /* so that it grows and shrinks */
        for (unsigned i = 0; i < MANY; i++) {
            struct record *record = records[roll(MANY)];
            bool is_in = roll(sides) == 0;
            if (is_in && !record->is_in)
                add(record);
            else if (!is_in && record->is_in)
                take_out(record);
        }
        count = 0;
        for (unsigned i = 0; i < MANY; i++)
            count += records[i]->is_in;
        check_all(count);
    }
}

Test(table, records_with_one_hash_are_distinguished)
{
    for (unsigned i = 0; i < 80; i++) {
        records[i]->table.hash = 7;
        add(records[i]);
    }
    for (unsigned i = 0; i < 80; i += 2)
        take_out(records[i]);
    for (unsigned i = 0; i < 80; i++)
        cr_assert_eq(is_found(records[i]), i % 2 == 1);
}

Test(table, a_page_of_equal_hashes_is_full_at_some_time)
{
    unsigned i = 0;

    for (; i < MANY; i++) {
        records[i]->table.hash = 7;
        if (!table_add(&table, &records[i]->table))
            break;
    }
    cr_assert(i > 80 && i < TABLE_PAGE_SLOTS);
    add(records[MANY - 1]); /* any other */
    cr_assert(is_found(records[0]) && is_found(records[i - 1]) && is_found(records[MANY - 1]));
}

Test(table, memory_goes_back_when_records_do)
{
    for (unsigned i = 0; i < MANY; i++)
        add(records[i]);
    cr_expect(table.page_count * 32 < MANY, "%u pages", table.page_count);
    unsigned pages = table.page_count, depth = table.depth;
    for (unsigned i = MANY / 100; i < MANY; i++)
        take_out(records[i]);
    check_all(MANY / 100);
    cr_expect(table.page_count * 20 < pages, "%u pages of %u", table.page_count, pages);
    cr_expect(table.depth + 3U < depth, "directory of 2^%u, was 2^%u", table.depth, depth);
    for (unsigned i = 0; i < MANY / 100; i++)
        take_out(records[i]);
    cr_expect(table.pages == NULL && table.page_count == 0);
}

/* What holds a lock: no operation moves more than the records of a page. */
Test(table, a_record_that_comes_or_goes_makes_one_page_more_or_less)
{
    for (unsigned i = 0; i < MANY; i++) {
        unsigned pages = table.page_count;
        add(records[i]);
        cr_assert_leq(table.page_count - pages, 1, "record %u", i);
    }
    for (unsigned i = 0; i < MANY; i++) {
        unsigned pages = table.page_count;
        take_out(records[i]);
        cr_assert_leq(pages - table.page_count, 1, "record %u", i);
    }
}

Test(table, a_walk_that_pauses_between_pages_misses_nothing)
{
    for (unsigned seed = 1; seed <= 8; seed++) {
        struct table_walk walk = {.at = 0};
        for (unsigned i = 0; i < MANY; i++) {
            records[i]->was_visited = false;
            if (!records[i]->is_in && i % 2 == 0)
                add(records[i]); /* the even ones stay */
        }
        while (table_next_page(&table, &walk)) {
            for (unsigned i = walk.next; i < walk.count; i++)
                ((struct record *)(void *)walk.records[i])->was_visited = true;
            walk = (struct table_walk){.at = walk.at};
            bool grows = roll(2) == 0; /* while others come and go */
            for (unsigned i = 0; i < 400; i++) {
                struct record *record = records[roll(MANY / 2) * 2 + 1];
                if (grows && !record->is_in)
                    add(record);
                else if (!grows && record->is_in)
                    take_out(record);
            }
        }
        for (unsigned i = 0; i < MANY; i += 2)
            cr_assert(records[i]->was_visited, "record %u", i);
    }
}

Test(table, sixteen_tags_are_compared_as_one_by_one)
{
    uint32_t random = 1;

    for (int round = 0; round < 10000; round++) {
        uint8_t tags[TAG_GROUP + 1];
        for (size_t i = 0; i < sizeof tags; i++) {
            random = random * 1664525 + 1013904223;
            tags[i] = (uint8_t)(random >> 24 & 3); /* few values: most are there several times */
        }
        for (unsigned tag = 0; tag < 5; tag++)
            cr_expect_eq(tag_group_find(tags + 1, (uint8_t)tag),
                         tag_group_find_plain(tags + 1, (uint8_t)tag)); /* not aligned */
    }
}
