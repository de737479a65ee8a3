/*
 * YAML documents, by libyaml's events. Each item of a list, and each object that is no list,
 * becomes JSON text of its own and is decoded as JSON.
 */
#include "cache/snapshot/source_internal.h"
#include "cache/snapshot/yaml_json.h"

struct yaml_reading {
    struct reading *reading;
    struct error *err; /* of a read that failed inside libyaml */
    yaml_parser_t parser;
    struct yaml_json writer;
    struct type document; /* of the document, as far as it was seen */
    struct type item;
    char key[16];       /* the last key at the level of the document's or the item's members */
    unsigned depth;     /* of the events: 0 outside of a document's value */
    bool in_items;      /* among the items of a list */
    bool is_list;       /* the document has items */
    struct place begin; /* of the item or the document */
    bool has_braces;    /* "{{" was read: of a template */
    char last;          /* byte that was read; 0: none */
    size_t line;        /* of the file: the line feeds that were read */
    bool has_read;      /* of the document that is being read */
    bool has_directive; /* a line with '%': the document begins behind the next "---" */
};

static const char render_first[] =
    "; the file has \"{{\": if it is a template, render it first (helm template CHART)";

static void note_braces(struct yaml_reading *yaml, struct slice bytes)
{
    if (bytes.len == 0)
        return;
    yaml->has_braces |= slice_has(bytes, SLICE("{{")) || (yaml->last == '{' && *bytes.ptr == '{');
    yaml->last = bytes.ptr[bytes.len - 1];
}

/* Whether the line, of which at least four bytes are there unless the file ends, begins a document.
 */
static bool is_start_line(struct slice line)
{
    static const char blanks[] = " \t\r\n";

    return line.len >= 3 && memcmp(line.ptr, "---", 3) == 0 &&
           (line.len == 3 || memchr(blanks, line.ptr[3], sizeof blanks - 1) != NULL);
}

/* How many of the bytes are of the document that is being read, up to `size` of them. */
static size_t count_bytes(struct yaml_reading *yaml, struct slice bytes, size_t size)
{
    size_t at = 0;

    while (at < bytes.len && at < size) {
        struct slice line = {bytes.ptr + at, bytes.len - at};
        bool begins_line = at != 0 || yaml->last == '\n' || yaml->last == '\0';
        if (begins_line && yaml->has_read && line.len < 4 && !yaml->reading->input->at_eof)
            break;
        if (begins_line && is_start_line(line)) {
            if (yaml->has_read && !yaml->has_directive)
                break;
            yaml->has_directive = false;
        }
        yaml->has_directive |= begins_line && *line.ptr == '%';
        const char *end = memchr(line.ptr, '\n', line.len);
        at = end == NULL ? bytes.len : (size_t)(end + 1 - bytes.ptr);
        yaml->has_read = true;
    }
    return at < size ? at : size;
}

/* libyaml's read handler: ends where another document begins, so that an error in one of them does
 * not keep the others from being read. "---" at the begin of a line is nothing else. */
