#include "cache/cluster/allowance.h"

#include <stdlib.h>

#include "cache/cluster/cluster_internal.h"
#include "config/base/clock.h"

enum { CHARGED_MIN = 16 };

/* The kinds that are removed, and whose lists have to be whole. */
static const enum kind swept_kinds[] = {KIND_POD, KIND_CLAIM, KIND_POD_DISRUPTION_BUDGET};
enum { SWEPT_KINDS = sizeof swept_kinds / sizeof *swept_kinds };

/* An object that was charged. It may be gone, or be there twice. */
struct charged {
    uint32_t hash; /* of its record */
    uint32_t kind;
};

/* Of a namespace that takes more than what is free. */
struct allowance {
    struct table_record record; /* by its name */
    struct name *ns;
    size_t bytes;
    bool is_over, is_filling;
    uint64_t given_up_ns;              /* when it was */
    bool is_listed[SWEPT_KINDS];       /* while it is filling */
    uint32_t list_wanted[SWEPT_KINDS]; /* the first list that counts for that */
    struct charged *objects;
    size_t object_count, object_max;
};

/* Whether its objects are not stored. */
static bool is_shut(const struct allowance *allowance)
{
    return allowance->is_over && !allowance->is_filling;
}

/* ---- records ---- */

static bool allowance_matches(const void *record, const void *ns)
{
    return ((const struct allowance *)record)->ns == ns;
}

static struct allowance *find(const struct cluster *cluster, const struct name *ns)
{
    return table_find(&cluster->allowances, name_hash(ns), allowance_matches, ns);
}

static struct allowance *find_or_make(struct cluster *cluster, struct name *ns)
{
    struct allowance *allowance = find(cluster, ns);

    if (allowance != NULL)
        return allowance;
    allowance = table_make(&cluster->allowances, name_hash(ns), sizeof *allowance);
    if (allowance == NULL)
        return NULL;
    allowance->ns = ns;
    ns->refs++;
    return allowance;
}

static void free_if_unused(struct cluster *cluster, struct allowance *allowance)
{
    if (allowance->bytes != 0 || allowance->is_over)
        return;
    names_release(&cluster->names, allowance->ns);
    free(allowance->objects);
    table_delete(&cluster->allowances, &allowance->record);
}

void allowances_dispose(struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};

    for (struct allowance *at; (at = table_next(&cluster->allowances, &walk)) != NULL;)
        free(at->objects);
    table_free_records(&cluster->allowances); /* names_dispose frees the names */
}

/* ---- what was charged ---- */

struct charged_key {
    enum kind kind;
    const struct name *ns;
};

/* Whether the record is an object of that namespace that would be removed. */
static bool is_charged(const void *object, const void *key)
{
    const struct charged_key *asked = key;
    const struct pod *pod = object;
    const struct claim *claim = object;

    if (asked->kind == KIND_POD)
        return name_at(pod->ns) == asked->ns && (pod->use_count != 0 || pod->has_mounts);
    if (asked->kind == KIND_CLAIM)
        return claim->exists && name_at(claim->ns) == asked->ns;
    return resource_ns(object) == asked->ns;
}

static void *find_charged(const struct cluster *cluster, const struct name *ns,
                          const struct charged *charged)
{
    struct charged_key key = {(enum kind)charged->kind, ns};

    return table_find(cluster_table(cluster, key.kind), charged->hash, is_charged, &key);
}

static int compare_charged(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct charged));
}

/* Leaves out what is gone, and what is there twice. */
static void compact(const struct cluster *cluster, struct allowance *allowance)
{
    struct charged *objects = allowance->objects;
    size_t kept = 0;

    if (allowance->object_count == 0)
        return;
    qsort(objects, allowance->object_count, sizeof *objects, compare_charged);
    for (size_t i = 0; i < allowance->object_count; i++)
        if ((kept == 0 || compare_charged(&objects[i], &objects[kept - 1]) != 0) &&
            find_charged(cluster, allowance->ns, &objects[i]) != NULL)
            objects[kept++] = objects[i];
    allowance->object_count = kept;
}

/* For one object more: a full list is compacted, and grows only if half of it is still needed.
 * False: no memory. */
static bool has_room(const struct cluster *cluster, struct allowance *allowance)
{
    if (allowance->object_count < allowance->object_max)
        return true;
    compact(cluster, allowance);
    if (allowance->object_count < allowance->object_max / 2)
        return true;
    size_t max = allowance->object_max == 0 ? CHARGED_MIN : 2 * allowance->object_max;
    struct charged *grown = realloc(allowance->objects, max * sizeof *grown);
    if (grown == NULL)
        return false;
    allowance->objects = grown;
    allowance->object_max = max;
    return true;
}

