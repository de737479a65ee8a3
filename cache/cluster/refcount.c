#include "cache/cluster/refcount.h"

#include "cache/cluster/cluster.h"

static bool is_of(const void *record, const void *key)
{
    const struct refcount *ref = record, *wanted = key;
    return ref->node == wanted->node && ref->claim == wanted->claim;
}

static struct refcount *find(const struct table *refs, struct refcount *key)
{
    const uint32_t hashes[] = {key->node->record.hash, key->claim->record.hash};

    key->record.hash = table_hash((struct slice){(const char *)hashes, sizeof hashes}, 0);
    return table_find(refs, key->record.hash, is_of, key);
}

static bool add(struct table *refs, const struct node *node, const struct claim *claim)
{
    struct refcount key = {.node = node, .claim = claim};
    struct refcount *ref = find(refs, &key);

    if (ref == NULL) {
        ref = table_make(refs, key.record.hash, sizeof *ref);
        if (ref == NULL)
            return false;
        *ref = key;
    }
    ref->count++;
    return true;
}

static void remove_one(struct table *refs, const struct node *node, const struct claim *claim)
{
    struct refcount key = {.node = node, .claim = claim};
    struct refcount *ref = find(refs, &key);

    if (ref != NULL && --ref->count == 0)
        table_delete(refs, &ref->record);
}

const struct node *refcount_only_node(const struct claim *claim)
{
    const struct use *use = use_at(claim->uses);

    while (!pod_holds(use_pod(use)))
        use = use_at(use->next); /* of a nominated pod */
    return node_at(use_pod(use)->node);
}

bool refcount_add(struct table *refs, const struct node *node, const struct claim *claim)
{
    const struct node *first = claim->refs == 1 ? refcount_only_node(claim) : NULL;

    if (claim->refs == 0)
        return true;
    if (first != NULL && !add(refs, first, claim))
        return false;
    if (add(refs, node, claim))
        return true;
    if (first != NULL)
        remove_one(refs, first, claim);
    return false;
}

void refcount_remove(struct table *refs, const struct node *node, const struct claim *claim)
{
    if (claim->refs == 1)
        return;
    remove_one(refs, node, claim);
    if (claim->refs == 2)
        remove_one(refs, refcount_only_node(claim), claim);
}

uint32_t refcount_get(const struct table *refs, const struct node *node, const struct claim *claim)
{
    struct refcount key = {.node = node, .claim = claim};

    if (claim->refs <= 1)
        return claim->refs == 1 && refcount_only_node(claim) == node;
    const struct refcount *ref = find(refs, &key);
    return ref == NULL ? 0 : ref->count;
}
