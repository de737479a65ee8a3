#include <criterion/criterion.h>

#include "cache/selector.h"

static const struct {
    const char *selector, *labels;
    bool matches;
} rows[] = {
    {"null", "{\"a\":\"b\"}", false},
    {"{}", "{\"a\":\"b\"}", true},
    {"{}", "{}", true},
    {"{\"matchLabels\":{\"a\":\"b\"}}", "{\"a\":\"b\",\"c\":\"d\"}", true},
    {"{\"matchLabels\":{\"a\":\"b\"}}", "{\"c\":\"d\",\"a\":\"b\"}", true},
    {"{\"matchLabels\":{\"a\":\"b\"}}", "{\"a\":\"bb\"}", false},
    {"{\"matchLabels\":{\"a\":\"b\"}}", "{\"aa\":\"b\"}", false},
    {"{\"matchLabels\":{\"a\":\"b\"}}", "{}", false},
    {"{\"matchLabels\":{\"a\":\"b\",\"c\":\"d\"}}", "{\"a\":\"b\"}", false},
    {"{\"matchLabels\":{\"a\":\"\"}}", "{\"a\":\"\"}", true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"x\",\"b\"]}]}",
     "{\"a\":\"b\"}", true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"x\"]}]}",
     "{\"a\":\"b\"}", false},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"x\"]}]}",
     "{\"a\":\"b\"}", true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"b\"]}]}",
     "{\"a\":\"b\"}", false},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"b\"]}]}", "{}",
     true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}", "{\"a\":\"\"}", true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}", "{\"b\":\"a\"}", false},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"DoesNotExist\"}]}", "{}", true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"DoesNotExist\"}]}", "{\"a\":\"b\"}",
     false},
};

static struct slice read(const char *text, bool (*reader)(struct pull *, struct arena *, void *),
                         struct arena *arena)
{
    struct pull json;
    struct slice out = {NULL, 0};

    pull_init(&json, slice_of(text));
    cr_assert(reader(&json, arena, &out) && pull_finish(&json), "%s: %s", text, json.problem);
    return out;
}

Test(selector, matches_as_kubernetes_does)
{
    struct arena arena;

    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(selector_matches(read(rows[i].selector, selector_read, &arena),
                                      read(rows[i].labels, labels_read, &arena)),
                     rows[i].matches, "%s on %s", rows[i].selector, rows[i].labels);
    arena_dispose(&arena);
}

Test(selector, refuses_an_unknown_operator)
{
    struct arena arena;
    struct pull json;
    struct slice out = {NULL, 0};

    arena_init(&arena, 1 << 20);
    pull_init(&json, SLICE("{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Gt\"}]}"));
    cr_expect_not(selector_read(&json, &arena, &out));
    arena_dispose(&arena);
}
