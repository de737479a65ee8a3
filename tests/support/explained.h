/*
 * explained: what the dry run says of a pod, as JSON.
 *
 * Ownership: the caller frees the value. NULL: no memory.
 */
#ifndef TESTS_SUPPORT_EXPLAINED_H
#define TESTS_SUPPORT_EXPLAINED_H

#include <jansson.h>

#include "extender/report/explain.h"

static inline json_t *explained_json(const struct view *view, const struct pod_object *pod,
                                     const struct explained_nodes *nodes, struct arena *arena)
{
    struct explained explained;
    struct fields out;
    struct buf text;
    json_t *value = NULL;

    buf_init(&text, 1 << 20);
    fields_begin_compact(&out, &text);
    bool has_memory = explain_pod(&explained, view, pod, nodes, arena);
    if (has_memory)
        explained_put(&out, &explained);
    if (fields_end(&out) && has_memory)
        value = json_loadb(text.bytes, text.len, 0, NULL);
    buf_dispose(&text);
    return value;
}

#endif
