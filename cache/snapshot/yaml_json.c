#include "cache/snapshot/yaml_json.h"

#include <stdlib.h>

#include "cache/json/json_text.h"
#include "cache/snapshot/yaml_json_internal.h"

const char yaml_no_memory[] = "out of memory";

void yaml_json_init(struct yaml_json *writer, size_t max_bytes)
{
    *writer = (struct yaml_json){0};
    buf_init(&writer->out, max_bytes);
    buf_init(&writer->anchored, YAML_COPIED_BYTES_MAX);
    buf_init(&writer->merges, YAML_COPIED_BYTES_MAX);
}

void yaml_json_dispose(struct yaml_json *writer)
{
    buf_dispose(&writer->out);
    free(writer->keys);
    free(writer->marks);
    buf_dispose(&writer->anchored);
    buf_dispose(&writer->merges);
    free(writer->anchors);
}

void yaml_json_start(struct yaml_json *writer)
{
    writer->depth = 0;
    writer->key_count = 0;
    writer->mark_count = 0;
    writer->has_aliases = false;
    buf_reset(&writer->out, SIZE_MAX);
    buf_reset(&writer->merges, SIZE_MAX);
}

void yaml_json_start_document(struct yaml_json *writer)
{
    writer->anchor_count = 0;
    buf_reset(&writer->anchored, SIZE_MAX);
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

const char *yaml_key_put(struct yaml_json *writer, uint64_t hash, struct place place)
{
    if (writer->key_count == writer->key_capacity) {
        size_t capacity = writer->key_capacity == 0 ? 64 : writer->key_capacity * 2;
        struct yaml_key *grown = realloc(writer->keys, capacity * sizeof *grown);
        if (grown == NULL)
            return yaml_no_memory;
        writer->keys = grown;
        writer->key_capacity = capacity;
    }
    writer->keys[writer->key_count++] = (struct yaml_key){hash, place};
    return NULL;
}

const char *yaml_mark_put(struct yaml_json *writer, struct place place)
{
    if (!writer->keeps_marks)
        return NULL;
    if (writer->mark_count == writer->mark_capacity) {
        size_t capacity = writer->mark_capacity == 0 ? 256 : writer->mark_capacity * 2;
        struct yaml_mark *grown = realloc(writer->marks, capacity * sizeof *grown);
        if (grown == NULL)
            return yaml_no_memory;
        writer->marks = grown;
        writer->mark_capacity = capacity;
    }
    writer->marks[writer->mark_count++] = (struct yaml_mark){writer->out.len, place};
    return NULL;
}

void yaml_marks_cut(struct yaml_json *writer, size_t offset)
{
    while (writer->mark_count != 0 && writer->marks[writer->mark_count - 1].offset >= offset)
        writer->mark_count--;
}

int yaml_key_order(const void *a, const void *b)
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

    writer->key_count = begin;
    if (count < 2)
        return true;
    struct yaml_key *keys = writer->keys + begin;
    qsort(keys, count, sizeof *keys, yaml_key_order);
    for (size_t i = 1; i < count; i++) {
        if (keys[i].hash == keys[i - 1].hash) {
            *place = keys[i].place;
            return false;
        }
    }
    return true;
}

static struct yaml_level *innermost(struct yaml_json *writer)
{
    return writer->depth == 0 ? NULL : &writer->levels[writer->depth - 1];
}

static bool expects_key(const struct yaml_json *writer)
{
    const struct yaml_level *level = writer->depth == 0 ? NULL : &writer->levels[writer->depth - 1];

    return level != NULL && level->is_mapping && level->expects_key;
}

/* The comma or colon before the next key or value. */
static void put_separator(struct yaml_json *writer)
{
    struct yaml_level *level = innermost(writer);

    if (level == NULL)
        return;
    if (level->is_mapping) {
        level->expects_key = !level->expects_key;
        if (level->expects_key) { /* a value comes now, a key next */
            if (level->is_merging)
                level->value_begin = writer->out.len;
            else
                buf_put(&writer->out, SLICE(":"));
            return;
        }
    }
    if (!level->is_first)
        buf_put(&writer->out, SLICE(","));
    level->is_first = false;
}

/* ---- events ---- */

