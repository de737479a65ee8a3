/*
 * The object decoder and the cluster: each line is an event, its first byte the kind and whether it
 * is a deletion, the rest the object. After all of them the counts are counted again. What is
 * well-formed is read once more, as a text that was checked.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cache/cluster/cluster.h"
#include "fuzz.h"

enum { ARENA_BYTES_MAX = 4 << 20 };

static void check_counts(const struct cluster *cluster)
{
    struct table_walk walk = {.at = 0}, ref_walk = {.at = 0};
    uint64_t by_claims = 0, by_nodes = 0;

    for (const struct claim *claim; (claim = cluster_next_claim(cluster, &walk)) != NULL;) {
        uint32_t holders = 0;
        for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next))
            holders += pod_holds(use_pod(use));
        if (holders != claim->refs)
            abort();
        by_claims += claim->refs > 1 ? claim->refs : 0; /* the others are not stored by node */
        for (const struct use *use = use_at(claim->uses); use != NULL; use = use_at(use->next)) {
            const struct pod *pod = use_pod(use);
            if (cluster_count_budget_violations(cluster, &pod, 1) > 1)
                abort();
            (void)cluster_breaks_budgets(cluster, &pod, 1);
        }
    }
    for (const struct table_record *ref; (ref = table_next(&cluster->refs, &ref_walk)) != NULL;)
        by_nodes += ((const struct refcount *)(const void *)ref)->count;
    if (by_claims != by_nodes)
        abort();
}

static bool is_same_meta(const struct meta *a, const struct meta *b)
{
    return slice_equal(a->ns, b->ns) && slice_equal(a->name, b->name) &&
           slice_equal(a->uid, b->uid) && slice_equal(a->resource_version, b->resource_version) &&
           slice_equal(a->deletion_timestamp, b->deletion_timestamp) &&
           slice_equal(a->owner.name, b->owner.name) && slice_equal(a->owner.uid, b->owner.uid);
}

/* A text that was checked is read as one that was not. object: NULL: it could not be read. */
static void compare_checked(struct slice text, enum kind kind, const struct pull *json,
                            const struct object *object)
{
    struct object again;
    struct pull checked;
    struct arena arena;

    pull_init(&checked, text);
    if (!pull_skip(&checked) || !pull_finish(&checked))
        return;
    arena_init(&arena, ARENA_BYTES_MAX);
    pull_init_checked(&checked, text);
    bool is_read = object_read(&checked, kind, &arena, &again);
    if (is_read != (object != NULL) || checked.problem != json->problem || checked.at != json->at ||
        (is_read && !is_same_meta(&again.meta, &object->meta)))
        abort();
    arena_dispose(&arena);
}

static void apply(struct cluster *cluster, struct slice line, struct arena *arena)
{
    struct object object;
    struct pull json;
    struct error err = {0};

    if (line.len == 0)
        return;
    unsigned choice = (unsigned char)line.ptr[0];
    enum kind kind = (enum kind)(choice % KIND_COUNT);
    struct slice text = {line.ptr + 1, line.len - 1};
    pull_init(&json, text);
    bool is_read = object_read(&json, kind, arena, &object);
    compare_checked(text, kind, &json, is_read ? &object : NULL);
    if (!is_read) {
        (void)pull_fail(&json, "line", (struct place){1, 1}, &err);
        return;
    }
    if (choice >= 128)
        cluster_delete(cluster, &object);
    else
        (void)cluster_apply(cluster, &object, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cluster cluster;
    struct arena arena;
    struct slice rest = {(const char *)data, size};

    cluster_init(&cluster);
    arena_init(&arena, ARENA_BYTES_MAX);
    while (rest.len != 0) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t length = end == NULL ? rest.len : (size_t)(end - rest.ptr);
        apply(&cluster, (struct slice){rest.ptr, length}, &arena);
        length += end != NULL;
        rest = (struct slice){rest.ptr + length, rest.len - length};
        arena_reset(&arena);
    }
    check_counts(&cluster);
    cluster_dispose(&cluster);
    arena_dispose(&arena);
    return 0;
}
