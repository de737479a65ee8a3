#include "cache/objects/label_selector.h"

#include <stdlib.h>

#include "cache/json/pull_fields.h"

/* ---- the text ---- */

/* Removes the text up to the separator from *rest. False: nothing is left. */
static bool cut(struct slice *rest, char separator, struct slice *piece)
{
    if (rest->ptr == NULL)
        return false;
    *piece = slice_cut(rest, separator);
    return true;
}

/* A line: its key, and the text after it. */
struct entry {
    struct slice key, rest;
};

static bool next_entry(struct slice *lines, struct entry *out)
{
    *out = (struct entry){{NULL, 0}, {NULL, 0}};
    return cut(lines, '\n', &out->rest) && cut(&out->rest, ' ', &out->key);
}

static int compare_lines(const void *a, const void *b)
{
    struct slice first = *(const struct slice *)a, second = *(const struct slice *)b;
    struct entry x, y;

    (void)next_entry(&first, &x);
    (void)next_entry(&second, &y);
    return slice_compare(x.key, y.key);
}

static bool is_sorted(struct slice lines)
{
    struct slice last = SLICE("");
    struct entry entry;

    while (next_entry(&lines, &entry)) {
        if (slice_compare(last, entry.key) > 0)
            return false;
        last = entry.key;
    }
    return true;
}

/* ---- reading ---- */

static bool append(struct pull *json, struct arena *arena, struct slice *text, const char *before,
                   struct slice more)
{
    return (arena_append(arena, text, slice_of(before)) && arena_append(arena, text, more)) ||
           pull_problem(json, pull_too_big);
}

/* Sorts all lines but the first by their keys. The API server sends labels sorted. */
static bool sort_lines(struct pull *json, struct arena *arena, struct slice *text)
{
    struct slice rest = *text, sorted = {NULL, 0}, line, *lines = NULL;
    size_t count = 0;

    if (!cut(&rest, '\n', &line) || is_sorted(rest))
        return true;
    if (!append(json, arena, &sorted, "", line))
        return false;
    while (cut(&rest, '\n', &line)) {
        lines = arena_grow(arena, lines, count, sizeof *lines);
        if (lines == NULL)
            return pull_problem(json, pull_too_big);
        lines[count++] = line;
    }
    if (lines != NULL)
        qsort(lines, count, sizeof *lines, compare_lines);
    for (size_t i = 0; i < count; i++)
        if (!append(json, arena, &sorted, "\n", lines[i]))
            return false;
    *text = sorted;
    return true;
}

/* {"key": "value", ...}, each pair as a line: key `between` value. */
static bool read_pairs(struct pull *json, struct arena *arena, const char *between,
                       struct slice *text)
{
    struct slice key;

    if (!pull_object(json))
        return json->problem == NULL;
    while (pull_key(json, &key)) {
        struct slice value = {NULL, 0};
        if (!append(json, arena, text, "\n", key) || !pull_string(json, arena, &value) ||
            !append(json, arena, text, between, value))
            return false;
    }
    return json->problem == NULL;
}

bool labels_read(struct pull *json, struct arena *arena, void *field)
{
    return read_pairs(json, arena, " ", field) && sort_lines(json, arena, field);
}

/* The label "!", which no object of an API server has, in place of too many. */
static struct slice too_long(void)
{
    return SLICE("\n! ");
}