/* The key `<<`: its value is merged at the end of the mapping, whose own keys win. */
static const char *begin_merge(struct yaml_json *writer, struct place place)
{
    struct yaml_level *level = innermost(writer);

    if (level->merge_len != 0)
        return "this key appears twice";
    level->expects_key = false;
    level->is_merging = true;
    level->merge_begin = writer->merges.len;
    level->merge_place = place;
    return NULL;
}

static const char *put_scalar(struct yaml_json *writer, const yaml_event_t *event)
{
    bool is_key = expects_key(writer);
    bool is_plain =
        event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && event->data.scalar.plain_implicit;
    struct place place = yaml_place(&event->start_mark);
    const char *problem = NULL;
    struct yaml_level scalar;

    if (is_key && is_plain && slice_equal(yaml_scalar(event), SLICE("<<")))
        return begin_merge(writer, place);
    if (is_key)
        problem = yaml_key_put(writer, yaml_hash(yaml_scalar(event)), place);
    put_separator(writer);
    if (problem == NULL)
        problem = yaml_mark_put(writer, place);
    if (problem != NULL)
        return problem;
    yaml_anchor_begin(&scalar, event->data.scalar.anchor, writer->out.len);
    if (is_plain && !is_key)
        put_plain(&writer->out, yaml_scalar(event));
    else
        buf_json(&writer->out, yaml_scalar(event));
    return scalar.anchor == 0 ? NULL : yaml_anchor_end(writer, scalar.anchor, scalar.begin);
}

static const char *put_alias(struct yaml_json *writer, const yaml_event_t *event)
{
    const char *problem;

    if (expects_key(writer))
        return "an alias cannot be a key: write the key out";
    put_separator(writer);
    problem = yaml_mark_put(writer, yaml_place(&event->start_mark));
    return problem != NULL ? problem : yaml_alias_put(writer, event->data.alias.anchor);
}

static const char *put_start(struct yaml_json *writer, bool is_mapping, const yaml_char_t *anchor)
{
    if (expects_key(writer))
        return "a key must be a scalar";
    if (writer->depth == YAML_DEPTH_MAX)
        return json_text_too_deep;
    put_separator(writer);
    struct yaml_level *level = &writer->levels[writer->depth++];
    *level = (struct yaml_level){.is_mapping = is_mapping,
                                 .expects_key = true,
                                 .is_first = true,
                                 .keys_begin = writer->key_count};
    yaml_anchor_begin(level, anchor, writer->out.len);
    buf_put(&writer->out, is_mapping ? SLICE("{") : SLICE("["));
    return NULL;
}

static const char *put_end(struct yaml_json *writer, struct place *place)
{
    struct yaml_level *level = innermost(writer);
    const char *problem = NULL;

    if (level->merge_len != 0) {
        problem = yaml_merge_put(writer, level);
        *place = level->merge_place;
    }
    buf_put(&writer->out, level->is_mapping ? SLICE("}") : SLICE("]"));
    if (problem == NULL && !keys_are_unique(writer, level->keys_begin, place))
        problem = "this key appears twice";
    writer->depth--;
    return problem != NULL || level->anchor == 0
               ? problem
               : yaml_anchor_end(writer, level->anchor, level->begin);
}

/* Adds the event. */
static const char *put_event(struct yaml_json *writer, const yaml_event_t *event,
                             struct place *place)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT: return put_scalar(writer, event);
    case YAML_ALIAS_EVENT: return put_alias(writer, event);
    case YAML_MAPPING_START_EVENT: return put_start(writer, true, event->data.mapping_start.anchor);
    case YAML_SEQUENCE_START_EVENT:
        return put_start(writer, false, event->data.sequence_start.anchor);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT: return put_end(writer, place);
    default: return NULL;
    }
}

const char *yaml_json_put(struct yaml_json *writer, const yaml_event_t *event, struct place *place)
{
    *place = yaml_place(&event->start_mark);
    const char *problem = put_event(writer, event, place);
    struct yaml_level *level = innermost(writer);
    bool has_value = level != NULL && level->is_merging && level->expects_key;
    if (problem == NULL && has_value)
        problem = yaml_merge_take(writer, level);
    if (problem == NULL && writer->out.failed)
        problem = "one object is too big";
    return problem;
}
