#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>

#include "cache/json/pull.h"
#include "cache/json/pull_fields.h"

static bool accepts(struct slice text)
{
    struct pull json;

    pull_init(&json, text);
    (void)pull_skip(&json);
    return pull_finish(&json);
}

static const char *const texts[] = {
    "{}",
    "[]",
    "\"\"",
    "0",
    "-0",
    "true",
    "false",
    "null",
    " { } ",
    "[1,2]",
    "[1 , 2 ]",
    "{\"a\":1}",
    "{\"a\":1,\"a\":2}",
    "[[],{}]",
    "\"\\u00e9\"",
    "\"\\ud83d\\ude00\"",
    "\"\xc3\xa9\"",
    "\"\xf0\x9f\x98\x80\"",
    "1.5",
    "1e5",
    "1E+5",
    "1e-400",
    "-1.5e-3",
    "9223372036854775807",
    "-9223372036854775808",
    "\"a\\/b\\b\\f\\n\\r\\t\"",
    "\"\x7f\"",
    /* and what is wrong */
    "",
    " ",
    "{",
    "[",
    "\"",
    "}",
    "]",
    "[1,]",
    "[,1]",
    "{\"a\":1,}",
    "{,}",
    "{\"a\"}",
    "{\"a\":}",
    "{a:1}",
    "{1:2}",
    "[1 2]",
    "01",
    "-",
    "-a",
    "1.",
    ".5",
    "1e",
    "1e+",
    "+1",
    "0x1",
    "NaN",
    "Infinity",
    "tru",
    "truex",
    "nul",
    "nullx",
    "True",
    "'a'",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\x01\"",
    "\"\n\"",
    "\xef\xbb\xbf{}",
    "{}x",
    "[] []",
    "[1]]",
    "{\"a\":1]",
    "[1}",
    "//",
    "[1,//\n2]",
};

Test(pull, accepts_exactly_what_jansson_accepts)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *value = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        cr_expect_eq(accepts(slice_of(texts[i])), value != NULL, "text %zu: %s", i, texts[i]);
        json_decref(value);
    }
}

#define FFFD "\xef\xbf\xbd"

/* What Go's encoding/json reads, and jansson does not; as Go reads it, but for NUL. */
static const struct {
    const char *text, *value; /* NULL: it is no string */
} beyond_jansson[] = {
    {"\"a\\u0000b\"", "a" FFFD "b"},
    {"\"\\u0000\"", FFFD},
    {"\"\\ud800\"", FFFD},
    {"\"\\ud800x\"", FFFD "x"},
    {"\"\\ud800\\u0041\"", FFFD "A"},
    {"\"\\ud800\\ud83d\\ude00\"", FFFD "\xf0\x9f\x98\x80"},
    {"\"\\udc00\\ud800\"", FFFD FFFD},
    {"\"\x80\"", FFFD},
    {"\"\xc0\x80\"", FFFD FFFD},
    {"\"\xe0\x80\x80\"", FFFD FFFD FFFD},
    {"\"\xed\xa0\x80\"", FFFD FFFD FFFD},
    {"\"\xf4\x90\x80\x80\"", FFFD FFFD FFFD FFFD},
    {"\"\xc3\"", FFFD},
    {"\"\xe2\x82\xc3\xa9\"", FFFD FFFD "\xc3\xa9"},
    {"9223372036854775808", NULL},
    {"-9223372036854775809", NULL},
    {"1e400", NULL},
    {"-1e400", NULL},
    {"123456789012345678901234567890123456789012345678901234567890123456789012345", NULL},
};

Test(pull, accepts_what_go_accepts)
{
    for (size_t i = 0; i < sizeof beyond_jansson / sizeof *beyond_jansson; i++) {
        struct slice text = slice_of(beyond_jansson[i].text), got = {NULL, 0};
        struct arena arena;
        struct pull json;
        cr_expect(accepts(text), "%s", text.ptr);
        if (beyond_jansson[i].value == NULL)
            continue;
        arena_init(&arena, 4096);
        pull_init(&json, text);
        cr_expect(pull_string(&json, &arena, &got));
        cr_expect(slice_equal(got, slice_of(beyond_jansson[i].value)), "%s", text.ptr);
        arena_dispose(&arena);
    }
}

