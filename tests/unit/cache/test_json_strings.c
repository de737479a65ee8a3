/* Arrays of strings: checked and measured by blocks (cache/json/json_strings.c). */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/json/json_blocks.h"
#include "cache/json/json_text.h"
#include "cache/json/pull.h"
#include "config/base/buf.h"

Test(json_strings, names_in_an_array_have_to_be_utf8)
{
    struct pull json;
    struct slice extent;
    struct json_strings found;

    pull_init(&json, SLICE("[\"\xff\"]"));
    cr_expect_not(pull_string_array(&json, &extent, &found));
    cr_expect_str_eq(json.problem, "invalid UTF-8 in a name");
}

Test(json_strings, finds_the_extent_of_an_array_of_strings)
{
    struct pull json;
    struct slice extent;
    struct json_strings found;

    pull_init(&json, SLICE(" [ \"a\" ,\"b\\n\", \"\xc3\xa9\"] "));
    cr_assert(pull_string_array(&json, &extent, &found));
    cr_expect(pull_finish(&json));
    cr_expect_eq(found.count, 3);
    cr_expect_eq(found.bytes, strlen("\"a\"\"b\\n\"\"\xc3\xa9\""));
    cr_expect(slice_equal(extent, SLICE("[ \"a\" ,\"b\\n\", \"\xc3\xa9\"]")));
    static const char *const bad[] = {"[1]", "[\"a\",]", "[\"a\" \"b\"]", "[\"a\"", "[null]", "{}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pull_init(&json, slice_of(bad[i]));
        cr_expect_not(pull_string_array(&json, &extent, &found), "%s", bad[i]);
    }
}

/* In each place of the blocks in which names are passed over. */
Test(json_strings, a_name_in_an_array_has_at_most_253_bytes)
{
    char text[2048], name[300];

    memset(name, 'n', sizeof name);
    for (int length = 250; length < 300; length++) {
        for (int before = 0; before < 20; before++) {
            struct pull json;
            struct slice extent;
            struct json_strings found;
            int used = snprintf(text, sizeof text, "[");
            for (int i = 0; i < before; i++)
                used += snprintf(text + used, sizeof text - (size_t)used, "\"node-%d\",", i * i);
            (void)snprintf(text + used, sizeof text - (size_t)used,
                           "\"%.*s\",\"a\",\"b\",\"%.*s\",\"%.*s\"]", length, name, 100, name, 100,
                           name);
            pull_init(&json, slice_of(text));
            cr_expect_eq(pull_string_array(&json, &extent, &found), length <= 253, "%d behind %d",
                         length, before);
        }
    }
}

