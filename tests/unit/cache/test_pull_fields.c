/* Objects that are read by a table of fields. */
#include <criterion/criterion.h>

#include "cache/json/pull_fields.h"

struct target {
    struct slice name;
    int64_t number;
    bool flag, present;
    struct slice raw;
};

static const struct pull_field inner[] = {
    {.key = "number", .type = PULL_INTEGER, .offset = offsetof(struct target, number)},
    {.key = "flag", .type = PULL_BOOLEAN, .offset = offsetof(struct target, flag)},
};
static const struct pull_field outer[] = {
    {.key = "name", .type = PULL_STRING, .offset = offsetof(struct target, name)},
    {.key = "inner", .type = PULL_OBJECT, PULL_MEMBERS(inner)},
    {.key = "present", .type = PULL_PRESENCE, .offset = offsetof(struct target, present)},
    {.key = "raw", .type = PULL_RAW, .offset = offsetof(struct target, raw)},
};

static bool read_target(const char *text, enum pull_case match, struct target *target,
                        struct error *err)
{
    struct arena arena;
    struct pull json;

    *target = (struct target){0};
    arena_init(&arena, 4096);
    pull_init(&json, slice_of(text));
    bool ok = pull_fields(&json, match, outer, PULL_FIELD_COUNT(outer), &arena, target) &&
              pull_finish(&json);
    if (!ok)
        pull_fail(&json, "text", (struct place){1, 1}, err);
    arena_dispose(&arena);
    return ok;
}

Test(pull_fields, reads_what_the_table_names)
{
    struct target target;
    struct error err;

    cr_assert(read_target("{\"x\":[{}],\"name\":\"a\",\"inner\":{\"number\":-7,\"flag\":true},"
                          "\"raw\":[1, 2],\"present\":{}}",
                          PULL_CASE_EXACT, &target, &err));
    cr_expect(slice_equal(target.name, SLICE("a")));
    cr_expect_eq(target.number, -7);
    cr_expect(target.flag && target.present);
    cr_expect(slice_equal(target.raw, SLICE("[1, 2]")));
}

Test(pull_fields, items_of_two_arrays_are_behind_each_other)
{
    static const struct pull_field fields[] = {
        {.key = "a", .type = PULL_ITEMS, PULL_MEMBERS(inner), .size = sizeof(struct target)},
        {.key = "b", .type = PULL_ITEMS, PULL_MEMBERS(inner), .size = sizeof(struct target)},
    };
    struct pull_items items = {.count = 0};
    struct arena arena;
    struct pull json;

    arena_init(&arena, 4096);
    pull_init(&json, SLICE("{\"b\":[{\"number\":1},{}],\"a\":[{\"number\":3}]}"));
    cr_assert(
        pull_fields(&json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), &arena, &items));
    const struct target *targets = items.items;
    cr_assert_eq(items.count, 3);
    cr_expect(targets[0].number == 1 && targets[1].number == 0 && targets[2].number == 3);
    arena_dispose(&arena);
}

Test(pull_fields, null_leaves_a_field_as_it_was)
{
    struct target target;
    struct error err;

    cr_assert(read_target("{\"name\":null,\"inner\":null,\"raw\":null,\"present\":null}",
                          PULL_CASE_EXACT, &target, &err));
    cr_expect_null(target.name.ptr);
    cr_expect_null(target.raw.ptr);
    cr_expect_not(target.present);
}

Test(pull_fields, folds_case_only_when_asked)
{
    struct target target;
    struct error err;

    cr_assert(read_target("{\"NAME\":\"a\"}", PULL_CASE_FOLD, &target, &err));
    cr_expect(slice_equal(target.name, SLICE("a")));
    cr_assert(read_target("{\"NAME\":\"a\"}", PULL_CASE_EXACT, &target, &err));
    cr_expect_null(target.name.ptr);
    cr_assert(read_target("{\"n\\u0061me\":\"a\"}", PULL_CASE_EXACT, &target, &err));
    cr_expect(slice_equal(target.name, SLICE("a")), "an escaped key is the same key");
}

Test(pull_fields, names_place_and_path_of_a_problem)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"{\"name\":1}", "text:1:9: name: expected a string"},
        {"{\n \"inner\": {\"number\": \"7\"}}", "text:2:22: inner.number: expected an integer"},
        {"{\"inner\":{\"number\":1.5}}", "text:1:20: inner.number: expected an integer"},
        {"{\"inner\":{\"flag\":0}}", "text:1:18: inner.flag: expected true or false"},
        {"{\"inner\":[]}", "text:1:10: inner: expected an object"},
        {"{\"name\":\"a\",\"name\":\"b\"}", "text:1:20: name: this key appears twice"},
        {"[]", "text:1:1: expected an object"},
        {"{} x", "text:1:4: expected the end of the text"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct target target;
        struct error err = {0};
        cr_expect_not(read_target(rows[i].text, PULL_CASE_EXACT, &target, &err));
        cr_expect_str_eq(err.message, rows[i].message, "got %s", err.message);
    }
}
