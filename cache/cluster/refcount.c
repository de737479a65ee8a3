#include "cache/cluster/refcount.h"

#include <stdlib.h>

#include "cache/cluster/cluster.h"

static bool is_of(const struct table_record *record, const void *key)
{
    const struct refcount *ref = (const struct refcount *)(const void *)record, *wanted = key;
    return ref->node == wanted->node && ref->claim == wanted->claim;
}

static struct refcount *find(const struct table *refs, struct refcount *key)
{
    const uint32_t hashes[] = {key->node->record.hash, key->claim->record.hash};

    key->record.hash = table_hash((struct slice){(const char *)hashes, sizeof hashes}, 0);
    return (struct refcount *)(void *)table_find(refs, key->record.hash, is_of, key);
}

bool refcount_add(struct table *refs, const struct node *node, const struct claim *claim)
{
    struct refcount key = {.count = 1, .node = node, .claim = claim};
    struct refcount *ref = find(refs, &key);

    if (ref != NULL) {
        ref->count++;
        return true;
    }
    ref = pool_alloc(refs->pool, sizeof *ref);
    if (ref == NULL)
        return false;
    *ref = key;
    if (table_add(refs, &ref->record))
        return true;
    pool_free(refs->pool, ref);
    return false;
}

void refcount_remove(struct table *refs, const struct node *node, const struct claim *claim)
{
    struct refcount key = {.node = node, .claim = claim};
    struct refcount *ref = find(refs, &key);

    if (ref == NULL || --ref->count != 0)
        return;
    table_remove(refs, &ref->record);
    pool_free(refs->pool, ref);
}

uint32_t refcount_get(const struct table *refs, const struct node *node, const struct claim *claim)
{
    struct refcount key = {.node = node, .claim = claim};
    const struct refcount *ref = find(refs, &key);

    return ref == NULL ? 0 : ref->count;
}
