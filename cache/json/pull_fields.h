/*
 * pull_fields: reads a JSON object into a struct as a table says, so that what claimguard keeps of
 * a Kubernetes object is a list to read, not code.
 *
 *     struct example {
 *         struct slice name, phase;
 *     } pod;
 *     static const struct pull_field metadata_fields[] = {
 *         {"name", PULL_STRING, offsetof(struct example, name)},
 *     };
 *     static const struct pull_field pod_fields[] = {
 *         {"metadata", PULL_OBJECT, 0, PULL_MEMBERS(metadata_fields)},
 *         {"phase", PULL_STRING, offsetof(struct example, phase)},
 *     };
 *     pull_fields(json, PULL_CASE_EXACT, pod_fields, PULL_FIELD_COUNT(pod_fields), arena, &pod);
 *
 * Keys that the table does not name are passed over (and checked). null leaves a field as it was,
 * as in Go. A key of the table that appears twice is an error: nobody who means well sends one, and
 * two readers would disagree on which counts.
 */
#ifndef CACHE_JSON_PULL_FIELDS_H
#define CACHE_JSON_PULL_FIELDS_H

#include "cache/json/pull.h"
#include "config/base/buf.h"

enum pull_field_type {
    PULL_STRING,   /* struct slice */
    PULL_INTEGER,  /* int64_t */
    PULL_BOOLEAN,  /* bool */
    PULL_PRESENCE, /* bool: true when the value is not null */
    PULL_RAW,      /* struct slice: the value's extent; {NULL, 0} for null */
    PULL_OBJECT,   /* `members`, into the same struct */
    PULL_READ,     /* `read`, called at the value, with the address at `offset`; its `members`, if
                      it has any, say what of the value (an object, or an array of them) counts */
};

struct pull_field {
    const char *key;
    enum pull_field_type type;
    size_t offset;
    const struct pull_field *members;
    unsigned count;
    bool (*read)(struct pull *json, struct arena *arena, void *field);
};

#define PULL_FIELD_COUNT(fields) (sizeof(fields) / sizeof *(fields))
#define PULL_MEMBERS(fields)     .members = (fields), .count = sizeof(fields) / sizeof *(fields)

enum { PULL_FIELDS_MAX = 32 }; /* in one table */

/* How keys are matched: as Kubernetes objects spell them, or as Go would in the extender protocol.
 */
enum pull_case { PULL_CASE_EXACT, PULL_CASE_FOLD };

/* The next value: an object, or null, which leaves *out as it is. False at a problem. */
bool pull_fields(struct pull *json, enum pull_case match, const struct pull_field *fields,
                 size_t count, struct arena *arena, void *out);

/*
 * The next value: an array, each item of which is read by pull_fields into an element of `size`
 * bytes, behind the *item_count that *items has already. null is an empty array. Ownership: *items
 * lies in the arena.
 */
bool pull_field_array(struct pull *json, enum pull_case match, const struct pull_field *fields,
                      size_t count, size_t size, struct arena *arena, void **items,
                      size_t *item_count);

/*
 * The next value, which is an object: put into out as JSON, but only what the table names; of
 * PULL_PRESENCE, that it is there; an object of which nothing is named is left out. So what is kept
 * and what is captured cannot differ.
 */
bool pull_project(struct pull *json, const struct pull_field *fields, size_t count,
                  struct buf *out);

#endif
