/* objects_internal: what objects.c and objects_pod.c share. Only they include it. */
#ifndef CACHE_OBJECTS_OBJECTS_INTERNAL_H
#define CACHE_OBJECTS_OBJECTS_INTERNAL_H

#include "cache/json/pull_fields.h"
#include "cache/objects/objects.h"

/* Rows of a table of fields. */
#define FIELD(key_, type_, struct_, member_) \
    { \
        .key = (key_), .type = (type_), .offset = offsetof(struct struct_, member_) \
    }
#define OBJECT(key_, fields_) \
    { \
        .key = (key_), .type = PULL_OBJECT, .members = (fields_), \
        .count = sizeof(fields_) / sizeof *(fields_) \
    }
#define READ(key_, struct_, member_, read_) \
    { \
        .key = (key_), .type = PULL_READ, .offset = offsetof(struct struct_, member_), \
        .read = (read_) \
    }
#define READ_MEMBERS(key_, struct_, member_, read_, fields_) \
    { \
        .key = (key_), .type = PULL_READ, .offset = offsetof(struct struct_, member_), \
        .read = (read_), .members = (fields_), .count = sizeof(fields_) / sizeof *(fields_) \
    }
#define ATTRIBUTE(key_, index_) \
    { \
        .key = (key_), .type = PULL_STRING, \
        .offset = offsetof(struct resource_object, attributes[index_]) \
    }

/* The fields that are read of a Pod. */
enum { POD_FIELDS = 3 };
extern const struct pull_field pod_fields[POD_FIELDS];

static inline void default_namespace(struct meta *meta)
{
    if (meta->ns.len == 0)
        meta->ns = SLICE("default");
}

#endif
