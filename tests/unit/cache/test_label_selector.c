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
                                      read(rows[i].labels, labels_read, &arena), SLICE("")),
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

/* ---- shared labels ---- */

/* Texts as the API server may send them, and some that it does not. */
static const struct {
    const char *pod, *labels;
    bool are_shared;
} shared_rows[] = {
    {"web-3", "{\"app\":\"web\",\"statefulset.kubernetes.io/pod-name\":\"web-3\"}", true},
    {"web-3", "{\"apps.kubernetes.io/pod-index\":\"3\",\"z\":\"web-3\"}", true},
    {"web-3", "{\"apps.kubernetes.io/pod-index\":\"3\"}", true},
    {"web-3", "{\"apps.kubernetes.io/pod-index\":\"4\",\"z\":\"web-4\"}", false},
    {"web-3", "{\"shard\":\"3\"}", false}, /* pods of another ordinal may have it, too */
    {"web", "{\"apps.kubernetes.io/pod-index\":\"web\"}", true},
    {"web", "{\"apps.kubernetes.io/pod-index\":\"\"}", false},
    {"web-", "{\"apps.kubernetes.io/pod-index\":\"\",\"a\":\"\"}", false},
    {"-", "{\"a\":\"-\"}", true},
    {"web-3", "{}", false},
    {"web-3", "{\"a\":\"web-3\",\"b\":\"\\u0001\"}", false},
    {"web-3", "{\"a\":\"web-3\",\"\\u0002\":\"\"}", false},
    {"web-3", "{\"@\":\"@\",\"a\":\"web-3\"}", true},
    {"web-3", "{\"a\":\"x\\ny\",\"b\":\"web-3\"}", true}, /* reads as a label y without a value */
    {"web-3", "{\"a\":\"x\\ny web-3\"}", true},
};

static const char *const shared_selectors[] = {
    "{\"matchLabels\":{\"statefulset.kubernetes.io/pod-name\":\"web-3\"}}",
    "{\"matchLabels\":{\"statefulset.kubernetes.io/pod-name\":\"web-4\"}}",
    "{\"matchLabels\":{\"apps.kubernetes.io/pod-index\":\"3\"}}",
    "{\"matchLabels\":{\"apps.kubernetes.io/pod-index\":\"web\"}}",
    "{\"matchExpressions\":[{\"key\":\"apps.kubernetes.io/pod-index\",\"operator\":\"NotIn\","
    "\"values\":[\"3\",\"\"]}]}",
    "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"web-3\",\"-\"]}]}",
    "{\"matchExpressions\":[{\"key\":\"z\",\"operator\":\"Exists\"}]}",
    "{\"matchLabels\":{\"a\":\"\\u0001\"}}",
    "{\"matchLabels\":{\"app\":\"web\"}}",
    "{}",
};

static void expect_same_json(struct slice labels, struct slice shared, struct slice pod)
{
    struct buf plain, with_marks;

    buf_init(&plain, 1 << 20);
    buf_init(&with_marks, 1 << 20);
    labels_write(labels, SLICE("another"), &plain);
    labels_write(shared, pod, &with_marks);
    cr_expect(slice_equal(buf_slice(&plain), buf_slice(&with_marks)), "%s: %s", buf_text(&plain),
              buf_text(&with_marks));
    buf_dispose(&plain);
    buf_dispose(&with_marks);
}

Test(selector, shared_labels_match_and_read_as_their_plain_text_does)
{
    enum { SELECTORS = sizeof shared_selectors / sizeof *shared_selectors };
    char buffer[LABELS_SHARED_MAX];
    struct arena arena;

    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < sizeof shared_rows / sizeof *shared_rows; i++) {
        struct slice pod = slice_of(shared_rows[i].pod);
        struct slice labels = read(shared_rows[i].labels, labels_read, &arena);
        struct slice shared = labels_share(labels, pod, buffer);
        cr_expect_eq(shared.ptr == buffer, shared_rows[i].are_shared, "row %zu", i);
        expect_same_json(labels, shared, pod);
        for (size_t s = 0; s < SELECTORS; s++) {
            struct slice selector = read(shared_selectors[s], selector_read, &arena);
            cr_expect_eq(selector_matches(selector, shared, pod),
                         selector_matches(selector, labels, SLICE("another")),
                         "row %zu, selector %zu", i, s);
        }
    }
    arena_dispose(&arena);
}

Test(selector, the_pods_of_a_stateful_set_share_their_labels)
{
    char first[LABELS_SHARED_MAX], second[LABELS_SHARED_MAX];
    struct arena arena;

    arena_init(&arena, 1 << 20);
    struct slice one = read("{\"app\":\"db\",\"apps.kubernetes.io/pod-index\":\"1\","
                            "\"statefulset.kubernetes.io/pod-name\":\"db-1\"}",
                            labels_read, &arena);
    struct slice two = read("{\"app\":\"db\",\"apps.kubernetes.io/pod-index\":\"22\","
                            "\"statefulset.kubernetes.io/pod-name\":\"db-22\"}",
                            labels_read, &arena);
    cr_expect(slice_equal(labels_share(one, SLICE("db-1"), first),
                          labels_share(two, SLICE("db-22"), second)));
    arena_dispose(&arena);
}

/* No value is shorter than its mark, so nothing grows but the first line. */
Test(selector, labels_of_any_length_are_shared_or_kept)
{
    static char labels[LABELS_SHARED_MAX + 2], buffer[LABELS_SHARED_MAX];

    memset(labels, 'a', sizeof labels);
    memcpy(labels, "\nx p\n", 5);
    for (size_t len = LABELS_SHARED_MAX - 2; len <= sizeof labels; len++) {
        struct slice shared = labels_share((struct slice){labels, len}, SLICE("p"), buffer);
        cr_expect_eq(shared.ptr == buffer, len < LABELS_SHARED_MAX, "%zu", len);
        expect_same_json((struct slice){labels, len}, shared, SLICE("p"));
    }
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
                               read(buf_text(&labels), labels_read, &arena), SLICE("")));
    arena_dispose(&arena);
    buf_dispose(&selector);
    buf_dispose(&labels);
}
