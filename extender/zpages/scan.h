/*
 * scan: the records of a table, a few at a time, in the order of their hashes. Between two calls
 * anything may change: what is there all the while is visited, once.
 *
 *     scan_visit visit;
 *     struct scan scan = {.from = 0};
 *     while (scan_on(&scan, table, visit, context))
 *         continue; // the lock may be released here
 *
 * Threads: the caller holds the table still during a call.
 */
#ifndef EXTENDER_ZPAGES_SCAN_H
#define EXTENDER_ZPAGES_SCAN_H

#include "cache/store/table.h"

struct scan {
    uint64_t from; /* the hash at which it goes on */
};

/* Takes a record. False: enough for now. */
typedef bool scan_visit(void *context, const struct table_record *record);

/* Goes on until the visitor has enough, or at most through a page. False: that was the end. */
bool scan_on(struct scan *scan, const struct table *table, scan_visit *visit, void *context);

#endif
