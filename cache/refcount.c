#include "cache/refcount.h"

#include <stdlib.h>

#include "cache/cluster.h"

enum { CAPACITY_MIN = 4 };

void refcounts_dispose(struct refcounts *refs)
{
    free(refs->slots);
    *refs = (struct refcounts){0};
}

/* The claim's slot, or the free slot where it would go. There is always a free one. */
static struct refcount *slot_of(const struct refcounts *refs, const struct claim *claim)
{
    uint32_t mask = refs->capacity - 1;
    uint32_t i = claim->record.hash & mask;

    while (refs->slots[i].claim != NULL && refs->slots[i].claim != claim)
        i = (i + 1) & mask;
    return &refs->slots[i];
}

bool refcounts_reserve(struct refcounts *refs, uint32_t more)
{
    uint32_t capacity = refs->capacity < CAPACITY_MIN ? CAPACITY_MIN : refs->capacity;

    while (capacity / 4 * 3 < refs->used + more)
        capacity *= 2;
    if (capacity == refs->capacity)
        return true;
    struct refcounts grown = {calloc(capacity, sizeof *grown.slots), capacity, refs->used};
    if (grown.slots == NULL)
        return false;
    for (uint32_t i = 0; i < refs->capacity; i++)
        if (refs->slots[i].claim != NULL)
            *slot_of(&grown, refs->slots[i].claim) = refs->slots[i];
    free(refs->slots);
    *refs = grown;
    return true;
}

void refcounts_add(struct refcounts *refs, struct claim *claim)
{
    struct refcount *slot = slot_of(refs, claim);

    if (slot->claim == NULL)
        refs->used++;
    slot->claim = claim;
    slot->count++;
}

void refcounts_remove(struct refcounts *refs, const struct claim *claim)
{
    uint32_t mask = refs->capacity - 1;
    struct refcount *slot = slot_of(refs, claim);

    if (--slot->count != 0)
        return;
    refs->used--;
    uint32_t hole = (uint32_t)(slot - refs->slots);
    for (uint32_t i = (hole + 1) & mask; refs->slots[i].claim != NULL; i = (i + 1) & mask) {
        uint32_t home = refs->slots[i].claim->record.hash & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            refs->slots[hole] = refs->slots[i];
            hole = i;
        }
    }
    refs->slots[hole] = (struct refcount){0};
}

uint32_t refcounts_get(const struct refcounts *refs, const struct claim *claim)
{
    return refs->capacity == 0 ? 0 : slot_of(refs, claim)->count;
}
