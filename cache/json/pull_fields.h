/*
 * pull_fields: reads a JSON object into a struct, by a table of fields. So the fields that
 * claimguard keeps of a Kubernetes object are a list, not code.
 *
 *     struct example {
 *         struct slice name, phase;
 *     } pod;
 *     static const struct pull_field metadata_fields[] = {
 *         PULL_FIELD("name", PULL_NAME, example, name),
 *     };
 *     static const struct pull_field pod_fields[] = {
 *         PULL_NESTED("metadata", metadata_fields),
 *         PULL_FIELD("phase", PULL_NAME, example, phase),
 *     };
 *     pull_fields(json, PULL_CASE_EXACT, pod_fields, PULL_FIELD_COUNT(pod_fields), arena, &pod);
 *
 * Keys that the table does not name are skipped, but their syntax is checked. null leaves a field
 * unchanged, as in Go. A key of the table that appears twice is an error, because two readers could
 * disagree on which one counts.
 *
 * Threads: as pull.
 */
#ifndef CACHE_JSON_PULL_FIELDS_H
#define CACHE_JSON_PULL_FIELDS_H

#include "cache/json/pull.h"
#include "config/base/buf.h"

enum pull_field_type {
    PULL_STRING,   /* struct slice: a text of any length, which nobody keeps */
    PULL_NAME,     /* struct slice, of JSON_NAME_BYTES_MAX at most: pull_name */
    PULL_BOUNDED,  /* the same of any characters: who reads it refuses those that it may not have */
    PULL_INTEGER,  /* int64_t */
    PULL_BOOLEAN,  /* bool */
    PULL_PRESENCE, /* bool: true when the value is not null */
    PULL_RAW,      /* struct slice: the value's extent; {NULL, 0} for null */
    PULL_OBJECT,   /* `members`, into the same struct */
    PULL_ITEMS,    /* struct pull_items: an array of objects with `members`, into structs of
                      `size`, behind those that are there */
    PULL_EACH,     /* an array of objects with `members`, all into the same struct: the last text
                      counts, and one presence */
    PULL_READ,     /* `read` is called at the value, with the address at `offset`; `members`, if
                      any, are the fields that it reads of the object, or of an array's objects */
};

struct pull_field {
    const char *key;
    enum pull_field_type type;
    size_t offset;
    const struct pull_field *members;
    unsigned count, size;
    bool (*read)(struct pull *json, struct arena *arena, void *field);
};

/*
 * As pull_string, for names and other words that are kept: nothing that a decision compares is
 * longer than JSON_NAME_BYTES_MAX, or has a space or a control character. The API server stores
 * other texts in many a field (a claim's volumeName, a pod's claimName). Such a text is a name of
 * nothing, must not fill the memory, and must not look like a line of ours where it is printed. In
 * its place, *out becomes "text-of-N-bytes/HASH": two that differ stay different, people see what
 * it is, and no request is made with it (object_reference_is_possible).
 */
bool pull_name(struct pull *json, struct arena *arena, struct slice *out);

#define PULL_FIELD_COUNT(fields) (sizeof(fields) / sizeof(struct pull_field))
#define PULL_MEMBERS(fields)     .members = (fields), .count = PULL_FIELD_COUNT(fields)

/* Rows of a table: a member of the struct; an object whose members are the fields, or one with
 * these rows (outside of functions; a macro doubles them with each level: two at most); an array of
 * objects whose members are the fields; an array of objects that have the fields of an item, or
 * these rows; a value that a function reads into a member, and one of which it reads the fields. */
#define PULL_FIELD(key_, type_, struct_, member_) \
    { \
        .key = (key_), .type = (type_), .offset = offsetof(struct struct_, member_) \
    }
#define PULL_NESTED(key_, fields_) \
    { \
        .key = (key_), .type = PULL_OBJECT, PULL_MEMBERS(fields_) \
    }
#define PULL_IN(key_, ...) \
    { \
        .key = (key_), .type = PULL_OBJECT, \
        PULL_MEMBERS(((const struct pull_field[]){__VA_ARGS__})) \
    }
#define PULL_EACH_OF(key_, fields_) \
    { \
        .key = (key_), .type = PULL_EACH, PULL_MEMBERS(fields_) \
    }
#define PULL_ITEMS_OF(key_, struct_, member_, item_, fields_) \
    { \
        .key = (key_), .type = PULL_ITEMS, .offset = offsetof(struct struct_, member_), \
        PULL_MEMBERS(fields_), .size = sizeof(struct item_) \
    }
#define PULL_ITEMS_IN(key_, struct_, member_, item_, ...) \
    { \
        .key = (key_), .type = PULL_ITEMS, .offset = offsetof(struct struct_, member_), \
        .size = sizeof(struct item_), PULL_MEMBERS(((const struct pull_field[]){__VA_ARGS__})) \
    }
#define PULL_READER(key_, struct_, member_, read_) \
    { \
        .key = (key_), .type = PULL_READ, .offset = offsetof(struct struct_, member_), \
        .read = (read_) \
    }
#define PULL_READER_OF(key_, struct_, member_, read_, fields_) \
    { \
        .key = (key_), .type = PULL_READ, .offset = offsetof(struct struct_, member_), \
        .read = (read_), PULL_MEMBERS(fields_) \
    }

enum { PULL_FIELDS_MAX = 32 }; /* in one table */

/* How keys are compared: exactly, as in Kubernetes objects; or ignoring case, as Go reads the
 * extender protocol. */
enum pull_case { PULL_CASE_EXACT, PULL_CASE_FOLD };

/* Reads the next value: an object, or null, which leaves *out unchanged. False: a problem. */
bool pull_fields(struct pull *json, enum pull_case match, const struct pull_field *fields,
                 size_t count, struct arena *arena, void *out);

/* The same of a text that is one object, with nothing behind it. */
bool pull_fields_of(struct slice text, const struct pull_field *fields, size_t count,
                    struct arena *arena, void *out);

/* An array of structs. Ownership: items lies in the arena. */
struct pull_items {
    size_t size; /* of an item */
    void *items;
    size_t count;
};

/* Reads the next value: an array. Each item is read by pull_fields and added behind the items that
 * *out has. null is an empty array. False: a problem. */
bool pull_field_array(struct pull *json, enum pull_case match, const struct pull_field *fields,
                      size_t count, struct arena *arena, struct pull_items *out);

/* A table as a value; {NULL, 0}: it has no fields. */
struct pull_table {
    const struct pull_field *fields;
    size_t count;
};

/* The tables of several readers of one object. */
enum { PULL_READERS = 3 };
struct pull_tables {
    struct pull_table readers[PULL_READERS];
};

/*
 * Writes the next value, which is an object, to out as JSON, with only the fields that one of the
 * tables names. A PULL_PRESENCE field is written as {}; an object without a named field is left
 * out. So a snapshot contains exactly what is read.
 */
bool pull_project(struct pull *json, const struct pull_tables *tables, struct buf *out);

#endif
