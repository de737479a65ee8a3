#include "cache/json/pull_fields.h"

#include <assert.h>
#include <stdio.h>
#include <xxhash.h>

#include "cache/json/json_text.h"

static bool is_word(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~') /* of a signed char, what is not ASCII too */
            return false;
    return true;
}

/* needs_word: a text that is not one word is also replaced. */
static bool pull_bounded(struct pull *json, struct arena *arena, struct slice *out, bool needs_word)
{
    if (!pull_string(json, arena, out))
        return false;
    if (out->len <= JSON_NAME_BYTES_MAX && (!needs_word || is_word(*out)))
        return true;
    XXH128_hash_t hash = XXH3_128bits(out->ptr, out->len);
    *out = arena_printf(arena, "text-of-%zu-bytes/%016llx%016llx", out->len,
                        (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    return out->ptr != NULL || pull_problem(json, pull_too_big);
}

bool pull_name(struct pull *json, struct arena *arena, struct slice *out)
{
    return pull_bounded(json, arena, out, true);
}

/* Puts "key." before the path of a problem, on the way out of the value. */
static void prefix_path(struct pull *json, const char *key)
{
    char inner[PULL_PATH_MAX];

    memcpy(inner, json->path, sizeof inner);
    int written = snprintf(json->path, sizeof json->path, "%s%s%s", key,
                           inner[0] == '\0' || inner[0] == '[' ? "" : ".", inner);
    if (written < 0)
        json->path[0] = '\0';
}

/* Reads the item of an array, which has that index.
 * NOLINTNEXTLINE(misc-no-recursion): as deep as the tables, which are constants, are nested */
static bool read_item(struct pull *json, enum pull_case match, struct pull_table table,
                      size_t index, struct arena *arena, void *out)
{
    char text[24];

    if (pull_fields(json, match, table.fields, table.count, arena, out))
        return true;
    (void)snprintf(text, sizeof text, "[%zu]", index);
    prefix_path(json, text);
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables, which are constants, are nested */
static bool pull_each(struct pull *json, enum pull_case match, const struct pull_field *field,
                      struct arena *arena, void *out)
{
    const struct pull_table table = {field->members, field->count};

    if (!pull_array(json))
        return json->problem == NULL;
    for (size_t i = 0; pull_item(json); i++)
        if (!read_item(json, match, table, i, arena, out))
            return false;
    return json->problem == NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables, which are constants, are nested */
static bool read_value(struct pull *json, enum pull_case match, const struct pull_field *field,
                       struct arena *arena, void *out)
{
    void *at = (char *)out + field->offset;

    switch (field->type) {
    case PULL_STRING: return pull_string(json, arena, at);
    case PULL_NAME: return pull_name(json, arena, at);
    case PULL_BOUNDED: return pull_bounded(json, arena, at, false);
    case PULL_INTEGER: return pull_integer(json, at);
    case PULL_BOOLEAN: return pull_boolean(json, at);
    case PULL_PRESENCE:
        if (pull_null(json))
            return true;
        *(bool *)at = pull_skip(json);
        return *(bool *)at;
    case PULL_RAW: return pull_null(json) || pull_raw(json, at);
    case PULL_OBJECT: return pull_fields(json, match, field->members, field->count, arena, out);
    case PULL_ITEMS:
        ((struct pull_items *)at)->size = field->size;
        return pull_field_array(json, match, field->members, field->count, arena, at);
    case PULL_EACH: return pull_each(json, match, field, arena, out);
    case PULL_READ: return field->read(json, arena, at);
    }
    return pull_problem(json, "unknown field type");
}

/* Most keys differ from the table's in their first byte. */
static inline bool is_key(const char *name, struct slice key)
{
    return key.len != 0 && name[0] == key.ptr[0] && strncmp(name, key.ptr, key.len) == 0 &&
           name[key.len] == '\0';
}

static const struct pull_field *find_field(const struct pull_field *fields, size_t count,
                                           enum pull_case match, struct slice key)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = fields[i].key;
        if (match == PULL_CASE_FOLD ? slice_equal_fold(slice_of(name), key) : is_key(name, key))
            return &fields[i];
    }
    return NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables, which are constants, are nested */
bool pull_fields(struct pull *json, enum pull_case match, const struct pull_field *fields,
                 size_t count, struct arena *arena, void *out)
{
    uint32_t seen = 0; /* a bit for each field */
    struct slice key;

    assert(count <= PULL_FIELDS_MAX);
    if (!pull_object(json))
        return json->problem == NULL;
    while (pull_key(json, &key)) {
        const struct pull_field *field = find_field(fields, count, match, key);
        if (field == NULL) {
            (void)pull_skip(json);
            continue;
        }
        uint32_t bit = UINT32_C(1) << (field - fields);
        if ((seen & bit) != 0)
            (void)pull_problem(json, "this key appears twice");
        else
            (void)read_value(json, match, field, arena, out);
        seen |= bit;
        if (json->problem != NULL)
            prefix_path(json, field->key);
    }
    return json->problem == NULL;
}

bool pull_fields_of(struct slice text, const struct pull_field *fields, size_t count,
                    struct arena *arena, void *out)
{
    struct pull json;

    pull_init(&json, text);
    return pull_fields(&json, PULL_CASE_EXACT, fields, count, arena, out) && pull_finish(&json);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables, which are constants, are nested */
bool pull_field_array(struct pull *json, enum pull_case match, const struct pull_field *fields,
                      size_t count, struct arena *arena, struct pull_items *out)
{
    const struct pull_table table = {fields, count};

    if (!pull_array(json))
        return json->problem == NULL;
    while (pull_item(json)) {
        char *grown = arena_grow(arena, out->items, out->count, out->size);
        if (grown == NULL)
            return pull_problem(json, pull_too_big);
        out->items = grown;
        void *item = memset(grown + out->count * out->size, 0, out->size);
        if (!read_item(json, match, table, out->count, arena, item))
            return false;
        out->count++;
    }
    return json->problem == NULL;
}

/* How a key of an object is projected: what the tables say of it, taken together. */
struct projection {
    bool is_named;    /* a table has it */
    bool is_whole;    /* one of them reads the whole value */
    bool is_presence; /* they only ask whether it is there */
    bool is_object;   /* PULL_OBJECT: left out if it is empty */
    struct pull_tables members;
};

static struct projection find_projection(const struct pull_tables *tables, struct slice key)
{
    struct projection found = {.is_presence = true, .is_object = true};

    for (int i = 0; i < PULL_READERS; i++) {
        const struct pull_table *table = &tables->readers[i];
        const struct pull_field *field =
            find_field(table->fields, table->count, PULL_CASE_EXACT, key);
        if (field == NULL)
            continue;
        found.is_named = true;
        found.is_presence &= field->type == PULL_PRESENCE;
        found.is_object &= field->type == PULL_OBJECT;
        found.is_whole |= field->type != PULL_PRESENCE && field->members == NULL;
        found.members.readers[i] = (struct pull_table){field->members, field->count};
    }
    return found;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables, which are constants, are nested */
static bool project_array(struct pull *json, const struct pull_tables *members, struct buf *out)
{
    bool is_first = true;

    buf_put(out, SLICE("["));
    if (!pull_array(json))
        return json->problem == NULL;
    while (pull_item(json)) {
        buf_put(out, is_first ? SLICE("") : SLICE(","));
        is_first = false;
        if (!pull_project(json, members, out))
            return false;
    }
    buf_put(out, SLICE("]"));
    return json->problem == NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables, which are constants, are nested */
static bool project_value(struct pull *json, const struct projection *projection, struct buf *out)
{
    struct slice raw = {NULL, 0};

    if (pull_null(json)) {
        buf_put(out, SLICE("null"));
        return true;
    }
    if (projection->is_presence) {
        buf_put(out, SLICE("{}"));
        return pull_skip(json);
    }
    if (projection->is_whole) {
        if (!pull_raw(json, &raw))
            return false;
        buf_put(out, raw);
        return true;
    }
    return *json_text_space(json->at, json->end) == '['
               ? project_array(json, &projection->members, out)
               : pull_project(json, &projection->members, out);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables, which are constants, are nested */
bool pull_project(struct pull *json, const struct pull_tables *tables, struct buf *out)
{
    bool is_first = true;
    struct slice key;

    if (!pull_object(json))
        return pull_problem(json, "expected an object");
    buf_put(out, SLICE("{"));
    while (pull_key(json, &key)) {
        struct projection projection = find_projection(tables, key);
        if (!projection.is_named) {
            (void)pull_skip(json);
            continue;
        }
        size_t before = out->len;
        buf_put(out, is_first ? SLICE("") : SLICE(","));
        buf_json(out, key);
        buf_put(out, SLICE(":"));
        size_t value = out->len;
        if (!project_value(json, &projection, out))
            return false;
        if (projection.is_object && out->len == value + 2)
            out->len = before; /* "{}": it has no field of the tables */
        else
            is_first = false;
    }
    buf_put(out, SLICE("}"));
    return json->problem == NULL;
}
