/* The JSON reader against jansson (as_go.h): both accept the same texts and read the same strings.
 */
#include <stdio.h>
#include <stdlib.h>

#include "as_go.h"
#include "cache/json/json_blocks.h"
#include "cache/json/json_skip.h"
#include "cache/json/pull.h"
#include "fuzz.h"

static void check(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "differs: %s\n", what);
        abort();
    }
}

static bool is_string_array(const json_t *value)
{
    const json_t *item;
    size_t i;

    if (!json_is_array(value))
        return false;
    json_array_foreach (value, i, item)
        if (!json_is_string(item))
            return false;
    return true;
}

/* The string that jansson read, as ours reads it: without a NUL. */
static void compare_strings(struct slice ours, const json_t *value)
{
    struct slice theirs = {json_string_value(value), json_string_length(value)};
    struct buf wanted;

    buf_init(&wanted, 4 * theirs.len + 16);
    for (size_t i = 0; i < theirs.len; i++)
        buf_put(&wanted, theirs.ptr[i] == '\0' ? SLICE(U_FFFD) : (struct slice){theirs.ptr + i, 1});
    check(slice_equal(ours, buf_slice(&wanted)), "text of a string");
    buf_dispose(&wanted);
}

/* What json_text_strings and json_text_join do with an array that is good, string by string: their
 * plain twin. */
static void join_by_strings(struct slice array, struct slice between, struct buf *out,
                            struct slice *inside)
{
    const char *end = array.ptr + array.len, *p = json_text_space(array.ptr + 1, end);

    for (unsigned oddities = 0; *p == '"';) {
        struct slice string = {p, (size_t)(json_text_string(p, end, &oddities).at - p)};
        buf_put(out, out->len == 0 ? SLICE("") : between);
        buf_put(out, string);
        *inside++ = (struct slice){p + 1, string.len - 2};
        p = json_text_space(p + string.len, end);
        p = *p == ',' ? json_text_space(p + 1, end) : p;
    }
}

/* In pieces, of whose memory not one byte more may be written. */
static void join_in_pieces(struct slice array, struct slice between, size_t room, struct buf *out)
{
    static const char zeros[64]; /* behind: sanitizers do not see copies by vectors */
    const char *p = array.ptr, *end = array.ptr + array.len;

    while (*p != ']') {
        char *memory = calloc(1, room + sizeof zeros);
        struct json_join join = {.to = memory, .end = memory + room, .between = between};
        const char *next = json_text_join(p, end, &join);
        check(next > p || *next == ']', "no string has room");
        check(memcmp(memory + room, zeros, sizeof zeros) == 0, "a byte behind the room");
        buf_put(out, (struct slice){memory, (size_t)(join.to - memory)});
        free(memory);
        p = next;
    }
}

