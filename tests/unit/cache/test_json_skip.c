/* Arrays and objects that are skipped 64 bytes at a time (cache/json/json_skip.c), against the twin
 * that reads them token by token: each text begins at each place of a block. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/json/json_skip.h"
#include "cache/json/json_text.h"
#include "cache/json/pull.h"

enum { BLOCK = 64, TEXT_BYTES_MAX = 1024 };

static const char *end_by_twin(const char *p, const char *end)
{
    const struct json_skipper *best = json_skip;

    json_skip = NULL;
    struct json_scan twin = json_text_value(p, end, JSON_SKIP_LEVELS_MAX - 1);
    json_skip = best;
    return twin.problem == NULL ? twin.at : NULL;
}

/* Compares all versions, with the text exactly in memory, so that ASan sees a read behind it. */
static void compare(const char *text, size_t length, bool is_good)
{
    char *exact = malloc(length);

    memcpy(exact, text, length);
    const char *end = exact + length, *behind = end_by_twin(exact, end);
    cr_expect_eq(behind != NULL, is_good, "%.*s", (int)length, text);
    for (size_t i = 0; json_skippers[i] != NULL; i++) {
        cr_expect_eq(json_skippers[i]->check(exact, end, JSON_SKIP_LEVELS_MAX), behind,
                     "version %zu: %.*s", i, (int)length, text);
        if (is_good)
            cr_expect_eq(json_skippers[i]->find_end(exact, end), behind, "version %zu: %.*s", i,
                         (int)length, text);
    }
    free(exact);
}

/* The value as the last item of an array: behind a number of so many digits, and white space. */
static void compare_everywhere(const char *value, bool is_good)
{
    char text[TEXT_BYTES_MAX];
    static const char *const behind[] = {"", "}", "]", ",\"a\":", "\n  \"\\\"", " {\x01"};

    for (int place = 0; place < 2 * BLOCK; place++) {
        const char *tail = behind[(size_t)place % (sizeof behind / sizeof *behind)];
        int length = snprintf(text, sizeof text, "[%0*d,%*s%s]", place % BLOCK + 1, 0,
                              place / BLOCK * 5, "", value);
        text[1] = '1'; /* a number does not begin with 0 */
        for (; length < BLOCK; length++)
            text[length] = ' ';
        length += snprintf(text + length, sizeof text - (size_t)length, "%s", tail);
        compare(text, (size_t)length, is_good);
    }
}

static const char *const good[] = {
    "{}",
    "[]",
    "{ }",
    "[\n\t]",
    "\"\"",
    "\"a\"",
    "0",
    "-1.5e+3",
    "true",
    "false",
    "null",
    "{\"a\":1}",
    "{\"a\":{},\"b\":[],\"c\":[{}]}",
    "[1,2,[3]]",
    "[\"a\",\"b\"]",
    "[[],[[]]]",
    "{ \"a\" : [ 1 , { } ] , \"b\" : \"c\" }",
    "{\r\n    \"a\": {\r\n\t\"b\": null\r\n    }\r\n}",
    "{\"\":\"\"}",
    "[\"\",\"\"]",
    "{\"a\":\"b\",\"c\":\"d\"}",
    "\"\\\"\"",
    "\"\\\\\"",
    "\"\\\\\\\"\"",
    "\"\\u00e9\\ud800\\n\\/\"",
    "\"{[,:]}\"",
    "\"k:{\\\"type\\\":\\\"Ready\\\"}\"",
    "\"\xff\xc3\xa9\"",
    "{\"\\\"\":1,\"\\\\\":2}",
    "[{\"a\":1},{\"b\":2}]",
    "[1 ,2 ]",
    "{\"a\":[\"b\",\"c\"],\"d\":\"e\"}",
    "\"a string that is longer than a block, with commas, colons: and [brackets] {of} each kind\"",
    "{\"a key that is longer than a block of bytes, which is more than sixty-four bytes\":[1]}",
    "[1,                                                                           2]",
};

