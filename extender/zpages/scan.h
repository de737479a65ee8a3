/*
 * scan: visits the records of a table, a few at a time, in the order of their hashes. The table may
 * change between two calls; a record that stays in it is visited exactly once.
 *
 *     scan_visit visit;
 *     struct scan scan = {.from = 0};
 *     while (scan_on(&scan, table, visit, context))
 *         continue; // the lock may be released here
 *
 * Threads: during a call, the caller holds the lock of the table.
 */
#ifndef EXTENDER_ZPAGES_SCAN_H
#define EXTENDER_ZPAGES_SCAN_H

#include "cache/store/table.h"

struct scan {
    uint64_t from; /* the hash at which the next call continues */
};

/* Visits a record. False to stop for now. */
typedef bool scan_visit(void *context, const struct table_record *record);

/* Continues until the visitor returns false, but at most to the end of a page of the table. False
 * at the end of the table. */
bool scan_on(struct scan *scan, const struct table *table, scan_visit *visit, void *context);

#endif