bool labels_read_kept(struct pull *json, struct arena *arena, void *field)
{
    struct slice *labels = field;

    if (!labels_read(json, arena, field))
        return false;
    if (labels->len > LABELS_BYTES_MAX)
        *labels = too_long();
    return true;
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

static const struct {
    const char *name, *word;
} operators[] = {
    {"In", " in"}, {"NotIn", " notin"}, {"Exists", " exists"}, {"DoesNotExist", " absent"}};

enum { OPERATORS = sizeof operators / sizeof *operators };

static const char *operator_word(struct slice name)
{
    for (int i = 0; i < OPERATORS; i++)
        if (slice_equal(name, slice_of(operators[i].name)))
            return operators[i].word;
    return NULL;
}

static bool read_expressions(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field fields[] = {
        PULL_FIELD("key", PULL_STRING, requirement, key),
        PULL_FIELD("operator", PULL_STRING, requirement, operator),
        PULL_READER("values", requirement, values, read_values),
    };
    struct pull_items items = {.size = sizeof(struct requirement)};

    if (!pull_field_array(json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, &items))
        return false;
    const struct requirement *requirements = items.items;
    for (size_t i = 0; i < items.count; i++) {
        const char *word = operator_word(requirements[i].operator);
        if (word == NULL)
            return pull_problem(json, "expected In, NotIn, Exists or DoesNotExist");
        if (!append(json, arena, field, "\n", requirements[i].key) ||
            !append(json, arena, field, word, requirements[i].values))
            return false;
    }
    return true;
}

static bool read_match_labels(struct pull *json, struct arena *arena, void *field)
{
    return read_pairs(json, arena, " in ", field);
}

bool selector_read(struct pull *json, struct arena *arena, void *field)
{
    static const struct pull_field fields[] = {
        {.key = "matchLabels", .type = PULL_READ, .read = read_match_labels},
        {.key = "matchExpressions", .type = PULL_READ, .read = read_expressions},
    };

    if (pull_null(json))
        return true;
    if (!append(json, arena, field, "*", (struct slice){NULL, 0}) ||
        !pull_fields(json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, field) ||
        !sort_lines(json, arena, field))
        return false;
    if (((struct slice *)field)->len > SELECTOR_BYTES_MAX)
        *(struct slice *)field = SLICE("*\n! absent"); /* as too_long(): no label has that key */
    return true;
}

/* ---- shared labels ---- */

/* In place of a value. A text in which one of them is a character cannot be shared. */
enum { MARK_NAME = 1, MARK_ORDINAL = 2 };

static bool are_shared(struct slice labels)
{
    return labels.len != 0 && labels.ptr[0] == '@';
}

/* "3" of "web-3"; empty: there is no '-'. */
static struct slice ordinal_of(struct slice pod)
{
    const char *dash = pod.len == 0 ? NULL : memrchr(pod.ptr, '-', pod.len);

    return dash == NULL ? (struct slice){"", 0}
                        : (struct slice){dash + 1, (size_t)(pod.ptr + pod.len - dash) - 1};
}

/* The mark in place of that value; 0: none. */
static char mark_of(const struct entry *label, struct slice pod)
{
    if (label->rest.len == 0)
        return 0;
    if (slice_equal(label->rest, pod))
        return MARK_NAME;
    return slice_equal(label->key, SLICE("apps.kubernetes.io/pod-index")) &&
                   slice_equal(label->rest, ordinal_of(pod))
               ? MARK_ORDINAL
               : 0;
}

/* The label's value; {NULL, 0}: the line has none. */
static struct slice value_of(const struct entry *label, bool is_shared, struct slice pod)
{
    if (!is_shared || label->rest.len != 1)
        return label->rest;
    switch (label->rest.ptr[0]) {
    case MARK_NAME: return pod;
    case MARK_ORDINAL: return ordinal_of(pod);
    default: return label->rest;
    }
}

static char *put(char *end, struct slice bytes)
{
    if (bytes.len != 0)
        memcpy(end, bytes.ptr, bytes.len);
    return end + bytes.len;
}

struct slice labels_share(struct slice labels, struct slice pod, char buffer[LABELS_SHARED_MAX])
{
    struct slice rest = labels, first;
    struct entry label;
    char *end = buffer;
    bool has_marks = false;

    if (labels.len >= LABELS_SHARED_MAX || !cut(&rest, '\n', &first) || first.len != 0 ||
        memchr(labels.ptr, MARK_NAME, labels.len) != NULL ||
        memchr(labels.ptr, MARK_ORDINAL, labels.len) != NULL)
        return labels;
    *end++ = '@';
    while (next_entry(&rest, &label)) {
        char mark = mark_of(&label, pod);
        end = put(put(end, SLICE("\n")), label.key);
        if (label.rest.ptr != NULL)
            end = put(put(end, SLICE(" ")), mark == 0 ? label.rest : (struct slice){&mark, 1});
        has_marks = has_marks || mark != 0;
    }
    return has_marks ? (struct slice){buffer, (size_t)(end - buffer)} : labels;
}

/* ---- writing ---- */

static const char *operator_name(struct slice word)
{
    for (int i = 0; i < OPERATORS; i++)
        if (slice_equal(word, slice_of(operators[i].word + 1)))
            return operators[i].name;
    return "";
}

void labels_write(struct slice labels, struct slice pod, struct buf *out)
{
    bool is_shared = are_shared(labels);
    const char *before = "";
    struct slice first;
    struct entry label;

    buf_put(out, SLICE("{"));
    for (bool has_lines = cut(&labels, '\n', &first); has_lines && next_entry(&labels, &label);
         before = ",") {
        buf_put(out, slice_of(before));
        buf_json(out, label.key);
        buf_put(out, SLICE(":"));
        buf_json(out, value_of(&label, is_shared, pod));
    }
    buf_put(out, SLICE("}"));
}

static void write_values(struct slice values, struct buf *out)
{
    const char *before = "";
    struct slice value;

    buf_put(out, SLICE(",\"values\":["));
    for (; cut(&values, ' ', &value); before = ",") {
        buf_put(out, slice_of(before));
        buf_json(out, value);
    }
    buf_put(out, SLICE("]}"));
}

void selector_write(struct slice selector, struct buf *out)
{
    const char *before = "";
    struct slice word = {NULL, 0};
    struct entry requirement;

    buf_put(out, SLICE("{\"matchExpressions\":["));
    for (bool has_lines = cut(&selector, '\n', &word);
         has_lines && next_entry(&selector, &requirement); before = ",") {
        (void)cut(&requirement.rest, ' ', &word);
        buf_printf(out, "%s{\"key\":", before);
        buf_json(out, requirement.key);
        buf_printf(out, ",\"operator\":\"%s\"", operator_name(word));
        write_values(requirement.rest, out);
    }
    buf_put(out, SLICE("]}"));
}

/* ---- matching ---- */

/* Whether the label's value meets the requirement, which has no key here; NULL: there is no label.
 */
static bool holds(struct slice requirement, struct slice value)
{
    struct slice word = {NULL, 0}, wanted;
    bool is_among = false;

    (void)cut(&requirement, ' ', &word);
    while (value.ptr != NULL && cut(&requirement, ' ', &wanted))
        is_among = is_among || slice_equal(value, wanted);
    if (slice_equal(word, SLICE("in")))
        return is_among;
    if (slice_equal(word, SLICE("notin")))
        return !is_among; /* also without the label */
    return slice_equal(word, SLICE("exists")) == (value.ptr != NULL);
}

bool labels_find(struct slice labels, struct slice key, struct slice *value)
{
    struct slice first;
    struct entry label;

    if (!cut(&labels, '\n', &first))
        return false;
    while (next_entry(&labels, &label))
        if (slice_equal(label.key, key)) {
            *value = label.rest;
            return true;
        }
    return false;
}

bool selector_is_empty(struct slice selector)
{
    return selector.len <= 1;
}

bool selector_matches(struct slice selector, struct slice labels, struct slice pod)
{
    bool is_shared = are_shared(labels);
    struct entry requirement, label = {{NULL, 0}, {NULL, 0}};
    struct slice first;

    if (selector.len == 0 || !cut(&selector, '\n', &first))
        return false;
    if (slice_equal(labels, too_long()))
        return true;
    bool has_label = cut(&labels, '\n', &first) && next_entry(&labels, &label);
    while (next_entry(&selector, &requirement)) {
        while (has_label && slice_compare(label.key, requirement.key) < 0)
            has_label = next_entry(&labels, &label);
        bool is_there = has_label && slice_equal(label.key, requirement.key);
        if (!holds(requirement.rest,
                   is_there ? value_of(&label, is_shared, pod) : (struct slice){NULL, 0}))
            return false;
    }
    return true;
}