Test(pull, decodes_keys_as_it_decodes_strings)
{
    struct pull json;
    struct slice key;

    pull_init(&json, SLICE("{\"a\\u0000\\ud800\xff\":1}"));
    cr_assert(pull_object(&json) && pull_key(&json, &key));
    cr_expect(slice_equal(key, SLICE("a" FFFD FFFD FFFD)));
}

Test(pull, names_in_an_array_have_to_be_utf8)
{
    struct pull json;
    struct slice extent;
    size_t count;

    pull_init(&json, SLICE("[\"\xff\"]"));
    cr_expect_not(pull_string_array(&json, &extent, &count));
    cr_expect_str_eq(json.problem, "invalid UTF-8 in a name");
}

Test(pull, an_integer_has_to_fit)
{
    static const char *const bad[] = {"9223372036854775808", "-9223372036854775809", "1e5", "1.0",
                                      "123456789012345678901234567890"};
    struct pull json;
    int64_t value = 0;

    pull_init(&json, SLICE("-9223372036854775808"));
    cr_expect(pull_integer(&json, &value) && value == INT64_MIN);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pull_init(&json, slice_of(bad[i]));
        cr_expect_not(pull_integer(&json, &value), "%s", bad[i]);
    }
}

Test(pull, refuses_a_nul_byte_anywhere)
{
    cr_expect_not(accepts((struct slice){"[\0]", 3}));
    cr_expect_not(accepts((struct slice){"\"\0\"", 3}));
    cr_expect_not(accepts((struct slice){"{}\0", 3}));
}

static char *nested(size_t depth)
{
    static char text[30000];

    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    text[2 * depth] = '\0';
    return text;
}

Test(pull, nests_no_deeper_than_its_limit)
{
    cr_expect(accepts(slice_of(nested(PULL_DEPTH_MAX))));
    cr_expect_not(accepts(slice_of(nested(PULL_DEPTH_MAX + 1))));
    cr_expect(accepts(slice_of(nested(10000))), "as many as Go");
}

Test(pull, says_that_a_text_ended_for_every_prefix)
{
    static const char text[] =
        "{\"a\":[1,-2.5e3,true,null,\"x\\u00e9\\ud83d\\ude00\xc3\xa9\"],\"b\":{\"c\":false}}";

    for (size_t length = 0; length < sizeof text - 1; length++) {
        struct pull json;
        char *copy = malloc(length + 1); /* exact, so that ASan sees a read behind it */
        cr_assert_not_null(copy);
        memcpy(copy, text, length);
        pull_init(&json, (struct slice){copy, length});
        cr_expect_not(pull_skip(&json));
        cr_expect(json.is_truncated, "prefix of %zu bytes: %s", length, json.problem);
        free(copy);
    }
    cr_expect(accepts(SLICE(text)));
}

Test(pull, decodes_strings_as_jansson_does)
{
    static const char *const strings[] = {
        "\"plain\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00z\"",
        "\"\xc3\xa9\\n\"",
        "\"\"",
    };
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        struct arena arena;
        struct pull json;
        struct slice got = {NULL, 0};
        json_t *want = json_loads(strings[i], JSON_DECODE_ANY, NULL);
        arena_init(&arena, 4096);
        pull_init(&json, slice_of(strings[i]));
        cr_expect(pull_string(&json, &arena, &got));
        cr_expect(slice_equal(got, slice_of(json_string_value(want))), "%s", strings[i]);
        json_decref(want);
        arena_dispose(&arena);
    }
}

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

Test(pull, finds_the_extent_of_an_array_of_strings)
{
    struct pull json;
    struct slice extent;
    size_t count;

    pull_init(&json, SLICE(" [ \"a\" ,\"b\\n\", \"\xc3\xa9\"] "));
    cr_assert(pull_string_array(&json, &extent, &count));
    cr_expect(pull_finish(&json));
    cr_expect_eq(count, 3);
    cr_expect(slice_equal(extent, SLICE("[ \"a\" ,\"b\\n\", \"\xc3\xa9\"]")));
    static const char *const bad[] = {"[1]", "[\"a\",]", "[\"a\" \"b\"]", "[\"a\"", "[null]", "{}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pull_init(&json, slice_of(bad[i]));
        cr_expect_not(pull_string_array(&json, &extent, &count), "%s", bad[i]);
    }
}

