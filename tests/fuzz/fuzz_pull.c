/* The JSON reader against jansson: both accept the same texts and read the same strings. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/json_text.h"
#include "cache/pull.h"
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

static void compare_string_arrays(struct slice text, const json_t *value, bool is_accepted)
{
    struct pull json;
    struct slice extent;
    size_t count = 0;

    pull_init(&json, text);
    bool is_ours = pull_string_array(&json, &extent, &count) && pull_finish(&json);
    check(is_ours == (is_accepted && is_string_array(value)), "array of strings");
    if (!is_ours)
        return;
    check(count == json_array_size(value), "count of strings");
    struct json_join join = {malloc(extent.len + 1), SLICE("")};
    char *begin = join.to;
    (void)json_text_strings(extent.ptr, extent.ptr + extent.len, &count, &join);
    check(count == json_array_size(value), "count of strings that were copied");
    check((size_t)(join.to - begin) <= extent.len, "length of strings that were copied");
    free(begin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    struct arena arena;
    struct pull json;
    struct slice string = {NULL, 0};

    pull_init(&json, text);
    bool is_ours = pull_skip(&json) && pull_finish(&json);
    if (json.problem == json_text_too_deep)
        return 0; /* jansson goes deeper */
    if (size != 0 && memchr(data, '\0', size) != NULL) {
        check(!is_ours, "a NUL byte is refused"); /* jansson swallows one behind a number */
        return 0;
    }
    json_t *value = json_loadb(text.ptr, text.len, JSON_DECODE_ANY, NULL);
    check(is_ours == (value != NULL), "accepted");
    compare_string_arrays(text, value, is_ours);
    arena_init(&arena, 1 << 20);
    pull_init(&json, text);
    if (json_is_string(value)) {
        check(pull_string(&json, &arena, &string), "a string is read");
        check(slice_equal(string,
                          (struct slice){json_string_value(value), json_string_length(value)}),
              "text of a string");
    }
    arena_dispose(&arena);
    json_decref(value);
    return 0;
}
