#include "extender/serving/zpages/zpages.h"

#include <stdlib.h>

#include "extender/serving/bind/deferral.h"
#include "policy/defer_fs_mount.h"
#include "policy/exclusive.h"

void pieces_free(struct pieces *pieces)
{
    if (pieces != NULL && pieces->dispose != NULL)
        pieces->dispose(pieces);
    free(pieces);
}

/* ---- scan ---- */

static int compare_hashes(const void *a, const void *b)
{
    const struct table_record *const *x = a, *const *y = b;

    return ((*x)->hash > (*y)->hash) - ((*x)->hash < (*y)->hash);
}

/* Sorts the records of the page by hash, and drops those before `from`: if the table has shrunk,
 * two pages have become one, whose first records were visited before. */
static void arrange(struct table_walk *page, uint64_t from)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < page->count; i++)
        if (page->records[i]->hash >= from)
            page->records[count++] = page->records[i];
    page->count = count;
    qsort((void *)page->records, count, sizeof *page->records, compare_hashes);
}

bool scan_on(struct scan *scan, const struct table *table, scan_visit *visit, void *context)
{
    struct table_walk page = {.at = scan->from};
    bool has_enough = false;

    if (!table_next_page(table, &page))
        return false;
    arrange(&page, scan->from);
    for (uint32_t i = 0; i < page.count; i++) {
        if (has_enough && page.records[i]->hash != page.records[i - 1]->hash) {
            scan->from = page.records[i]->hash;
            return true;
        }
        has_enough = !visit(context, page.records[i]) || has_enough;
    }
    scan->from = page.at;
    return true;
}

/* ---- survey ---- */

enum { USES_A_STEP = 256 }; /* uses that are checked under one lock: about 50 microseconds */

struct surveying {
    struct state *state;
    struct view view; /* valid under the lock */
    struct survey found;
    struct buf *shown;
    unsigned left; /* uses that this step may still check */
};

/* Whether the step continues after so many uses. */
static bool spend(struct surveying *surveying, uint32_t uses)
{
    surveying->left -= uses < surveying->left ? uses : surveying->left;
    return surveying->left != 0;
}

static bool check_claim(void *context, const struct table_record *record)
{
    const struct claim *claim = (const struct claim *)(const void *)record;
    struct surveying *surveying = context;

    surveying->found.violations += exclusive_is_violated(&surveying->view, claim);
    return spend(surveying, claim->deferred == 0 ? 0 : claim->refs);
}

static bool check_pod(void *context, const struct table_record *record)
{
    const struct pod *pod = (const struct pod *)(const void *)record;
    struct surveying *surveying = context;
    size_t known = surveying->found.orphans;
    size_t most = surveying->shown == NULL || known >= SURVEY_ORPHANS_SHOWN_MAX
                      ? 0
                      : SURVEY_ORPHANS_SHOWN_MAX - known;

    if (!pod_defers(pod))
        return true;
    surveying->found.orphans += deferral_pod_orphans(&surveying->view, pod, most, surveying->shown);
    return spend(surveying, pod_mounts(pod)->volume_count);
}

static void check_all(struct surveying *surveying, const struct table *table, scan_visit *visit)
{
    struct scan scan = {.from = 0};
    bool has_more = true;

    while (has_more) {
        SCOPED_READ_LOCK(&surveying->state->lock);
        surveying->view = state_view(surveying->state);
        surveying->left = USES_A_STEP;
        has_more =
            surveying->state->cluster.deferring != NULL && scan_on(&scan, table, visit, surveying);
    }
}

struct survey survey_take(struct state *state, struct buf *shown)
{
    struct surveying surveying = {.state = state, .shown = shown};

    check_all(&surveying, &state->cluster.claims, check_claim);
    check_all(&surveying, &state->cluster.pods, check_pod);
    return surveying.found;
}

/* ---- counts of nodes ---- */

void node_refs_init(struct node_refs *refs, struct state *state, struct quota_share *share)
{
    *refs = (struct node_refs){.state = state};
    buf_init(&refs->batch, SIZE_MAX);
    refs->batch.share = share;
}

void node_refs_dispose(struct node_refs *refs)
{
    buf_dispose(&refs->batch);
}

static struct node_count *ref_of(const struct node_refs *refs, size_t i)
{
    return (struct node_count *)(void *)refs->batch.bytes + i;
}

static size_t ref_count(const struct node_refs *refs)
{
    return refs->batch.len / sizeof(struct node_count);
}

/* ---- the order of counts ---- */

