#include "cache/selector.h"

#include "cache/pull_fields.h"

static bool append(struct pull *json, struct arena *arena, struct slice *text, const char *before,
                   struct slice more)
{
    return (arena_append(arena, text, slice_of(before)) && arena_append(arena, text, more)) ||
           pull_problem(json, "too big for the memory of one request");
}

/* ---- reading ---- */

/* {"key": "value", ...}, each pair as `before` key `between` value. */
static bool read_pairs(struct pull *json, struct arena *arena, const char *before,
                       const char *between, struct slice *text)
{
    struct slice key;

    if (!pull_object(json))
        return json->problem == NULL;
    while (pull_key(json, &key)) {
        struct slice value = {NULL, 0};
        if (!append(json, arena, text, before, key) || !pull_string(json, arena, &value) ||
            !append(json, arena, text, between, value))
            return false;
    }
    return json->problem == NULL;
}

bool labels_read(struct pull *json, struct arena *arena, void *field)
{
    return read_pairs(json, arena, "\n", "=", field);
}

struct requirement {
    struct slice key, operator, values; /* values: " a b" */
};

static bool read_values(struct pull *json, struct arena *arena, void *field)
{
    if (!pull_array(json))
        return json->problem == NULL;
    while (pull_item(json)) {
        struct slice value = {NULL, 0};
        if (!pull_string(json, arena, &value) || !append(json, arena, field, " ", value))
            return false;
    }
    return json->problem == NULL;
}

static const char *operator_word(struct slice name)
{
    if (slice_equal(name, SLICE("In")))
        return "\nin ";
    if (slice_equal(name, SLICE("NotIn")))
        return "\nnotin ";
    if (slice_equal(name, SLICE("Exists")))
        return "\nexists ";
    return slice_equal(name, SLICE("DoesNotExist")) ? "\nabsent " : NULL;
}

static bool read_expressions(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field fields[] = {
        {.key = "key", .type = PULL_STRING, .offset = offsetof(struct requirement, key)},
        {.key = "operator", .type = PULL_STRING, .offset = offsetof(struct requirement, operator)},
        {.key = "values",
         .type = PULL_READ,
         .offset = offsetof(struct requirement, values),
         .read = read_values},
    };
    void *items = NULL;
    size_t count = 0;

    if (!pull_field_array(json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields),
                          sizeof(struct requirement), arena, &items, &count))
        return false;
    const struct requirement *requirements = items;
    for (size_t i = 0; i < count; i++) {
        const char *word = operator_word(requirements[i].operator);
        if (word == NULL)
            return pull_problem(json, "expected In, NotIn, Exists or DoesNotExist");
        if (!append(json, arena, field, word, requirements[i].key) ||
            !append(json, arena, field, "", requirements[i].values))
            return false;
    }
    return true;
}

static bool read_match_labels(struct pull *json, struct arena *arena, void *field)
{
    return read_pairs(json, arena, "\nin ", " ", field);
}

bool selector_read(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field fields[] = {
        {.key = "matchLabels", .type = PULL_READ, .read = read_match_labels},
        {.key = "matchExpressions", .type = PULL_READ, .read = read_expressions},
    };

    if (pull_null(json))
        return true;
    return append(json, arena, field, "*", (struct slice){NULL, 0}) &&
           pull_fields(json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, field);
}

/* ---- matching ---- */

/* Cuts the text up to the separator off *rest. False: nothing is left. */
static bool cut(struct slice *rest, char separator, struct slice *piece)
{
    if (rest->ptr == NULL)
        return false;
    const char *end = rest->len == 0 ? NULL : memchr(rest->ptr, separator, rest->len);
    if (end == NULL) {
        *piece = *rest;
        *rest = (struct slice){NULL, 0};
        return true;
    }
    *piece = (struct slice){rest->ptr, (size_t)(end - rest->ptr)};
    *rest = (struct slice){end + 1, rest->len - piece->len - 1};
    return true;
}

static bool find_label(struct slice labels, struct slice key, struct slice *value)
{
    struct slice line, name;

    while (cut(&labels, '\n', &line)) {
        *value = line;
        if (cut(value, '=', &name) && value->ptr != NULL && slice_equal(name, key))
            return true;
    }
    return false;
}

static bool holds(struct slice requirement, struct slice labels)
{
    struct slice word = {NULL, 0}, key = {NULL, 0}, value = {NULL, 0}, wanted;
    bool is_among = false;

    if (!cut(&requirement, ' ', &word) || !cut(&requirement, ' ', &key))
        return false;
    bool is_there = find_label(labels, key, &value);
    while (is_there && cut(&requirement, ' ', &wanted))
        is_among = is_among || slice_equal(value, wanted);
    if (slice_equal(word, SLICE("in")))
        return is_among;
    if (slice_equal(word, SLICE("notin")))
        return !is_among; /* also without the label */
    return slice_equal(word, SLICE("exists")) == is_there;
}

bool selector_matches(struct slice selector, struct slice labels)
{
    struct slice line;

    if (selector.len == 0 || !cut(&selector, '\n', &line))
        return false;
    while (cut(&selector, '\n', &line))
        if (!holds(line, labels))
            return false;
    return true;
}
