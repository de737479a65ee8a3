#include "cache/objects/words.h"

#include "cache/json/pull_fields.h"

bool words_add(struct pull *json, struct arena *arena, struct slice *field, struct slice word)
{
    return ((field->len == 0 || arena_append(arena, field, SLICE(","))) &&
            arena_append(arena, field, word)) ||
           pull_problem(json, pull_too_big);
}

bool words_read(struct pull *json, struct arena *arena, void *field)
{
    size_t count = 0;

    if (!pull_array(json))
        return json->problem == NULL;
    while (pull_item(json)) {
        struct slice word = {NULL, 0};
        if (!pull_name(json, arena, &word) ||
            (count++ < WORDS_READ_MAX && !words_add(json, arena, field, word)))
            return false;
    }
    return json->problem == NULL;
}

bool words_next(struct slice *rest, struct slice *word)
{
    const char *comma;

    if (rest->len == 0)
        return false;
    comma = memchr(rest->ptr, ',', rest->len);
    *word = (struct slice){rest->ptr, comma == NULL ? rest->len : (size_t)(comma - rest->ptr)};
    size_t taken = comma == NULL ? rest->len : word->len + 1;
    *rest = (struct slice){rest->ptr + taken, rest->len - taken};
    return true;
}

bool words_have(struct slice words, struct slice word)
{
    struct slice found;

    while (words_next(&words, &found))
        if (slice_equal(found, word))
            return true;
    return false;
}
