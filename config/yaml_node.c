#include "config/yaml_node.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "config/base/file.h"

/* A mapping or sequence that is open. */
struct level {
    struct yaml_node *node;
    struct yaml_node *last; /* of its children */
    struct slice key;       /* whose value comes next */
    struct place key_at;
    bool has_key;
};

struct loading {
    const char *path;
    struct arena *arena;
    yaml_parser_t parser;
    struct yaml_node *root;
    unsigned depth;
    struct level levels[YAML_DEPTH_MAX];
};

int yaml_fail_at(struct error *err, const char *path, struct place at, const char *format, ...)
{
    char text[ERROR_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(err, ERROR_INVALID, "%s:%zu:%zu: %s", path, at.line, at.column, text);
}

/* libyaml counts from 0. */
static struct place place_of_mark(yaml_mark_t mark)
{
    return (struct place){mark.line + 1, mark.column + 1};
}

static int fail_event(const struct loading *loading, const yaml_event_t *event, struct error *err,
                      const char *problem)
{
    return yaml_fail_at(err, loading->path, place_of_mark(event->start_mark), "%s", problem);
}

static struct slice copy_scalar(struct arena *arena, const yaml_event_t *event)
{
    return arena_copy(
        arena, (struct slice){(const char *)event->data.scalar.value, event->data.scalar.length});
}

/* Keeps the key until its value comes. */
static int take_key(struct loading *loading, const yaml_event_t *event, struct error *err)
{
    struct level *top = &loading->levels[loading->depth - 1];
    struct slice key = copy_scalar(loading->arena, event);

    if (key.ptr == NULL)
        return error_no_memory(err);
    if (event->data.scalar.plain_implicit && slice_equal(key, SLICE("<<")))
        return fail_event(loading, event, err,
                          "merge keys (<<) are not supported: write the values out");
    top->key = key;
    top->key_at = place_of_mark(event->start_mark);
    top->has_key = true;
    return 0;
}

/* Adds the node to the open mapping or sequence, or makes it the root. */
static void attach(struct loading *loading, struct yaml_node *node)
{
    node->path = loading->path;
    if (loading->depth == 0) {
        loading->root = node;
        return;
    }
    struct level *top = &loading->levels[loading->depth - 1];
    *(top->last == NULL ? &top->node->first : &top->last->next) = node;
    top->last = node;
    node->key = top->key;
    node->key_at = top->key_at;
    top->has_key = false;
}

static int add_node(struct loading *loading, const yaml_event_t *event, enum yaml_type type,
                    struct error *err)
{
    struct yaml_node *node = arena_alloc(loading->arena, sizeof *node);

    if (node == NULL)
        return error_no_memory(err);
    node->type = type;
    node->at = place_of_mark(event->start_mark);
    if (type == YAML_SCALAR) {
        node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        node->text = copy_scalar(loading->arena, event);
        if (node->text.ptr == NULL)
            return error_no_memory(err);
    }
    attach(loading, node);
    if (type == YAML_SCALAR)
        return 0;
    if (loading->depth == YAML_DEPTH_MAX)
        return fail_event(loading, event, err, "nested too deep");
    loading->levels[loading->depth++] =
        (struct level){.node = node, .key = node->key}; /* items have the name of their list */
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const struct yaml_node *x = *(struct yaml_node *const *)a, *y = *(struct yaml_node *const *)b;
    int order = slice_compare(x->key, y->key);

    return order != 0 ? order : place_compare(x->key_at, y->key_at);
}

/* The first key in the file that repeats an earlier one; NULL if none does. */
static const struct yaml_node *find_second(const struct yaml_node **sorted, size_t count)
{
    const struct yaml_node *second = NULL;

    for (size_t i = 1; i < count; i++)
        if (slice_equal(sorted[i]->key, sorted[i - 1]->key) &&
            (second == NULL || place_compare(sorted[i]->key_at, second->key_at) < 0))
            second = sorted[i];
    return second;
}

/* At the end of a mapping: fails if a key appears twice. */
static int check_keys(const struct yaml_node *mapping, struct error *err)
{
    size_t count = 0;

    for (const struct yaml_node *child = mapping->first; child != NULL; child = child->next)
        count++;
    const struct yaml_node **sorted = calloc(count + 1, sizeof *sorted);
    if (sorted == NULL)
        return error_no_memory(err);
    count = 0;
    for (const struct yaml_node *child = mapping->first; child != NULL; child = child->next)
        sorted[count++] = child;
    qsort((void *)sorted, count, sizeof *sorted, compare_keys);
    const struct yaml_node *second = find_second(sorted, count);
    free((void *)sorted);
    return second == NULL ? 0 : yaml_fail_key(err, second, "this key appears twice");
}

static int put_event(struct loading *loading, const yaml_event_t *event, struct error *err)
{
    bool wants_key = loading->depth != 0 &&
                     loading->levels[loading->depth - 1].node->type == YAML_MAPPING &&
                     !loading->levels[loading->depth - 1].has_key;

    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return wants_key ? take_key(loading, event, err)
                         : add_node(loading, event, YAML_SCALAR, err);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        if (wants_key)
            return fail_event(loading, event, err, "a key must be a scalar");
        return add_node(loading, event,
                        event->type == YAML_MAPPING_START_EVENT ? YAML_MAPPING : YAML_SEQUENCE,
                        err);
    case YAML_SEQUENCE_END_EVENT: loading->depth--; return 0;
    case YAML_MAPPING_END_EVENT:
        loading->depth--;
        return check_keys(loading->levels[loading->depth].node, err);
    case YAML_ALIAS_EVENT: return fail_event(loading, event, err, "aliases are not supported");
    case YAML_DOCUMENT_START_EVENT:
        if (loading->root != NULL)
            return fail_event(loading, event, err, "a second document in the file");
        return 0;
    default: return 0;
    }
}