/* The copies and the names of a good array. */
static void compare_join(struct slice array, struct json_strings found)
{
    static const char texts[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    struct slice between = {texts, array.len % (sizeof texts - JSON_JOIN_ROOM)};
    struct slice *inside = calloc(found.count + 1, sizeof *inside),
                 *wanted_inside = calloc(found.count + 1, sizeof *inside);
    size_t room = between.len + JSON_NAME_BYTES_MAX + 2 + array.len % 89 * 7;
    struct json_strings again;
    struct buf wanted, joined;

    buf_init(&wanted, SIZE_MAX);
    buf_init(&joined, SIZE_MAX);
    join_by_strings(array, between, &wanted, wanted_inside);
    join_in_pieces(array, between, room, &joined);
    check(slice_equal(buf_slice(&joined), buf_slice(&wanted)), "copies of strings");
    size_t texts_between = found.count == 0 ? 0 : (found.count - 1) * between.len;
    check(found.bytes + texts_between == wanted.len, "bytes of strings");
    (void)json_text_strings(array.ptr, array.ptr + array.len, &again, inside);
    check(again.count == found.count && again.bytes == found.bytes, "count of strings");
    for (size_t i = 0; i < found.count; i++)
        check(inside[i].ptr == wanted_inside[i].ptr && inside[i].len == wanted_inside[i].len,
              "inside of a string");
    buf_dispose(&wanted);
    buf_dispose(&joined);
    free(inside);
    free(wanted_inside);
}

static void compare_string_array(struct slice text, const json_t *value, bool is_accepted)
{
    struct pull json;
    struct slice extent;
    struct json_strings found = {0};

    pull_init(&json, text);
    bool is_ours = pull_string_array(&json, &extent, &found) && pull_finish(&json);
    struct slice problem = slice_of(json.problem == NULL ? "" : json.problem);
    bool is_name = !slice_has(problem, SLICE("UTF-8")) && !slice_has(problem, SLICE("empty")) &&
                   !slice_has(problem, SLICE("over 253"));
    check(is_ours == (is_accepted && is_string_array(value) && is_name), "array of strings");
    if (!is_ours)
        return;
    check(found.count == json_array_size(value), "count of strings");
    compare_join(extent, found);
}

/* Where the array or object at the start ends, with at most so many levels; NULL: it is bad. */
static const char *end_by_twin(const char *p, const char *end, unsigned room)
{
    const struct json_skipper *best = json_skip;

    json_skip = NULL;
    struct json_scan twin = json_text_value(p, end, room);
    json_skip = best;
    return twin.problem == NULL ? twin.at : NULL;
}

/* Each version of json_skip finds the end that its plain twin finds; it may give up only if the
 * text is short, or uses each level that it may. */
static void compare_ends(struct slice text)
{
    enum { ROOM = 20 };
    const char *end = text.ptr + text.len, *first = json_text_space(text.ptr, end);

    if (first == end || (*first != '{' && *first != '['))
        return;
    const char *behind = end_by_twin(first, end, ROOM);
    bool may_give_up = end - first < JSON_SKIP_BYTES_MIN || behind == NULL ||
                       end_by_twin(first, end, ROOM - 1) == NULL;
    for (size_t i = 0; json_skippers[i] != NULL; i++) {
        const char *found = json_skippers[i]->check(first, end, ROOM);
        check(found == behind || (may_give_up && found == NULL), "end of a value");
        if (behind != NULL)
            check(json_skippers[i]->find_end(first, end) == behind, "end of a checked value");
        else
            (void)json_skippers[i]->find_end(first, end); /* reads no further */
    }
}

/* Also as an array's only item, so that it is read by blocks even if it is short: at each place of
 * one, and exactly in memory. */
static void compare_skips(struct slice text)
{
    size_t before = 1 + text.len % JSON_SKIP_BYTES_MIN,
           size = before + text.len + 1 + JSON_SKIP_BYTES_MIN;
    char *array = malloc(size);

    check(array != NULL, "memory");
    memset(array, ' ', size);
    array[0] = '[';
    if (text.len != 0)
        memcpy(array + before, text.ptr, text.len);
    array[before + text.len] = ']';
    compare_ends(text);
    compare_ends((struct slice){array, size});
    free(array);
}

/* With each reader of blocks that this processor has, and each that joins. */
static void compare_string_arrays(struct slice text, const json_t *value, bool is_accepted)
{
    json_blocks_reader *best = json_blocks_read;
    json_blocks_joiner *best_joiner = json_blocks_join;

    for (size_t i = 0; json_blocks_readers[i] != NULL; i++) {
        json_blocks_read = json_blocks_readers[i];
        compare_string_array(text, value, is_accepted);
    }
    json_blocks_read = best;
    json_blocks_join = json_blocks_joiners[0];
    compare_string_array(text, value, is_accepted);
    json_blocks_join = best_joiner;
}

static void compare(struct slice text, const json_t *value, bool is_ours)
{
    struct arena arena;
    struct pull json;
    struct slice string = {NULL, 0};

    compare_string_arrays(text, value, is_ours);
    if (!json_is_string(value))
        return;
    arena_init(&arena, 1 << 20);
    pull_init(&json, text);
    check(pull_string(&json, &arena, &string), "a string is read");
    compare_strings(string, value);
    arena_dispose(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    struct pull json;
    bool is_limited;

    compare_skips(text);
    pull_init(&json, text);
    bool is_ours = pull_skip(&json) && pull_finish(&json);
    if (size != 0 && memchr(data, '\0', size) != NULL) {
        check(!is_ours, "a NUL byte is refused");
        return 0;
    }
    json_t *value = load_as_go(text, JSON_DECODE_ANY, &is_limited);
    if (!is_limited) {
        check(is_ours == (value != NULL), "accepted");
        compare(text, value, is_ours);
    }
    json_decref(value);
    return 0;
}