/* False: no memory. */
static bool note_charged(const struct cluster *cluster, struct allowance *allowance, enum kind kind,
                         uint32_t hash)
{
    if (!has_room(cluster, allowance))
        return false;
    allowance->objects[allowance->object_count++] = (struct charged){hash, kind};
    return true;
}

/* Its reservation stays: a Binding may be under way. */
static void remove_charged(struct cluster *cluster, const struct allowance *allowance,
                           const struct charged *charged)
{
    enum kind kind = (enum kind)charged->kind;

    for (void *object; (object = find_charged(cluster, allowance->ns, charged)) != NULL;) {
        if (kind == KIND_POD)
            pod_drop(cluster, object);
        else if (kind == KIND_CLAIM)
            claim_mark_deleted(cluster, object);
        else
            resource_remove(cluster, kind, object);
    }
}

/* ---- bytes ---- */

void allowance_limit(struct cluster *cluster, size_t namespace_bytes, size_t total_bytes)
{
    cluster->allowance_limits =
        (struct allowance_limits){ALLOWANCE_FREE_BYTES, namespace_bytes, total_bytes};
    cluster->are_over = true; /* perhaps: allowance_keep looks */
}

/* Without memory for its record, an object is not charged, and not removed; what is released then
 * may be more than what was charged. */
void allowance_charge(struct cluster *cluster, enum kind kind, struct name *ns, uint32_t hash,
                      size_t bytes)
{
    const struct allowance_limits *limits = &cluster->allowance_limits;
    bool counts = limits->namespace_bytes != 0 && ns != NULL && bytes > limits->free_bytes;
    struct allowance *allowance = counts ? find_or_make(cluster, ns) : NULL;

    if (allowance == NULL)
        return;
    if (!note_charged(cluster, allowance, kind, hash)) {
        free_if_unused(cluster, allowance);
        return;
    }
    allowance->bytes += bytes - limits->free_bytes;
    cluster->charged_bytes += bytes - limits->free_bytes;
    cluster->are_over |= !is_shut(allowance) && (allowance->bytes > limits->namespace_bytes ||
                                                 cluster->charged_bytes > limits->total_bytes);
}

void allowance_release(struct cluster *cluster, const struct name *ns, size_t bytes)
{
    size_t free_bytes = cluster->allowance_limits.free_bytes;
    struct allowance *allowance = bytes <= free_bytes || ns == NULL ? NULL : find(cluster, ns);

    if (allowance == NULL)
        return;
    size_t charged = bytes - free_bytes;
    charged = charged < allowance->bytes ? charged : allowance->bytes;
    allowance->bytes -= charged;
    cluster->charged_bytes -= charged;
    free_if_unused(cluster, allowance);
}

/* ---- what is given up ---- */

static const struct allowance *find_over(const struct cluster *cluster, struct slice ns)
{
    const struct name *name =
        cluster->namespaces_given_up == 0 ? NULL : names_find(&cluster->names, ns);
    const struct allowance *allowance = name == NULL ? NULL : find(cluster, name);

    return allowance != NULL && allowance->is_over ? allowance : NULL;
}

bool allowance_is_over(const struct cluster *cluster, struct slice ns)
{
    return find_over(cluster, ns) != NULL;
}

struct slice allowance_next(const struct cluster *cluster, struct table_walk *walk)
{
    for (const struct allowance *at; (at = table_next(&cluster->allowances, walk)) != NULL;)
        if (at->is_over)
            return name_slice(at->ns);
    return (struct slice){NULL, 0};
}

bool allowance_restore(struct cluster *cluster, struct slice ns)
{
    bool has_failed = false;
    struct name *name = names_take(&cluster->names, ns, &has_failed);
    struct allowance *allowance = name == NULL ? NULL : find_or_make(cluster, name);

    if (name != NULL)
        names_release(&cluster->names, name); /* the record has taken it, too */
    if (allowance == NULL)
        return false;
    cluster->namespaces_given_up += !allowance->is_over;
    allowance->is_over = allowance->is_filling = true;
    return true;
}

bool allowance_admits(const struct cluster *cluster, const struct object *object)
{
    const struct allowance *allowance =
        kind_is_namespaced(object->kind) ? find_over(cluster, object->meta.ns) : NULL;

    return allowance == NULL || allowance->is_filling ||
           (object->kind == KIND_POD && object->pod.claim_count == 0);
}

