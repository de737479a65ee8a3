#include "cache/objects/node_selector.h"

#include <errno.h>
#include <stdlib.h>

#include "cache/objects/label_selector.h"
#include "cache/objects/objects_internal.h"

/* ---- reading ---- */

static const struct pull_field requirement_fields[] = {
    PULL_FIELD("key", PULL_STRING, node_requirement, key),
    PULL_FIELD("operator", PULL_STRING, node_requirement, operator),
    PULL_READER("values", node_requirement, values, read_strings),
};

static bool read_requirements(struct pull *json, struct arena *arena, void *field)
{
    ((struct pull_items *)field)->size = sizeof(struct node_requirement);
    return pull_field_array(json, PULL_CASE_EXACT, requirement_fields,
                            PULL_FIELD_COUNT(requirement_fields), arena, field);
}

const struct pull_field node_term_fields[NODE_TERM_FIELDS] = {
    PULL_READER_OF("matchExpressions", node_term, expressions, read_requirements,
                   requirement_fields),
    PULL_READER_OF("matchFields", node_term, fields, read_requirements, requirement_fields),
};

bool node_terms_read(struct pull *json, struct arena *arena, void *field)
{
    ((struct pull_items *)field)->size = sizeof(struct node_term);
    return pull_field_array(json, PULL_CASE_EXACT, node_term_fields, NODE_TERM_FIELDS, arena,
                            field);
}

/* ---- matching ---- */

static bool has_value(const struct node_requirement *requirement, struct slice value)
{
    const struct slice *values = requirement->values.items;

    for (size_t i = 0; i < requirement->values.count; i++)
        if (slice_equal(values[i], value))
            return true;
    return false;
}

/* As strconv.ParseInt of Go: no blanks before the number, and nothing behind it. */
static bool parse_number(struct slice text, long long *out)
{
    char digits[24], *end;

    if (text.len == 0 || text.len >= sizeof digits)
        return false;
    memcpy(digits, text.ptr, text.len);
    digits[text.len] = '\0';
    if (digits[0] != '+' && digits[0] != '-' && (digits[0] < '0' || digits[0] > '9'))
        return false;
    errno = 0;
    *out = strtoll(digits, &end, 10);
    return errno == 0 && end == digits + text.len;
}

/* Gt and Lt. */
static bool compares(const struct node_requirement *requirement, struct slice value, bool is_less)
{
    const struct slice *limit = requirement->values.items;
    long long x, y;

    return requirement->values.count == 1 && parse_number(value, &x) && parse_number(*limit, &y) &&
           (is_less ? x < y : x > y);
}

/* value: of the label; has: whether there is one. */
static bool is_met(const struct node_requirement *requirement, bool has, struct slice value)
{
    if (slice_equal(requirement->operator, SLICE("In")))
        return has && has_value(requirement, value);
    if (slice_equal(requirement->operator, SLICE("NotIn")))
        return !has || !has_value(requirement, value);
    if (slice_equal(requirement->operator, SLICE("Exists")))
        return has;
    if (slice_equal(requirement->operator, SLICE("DoesNotExist")))
        return !has;
    if (slice_equal(requirement->operator, SLICE("Gt")))
        return has && compares(requirement, value, false);
    return slice_equal(requirement->operator, SLICE("Lt")) && has &&
           compares(requirement, value, true);
}

static bool term_matches(const struct node_term *term, struct slice node, struct slice labels)
{
    const struct node_requirement *expressions = term->expressions.items;
    const struct node_requirement *fields = term->fields.items;

    for (size_t i = 0; i < term->expressions.count; i++) {
        struct slice value = SLICE("");
        bool has = labels_find(labels, expressions[i].key, &value);
        if (!is_met(&expressions[i], has, value))
            return false;
    }
    for (size_t i = 0; i < term->fields.count; i++)
        if (!slice_equal(fields[i].key, SLICE("metadata.name")) || !is_met(&fields[i], true, node))
            return false;
    return term->expressions.count + term->fields.count != 0;
}

bool node_terms_match(const struct pull_items *terms, struct slice node, struct slice labels)
{
    const struct node_term *items = terms->items;

    for (size_t i = 0; i < terms->count; i++)
        if (term_matches(&items[i], node, labels))
            return true;
    return false;
}

/* ---- text ---- */

/* "in", ...; else the operator itself. */
static struct slice operator_text(struct slice operator)
{
    static const struct {
        const char *operator, * text;
    } rows[] = {{"In", " in "},        {"NotIn", " not in "},
                {"Exists", " exists"}, {"DoesNotExist", " does not exist"},
                {"Gt", " > "},         {"Lt", " < "}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (slice_equal(operator, slice_of(rows[i].operator)))
            return slice_of(rows[i].text);
    return operator;
}

static bool put_requirements(const struct pull_items *items, bool *is_first, struct arena *arena,
                             struct slice *text)
{
    const struct node_requirement *requirements = items->items;
    bool ok = true;

    for (size_t i = 0; i < items->count && ok; i++) {
        const struct slice *values = requirements[i].values.items;
        ok = arena_append(arena, text, *is_first ? SLICE("") : SLICE(" and ")) &&
             arena_append(arena, text, requirements[i].key) &&
             arena_append(arena, text, operator_text(requirements[i].operator));
        for (size_t j = 0; j < requirements[i].values.count && ok; j++)
            ok = arena_append(arena, text, j == 0 ? SLICE("") : SLICE(", ")) &&
                 arena_append(arena, text, values[j]);
        *is_first = false;
    }
    return ok;
}

struct slice node_terms_text(const struct pull_items *terms, struct arena *arena)
{
    const struct node_term *items = terms->items;
    struct slice text = SLICE("");
    bool ok = true;

    for (size_t i = 0; i < terms->count && ok; i++) {
        bool is_first = true;
        ok = arena_append(arena, &text, i == 0 ? SLICE("") : SLICE("; or ")) &&
             put_requirements(&items[i].expressions, &is_first, arena, &text) &&
             put_requirements(&items[i].fields, &is_first, arena, &text);
    }
    return ok ? text : (struct slice){NULL, 0};
}
