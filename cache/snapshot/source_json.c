/*
 * JSON documents, one after the other, through a window over the file.
 */
#include "cache/json/json_documents.h"
#include "cache/json/json_text.h"
#include "cache/snapshot/source_internal.h"

/* Runs a step on the window; repeats it with more bytes if the window ended inside the piece. */
static int run_step(struct reading *reading, struct document *document, struct error *err)
{
    struct input *input = reading->input;
    struct pull json;

    for (;;) {
        arena_reset(&reading->arena);
        if (document_step(document, &json, input_slice(input), &reading->arena))
            break;
        int rc = json.is_truncated ? reading_fill(reading, err) : 0;
        if (rc < 0)
            return rc;
        if (rc == 0)
            return pull_fail(&json, input->path, input->place, err);
    }
    int rc = 0;
    if (document->has_value) {
        struct type type = type_of_item(&document->item, &document->type);
        struct source_text text = {.type = &type,
                                   .text = document->extent,
                                   .place =
                                       place_of(json.start, document->extent.ptr, input->place),
                                   .is_in_file = input->is_file,
                                   .offset = input_offset(input, document->extent.ptr)};
        rc = reading_take(reading, &text, err);
    }
    input_consume(input, (size_t)(json.at - json.start));
    return rc;
}

/* Whether more than white space is left. */
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
