/*
 * json_documents: reads Kubernetes objects out of a stream of JSON documents that need not be in
 * memory as a whole: a file through a window (source.c), or an answer of the API server as it
 * arrives (reflector_answers.c). A document is a list, whose items are read one by one, or one
 * object.
 *
 * Each step reads one piece from the start of the window. If the window ends inside the piece
 * (json->is_truncated), the step fails and is repeated with more bytes. Threads: one at a time.
 *
 *     struct document document = {.depth = 0};
 *     struct slice window = text;
 *     struct pull json;
 *     while (document_step(&document, &json, window, arena)) {
 *         struct type type = type_of_item(&document.item, &document.type);
 *         if (document.has_value)
 *             printf("%s: %.*s\n", type.kind, SLICE_ARG(document.extent));
 *         window.ptr = json.at;
 *         window.len -= (size_t)(json.at - json.start);
 *     }
 */
#ifndef CACHE_JSON_JSON_DOCUMENTS_H
#define CACHE_JSON_JSON_DOCUMENTS_H

#include "cache/json/pull.h"

/* apiVersion and kind of an object or of a list, copied because the window moves. Longer values
 * belong to no kind that is kept. */
struct type {
    char api_version[64];
    char kind[64];
};

/* Sets one of the two fields; a value that is too long becomes "?". */
void type_put(char field[64], struct slice value);

/* Whether its objects are its items: "List", "PodList", ... */
bool type_is_list(const struct type *type);

/* The type of an item: its own, or that of its list without "List". */
struct type type_of_item(const struct type *item, const struct type *list);

/* metadata of a list, as far as it was read. */
struct list_meta {
    char version[32];          /* resourceVersion */
    char continue_token[4096]; /* empty: this is the last page */
};

struct document {
    struct type type;       /* as far as it was read */
    struct type item;       /* of the item or the object that was just read */
    unsigned depth;         /* 0: before the document; 1: in the object; 2: among a list's items */
    bool is_first;          /* nothing was read yet at this depth */
    bool has_value;         /* the step found an item or an object */
    bool has_items;         /* `items` was seen; it may be null, as Go writes an empty list */
    struct slice extent;    /* of it, in the window */
    struct list_meta *meta; /* receives the list's metadata; NULL: ignored */
};

/* Skips the next value, which is an object; sets its type and its extent. */
bool document_object(struct pull *json, struct arena *arena, struct type *type,
                     struct slice *extent);

/* Reads the next piece of the window. False: json has the problem; the document is unchanged. */
bool document_step(struct document *document, struct pull *json, struct slice window,
                   struct arena *arena);

#endif
