#include "support/every_field.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* What a decoder of one field may write to. */
static _Alignas(max_align_t) char scratch[1 << 16];

static bool reads(const struct pull_field *field, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    struct arena arena;
    struct pull json;

    arena_init(&arena, 64 << 20);
    memset(scratch, 0, sizeof scratch);
    pull_init(&json, slice_of(text));
    bool is_read = field->read(&json, &arena, scratch) && pull_finish(&json);
    arena_dispose(&arena);
    free(text);
    return is_read;
}

static struct pull_table members_of(const struct pull_field *field)
{
    return (struct pull_table){field->members, field->count};
}

/* A value that the field's own reader reads. */
static json_t *value_for_reader(const struct pull_field *field, const char *text)
{
    json_t *values[] = {
        json_pack("[o]", every_field(members_of(field), text)),
        every_field(members_of(field), text),
        json_string(text),
        json_pack("[s]", text),
        json_pack("{s:s}", text, text),
        json_true(),
        json_integer(1),
    };
    json_t *found = NULL;

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        bool has_members = i < 2;
        if (found == NULL && has_members == (field->members != NULL) && reads(field, values[i]))
            found = json_incref(values[i]);
        json_decref(values[i]);
    }
    if (found == NULL) {
        (void)fprintf(stderr, "nothing that %s reads\n", field->key);
        abort();
    }
    return found;
}

static json_t *value_of(const struct pull_field *field, const char *text)
{
    switch (field->type) {
    case PULL_RAW:
    case PULL_NAME:
    case PULL_BOUNDED:
    case PULL_STRING: return json_string(text);
    case PULL_INTEGER: return json_integer(1);
    case PULL_BOOLEAN: return json_true();
    case PULL_PRESENCE: return json_object();
    case PULL_OBJECT: return every_field(members_of(field), text);
    case PULL_EACH:
    case PULL_ITEMS: return json_pack("[o]", every_field(members_of(field), text));
    case PULL_READ: return value_for_reader(field, text);
    }
    return NULL;
}

json_t *every_field(struct pull_table table, const char *text)
{
    json_t *object = json_object();

    for (size_t i = 0; i < table.count; i++)
        if (json_object_set_new(object, table.fields[i].key, value_of(&table.fields[i], text)) != 0)
            abort();
    return object;
}

void every_field_merge(json_t *to, json_t *from)
{
    const char *key;
    json_t *value;

    json_object_foreach (from, key, value) {
        json_t *there = json_object_get(to, key);
        if (json_is_array(there) && json_is_object(json_array_get(there, 0)))
            every_field_merge(json_array_get(there, 0), json_array_get(value, 0));
        else if (json_is_object(there) && json_is_object(value))
            every_field_merge(there, value);
        else if (there == NULL && json_object_set(to, key, value) != 0)
            abort();
    }
}