static int compare_pointers(const void *a, const void *b)
{
    return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

int node_refs_compare(const struct node *a, uint32_t a_hash, const struct node *b, uint32_t b_hash)
{
    int order = (a_hash > b_hash) - (a_hash < b_hash);

    return order != 0 ? order : compare_pointers(a, b);
}

/* By node, then by the hash of the claim. Counts that are equal here are always in one batch. */
static int compare_places(const struct node_count *x, const struct node_count *y)
{
    int order = node_refs_compare(x->node, x->node_hash, y->node, y->node_hash);

    return order != 0 ? order : (x->claim_hash > y->claim_hash) - (x->claim_hash < y->claim_hash);
}

static int compare(const void *a, const void *b)
{
    const struct node_count *x = a, *y = b;
    int order = compare_places(x, y);

    return order != 0 ? order : compare_pointers(x->claim, y->claim);
}

/* ---- a batch ---- */

/* Adds a count that follows the batch before, and is not beyond the bound of this one. */
static void keep(struct node_refs *refs, const struct node *node, const struct claim *claim,
                 uint32_t count)
{
    struct node_count known = {node, claim, node->record.hash, claim->record.hash, count};

    if (compare_places(&known, &refs->last_seen) > 0 &&
        (!refs->has_more || compare_places(&known, &refs->bound) < 0))
        buf_put(&refs->batch, (struct slice){(const char *)&known, sizeof known});
}

static void keep_shared(struct node_refs *refs, const struct table_record *record)
{
    const struct refcount *ref = (const struct refcount *)(const void *)record;

    keep(refs, ref->node, ref->claim, ref->count);
}

static void keep_only(struct node_refs *refs, const struct table_record *record)
{
    const struct claim *claim = (const struct claim *)(const void *)record;

    if (claim->refs == 1)
        keep(refs, refcount_only_node(claim), claim, 1);
}

/* The size of a batch. It does not separate counts that compare_places finds equal. Otherwise, if a
 * claim is deleted and created again meanwhile, the next batch would contain it again. */
static size_t batch_end(const struct node_refs *refs)
{
    size_t end = NODE_REFS_BATCH;

    while (end > 1 && compare_places(ref_of(refs, end - 1), ref_of(refs, end)) == 0)
        end--;
    return end;
}

/* Sorts the counts, removes duplicates (a walk may visit a record twice), and drops those beyond
 * the size of a batch. */
static void cut(struct node_refs *refs)
{
    size_t count = ref_count(refs), kept = 0;

    if (count != 0)
        qsort(refs->batch.bytes, count, sizeof(struct node_count), compare);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare(ref_of(refs, kept - 1), ref_of(refs, i)) != 0)
            *ref_of(refs, kept++) = *ref_of(refs, i);
    if (kept > NODE_REFS_BATCH) {
        kept = batch_end(refs);
        refs->bound = *ref_of(refs, kept);
        refs->has_more = true;
    }
    refs->batch.len = kept * sizeof(struct node_count);
}

static void walk(struct node_refs *refs, const struct table *table,
                 void (*keep_record)(struct node_refs *, const struct table_record *))
{
    struct table_walk page = {.at = 0};
    bool has_page = true;

    while (has_page && !refs->batch.failed) {
        (void)pthread_rwlock_rdlock(&refs->state->lock);
        has_page = table_next_page(table, &page);
        for (uint32_t i = 0; has_page && i < page.count; i++)
            keep_record(refs, page.records[i]);
        (void)pthread_rwlock_unlock(&refs->state->lock);
        if (ref_count(refs) + TABLE_PAGE_SLOTS > (size_t)2 * NODE_REFS_BATCH)
            cut(refs);
    }
}

/* Fills the batch in a walk through the tables. */
static void next_batch(struct node_refs *refs)
{
    if (refs->batch.len != 0)
        refs->last_seen = *ref_of(refs, ref_count(refs) - 1);
    buf_reset(&refs->batch, SIZE_MAX);
    refs->at = 0;
    refs->has_more = false;
    walk(refs, &refs->state->cluster.refs, keep_shared);
    walk(refs, &refs->state->cluster.claims, keep_only);
    cut(refs);
    refs->has_begun = true;
}

/* The next count, from the next batch if necessary; NULL at the end, or without memory. */
static const struct node_count *next(struct node_refs *refs)
{
    while (refs->at == ref_count(refs) && (!refs->has_begun || refs->has_more) &&
           !refs->batch.failed)
        next_batch(refs);
    return refs->at == ref_count(refs) || refs->batch.failed ? NULL : ref_of(refs, refs->at);
}

const struct node_count *node_refs_take(struct node_refs *refs, const struct node *node,
                                        uint32_t node_hash, size_t most, size_t *count)
{
    const struct node_count *first = next(refs);

    while (first != NULL && node_refs_compare(first->node, first->node_hash, node, node_hash) < 0) {
        refs->at++; /* of a node that was added after its turn */
        first = next(refs);
    }
    *count = 0;
    if (first == NULL || first->node != node)
        return NULL;
    while (*count < most && refs->at < ref_count(refs) && ref_of(refs, refs->at)->node == node) {
        refs->at++;
        ++*count;
    }
    return first;
}
