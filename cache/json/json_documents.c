#include "cache/json/json_documents.h"

#include "cache/json/json_text.h"
#include "cache/json/pull_fields.h"

/* Copies a text and adds NUL. False: it does not fit. */
static bool copy_text(char *out, size_t size, struct slice text)
{
    if (text.len >= size)
        return false;
    if (text.len != 0)
        memcpy(out, text.ptr, text.len);
    out[text.len] = '\0';
    return true;
}

void type_put(char field[64], struct slice value)
{
    if (!copy_text(field, 64, value))
        (void)copy_text(field, 64, SLICE("?"));
}

bool type_is_list(const struct type *type)
{
    return slice_ends_with(slice_of(type->kind), SLICE("List"));
}

struct type type_of_item(const struct type *item, const struct type *list)
{
    struct type type = *item;
    struct slice list_kind = slice_of(list->kind);

    if (type.kind[0] == '\0' && type_is_list(list))
        type_put(type.kind, (struct slice){list_kind.ptr, list_kind.len - 4});
    if (type.api_version[0] == '\0')
        type_put(type.api_version, slice_of(list->api_version));
    return type;
}

struct list_meta_object {
    struct slice version, continue_token;
};

static bool read_list_meta(struct pull *json, struct arena *arena, struct document *document)
{
    static const struct pull_field fields[] = {
        PULL_FIELD("resourceVersion", PULL_STRING, list_meta_object, version),
        PULL_FIELD("continue", PULL_STRING, list_meta_object, continue_token),
    };
    struct list_meta_object meta = {{NULL, 0}, {NULL, 0}};

    if (!pull_fields(json, PULL_CASE_EXACT, fields, PULL_FIELD_COUNT(fields), arena, &meta))
        return false;
    struct list_meta *out = document->meta;
    return (copy_text(out->version, sizeof out->version, meta.version) &&
            copy_text(out->continue_token, sizeof out->continue_token, meta.continue_token)) ||
           pull_problem(json, "metadata.resourceVersion or metadata.continue is too long");
}

typedef bool step(struct pull *json, struct arena *arena, struct document *document);

/* Reads one member of an object; stores kind and apiVersion. */
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

bool document_object(struct pull *json, struct arena *arena, struct type *type,
                     struct slice *extent)
{
    struct slice key;
    const char *begin = json_text_space(json->at, json->end);

    *type = (struct type){0};
    if (!pull_object(json))
        return pull_problem(json, "expected an object");
    while (pull_key(json, &key))
        if (!read_member(json, arena, key, type))
            return false;
    *extent = (struct slice){begin, (size_t)(json->at - begin)};
    return json->problem == NULL;
}

/* Reads from the start of the document to its items; or all of it, if it has none. */
static bool start_document(struct pull *json, struct arena *arena, struct document *document)
{
    struct slice key;
    const char *begin = json_text_space(json->at, json->end);

    document->type = (struct type){0};
    document->has_value = document->has_items = false;
    if (!pull_object(json))
        return pull_problem(json, "expected an object");
    while (pull_key(json, &key)) {
        document->has_items |= slice_equal(key, SLICE("items"));
        if (document->meta != NULL && slice_equal(key, SLICE("metadata"))) {
            if (!read_list_meta(json, arena, document))
                return false;
        } else if (!slice_equal(key, SLICE("items"))) {
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

/* Reads the next item of the list, or the end of the items. */
static bool read_item(struct pull *json, struct arena *arena, struct document *document)
{
    document->has_value = false;
    document->item = (struct type){0};
    if (!pull_item(json)) {
        if (json->problem != NULL)
            return false;
        document->depth = 1;
        return true;
    }
    document->has_value = document_object(json, arena, &document->item, &document->extent);
    document->is_first = false;
    return document->has_value;
}

/* Reads from the end of the items to the end of the document. */
static bool finish_document(struct pull *json, struct arena *arena, struct document *document)
{
    struct slice key;

    document->has_value = false;
    while (pull_key(json, &key)) {
        if (slice_equal(key, SLICE("items")))
            return pull_problem(json, "this key appears twice");
        bool is_meta = document->meta != NULL && slice_equal(key, SLICE("metadata"));
        if (is_meta ? !read_list_meta(json, arena, document)
                    : !read_member(json, arena, key, &document->type))
            return false;
    }
    document->depth = 0;
    return json->problem == NULL;
}

bool document_step(struct document *document, struct pull *json, struct slice window,
                   struct arena *arena)
{
    static step *const steps[] = {start_document, finish_document, read_item};
    struct document attempt = *document;

    pull_init(json, window);
    json->depth = document->depth;
    json->is_first = document->depth == 2 && document->is_first;
    if (!steps[document->depth](json, arena, &attempt))
        return false;
    *document = attempt;
    return true;
}