/* At each place in those blocks. */
Test(json_strings, a_name_in_an_array_is_not_empty)
{
    char text[2048];

    for (int empty = 0; empty < 120; empty++) {
        struct pull json;
        struct slice extent;
        struct json_strings found;
        int used = snprintf(text, sizeof text, empty % 2 == 0 ? "[\"n\"," : "[\"nn\",");
        for (int i = 0; i < 60; i++)
            used += snprintf(text + used, sizeof text - (size_t)used, "\"%s\",",
                             i == empty / 2 ? ""
                             : i % 3 == 0   ? "abc"
                                            : "a");
        (void)snprintf(text + used, sizeof text - (size_t)used, "\"b\"]");
        pull_init(&json, slice_of(text));
        cr_expect_not(pull_string_array(&json, &extent, &found), "the name %d", empty);
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

/* Reads the text as jansson does: whether it is an array of names, how many there are, and each. */
static void expect_as_jansson(const char *text, size_t length)
{
    json_t *value = json_loadb(text, length, JSON_DECODE_ANY, NULL);
    static struct slice names[256];
    struct slice extent;
    struct json_strings found = {0};
    struct pull json;

    pull_init(&json, (struct slice){text, length});
    bool is_ours = pull_string_array(&json, &extent, &found) && pull_finish(&json);
    cr_assert_eq(is_ours, value != NULL && is_string_array(value), "%s", text);
    if (is_ours) {
        cr_assert_eq(found.count, json_array_size(value), "%s", text);
        (void)json_text_strings(extent.ptr, extent.ptr + extent.len, &found, names);
        cr_assert_eq(found.count, json_array_size(value), "%s", text);
    }
    for (size_t i = 0; is_ours && i < found.count; i++) {
        struct slice wanted = slice_of(json_string_value(json_array_get(value, i)));
        if (!slice_has(names[i], SLICE("\\")))
            cr_assert(slice_equal(names[i], wanted), "name %zu of %s", i, text);
    }
    json_decref(value);
}

/* Long enough for the blocks in which node names are passed over: every byte of it in turn, and the
 * one behind it, become something that matters. */
static void change_every_byte(void)
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
    for (size_t at = 0; at + 1 < length; at++) {
        for (size_t i = 0; i < sizeof others * sizeof others; i++) {
            char first = text[at], second = text[at + 1];
            text[at] = others[i / sizeof others];
            expect_as_jansson(text, length);
            text[at + 1] = others[i % sizeof others];
            expect_as_jansson(text, length);
            text[at] = first;
            text[at + 1] = second;
        }
    }
}

Test(json_strings, accepts_every_change_of_an_array_of_names_as_jansson_does)
{
    for (size_t i = 0; json_blocks_readers[i] != NULL; i++) {
        json_blocks_read = json_blocks_readers[i];
        change_every_byte();
    }
}

/* Names with a few bytes changed, of which many blocks are good; and bytes at random. */
static void fill(char *text, size_t size, int round, unsigned long *seed)
{
    static const char bytes[] = {'"', ',', '\\', 'x', ' ', '\x1f', '\x7f', '\x80', '\xff', '\0'};
    size_t kinds = round % 2 == 0 ? 4 : sizeof bytes, used = 0;

    for (unsigned i = 0; used < size; i++)
        used += (size_t)snprintf(text + used, 256, "\"%0*lu\",", 1 + round % 7 * (round % 30),
                                 *seed >> (40 + i % 20));
    for (size_t i = 0; i < size; i++) {
        *seed = *seed * 6364136223846793005 + 1442695040888963407;
        if (round % 3 == 0 ? (*seed >> 40) % 4 == 0 : (*seed >> 40) % 300 == 0)
            text[i] = bytes[(*seed >> 33) % kinds];
    }
}

Test(json_strings, every_reader_of_blocks_finds_the_same)
{
    enum { BLOCKS = 6, BYTES = JSON_BLOCK_BEFORE + BLOCKS * JSON_BLOCK };
    char text[BYTES + 256];
    unsigned long seed = 7;
    int good = 0;

    for (int round = 0; round < 60000; round++) {
        struct json_blocks wanted, found;
        size_t count = 2 + (size_t)(round % 3) * 2;
        fill(text, BYTES, round, &seed);
        char *last = malloc(JSON_BLOCK_BEFORE + count * JSON_BLOCK); /* not a byte more is read */
        memcpy(last, text, JSON_BLOCK_BEFORE + count * JSON_BLOCK);
        bool is_good = json_blocks_readers[0](last + JSON_BLOCK_BEFORE, count, &wanted);
        for (size_t i = 1; json_blocks_readers[i] != NULL; i++) {
            cr_assert_eq(json_blocks_readers[i](last + JSON_BLOCK_BEFORE, count, &found), is_good,
                         "reader %zu: %.*s", i, (int)BYTES, text);
            cr_assert_eq(found.strings, wanted.strings, "reader %zu", i);
            cr_assert_arr_eq(found.opening, wanted.opening, count * sizeof *found.opening);
        }
        free(last);
        good += is_good;
    }
    cr_expect_gt(good, 2000);
    cr_expect_lt(good, 58000);
}

static unsigned long seed_of_names;

/* An array of 100 names, and the same with a text between them. Returns the array's length. */
static size_t make_names(char *text, int width_max, size_t between, struct buf *wanted)
{
    size_t used = 1;

    wanted->len = 0;
    text[0] = '[';
    for (int i = 0; i < 100; i++) {
        seed_of_names = seed_of_names * 6364136223846793005 + 1442695040888963407;
        int width = 1 + (int)(seed_of_names >> 33) % width_max;
        int written = snprintf(text + used, 300, "\"%0*d\",", width, i);
        cr_assert(buf_reserve(wanted, between + 1));
        memset(wanted->bytes + wanted->len, 't', i == 0 ? 0 : between);
        wanted->len += i == 0 ? 0 : between;
        buf_put(wanted, (struct slice){text + used, (size_t)written - 1});
        used += (size_t)written;
    }
    text[used - 1] = ']';
    return used;
}

enum { BEHIND = 64 };

/* Whether the bytes behind the room are as they were: sanitizers do not see copies by vectors. */
static bool is_untouched(const char *behind)
{
    static const char zeros[BEHIND];

    return memcmp(behind, zeros, BEHIND) == 0;
}

/* Joins them in memory of `room` bytes at a time, of which not one more may be written. */
static void join_in_pieces(struct slice text, size_t room, struct slice between, struct buf *out)
{
    const char *p = text.ptr, *end = text.ptr + text.len;

    out->len = 0;
    while (*p != ']') {
        char *memory = calloc(1, room + BEHIND);
        struct json_join join = {.to = memory, .end = memory + room, .between = between};
        const char *next = json_text_join(p, end, &join);
        cr_assert(next > p, "no name with a room of %zu", room);
        cr_assert(is_untouched(memory + room), "a room of %zu", room);
        buf_put(out, (struct slice){memory, (size_t)(join.to - memory)});
        free(memory);
        p = next;
    }
}

/* Names of all lengths with texts of all lengths between them, in memory for one name and more. */
static void join_names(void)
{
    static char text[64 * 1024], between[512];
    struct buf wanted, joined;

    memset(between, '!', sizeof between);
    buf_init(&wanted, 1 << 20);
    buf_init(&joined, 1 << 20);
    seed_of_names = 3;
    for (size_t round = 0; round < 300; round++) {
        size_t used = make_names(text, round % 2 == 0 ? 30 : 253, round, &wanted);
        memset(between, 't', round);
        for (size_t i = 0; i < 5; i++) {
            size_t room = i == 0 ? wanted.len : round + 255 + i * i * i * (round % 50);
            join_in_pieces((struct slice){text, used}, room, (struct slice){between, round},
                           &joined);
            cr_assert(slice_equal(buf_slice(&joined), buf_slice(&wanted)), "%zu, room %zu", round,
                      room);
        }
    }
    buf_dispose(&wanted);
    buf_dispose(&joined);
}

Test(json_strings, joins_names_of_any_length_in_any_room)
{
    json_blocks_joiner *best = json_blocks_join;

    for (size_t i = 0; json_blocks_readers[i] != NULL; i++) {
        json_blocks_read = json_blocks_readers[i];
        join_names();
    }
    for (size_t i = 0; json_blocks_joiners[i] != best; i++) {
        json_blocks_join = json_blocks_joiners[i];
        join_names();
    }
}

Test(json_strings, an_array_without_strings_is_joined_to_nothing)
{
    struct slice text = SLICE("[ ]");
    struct json_join join = {.to = NULL, .end = NULL, .between = SLICE("")};

    cr_expect_eq(*json_text_join(text.ptr, text.ptr + text.len, &join), ']');
}