static int read_bytes(void *data, unsigned char *buffer, size_t size, size_t *size_read)
{
    struct yaml_reading *yaml = data;
    struct input *input = yaml->reading->input;
    struct slice left;

    for (;;) {
        left = input_slice(input);
        if (left.len >= 4 || input->at_eof)
            break;
        if (reading_fill(yaml->reading, yaml->err) < 0)
            return 0;
    }
    *size_read = count_bytes(yaml, left, size);
    if (*size_read == 0)
        return 1;
    if (buffer != NULL)
        memcpy(buffer, left.ptr, *size_read);
    left.len = *size_read;
    note_braces(yaml, left);
    for (const char *at = left.ptr, *end = at + left.len;
         (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        yaml->line++;
    input->begin += *size_read;
    return 1;
}

static int fail(const struct yaml_reading *yaml, struct place place, const char *problem,
                struct error *err)
{
    return error_set(err, ERROR_INVALID, "%s:%zu:%zu: %s%s", yaml->reading->input->path, place.line,
                     place.column, problem, yaml->has_braces ? render_first : "");
}

/* libyaml's error, or the error of reading the file. */
static int parser_error(const struct yaml_reading *yaml, struct error *err)
{
    const yaml_parser_t *parser = &yaml->parser;

    if (err->code != 0)
        return err->code;
    struct place place = yaml_place(&parser->problem_mark);
    if (parser->error == YAML_READER_ERROR)
        place = yaml_place(&parser->mark);
    return fail(yaml, place, parser->problem == NULL ? "invalid YAML" : parser->problem, err);
}

/* Stores keys, kind and apiVersion at the level of an object's members. */
static void note_member(struct yaml_reading *yaml, const yaml_event_t *event)
{
    struct type *type = yaml->in_items ? &yaml->item : &yaml->document;
    struct slice text = yaml_scalar(event);

    if (yaml->depth != (yaml->in_items ? 3 : 1) || event->type != YAML_SCALAR_EVENT)
        return;
    if (yaml->writer.levels[yaml->writer.depth - 1].expects_key) {
        yaml->key[0] = '\0';
        if (text.len < sizeof yaml->key) {
            memcpy(yaml->key, text.ptr, text.len);
            yaml->key[text.len] = '\0';
        }
    } else if (strcmp(yaml->key, "kind") == 0) {
        type_put(type->kind, text);
    } else if (strcmp(yaml->key, "apiVersion") == 0) {
        type_put(type->api_version, text);
    }
}

/* The type of an object whose kind may be an alias, or come with a merge key. */
static void find_type(struct yaml_reading *yaml, struct type *type)
{
    struct type found;
    struct slice extent;
    struct pull json;

    arena_reset(&yaml->reading->arena);
    pull_init(&json, buf_slice(&yaml->writer.out));
    if (document_object(&json, &yaml->reading->arena, &found, &extent))
        *type = yaml->in_items ? type_of_item(&found, &yaml->document) : found;
}

static int take(struct yaml_reading *yaml, struct type *type, struct error *err)
{
    if (yaml->writer.has_aliases)
        find_type(yaml, type);
    struct source_text text = {.type = type,
                               .text = buf_slice(&yaml->writer.out),
                               .place = yaml->begin,
                               .marks = (const void *)yaml->writer.marks.bytes,
                               .mark_count = yaml->writer.marks.len / sizeof(struct yaml_mark),
                               .is_made = true};

    return reading_take(yaml->reading, &text, err);
}

/* A value ended: an item, or the whole document. */
static int end_value(struct yaml_reading *yaml, struct error *err)
{
    if (yaml->in_items && yaml->depth == 2) {
        struct type type = type_of_item(&yaml->item, &yaml->document);
        return take(yaml, &type, err);
    }
    if (yaml->depth != 0 || yaml->is_list || type_is_list(&yaml->document) ||
        slice_equal(buf_slice(&yaml->writer.out), SLICE("null")))
        return 0;
    return take(yaml, &yaml->document, err);
}

static bool is_start(const yaml_event_t *event)
{
    return event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT;
}

static bool is_end(const yaml_event_t *event)
{
    return event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT;
}

/* `items:` begins, or its sequence ends: each item is a value of its own. */
static bool is_items_border(struct yaml_reading *yaml, const yaml_event_t *event)
{
    if (!yaml->in_items && !yaml->is_list && yaml->depth == 1 &&
        event->type == YAML_SEQUENCE_START_EVENT && strcmp(yaml->key, "items") == 0) {
        yaml->in_items = yaml->is_list = true;
        yaml->depth = 2;
        yaml_json_start(&yaml->writer);
        return true;
    }
    if (yaml->in_items && yaml->depth == 2 && event->type == YAML_SEQUENCE_END_EVENT) {
        yaml->in_items = false;
        yaml->depth = 1;
        /* the rest of the list is written as a separate object, and dropped */
        yaml_json_start(&yaml->writer);
        yaml->writer.depth = 1;
        yaml->writer.levels[0] =
            (struct yaml_level){.is_mapping = true, .expects_key = true, .is_first = true};
        return true;
    }
    return false;
}

static void begin_document(struct yaml_reading *yaml)
{
    yaml->document = (struct type){0};
    yaml->is_list = false;
    yaml->key[0] = '\0';
    yaml_json_start_document(&yaml->writer);
}

/* What is wrong with a value of `items:`; NULL: nothing, or it is none. */
static const char *items_problem(const struct yaml_reading *yaml, const yaml_event_t *event)
{
    if (yaml->in_items || yaml->depth != 1 || strcmp(yaml->key, "items") != 0)
        return NULL;
    if (yaml->is_list && is_start(event))
        return "items: this key appears twice";
    return event->type == YAML_ALIAS_EVENT ? "items: an alias of a list: write the list out" : NULL;
}

static int put_event(struct yaml_reading *yaml, const yaml_event_t *event, struct error *err)
{
    struct place place;

    if (event->type == YAML_DOCUMENT_START_EVENT)
        begin_document(yaml);
    if (!is_start(event) && !is_end(event) && event->type != YAML_SCALAR_EVENT &&
        event->type != YAML_ALIAS_EVENT)
        return 0;
    if (is_items_border(yaml, event))
        return 0;
    const char *problem = items_problem(yaml, event);
    if (problem != NULL)
        return fail(yaml, yaml_place(&event->start_mark), problem, err);
    bool begins_value = yaml->depth == 0 || (yaml->in_items && yaml->depth == 2);
    if (begins_value && !is_end(event)) {
        yaml->item = (struct type){0};
        yaml->begin = yaml_place(&event->start_mark);
        yaml_json_start(&yaml->writer);
        bool is_null =
            event->type == YAML_SCALAR_EVENT && yaml->depth == 0 && event->data.scalar.length == 0;
        if (event->type != YAML_MAPPING_START_EVENT && event->type != YAML_ALIAS_EVENT &&
            !is_null && !yaml->reading->source->skips_foreign)
            return fail(yaml, yaml->begin, "expected an object (a mapping)", err);
    }
    note_member(yaml, event);
    problem = yaml_json_put(&yaml->writer, event, &place);
    if (problem != NULL)
        return fail(yaml, place, problem, err);
    yaml->depth += is_start(event);
    yaml->depth -= is_end(event);
    return is_start(event) ? 0 : end_value(yaml, err);
}

/* The events of one document. */
static int read_events(struct yaml_reading *yaml, struct error *err)
{
    bool is_done = false;
    int rc = 0;

    while (rc == 0 && !is_done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&yaml->parser, &event))
            return parser_error(yaml, err);
        is_done = event.type == YAML_STREAM_END_EVENT;
        rc = put_event(yaml, &event, err);
        yaml_event_delete(&event);
    }
    return rc;
}

