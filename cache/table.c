#include "cache/table.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

enum { CAPACITY_MIN = 16 };

static uint64_t process_seed;
static pthread_once_t process_seed_once = PTHREAD_ONCE_INIT;

static void choose_process_seed(void)
{
    if (getrandom(&process_seed, sizeof process_seed, 0) != (ssize_t)sizeof process_seed)
        process_seed = (uintptr_t)&process_seed; /* still not a constant, thanks to ASLR */
}

uint32_t table_hash(struct slice bytes, uint32_t seed)
{
    (void)pthread_once(&process_seed_once, choose_process_seed);
    return (uint32_t)XXH3_64bits_withSeed(bytes.ptr, bytes.len, process_seed ^ seed);
}

void table_dispose(struct table *table)
{
    free(table->slots);
    *table = (struct table){0};
}

struct table_record *table_find(const struct table *table, uint32_t hash, table_match *match,
                                const void *key)
{
    if (table->capacity == 0)
        return NULL;
    uint32_t mask = table->capacity - 1;
    for (uint32_t i = hash & mask; table->slots[i] != NULL; i = (i + 1) & mask)
        if (table->slots[i]->hash == hash && match(table->slots[i], key))
            return table->slots[i];
    return NULL;
}

static void place(struct table *table, struct table_record *record)
{
    uint32_t mask = table->capacity - 1;
    uint32_t i = record->hash & mask;

    while (table->slots[i] != NULL)
        i = (i + 1) & mask;
    table->slots[i] = record;
}

static bool grow(struct table *table)
{
    uint32_t capacity = table->capacity == 0 ? CAPACITY_MIN : table->capacity * 2;
    struct table grown = {.capacity = capacity, .count = table->count};

    if (capacity == 0)
        return false; /* 2^32 slots */
    grown.slots = calloc(capacity, sizeof(struct table_record *));
    if (grown.slots == NULL)
        return false;
    for (uint32_t i = 0; i < table->capacity; i++)
        if (table->slots[i] != NULL)
            place(&grown, table->slots[i]);
    free(table->slots);
    *table = grown;
    return true;
}

bool table_add(struct table *table, struct table_record *record)
{
    if (table->count >= table->capacity / 4 * 3 && !grow(table))
        return false;
    place(table, record);
    table->count++;
    return true;
}

void table_remove(struct table *table, const struct table_record *record)
{
    uint32_t mask = table->capacity - 1;
    uint32_t hole = record->hash & mask;

    while (table->slots[hole] != record)
        hole = (hole + 1) & mask;
    /* Move up what would no longer be found behind the hole: no tombstones, no slow decay. */
    for (uint32_t i = (hole + 1) & mask; table->slots[i] != NULL; i = (i + 1) & mask) {
        uint32_t home = table->slots[i]->hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            table->slots[hole] = table->slots[i];
            hole = i;
        }
    }
    table->slots[hole] = NULL;
    table->count--;
}

struct table_record *table_next(const struct table *table, uint32_t *cursor)
{
    while (*cursor < table->capacity) {
        struct table_record *record = table->slots[(*cursor)++];
        if (record != NULL)
            return record;
    }
    return NULL;
}
