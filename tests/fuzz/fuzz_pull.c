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

/* What json_text_strings does with an array that is good, string by string: its plain twin. */
static void join_by_strings(struct slice array, struct slice tail, struct buf *out,
                            struct slice *inside)
{
    const char *end = array.ptr + array.len, *p = json_text_space(array.ptr + 1, end);

    for (unsigned oddities = 0; *p == '"';) {
        struct slice string = {p, (size_t)(json_text_string(p, end, &oddities).at - p)};
        buf_put(out, string);
        buf_put(out, tail);
        *inside++ = (struct slice){p + 1, string.len - 2};
        p = json_text_space(p + string.len, end);
        p = *p == ',' ? json_text_space(p + 1, end) : p;
    }
}

/* The copies and the names of a good array. */
static void compare_join(struct slice array, size_t count)
{
    static const char tails[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    struct slice tail = {tails, array.len % (sizeof tails - JSON_JOIN_ROOM)};
    struct slice *inside = calloc(count + 1, sizeof *inside),
                 *wanted_inside = calloc(count + 1, sizeof *inside);
    struct json_join join = {.to = malloc(array.len + count * tail.len + JSON_JOIN_ROOM),
                             .tail = tail,
                             .inside = inside};
    const char *copies = join.to;
    struct buf wanted;
    size_t joined = 0;

    buf_init(&wanted, SIZE_MAX);
    join_by_strings(array, tail, &wanted, wanted_inside);
    (void)json_text_strings(array.ptr, array.ptr + array.len, &joined, &join);
    check(joined == count, "count of strings that were copied");
    check(slice_equal((struct slice){copies, (size_t)(join.to - copies)}, buf_slice(&wanted)),
          "copies of strings");
    for (size_t i = 0; i < count; i++)
        check(inside[i].ptr == wanted_inside[i].ptr && inside[i].len == wanted_inside[i].len,
              "inside of a string");
    buf_dispose(&wanted);
    free(inside);
    free(wanted_inside);
    free((char *)(uintptr_t)copies);
}

static void compare_string_array(struct slice text, const json_t *value, bool is_accepted)
{
    struct pull json;
    struct slice extent;
    size_t count = 0;

    pull_init(&json, text);
    bool is_ours = pull_string_array(&json, &extent, &count) && pull_finish(&json);
    struct slice problem = slice_of(json.problem == NULL ? "" : json.problem);
    bool is_name = !slice_has(problem, SLICE("UTF-8")) && !slice_has(problem, SLICE("empty")) &&
                   !slice_has(problem, SLICE("over 253"));
    check(is_ours == (is_accepted && is_string_array(value) && is_name), "array of strings");
    if (!is_ours)
        return;
    check(count == json_array_size(value), "count of strings");
    compare_join(extent, count);
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

/* With each reader of blocks that this processor has. */
static void compare_string_arrays(struct slice text, const json_t *value, bool is_accepted)
{
    json_blocks_reader *best = json_blocks_read;

    for (size_t i = 0; json_blocks_readers[i] != NULL; i++) {
        json_blocks_read = json_blocks_readers[i];
        compare_string_array(text, value, is_accepted);
    }
    json_blocks_read = best;
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
