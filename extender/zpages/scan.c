#include "extender/zpages/scan.h"

#include <stdlib.h>

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