static const char *const bad[] = {
    "{",
    "}",
    "",
    ",",
    ":",
    "{]",
    "[}",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{,}",
    "[,]",
    "[1,]",
    "[,1]",
    "{\"a\" 1}",
    "{\"a\":1 \"b\":2}",
    "[1 2]",
    "[\"a\" \"b\"]",
    "[\"a\"\"b\"]",
    "{\"a\":1,2}",
    "{1:2}",
    "{\"a\":1,{}}",
    "{\"a\":1,[]}",
    "{{}}",
    "{[]}",
    "{null}",
    "{\"a\",1}",
    "[\"a\":1]",
    "[1,\"a\":1]",
    "[{\"a\":1},\"b\":2]",
    "{\"a\":\"b\":1}",
    "{\"a\":1:2}",
    "{\"a\":[\"b\",\"c\":1]}",
    "{\"a\":{\"b\":1},\"c\"}",
    "{\"a\":{},\"c\"}",
    "{\"a\"::1}",
    "{\"a\":,}",
    "[1,,2]",
    "[[]1]",
    "[{}{}]",
    "[[][]]",
    "[1[]]",
    "[\"a\"[]]",
    "[\"a\"1]",
    "[1\"a\"]",
    "tru",
    "truee",
    "nul l",
    "01",
    "1.",
    "-",
    "1e",
    "+1",
    ".5",
    "1a",
    "0x1",
    "a",
    "'a'",
    "\\n",
    "\\\"a\"",
    "\"a",
    "\"\\\"",
    "\"\\x\"",
    "\"\\u12g4\"",
    "\"\\u\"",
    "\"\n\"",
    "\"\x01\"",
    "\"\t\"",
    "\x01",
    "\xff",
    "\x7f",
    "\v",
    "\f",
    "1\v",
    "1,\"a",
    "/**/1",
};

Test(json_skip, accepts_what_is_well_formed_at_each_place_of_a_block)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        compare_everywhere(good[i], true);
}

Test(json_skip, refuses_what_is_not_at_each_place_of_a_block)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        compare_everywhere(bad[i], false);
}

/* A text that ends anywhere, and one in which any byte is another one. */
Test(json_skip, decides_as_the_twin_on_texts_with_one_fault)
{
    static const char text[] = "{\"metadata\": {\"name\":\"db-0\",\"labels\":{\"app\":\"db\"},"
                               "\"items\":[{\"a\\\"b\\\\\":[1, 2.5,true ]}, null,\"x\",{}]},\n"
                               "    \"spec\":\t{ \"f:a\":{},\"f:b\":{\".\":{}}}}";
    size_t length = sizeof text - 1;
    char changed[sizeof text];

    for (size_t cut = BLOCK; cut <= length; cut++)
        compare(text, cut, cut == length);
    for (size_t at = 1; at < length; at++)
        for (int other = 0; other <= UINT8_MAX; other++) {
            memcpy(changed, text, sizeof text);
            changed[at] = (char)other;
            bool is_good = end_by_twin(changed, changed + length) != NULL;
            compare(changed, length, is_good);
        }
}

/* The result is the same where blocks give up: deep values are read by the twin. */
Test(json_skip, deep_values_are_read_too)
{
    char text[4 * JSON_SKIP_LEVELS_MAX + 2];
    struct pull json;

    for (int depth = 1; depth <= 2 * JSON_SKIP_LEVELS_MAX; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        struct slice whole = {text, 2 * (size_t)depth};
        pull_init(&json, whole);
        cr_expect(pull_skip(&json) && pull_finish(&json), "%d levels", depth);
        pull_init_checked(&json, whole);
        cr_expect(pull_skip(&json) && pull_finish(&json), "%d levels, checked", depth);
        struct json_scan scan = json_text_value(text, text + whole.len, (unsigned)depth - 1);
        cr_expect_eq(scan.problem, json_text_too_deep, "%d levels", depth);
    }
}

Test(json_skip, white_space_of_any_length_is_skipped)
{
    char text[200];

    for (size_t length = 0; length < 100; length++)
        for (size_t i = 0; i <= length; i++) {
            memset(text, " \n\r\t"[length % 4], length);
            text[length] = 'x';
            cr_expect_eq(json_text_space(text + i, text + length + 1), text + length);
            cr_expect_eq(json_text_space(text + i, text + length), text + length);
            text[length] = '\v'; /* is none */
            cr_expect_eq(json_text_space(text + i, text + length + 1), text + length);
        }
}