static int parser_error(const struct loading *loading, struct error *err)
{
    const yaml_parser_t *parser = &loading->parser;

    return yaml_fail_at(err, loading->path, place_of_mark(parser->problem_mark), "%s",
                        parser->problem == NULL ? "invalid YAML" : parser->problem);
}

static int read_events(struct loading *loading, struct error *err)
{
    bool is_done = false;

    while (!is_done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&loading->parser, &event))
            return parser_error(loading, err);
        is_done = event.type == YAML_STREAM_END_EVENT;
        int rc = put_event(loading, &event, err);
        yaml_event_delete(&event);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_whole_file(const char *path, struct arena *arena, struct slice *out,
                           struct error *err)
{
    char *text = arena_alloc(arena, YAML_FILE_BYTES_MAX + 1);

    if (text == NULL)
        return error_no_memory(err);
    *out = (struct slice){text, 0};
    if (file_read(path, text, YAML_FILE_BYTES_MAX + 1, &out->len, err) < 0)
        return err->code;
    return out->len <= YAML_FILE_BYTES_MAX
               ? 0
               : error_set(err, ERROR_TOO_BIG, "%s: over %d KiB", path, YAML_FILE_BYTES_MAX / 1024);
}

int yaml_load_text(struct yaml_node **out, const char *path, struct slice text, struct arena *arena,
                   struct error *err)
{
    struct loading loading = {.path = path, .arena = arena};

    if (!yaml_parser_initialize(&loading.parser))
        return error_no_memory(err);
    yaml_parser_set_input_string(&loading.parser, (const unsigned char *)text.ptr, text.len);
    int rc = read_events(&loading, err);
    yaml_parser_delete(&loading.parser);
    if (rc == 0 && loading.root == NULL)
        rc = error_set(err, ERROR_INVALID, "%s:1:1: the file is empty", path);
    *out = loading.root;
    return rc;
}

int yaml_load(struct yaml_node **out, const char *path, struct arena *arena, struct error *err)
{
    struct slice text = {NULL, 0};

    if (read_whole_file(path, arena, &text, err) < 0)
        return err->code;
    return yaml_load_text(out, path, text, arena, err);
}

const struct yaml_node *yaml_value(const struct yaml_node *mapping, const char *key)
{
    if (mapping == NULL || mapping->type != YAML_MAPPING)
        return NULL;
    for (const struct yaml_node *child = mapping->first; child != NULL; child = child->next)
        if (slice_equal(child->key, slice_of(key)))
            return child;
    return NULL;
}

const struct yaml_node *yaml_items(const struct yaml_node *list)
{
    return list == NULL || list->type != YAML_SEQUENCE ? NULL : list->first;
}

bool yaml_is_null(const struct yaml_node *node)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};

    if (node == NULL)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_equal(node->text, slice_of(words[i])))
            return node->type == YAML_SCALAR && !node->is_quoted;
    return false;
}