/* What the parser has not read of the document. */
static int skip_document(struct yaml_reading *yaml, struct error *err)
{
    size_t count;

    do
        if (!read_bytes(yaml, NULL, INPUT_WINDOW_BYTES, &count))
            return err->code;
    while (count != 0);
    return 0;
}

static int read_document(struct yaml_reading *yaml, struct error *err)
{
    const struct source *source = yaml->reading->source;

    if (!yaml_parser_initialize(&yaml->parser))
        return error_no_memory(err);
    err->code = 0;
    yaml->has_read = yaml->has_directive = yaml->in_items = false;
    yaml->depth = 0;
    yaml->parser.mark.line = yaml->line;
    yaml_parser_set_input(&yaml->parser, read_bytes, yaml);
    int rc = read_events(yaml, err);
    yaml_parser_delete(&yaml->parser);
    if (rc == ERROR_INVALID && source->broken != NULL)
        rc = source->broken(source->context, err);
    return rc < 0 ? rc : skip_document(yaml, err);
}

int source_read_yaml(struct reading *reading, struct error *err)
{
    struct yaml_reading yaml = {.reading = reading, .err = err};
    int rc;

    yaml_json_init(&yaml.writer, INPUT_OBJECT_BYTES_MAX);
    yaml.writer.keeps_marks = reading->source->wants_places;
    yaml.writer.allows_twice = reading->source->skips_foreign;
    do
        rc = read_document(&yaml, err);
    while (rc == 0 && input_slice(reading->input).len != 0);
    yaml_json_dispose(&yaml.writer);
    return rc;
}
