/*
 * JSON documents, one behind the other. A document is a list, whose items are read one by one, or
 * one object. Each step below reads one piece from the window; when the window ends inside it, more
 * is read and the step starts again: pieces are small against the window.
 */
#include "cache/json_text.h"
#include "cache/source_internal.h"

struct document {
    struct type type;    /* as far as it was seen */
    struct type item;    /* of the item or the object that was just read */
    unsigned depth;      /* 0: before the document; 1: in the object; 2: among a list's items */
    bool is_first;       /* nothing was read yet at this depth */
    bool has_value;      /* the step found an item or an object */
    struct slice extent; /* of it */
};

typedef bool step(struct pull *json, struct arena *arena, struct document *document);

/* One member of an object; its type is noted. */
static bool read_member(struct pull *json, struct arena *arena, struct slice key, struct type *type)
{
    struct slice value = {NULL, 0};
    char *field = slice_equal(key, SLICE("kind"))         ? type->kind
                  : slice_equal(key, SLICE("apiVersion")) ? type->api_version
                                                          : NULL;
    if (field == NULL)
        return pull_skip(json);
    if (!pull_string(json, arena, &value))
        return false;
    type_put(field, value);
    return true;
}

/* From the document's start to its items, or over all of it when it has none. */
static bool start_document(struct pull *json, struct arena *arena, struct document *document)
{
    struct slice key;
    const char *begin = json_text_space(json->at, json->end);

    document->type = (struct type){0};
    document->has_value = false;
    if (!pull_object(json))
        return pull_problem(json, "expected an object");
    while (pull_key(json, &key)) {
        if (!slice_equal(key, SLICE("items"))) {
            if (!read_member(json, arena, key, &document->type))
                return false;
        } else if (pull_array(json)) {
            document->depth = 2;
            document->is_first = true;
            return true;
        }
    }
    if (json->problem != NULL)
        return false;
    /* a list whose items are null is empty; anything else is an object */
    document->has_value = !type_is_list(&document->type);
    document->item = document->type;
    document->extent = (struct slice){begin, (size_t)(json->at - begin)};
    return true;
}

/* The next item of the list, or the end of the items. */
static bool read_item(struct pull *json, struct arena *arena, struct document *document)
{
    struct slice key;

    document->has_value = false;
    document->item = (struct type){0};
    if (!pull_item(json)) {
        if (json->problem != NULL)
            return false;
        document->depth = 1;
        return true;
    }
    const char *begin = json_text_space(json->at, json->end);
    if (!pull_object(json))
        return pull_problem(json, "expected an object");
    while (pull_key(json, &key))
        if (!read_member(json, arena, key, &document->item))
            return false;
    if (json->problem != NULL)
        return false;
    document->has_value = true;
    document->is_first = false;
    document->extent = (struct slice){begin, (size_t)(json->at - begin)};
    return true;
}

/* What stands behind the items, up to the end of the document. */
static bool finish_document(struct pull *json, struct arena *arena, struct document *document)
{
    struct slice key;

    document->has_value = false;
    while (pull_key(json, &key)) {
        if (slice_equal(key, SLICE("items")))
            return pull_problem(json, "this key appears twice");
        if (!read_member(json, arena, key, &document->type))
            return false;
    }
    document->depth = 0;
    return json->problem == NULL;
}

/* Runs a step on the window, again after each time that the window ended inside the piece. */
static int run_step(struct reading *reading, struct document *document, struct error *err)
{
    static step *const steps[] = {start_document, finish_document, read_item};
    struct input *input = reading->input;
    struct pull json;

    for (;;) {
        struct document attempt = *document;
        arena_reset(&reading->arena);
        pull_init(&json, input_slice(input));
        json.depth = document->depth;
        json.is_first = document->depth == 2 && document->is_first;
        if (steps[document->depth](&json, &reading->arena, &attempt)) {
            *document = attempt;
            break;
        }
        int rc = json.is_truncated ? reading_fill(reading, err) : 0;
        if (rc < 0)
            return rc;
        if (rc == 0)
            return pull_fail(&json, input->path, input->place, err);
    }
    int rc = 0;
    if (document->has_value) {
        struct type type = type_of_item(&document->item, &document->type);
        rc = reading_take(reading, &type, document->extent,
                          place_of(json.start, document->extent.ptr, input->place), true, err);
    }
    input_consume(input, (size_t)(json.at - json.start));
    return rc;
}

/* Whether there is anything but white space left to read. */
static int has_more(struct reading *reading, struct error *err)
{
    for (;;) {
        struct slice left = input_slice(reading->input);
        const char *first = json_text_space(left.ptr, left.ptr + left.len);
        input_consume(reading->input, (size_t)(first - left.ptr));
        if (first != left.ptr + left.len)
            return 1;
        int rc = reading_fill(reading, err);
        if (rc <= 0)
            return rc;
    }
}

int source_read_json(struct reading *reading, struct error *err)
{
    struct document document = {0};
    int rc;

    while ((rc = has_more(reading, err)) > 0) {
        do
            rc = run_step(reading, &document, err);
        while (rc == 0 && document.depth != 0);
        if (rc < 0)
            return rc;
    }
    return rc;
}
