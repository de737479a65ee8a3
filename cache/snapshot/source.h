/*
 * source: Kubernetes objects from files: what `kubectl get ... -o json` or `-o yaml` prints (a
 * List), multi-document streams, single objects, directories of such files, standard input ("-").
 *
 * What starts with a bracket and is JSON for its first 64 KiB, or has a name in .json, is read as
 * JSON; all else as YAML (of which JSON is a part).
 *
 * Streaming: one object is in memory at a time, never the document. YAML becomes JSON one object at
 * a time, so both are decoded by the same code and cannot differ.
 *
 *     int keep(void *cluster, const struct object *object, struct error *err);
 *     struct source source = {.path = path, .sink = keep, .context = cluster};
 *     struct source_report report;
 *     if (source_read(&source, &report, err) < 0)
 *         return error_wrap(err, "load the snapshot");
 */
#ifndef CACHE_SNAPSHOT_SOURCE_H
#define CACHE_SNAPSHOT_SOURCE_H

#include "cache/objects/objects.h"

struct source_report {
    size_t objects;     /* given to the sink */
    size_t skipped;     /* of kinds that are not kept */
    size_t unreadable;  /* pods with too many claims */
    size_t bytes_read;  /* of the file being read */
    size_t bytes_total; /* its size; 0 when that is not known */
    const char *path;   /* the file being read */
};

struct source {
    const char *path; /* a file, a directory (its *.json, *.yaml, *.yml by name), or "-" */

    /* Takes one object, which is gone when it returns. Negative, with err set: stop. */
    int (*sink)(void *context, const struct object *object, struct error *err);
    void *context;

    /* Called now and then, a few times a MiB; may be NULL. */
    void (*progress)(void *context, const struct source_report *report);
    void *progress_context;
};

/*
 * Reads all of it.
 * Errors: ERROR_INVALID and ERROR_TOO_BIG with "FILE:LINE:COL: ..." ; ERROR_SYSTEM with the file's
 * name. What was read before the error has been given to the sink.
 */
int source_read(const struct source *source, struct source_report *report, struct error *err);

#endif