static void give_up(struct cluster *cluster, struct allowance *allowance)
{
    struct charged *objects = allowance->objects;
    size_t count = allowance->object_count;

    cluster->namespaces_given_up += !allowance->is_over;
    allowance->is_over = true;
    allowance->is_filling = false;
    allowance->given_up_ns = monotonic_ns();
    allowance->objects = NULL;
    allowance->object_count = allowance->object_max = 0;
    for (size_t i = 0; i < count; i++)
        remove_charged(cluster, allowance, &objects[i]);
    free(objects);
}

/* The one that takes most, of those that take more than `least`; NULL: none does. */
static struct allowance *find_largest(const struct cluster *cluster, size_t least)
{
    struct table_walk walk = {.at = 0};
    struct allowance *largest = NULL;

    for (struct allowance *at; (at = table_next(&cluster->allowances, &walk)) != NULL;)
        if (!is_shut(at) && at->bytes > least) {
            largest = at;
            least = at->bytes;
        }
    return largest;
}

void allowance_keep(struct cluster *cluster)
{
    const struct allowance_limits *limits = &cluster->allowance_limits;

    while (cluster->are_over) {
        bool are_all = cluster->charged_bytes > limits->total_bytes;
        struct allowance *largest = find_largest(cluster, are_all ? 0 : limits->namespace_bytes);
        cluster->are_over = limits->namespace_bytes != 0 && largest != NULL;
        if (cluster->are_over)
            give_up(cluster, largest);
    }
}

/* ---- lists ---- */

/* SWEPT_KINDS: it is none of them. */
static unsigned index_of(enum kind kind)
{
    unsigned i = 0;

    while (i < SWEPT_KINDS && swept_kinds[i] != kind)
        i++;
    return i;
}

/* PodDisruptionBudgets are read only if a policy needs them. */
static bool is_needed(const struct cluster *cluster, enum kind kind)
{
    return kind != KIND_POD_DISRUPTION_BUDGET || cluster->lists[kind].number != 0;
}

/* From now on, all of it is stored. Another list than this one, which is being read, has left its
 * objects out: the next one counts. */
static void begin_filling(const struct cluster *cluster, struct allowance *allowance,
                          enum kind kind)
{
    allowance->is_filling = true;
    for (unsigned i = 0; i < SWEPT_KINDS; i++) {
        allowance->is_listed[i] = !is_needed(cluster, swept_kinds[i]);
        allowance->list_wanted[i] =
            cluster->lists[swept_kinds[i]].number + (swept_kinds[i] != kind);
    }
}

void allowance_begin_list(struct cluster *cluster, enum kind kind)
{
    struct table_walk walk = {.at = 0};
    uint64_t asked_ns = cluster->lists[kind].asked_ns;

    for (struct allowance *at;
         index_of(kind) < SWEPT_KINDS && (at = table_next(&cluster->allowances, &walk)) != NULL;)
        if (is_shut(at) && asked_ns >= at->given_up_ns + ALLOWANCE_FENCE_MS * NS_PER_MS)
            begin_filling(cluster, at, kind);
}

void allowance_miss(struct cluster *cluster, enum kind kind, struct slice ns)
{
    struct table_walk walk = {.at = 0};
    unsigned index = index_of(kind);

    for (struct allowance *at;
         index < SWEPT_KINDS && (at = table_next(&cluster->allowances, &walk)) != NULL;)
        if (ns.len == 0 || slice_equal(ns, name_slice(at->ns)))
            at->list_wanted[index] = cluster->lists[kind].number + 1;
}

static bool is_whole(const struct allowance *allowance)
{
    for (unsigned i = 0; i < SWEPT_KINDS; i++)
        if (!allowance->is_listed[i])
            return false;
    return true;
}

void allowance_end_list(struct cluster *cluster, enum kind kind)
{
    struct table_walk walk = {.at = 0};
    unsigned index = index_of(kind);

    for (struct allowance *at;
         index < SWEPT_KINDS && (at = table_next(&cluster->allowances, &walk)) != NULL;) {
        if (!at->is_filling)
            continue;
        at->is_listed[index] |= cluster->lists[kind].number >= at->list_wanted[index];
        if (!is_whole(at))
            continue;
        at->is_over = at->is_filling = false;
        cluster->namespaces_given_up--;
        free_if_unused(cluster, at);
    }
}
