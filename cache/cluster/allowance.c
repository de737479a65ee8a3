#include "cache/cluster/allowance.h"

#include "cache/cluster/cluster_internal.h"
#include "config/base/clock.h"

enum { SWEEP_WORK_MAX = 32 }; /* objects, and claims of pods, that one change removes */

/* The kinds that are removed, and whose lists have to be whole. */
static const enum kind swept_kinds[] = {KIND_POD, KIND_CLAIM, KIND_POD_DISRUPTION_BUDGET};
enum { SWEPT_KINDS = sizeof swept_kinds / sizeof *swept_kinds };

/* Of a namespace that takes more than what is free. */
struct allowance {
    struct table_record record; /* by its name */
    struct name *ns;
    size_t bytes;
    bool is_over, is_filling;
    uint64_t given_up_ns;              /* when it was */
    bool is_listed[SWEPT_KINDS];       /* while it is filling */
    uint32_t list_wanted[SWEPT_KINDS]; /* the first list that counts for that */
};

/* Whether its objects are not stored. */
static bool is_shut(const struct allowance *allowance)
{
    return allowance->is_over && !allowance->is_filling;
}

/* ---- records ---- */

static bool allowance_matches(const struct table_record *record, const void *ns)
{
    return ((const struct allowance *)(const void *)record)->ns == ns;
}

static struct allowance *find(const struct cluster *cluster, const struct name *ns)
{
    return (struct allowance *)(void *)table_find(&cluster->allowances, name_hash(ns),
                                                  allowance_matches, ns);
}

static struct allowance *find_or_make(struct cluster *cluster, struct name *ns)
{
    struct allowance *allowance = find(cluster, ns);

    if (allowance != NULL)
        return allowance;
    allowance = pool_alloc(cluster->allowances.pool, sizeof *allowance);
    if (allowance == NULL)
        return NULL;
    allowance->record.hash = name_hash(ns);
    allowance->ns = ns;
    if (!table_add(&cluster->allowances, &allowance->record)) {
        pool_free(cluster->allowances.pool, allowance);
        return NULL;
    }
    ns->refs++;
    return allowance;
}

static void free_if_unused(struct cluster *cluster, struct allowance *allowance)
{
    if (allowance->bytes != 0 || allowance->is_over)
        return;
    table_remove(&cluster->allowances, &allowance->record);
    names_release(&cluster->names, allowance->ns);
    pool_free(cluster->allowances.pool, allowance);
}

void allowances_dispose(struct cluster *cluster)
{
    table_free_records(&cluster->allowances); /* names_dispose frees the names */
}

/* ---- bytes ---- */

void allowance_limit(struct cluster *cluster, size_t namespace_bytes, size_t total_bytes)
{
    cluster->allowance_limits =
        (struct allowance_limits){ALLOWANCE_FREE_BYTES, namespace_bytes, total_bytes};
    cluster->are_over = true; /* perhaps: allowance_keep looks */
}

size_t allowance_of_claims(size_t count)
{
    return count <= ALLOWANCE_FREE_CLAIMS
               ? 0
               : (count - ALLOWANCE_FREE_CLAIMS) * ALLOWANCE_NAMED_CLAIM_BYTES;
}

/* Without memory for its record, an object is not charged; what is released then may be more than
 * what was charged. */
void allowance_charge(struct cluster *cluster, struct name *ns, size_t bytes)
{
    const struct allowance_limits *limits = &cluster->allowance_limits;
    bool counts = limits->namespace_bytes != 0 && ns != NULL && bytes > limits->free_bytes;
    struct allowance *allowance = counts ? find_or_make(cluster, ns) : NULL;

    if (allowance == NULL)
        return;
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
    for (struct table_record *at; (at = table_next(&cluster->allowances, walk)) != NULL;) {
        const struct allowance *allowance = (const struct allowance *)(const void *)at;
        if (allowance->is_over)
            return name_slice(allowance->ns);
    }
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
    cluster->namespaces_given_up += !allowance->is_over;
    allowance->is_over = true;
    allowance->is_filling = false;
    allowance->given_up_ns = monotonic_ns();
    cluster->allowance_sweep = (struct allowance_sweep){.is_needed = true};
}