/* In each place of the blocks of 64 bytes in which names are passed over. */
Test(pull, a_name_in_an_array_has_at_most_253_bytes)
{
    char text[2048], name[300];

    memset(name, 'n', sizeof name);
    for (int length = 250; length < 300; length++) {
        for (int before = 0; before < 20; before++) {
            struct pull json;
            struct slice extent;
            size_t count;
            int used = snprintf(text, sizeof text, "[");
            for (int i = 0; i < before; i++)
                used += snprintf(text + used, sizeof text - (size_t)used, "\"node-%d\",", i * i);
            (void)snprintf(text + used, sizeof text - (size_t)used,
                           "\"%.*s\",\"a\",\"b\",\"%.*s\",\"%.*s\"]", length, name, 100, name, 100,
                           name);
            pull_init(&json, slice_of(text));
            cr_expect_eq(pull_string_array(&json, &extent, &count), length <= 253, "%d behind %d",
                         length, before);
        }
    }
}

/* At each place in those blocks. */
Test(pull, a_name_in_an_array_is_not_empty)
{
    char text[2048];

    for (int empty = 0; empty < 60; empty++) {
        struct pull json;
        struct slice extent;
        size_t count;
        int used = snprintf(text, sizeof text, "[");
        for (int i = 0; i < 60; i++)
            used += snprintf(text + used, sizeof text - (size_t)used, "\"%s\",",
                             i == empty   ? ""
                             : i % 3 == 0 ? "abc"
                                          : "a");
        (void)snprintf(text + used, sizeof text - (size_t)used, "\"b\"]");
        pull_init(&json, slice_of(text));
        cr_expect_not(pull_string_array(&json, &extent, &count), "the name %d", empty);
    }
}

static bool is_string_array(const json_t *value)
{
    const json_t *item;
    size_t i;

    json_array_foreach (value, i, item)
        if (!json_is_string(item))
            return false;
    return json_is_array(value);
}

/* As Go's 10,000 levels, and then some. Of objects and arrays by turns: a level's bracket is a bit
 * that is used again and again. */
Test(pull, closes_each_level_as_it_was_opened)
{
    char text[4 * 1000 + 16] = "";

    for (unsigned pattern = 0; pattern < 50; pattern++) {
        size_t length = 0, depth = 500 + pattern;
        char closing[1024];
        for (size_t i = 0; i < depth; i++) {
            bool is_object = (i * (pattern + 1) / 3) % 2 == 0;
            length += (size_t)sprintf(text + length, "%s", is_object ? "{\"\":" : "[");
            closing[depth - 1 - i] = is_object ? '}' : ']';
        }
        memcpy(text + length, "1", 1);
        memcpy(text + length + 1, closing, depth);
        length += depth + 1;
        cr_expect(accepts((struct slice){text, length}));
        size_t wrong = length - 1 - pattern * 7;
        text[wrong] = text[wrong] == '}' ? ']' : '}';
        cr_expect_not(accepts((struct slice){text, length}));
    }
}

/* Long enough for the blocks of 64 bytes in which node names are passed over: every byte of it in
 * turn becomes something that matters. */
Test(pull, judges_every_change_of_an_array_of_names_as_jansson_does)
{
    static const char others[] = {'"', ',', ' ', '\\', '[', ']', 'x', '1', '\n', '\x01', '\xff'};
    char text[400] = "[";
    size_t length;

    for (int i = 0; i < 18; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s\"ip-10-20-%d\"",
                       i == 0 ? "" : ",", i * i * i);
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "]");
    length = strlen(text);
    cr_assert_gt(length, 200);
    for (size_t at = 0; at < length; at++) {
        for (size_t i = 0; i < sizeof others; i++) {
            struct pull json;
            struct slice extent;
            size_t count = 0;
            char original = text[at];
            text[at] = others[i];
            json_t *value = json_loadb(text, length, JSON_DECODE_ANY, NULL);
            pull_init(&json, (struct slice){text, length});
            bool is_ours = pull_string_array(&json, &extent, &count) && pull_finish(&json);
            cr_assert_eq(is_ours, value != NULL && is_string_array(value), "%s", text);
            if (is_ours)
                cr_assert_eq(count, json_array_size(value), "%s", text);
            json_decref(value);
            text[at] = original;
        }
    }
}
