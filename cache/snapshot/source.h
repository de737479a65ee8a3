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

#include "cache/json/json_documents.h"
#include "cache/objects/own_object.h"

enum {
    INPUT_WINDOW_BYTES = 256 * 1024,
    INPUT_OBJECT_BYTES_MAX = 16 * 1024 * 1024, /* the API server accepts about 3 MiB */
};

struct source_report {
    size_t objects;     /* passed to the sink, or taken as texts */
    size_t skipped;     /* of kinds that are not kept, and not taken as texts */
    size_t unreadable;  /* pods with too many claims */
    size_t bytes_read;  /* of the file being read */
    size_t bytes_total; /* its size; 0: not known */
    const char *path;   /* the file being read */
};

/* An object as it stands in a file, valid until the sink returns. */
struct source_text {
    const struct type *type;
    struct slice text;  /* its JSON; if the file is YAML, made of that */
    const char *path;   /* of the file */
    struct place place; /* where the object begins in the file */
    bool is_in_file;    /* the text is in the file, which can be read again, from `offset` on */
    uint64_t offset;

    /* Of a file that is YAML: where its scalars are; if the source wants places. */
    const struct yaml_mark *marks;
    size_t mark_count;
    bool is_made; /* text is made, and does not stand like this in the file */
};

struct source {
    const char *path; /* a file, a directory (its *.json, *.yaml, *.yml by name), or "-" */
    const char *name; /* of the file, in texts and errors; NULL: its path */

    /* Receives one object, valid until it returns. Negative, with err set: stop. NULL: objects are
     * not decoded, and all of them are passed on as texts alone. */
    int (*sink)(void *context, const struct object *object, struct error *err);
    void *context;

    /* Receives the text of each object, also of kinds that are not stored; then object is NULL.
     * Before `sink`, with the same context. Returns whether the object is used, or negative, with
     * err set: stop. NULL: texts are not wanted. */
    int (*text_sink)(void *context, const struct source_text *text, const struct object *object,
                     struct error *err);

    /* As `sink`, for objects of claimguard's own kinds, which do not count; NULL: they are kinds
     * that are not stored. */
    int (*own_sink)(void *context, const struct own_object *object, struct error *err);

    /* Receives the error of a YAML document that cannot be read; then the next one is read.
     * Negative, with err set: stop. NULL: an error ends the reading. */
    int (*broken)(void *context, struct error *err);

    bool wants_places; /* source_text_place finds more than the object's place in YAML */

    /* Documents that are not Kubernetes objects (no mapping, or one without kind) are skipped, as
     * those of other kinds; else they are errors. A key that no reader wants may appear twice. For
     * folders of a repository. */
    bool skips_foreign;

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

/* Whether a directory's file of that name is read. */
bool source_has_name(const char *name);

/* The place in the file of a text that points into the object's text; the object's, if that is not
 * known. */
struct place source_text_place(const struct source_text *text, struct slice part);

/* The last line of the file that has a scalar of the object; its first one, if that is not known.
 */
size_t source_text_last_line(const struct source_text *text);

#endif