/* Those that are too large; or else, if all together are, the largest. */
static void find_too_large(struct cluster *cluster)
{
    struct table_walk walk = {.at = 0};
    struct allowance *largest = NULL;
    size_t stored = 0; /* what is given up is about to go */

    for (struct table_record *at; (at = table_next(&cluster->allowances, &walk)) != NULL;) {
        struct allowance *allowance = (struct allowance *)(void *)at;
        if (is_shut(allowance))
            continue;
        if (allowance->bytes > cluster->allowance_limits.namespace_bytes) {
            give_up(cluster, allowance);
            continue;
        }
        stored += allowance->bytes;
        if (largest == NULL || allowance->bytes > largest->bytes)
            largest = allowance;
    }
    if (stored > cluster->allowance_limits.total_bytes && largest != NULL)
        give_up(cluster, largest);
}

/* ---- removing its objects ---- */

static bool is_given_up(const struct cluster *cluster, const struct name *ns)
{
    const struct allowance *allowance = find(cluster, ns);

    return allowance != NULL && is_shut(allowance);
}

/* Removes the object, if it is of a namespace that is given up; returns how much work that was. */
static size_t sweep_record(struct cluster *cluster, enum kind kind, struct table_record *record)
{
    void *object = record;
    struct pod *pod = object;
    struct claim *claim = object;
    struct resource *resource = object;
    size_t work = kind == KIND_POD ? 1U + pod->use_count : 1;

    if (kind == KIND_POD && (pod->use_count != 0 || pod->has_mounts) &&
        is_given_up(cluster, name_at(pod->ns)))
        pod_drop(cluster, pod); /* its reservation stays: a Binding may be under way */
    else if (kind == KIND_CLAIM && claim->exists && is_given_up(cluster, name_at(claim->ns)))
        claim_mark_deleted(cluster, claim);
    else if (kind == KIND_POD_DISRUPTION_BUDGET && is_given_up(cluster, resource_ns(resource)))
        resource_remove(cluster, kind, resource);
    else
        return 0;
    return work;
}

static const struct table *table_of(const struct cluster *cluster, enum kind kind)
{
    return kind == KIND_POD     ? &cluster->pods
           : kind == KIND_CLAIM ? &cluster->claims
                                : &cluster->resources[kind];
}

/* A page, or a part of it. sweep_record frees no other record of the page. */
static void sweep(struct cluster *cluster)
{
    struct allowance_sweep *at = &cluster->allowance_sweep;
    enum kind kind = swept_kinds[at->kind];
    struct table_walk walk = {.at = at->at};
    bool has_more = table_next_page(table_of(cluster, kind), &walk);

    for (size_t work = 0; has_more && walk.next < walk.count && work < SWEEP_WORK_MAX;)
        work += sweep_record(cluster, kind, walk.records[walk.next++]);
    if (has_more && walk.next == walk.count)
        at->at = walk.at; /* else the next step checks the rest of the page */
    if (has_more)
        return;
    at->at = 0;
    at->is_needed = ++at->kind < SWEPT_KINDS;
}

void allowance_keep(struct cluster *cluster)
{
    if (cluster->are_over)
        find_too_large(cluster);
    cluster->are_over = false;
    if (cluster->allowance_sweep.is_needed)
        sweep(cluster);
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
    bool may_fill = index_of(kind) < SWEPT_KINDS && !cluster->allowance_sweep.is_needed;

    for (struct table_record *at;
         may_fill && (at = table_next(&cluster->allowances, &walk)) != NULL;) {
        struct allowance *allowance = (struct allowance *)(void *)at;
        if (is_shut(allowance) &&
            asked_ns >= allowance->given_up_ns + ALLOWANCE_FENCE_MS * NS_PER_MS)
            begin_filling(cluster, allowance, kind);
    }
}

void allowance_miss(struct cluster *cluster, enum kind kind)
{
    struct table_walk walk = {.at = 0};
    unsigned index = index_of(kind);

    for (struct table_record *at;
         index < SWEPT_KINDS && (at = table_next(&cluster->allowances, &walk)) != NULL;)
        ((struct allowance *)(void *)at)->list_wanted[index] = cluster->lists[kind].number + 1;
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

    for (struct table_record *at;
         index < SWEPT_KINDS && (at = table_next(&cluster->allowances, &walk)) != NULL;) {
        struct allowance *allowance = (struct allowance *)(void *)at;
        if (!allowance->is_filling)
            continue;
        allowance->is_listed[index] = allowance->is_listed[index] ||
                                      cluster->lists[kind].number >= allowance->list_wanted[index];
        if (!is_whole(allowance))
            continue;
        allowance->is_over = allowance->is_filling = false;
        cluster->namespaces_given_up--;
        free_if_unused(cluster, allowance);
    }
}
