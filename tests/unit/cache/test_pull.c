#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>

#include "cache/json/pull.h"

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
    {"\"\\u00AF\\u00fa\"", "\xc2\xaf\xc3\xba"},
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
        char *copy = malloc(length == 0 ? 1 : length); /* so that ASan sees a read behind it */
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

/* As Go's 10,000 levels, and then some. Objects and arrays alternate: a level's bracket is a bit
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

/* More lines than a byte counts. */
Test(pull, a_place_is_counted_from_the_first)
{
    char text[900];
    const struct place first = {3, 5};

    for (size_t width = 1; width < 4; width++) {
        struct place wanted = first;
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = i % width == 0 ? '\n' : 'x';
        for (size_t i = 0; i < sizeof text; i++) {
            struct place place = place_of(text, text + i, first);
            cr_assert_eq(place.line, wanted.line, "byte %zu", i);
            cr_assert_eq(place.column, wanted.column, "byte %zu", i);
            wanted = text[i] == '\n' ? (struct place){wanted.line + 1, 1}
                                     : (struct place){wanted.line, wanted.column + 1};
        }
    }
}
