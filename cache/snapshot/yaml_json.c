#include "cache/snapshot/yaml_json.h"

#include <stdlib.h>

#include "cache/json/json_text.h"
#include "cache/store/table.h"

void yaml_json_init(struct yaml_json *writer, size_t max_bytes)
{
    *writer = (struct yaml_json){0};
    buf_init(&writer->out, max_bytes);
}

void yaml_json_dispose(struct yaml_json *writer)
{
    buf_dispose(&writer->out);
    free(writer->keys);
    free(writer->marks);
}

void yaml_json_start(struct yaml_json *writer)
{
    writer->depth = 0;
    writer->key_count = 0;
    writer->mark_count = 0;
    buf_reset(&writer->out, SIZE_MAX);
}

static bool is_one_of(struct slice s, const char *const *words)
{
    for (; *words != NULL; words++)
        if (slice_equal(s, slice_of(*words)))
            return true;
    return false;
}

/* A plain scalar by YAML 1.1, as Kubernetes reads it: also yes, no, on and off are booleans.
 * Numbers that JSON does not have (0x1f, 1_000, .inf) stay strings; no field that is read has such
 * a value. */
static void put_plain(struct buf *out, struct slice s)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", "yes", "Yes",
                                        "YES",  "on",   "On",   "ON",  NULL};
    static const char *const falses[] = {"false", "False", "FALSE", "no",  "No",
                                         "NO",    "off",   "Off",   "OFF", NULL};

    if (is_one_of(s, nulls)) {
        buf_put(out, SLICE("null"));
    } else if (is_one_of(s, trues)) {
        buf_put(out, SLICE("true"));
    } else if (is_one_of(s, falses)) {
        buf_put(out, SLICE("false"));
    } else {
        struct json_scan scan = json_text_scalar(s.ptr, s.ptr + s.len);
        if (scan.problem == NULL && scan.at == s.ptr + s.len)
            buf_put(out, s);
        else
            buf_json(out, s);
    }
}

static bool remember_key(struct yaml_json *writer, const yaml_event_t *event)
{
    if (writer->key_count == writer->key_capacity) {
        size_t capacity = writer->key_capacity == 0 ? 64 : writer->key_capacity * 2;
        struct yaml_key *grown = realloc(writer->keys, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        writer->keys = grown;
        writer->key_capacity = capacity;
    }
    struct slice key = yaml_scalar(event);
    uint64_t high = table_hash(key, 1);
    writer->keys[writer->key_count++] =
        (struct yaml_key){high << 32 | table_hash(key, 2), yaml_place(&event->start_mark)};
    return true;
}

/* Adds a mark for a scalar that is written next. False: no memory. */
static bool put_mark(struct yaml_json *writer, const yaml_event_t *event)
{
    if (writer->mark_count == writer->mark_capacity) {
        size_t capacity = writer->mark_capacity == 0 ? 256 : writer->mark_capacity * 2;
        struct yaml_mark *grown = realloc(writer->marks, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        writer->marks = grown;
        writer->mark_capacity = capacity;
    }
    writer->marks[writer->mark_count++] =
        (struct yaml_mark){writer->out.len, yaml_place(&event->start_mark)};
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    const struct yaml_key *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->place.line != y->place.line)
        return x->place.line < y->place.line ? -1 : 1;
    return (x->place.column > y->place.column) - (x->place.column < y->place.column);
}

/* Removes the keys of the mapping that ends. False, with the place: a key appeared twice. Keys with
 * equal hashes (64 bits, seeded) count as equal: by chance once in 10^13 mappings of 1,000 keys. */
static bool keys_are_unique(struct yaml_json *writer, size_t begin, struct place *place)
{
    size_t count = writer->key_count - begin;
    struct yaml_key *keys = writer->keys + begin;

    writer->key_count = begin;
    if (count < 2)
        return true;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 1; i < count; i++) {
        if (keys[i].hash == keys[i - 1].hash) {
            *place = keys[i].place;
            return false;
        }
    }
    return true;
}

/* The comma or colon before the next key or value. */
static void put_separator(struct yaml_json *writer)
{
    if (writer->depth == 0)
        return;
    unsigned top = writer->depth - 1;
    if (writer->levels[top].is_mapping) {
        writer->levels[top].expects_key = !writer->levels[top].expects_key;
        if (writer->levels[top].expects_key) { /* a value comes now, a key next */
            buf_put(&writer->out, SLICE(":"));
            return;
        }
    }
    if (!writer->levels[top].is_first)
        buf_put(&writer->out, SLICE(","));
    writer->levels[top].is_first = false;
}

static bool expects_key(const struct yaml_json *writer)
{
    return writer->depth != 0 && writer->levels[writer->depth - 1].is_mapping &&
           writer->levels[writer->depth - 1].expects_key;
}

static const char *put_scalar(struct yaml_json *writer, const yaml_event_t *event)
{
    bool is_key = expects_key(writer);
    bool is_plain =
        event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && event->data.scalar.plain_implicit;

    if (is_key && event->data.scalar.plain_implicit && slice_equal(yaml_scalar(event), SLICE("<<")))
        return "merge keys (<<) are not supported: write the values out";
    if (is_key && !remember_key(writer, event))
        return "out of memory";
    put_separator(writer);
    if (writer->keeps_marks && !put_mark(writer, event))
        return "out of memory";
    if (is_plain && !is_key)
        put_plain(&writer->out, yaml_scalar(event));
    else
        buf_json(&writer->out, yaml_scalar(event));
    return NULL;
}

static const char *put_start(struct yaml_json *writer, bool is_mapping)
{
    if (expects_key(writer))
        return "a key must be a scalar";
    if (writer->depth == YAML_DEPTH_MAX)
        return json_text_too_deep;
    put_separator(writer);
    buf_put(&writer->out, is_mapping ? SLICE("{") : SLICE("["));
    writer->levels[writer->depth].is_mapping = is_mapping;
    writer->levels[writer->depth].expects_key = true;
    writer->levels[writer->depth].is_first = true;
    writer->levels[writer->depth].keys_begin = writer->key_count;
    writer->depth++;
    return NULL;
}

static const char *put_end(struct yaml_json *writer, struct place *place)
{
    writer->depth--;
    buf_put(&writer->out, writer->levels[writer->depth].is_mapping ? SLICE("}") : SLICE("]"));
    if (!keys_are_unique(writer, writer->levels[writer->depth].keys_begin, place))
        return "this key appears twice";
    return NULL;
}

const char *yaml_json_put(struct yaml_json *writer, const yaml_event_t *event, struct place *place)
{
    const char *problem = NULL;

    *place = yaml_place(&event->start_mark);
    switch (event->type) {
    case YAML_SCALAR_EVENT: problem = put_scalar(writer, event); break;
    case YAML_MAPPING_START_EVENT: problem = put_start(writer, true); break;
    case YAML_SEQUENCE_START_EVENT: problem = put_start(writer, false); break;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT: problem = put_end(writer, place); break;
    case YAML_ALIAS_EVENT: problem = "aliases are not supported: write the value out"; break;
    default: break;
    }
    if (problem == NULL && writer->out.failed)
        problem = "one object is too big";
    return problem;
}
