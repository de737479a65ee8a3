/*
 * object_project: what a snapshot has of an object: the fields that decoders read, by the tables of
 * these decoders. So a snapshot has what is read, and no more.
 *
 * Threads: any.
 */
#ifndef CACHE_OBJECTS_OBJECT_PROJECT_H
#define CACHE_OBJECTS_OBJECT_PROJECT_H

#include "cache/json/pull_fields.h"
#include "cache/objects/objects.h"

/* The tables of decoders beside those of objects.h and details.h. */
enum { PROJECT_READERS = 2 };
struct project_readers {
    struct pull_table readers[PROJECT_READERS];
};

/*
 * Writes an object's JSON with apiVersion, kind and only the fields that object_read, details.h and
 * `more`, unless it is NULL, read. Errors: ERROR_INVALID, ERROR_NO_MEMORY.
 */
int object_project(struct slice text, enum kind kind, const struct project_readers *more,
                   struct buf *out, struct error *err);

#endif
