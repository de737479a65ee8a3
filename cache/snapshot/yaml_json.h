/*
 * yaml_json: converts YAML events to JSON text, as sigs.k8s.io/yaml does: plain scalars that look
 * like null, booleans or numbers become these, all others become strings; keys are strings.
 * Aliases (*NAME) and merge keys (<<) are expanded, up to YAML_COPIED_BYTES_MAX in one file, since
 * a few lines of them can stand for terabytes. An anchor is known up to the end of its document.
 * Duplicate keys and more than YAML_DEPTH_MAX levels are errors. Threads: one at a time.
 *
 *     const char *problem;
 *     yaml_json_start(writer);
 *     do {
 *         yaml_event_t event;
 *         yaml_parser_parse(parser, &event);
 *         problem = yaml_json_put(writer, &event, &place);
 *         yaml_event_delete(&event);
 *     } while (problem == NULL && writer->depth != 0);
 *     text = buf_slice(&writer->out); // one value
 */
#ifndef CACHE_SNAPSHOT_YAML_JSON_H
#define CACHE_SNAPSHOT_YAML_JSON_H

#include <yaml.h>

#include "cache/json/pull.h"
#include "config/base/buf.h"

enum {
    YAML_DEPTH_MAX = 1000, /* a level takes 80 bytes here */
    YAML_ANCHORS_MAX = 1000,
    YAML_MERGED_MAX = 64, /* mappings in the list of one merge key */
    YAML_COPIED_BYTES_MAX = 64 << 20,
};

/* The hash of a key, which finds duplicates without storing the text. */
struct yaml_key {
    uint64_t hash;
    struct place place;
};

/* Where a scalar of the output stands in the YAML. */
struct yaml_mark {
    size_t offset; /* in the output */
    struct place place;
};

/* The value of an anchor, in `anchored`. */
struct yaml_anchor {
    uint64_t name; /* its hash */
    size_t begin, len;
};

/* A mapping or a sequence that is being written. */
struct yaml_level {
    bool is_mapping;
    bool expects_key;
    bool is_first;
    bool is_merging;   /* the value of `<<` is being written, from value_begin of the output on */
    size_t keys_begin; /* its keys in `keys` */
    uint64_t anchor;   /* hash of its name; 0: none */
    size_t begin;      /* where it begins in the output, if it has an anchor */
    size_t value_begin;
    size_t merge_begin, merge_len; /* the value of `<<` in `merges`; 0: there is none */
    struct place merge_place;
};

struct yaml_json {
    struct buf out;
    unsigned depth;
    struct yaml_level levels[YAML_DEPTH_MAX];
    struct buf keys;   /* struct yaml_key, of all open mappings */
    bool keeps_marks;  /* set by the caller */
    bool allows_twice; /* set by the caller: a key may appear twice, as sigs.k8s.io/yaml takes it */
    struct buf marks;  /* struct yaml_mark, of the scalars, in their order */
    struct buf anchored, merges;
    struct buf anchors; /* struct yaml_anchor, of the document */
    size_t copied;      /* bytes, in the file */
    bool has_aliases;   /* the value has an alias or a merge key */
};

void yaml_json_init(struct yaml_json *writer, size_t max_bytes);
void yaml_json_dispose(struct yaml_json *writer);

/* Clears the output, for another value. */
void yaml_json_start(struct yaml_json *writer);

/* Forgets the anchors: a document begins. */
void yaml_json_start_document(struct yaml_json *writer);

/* Adds an event: a scalar, an alias, or the start or end of a mapping or sequence. Returns NULL, or
 * a problem (a static string) and its place. */
const char *yaml_json_put(struct yaml_json *writer, const yaml_event_t *event, struct place *place);

/* The scalar's text. */
static inline struct slice yaml_scalar(const yaml_event_t *event)
{
    return (struct slice){(const char *)event->data.scalar.value, event->data.scalar.length};
}

static inline struct place yaml_place(const yaml_mark_t *mark)
{
    return (struct place){mark->line + 1, mark->column + 1};
}

#endif
