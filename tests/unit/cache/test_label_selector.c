#include <criterion/criterion.h>

#include "cache/objects/label_selector.h"
#include "config/base/buf.h"

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
    /* in whatever order they come */
    {"{\"matchLabels\":{\"c\":\"d\",\"a\":\"b\"}}",
     "{\"d\":\"\",\"c\":\"d\",\"b\":\"\",\"a\":\"b\",\"a-b\":\"\"}", true},
    {"{\"matchLabels\":{\"b\":\"\"},\"matchExpressions\":[{\"key\":\"c\",\"operator\":\"Exists\"},"
     "{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"x\"]},{\"key\":\"a\",\"operator\":\"In\","
     "\"values\":[\"x\",\"y\"]}]}",
     "{\"c\":\"\",\"a\":\"x\",\"b\":\"\"}", true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"},{\"key\":\"a\","
     "\"operator\":\"NotIn\",\"values\":[\"x\"]}]}",
     "{\"a\":\"x\"}", false},
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

enum { MANY = 60000 };

/* "before" 0 "after", "before" 1 "after", ... */
static void put_many(struct buf *out, const char *before, const char *after)
{
    for (int i = 0; i < MANY; i++)
        buf_printf(out, "%s%s%05d%s", i == 0 ? "" : ",", before, MANY - i, after);
}

/* Their product would be minutes. */
Test(selector, a_match_costs_as_much_as_its_texts, .timeout = 60)
{
    struct buf selector, labels;
    struct arena arena;

    buf_init(&selector, 16 << 20);
    buf_init(&labels, 16 << 20);
    buf_put(&selector, SLICE("{\"matchExpressions\":["));
    put_many(&selector, "{\"operator\":\"DoesNotExist\",\"key\":\"z", "\"}");
    buf_put(&selector, SLICE("]}"));
    buf_put(&labels, SLICE("{"));
    put_many(&labels, "\"a", "\":\"\"");
    buf_put(&labels, SLICE("}"));
    arena_init(&arena, 256 << 20);
    cr_expect(selector_matches(read(buf_text(&selector), selector_read, &arena),
                               read(buf_text(&labels), labels_read, &arena)));
    arena_dispose(&arena);
    buf_dispose(&selector);
    buf_dispose(&labels);
}
