/* A snapshot has each field that a decoder reads: of each kind, an object with all fields of all
 * tables is written as it is. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "cache/objects/details.h"
#include "cache/objects/object_project.h"
#include "cache/objects/objects_internal.h"
#include "extender/audit/reading.h"
#include "extender/doctor/installation.h"

/* What a decoder of one field may write to. */
static _Alignas(max_align_t) char scratch[1 << 16];

static json_t *object_of(const struct pull_field *fields, size_t count);

static bool reads(const struct pull_field *field, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY);
    struct arena arena;
    struct pull json;

    arena_init(&arena, 1 << 20);
    memset(scratch, 0, sizeof scratch);
    pull_init(&json, slice_of(text));
    bool is_read = field->read(&json, &arena, scratch) && pull_finish(&json);
    arena_dispose(&arena);
    free(text);
    return is_read;
}

/* A value that the field's own reader reads. */
static json_t *value_for_reader(const struct pull_field *field)
{
    json_t *values[] = {
        json_pack("[o]", object_of(field->members, field->count)),
        object_of(field->members, field->count),
        json_string("x"),
        json_pack("[s]", "x"),
        json_pack("{s:s}", "a", "b"),
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
    cr_assert_not_null(found, "nothing that %s reads", field->key);
    return found;
}

static json_t *value_of(const struct pull_field *field)
{
    switch (field->type) {
    case PULL_RAW:
    case PULL_STRING: return json_string("x");
    case PULL_INTEGER: return json_integer(1);
    case PULL_BOOLEAN: return json_true();
    case PULL_PRESENCE: return json_object();
    case PULL_OBJECT: return object_of(field->members, field->count);
    case PULL_READ: return value_for_reader(field);
    }
    return NULL;
}

static json_t *object_of(const struct pull_field *fields, size_t count)
{
    json_t *object = json_object();

    for (size_t i = 0; i < count; i++)
        cr_assert_eq(json_object_set_new(object, fields[i].key, value_of(&fields[i])), 0);
    return object;
}

/* Adds what another decoder reads: of objects, and of the first objects of arrays. */
static void merge(json_t *to, json_t *from)
{
    const char *key;
    json_t *value;

    json_object_foreach (from, key, value) {
        json_t *there = json_object_get(to, key);
        if (json_is_array(there) && json_is_object(json_array_get(there, 0)))
            merge(json_array_get(there, 0), json_array_get(value, 0));
        else if (json_is_object(there) && json_is_object(value))
            merge(there, value);
        else if (there == NULL)
            cr_assert_eq(json_object_set(to, key, value), 0);
    }
}

static void expect_all_fields(enum kind kind)
{
    const struct project_readers more = {{reading_table(kind), installation_table(kind)}};
    const struct pull_table decoders[] = {objects_table(kind), details_table(kind),
                                          reading_table(kind), installation_table(kind)};
    json_t *whole =
        json_pack("{s:s, s:s}", "apiVersion", kind_api_version(kind), "kind", kind_text(kind));
    struct error err = {0};
    struct buf out;

    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        json_t *part = object_of(decoders[i].fields, decoders[i].count);
        merge(whole, part);
        json_decref(part);
    }
    char *text = json_dumps(whole, JSON_SORT_KEYS);
    buf_init(&out, 1 << 20);
    cr_assert_eq(object_project(slice_of(text), kind, &more, &out, &err), 0, "%s", err.message);
    json_t *projected = json_loadb(out.bytes, out.len, 0, NULL);
    char *got = json_dumps(projected, JSON_SORT_KEYS);
    cr_expect_str_eq(got, text);
    free(got);
    free(text);
    json_decref(projected);
    json_decref(whole);
    buf_dispose(&out);
}

Test(snapshot_fields, of_each_kind_all_fields_that_a_decoder_reads_are_there)
{
    for (int kind = 0; kind < KIND_COUNT; kind++)
        expect_all_fields((enum kind)kind);
}

Test(snapshot_fields, what_nobody_reads_is_not_there)
{
    static const char pod[] =
        "{\"metadata\":{\"name\":\"p\",\"annotations\":{\"a\":\"secret\"}},\"spec\":{"
        "\"nodeSelector\":{\"disk\":\"fast\"},\"containers\":[{\"image\":\"secret\",\"args\":["
        "\"secret\"],\"env\":[{\"name\":\"A\",\"value\":\"secret\"}],\"resources\":{\"limits\":{"
        "\"memory\":\"secret\",\"claimguard.io/claims\":\"1\"}}}],\"affinity\":{\"nodeAffinity\":{"
        "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":\"secret\"}]}},"
        "\"volumes\":[{\"name\":\"v\",\"iscsi\":{\"iqn\":\"secret\"}}]}}";
    const struct project_readers more = {{reading_table(KIND_POD), installation_table(KIND_POD)}};
    struct error err = {0};
    struct buf out;

    buf_init(&out, 1 << 20);
    cr_assert_eq(object_project(slice_of(pod), KIND_POD, &more, &out, &err), 0, "%s", err.message);
    cr_expect_null(strstr(buf_text(&out), "secret"), "%s", buf_text(&out));
    cr_expect_not_null(strstr(buf_text(&out), "\"nodeSelector\":{\"disk\":\"fast\"}"));
    cr_expect_not_null(strstr(buf_text(&out), "\"claimguard.io/claims\":\"1\""));
    cr_expect_not_null(strstr(buf_text(&out), "\"iscsi\":{}"));
    buf_dispose(&out);
}
