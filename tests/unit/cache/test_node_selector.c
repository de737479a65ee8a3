/* Node selectors: which nodes a term matches. */
#include <criterion/criterion.h>

#include "cache/objects/details.h"
#include "cache/objects/label_selector.h"

static struct arena arena;

static void begin(void)
{
    arena_init(&arena, 1 << 20);
}

static void end(void)
{
    arena_dispose(&arena);
}

TestSuite(node_selector, .init = begin, .fini = end);

static bool read_terms(const char *text, struct pull_items *out)
{
    struct pull json;

    *out = (struct pull_items){.count = 0};
    pull_init(&json, slice_of(text));
    out->size = sizeof(struct node_term);
    return pull_field_array(&json, PULL_CASE_EXACT, node_term_fields, NODE_TERM_FIELDS, &arena,
                            out) &&
           pull_finish(&json);
}

/* A node "n" with the labels zone=a, cpu=8, word=x, empty="". */
static bool matches(const char *text)
{
    struct pull_items terms;
    struct pull json;
    struct slice labels = {NULL, 0};

    pull_init(&json, SLICE("{\"zone\":\"a\",\"cpu\":\"8\",\"word\":\"x\",\"empty\":\"\"}"));
    cr_assert(labels_read(&json, &arena, &labels));
    cr_assert(read_terms(text, &terms), "%s", text);
    return node_terms_match(&terms, SLICE("n"), labels);
}

#define EXPRESSION(rest) "[{\"matchExpressions\":[{" rest "}]}]"
#define FIELD_IS(rest)   "[{\"matchFields\":[{" rest "}]}]"
#define KEY(key, op)     "\"key\":\"" key "\",\"operator\":\"" op "\""

static const struct {
    const char *terms;
    bool want;
} rows[] = {
    {"[]", false},
    {"null", false},
    {"[{}]", false},
    {"[{\"matchExpressions\":[]}]", false},
    {EXPRESSION(KEY("zone", "In") ",\"values\":[\"b\",\"a\"]"), true},
    {EXPRESSION(KEY("zone", "In") ",\"values\":[\"b\"]"), false},
    {EXPRESSION(KEY("none", "In") ",\"values\":[\"a\"]"), false},
    {EXPRESSION(KEY("empty", "In") ",\"values\":[\"\"]"), true},
    {EXPRESSION(KEY("zone", "NotIn") ",\"values\":[\"b\"]"), true},
    {EXPRESSION(KEY("zone", "NotIn") ",\"values\":[\"a\"]"), false},
    {EXPRESSION(KEY("none", "NotIn") ",\"values\":[\"a\"]"), true},
    {EXPRESSION(KEY("zone", "Exists")), true},
    {EXPRESSION(KEY("empty", "Exists")), true},
    {EXPRESSION(KEY("none", "Exists")), false},
    {EXPRESSION(KEY("none", "DoesNotExist")), true},
    {EXPRESSION(KEY("zone", "DoesNotExist")), false},
    {EXPRESSION(KEY("cpu", "Gt") ",\"values\":[\"7\"]"), true},
    {EXPRESSION(KEY("cpu", "Gt") ",\"values\":[\"8\"]"), false},
    {EXPRESSION(KEY("cpu", "Lt") ",\"values\":[\"9\"]"), true},
    {EXPRESSION(KEY("cpu", "Lt") ",\"values\":[\"8\"]"), false},
    {EXPRESSION(KEY("cpu", "Gt") ",\"values\":[\"7\",\"6\"]"), false},
    {EXPRESSION(KEY("cpu", "Gt") ",\"values\":[\" 7\"]"), false},
    {EXPRESSION(KEY("cpu", "Gt") ",\"values\":[\"99999999999999999999\"]"), false},
    {EXPRESSION(KEY("cpu", "Lt") ",\"values\":[\"99999999999999999999\"]"), false},
    {EXPRESSION(KEY("word", "Gt") ",\"values\":[\"7\"]"), false},
    {EXPRESSION(KEY("none", "Lt") ",\"values\":[\"7\"]"), false},
    {EXPRESSION(KEY("zone", "Like") ",\"values\":[\"a\"]"), false},
    {FIELD_IS(KEY("metadata.name", "In") ",\"values\":[\"n\"]"), true},
    {FIELD_IS(KEY("metadata.name", "In") ",\"values\":[\"m\"]"), false},
    {FIELD_IS(KEY("metadata.name", "NotIn") ",\"values\":[\"m\"]"), true},
    {FIELD_IS(KEY("metadata.uid", "In") ",\"values\":[\"n\"]"), false},
    /* of several terms one, and of a term all */
    {"[{},{\"matchExpressions\":[{" KEY("zone", "Exists") "}]}]", true},
    {"[{\"matchExpressions\":[{" KEY("zone", "Exists") "},{" KEY("none", "Exists") "}]}]", false},
    {"[{\"matchExpressions\":[{" KEY("zone", "Exists") "}],\"matchFields\":[{" KEY(
         "metadata.name", "In") ",\"values\":[\"m\"]}]}]",
     false},
};

Test(node_selector, matches_as_component_helpers_does)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(matches(rows[i].terms), rows[i].want, "%s", rows[i].terms);
}

Test(node_selector, reads_no_other_types)
{
    static const char *const texts[] = {"{}", "[1]", "[{\"matchExpressions\":[1]}]",
                                        "[{\"matchExpressions\":[{\"values\":\"a\"}]}]"};
    struct pull_items terms;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_expect_not(read_terms(texts[i], &terms), "%s", texts[i]);
}
