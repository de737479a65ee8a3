/*
 * source: Kubernetes objects from files: what `kubectl get ... -o json` or `-o yaml` prints (a
 * List), multi-document streams, single objects, directories of such files, standard input ("-").
 *
 * A file is read as JSON if its name ends with .json, or if it starts with a bracket and its first
 * 64 KiB are JSON. Any other file is read as YAML, which includes JSON.
 *
 * One object is in memory at a time, never the whole document. YAML is converted to JSON one object
 * at a time, so the same code decodes both.
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
    size_t objects;     /* passed to the sink */
    size_t skipped;     /* of kinds that are not kept */
    size_t unreadable;  /* pods with too many claims */
    size_t bytes_read;  /* of the file being read */
    size_t bytes_total; /* its size; 0: not known */
    const char *path;   /* the file being read */
};

struct source {
    const char *path; /* a file, a directory (its *.json, *.yaml, *.yml by name), or "-" */

    /* Receives one object, valid until it returns. Negative, with err set: stop. */
    int (*sink)(void *context, const struct object *object, struct error *err);
    void *context;

    /* Called a few times per MiB; may be NULL. */
    void (*progress)(void *context, const struct source_report *report);
    void *progress_context;
};

/*
 * Reads all objects. Threads: one.
 * Errors: ERROR_INVALID and ERROR_TOO_BIG with "FILE:LINE:COL: ..." ; ERROR_SYSTEM with the file's
 * name. Objects before the error were passed to the sink.
 */
int source_read(const struct source *source, struct source_report *report, struct error *err);

#endif
