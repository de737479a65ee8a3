/*
 * yaml_json: converts YAML events to JSON text, as sigs.k8s.io/yaml does: plain scalars that look
 * like null, booleans or numbers become these, all others become strings; keys are strings.
 * Duplicate keys, merge keys (<<), aliases (which can expand without limit) and more than
 * YAML_DEPTH_MAX levels are errors. Threads: one at a time.
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

enum { YAML_DEPTH_MAX = 1000 }; /* a level takes 16 bytes here */

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

struct yaml_json {
    struct buf out;
    unsigned depth;
    struct {
        bool is_mapping;
        bool expects_key;
        bool is_first;
        size_t keys_begin; /* its keys in `keys` */
    } levels[YAML_DEPTH_MAX];
    struct yaml_key *keys; /* of all open mappings */
    size_t key_count, key_capacity;
    bool keeps_marks;        /* set by the caller */
    struct yaml_mark *marks; /* of the scalars, in their order */
    size_t mark_count, mark_capacity;
};

void yaml_json_init(struct yaml_json *writer, size_t max_bytes);
void yaml_json_dispose(struct yaml_json *writer);

/* Clears the output, for another value. */
void yaml_json_start(struct yaml_json *writer);

/* Adds an event: a scalar, or the start or end of a mapping or sequence. Returns NULL, or a problem
 * (a static string) and its place. */
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
