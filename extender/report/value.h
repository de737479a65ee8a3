/*
 * value: puts JSON values together. A value that could not be made is NULL, and whatever it is put
 * into becomes NULL as well, so the caller checks once.
 *
 * Ownership: functions steal the values that they are given. Threads: any.
 */
#ifndef EXTENDER_REPORT_VALUE_H
#define EXTENDER_REPORT_VALUE_H

#include <jansson.h>

#include "config/base/slice.h"

/* A JSON string: with U+FFFD for each byte that is not UTF-8. NULL: no memory. */
json_t *value_text(struct slice s);

/* Adds the value, which may be NULL, to the object: -1 when anything is missing. */
static inline int value_put(json_t *object, const char *key, json_t *value)
{
    if (object != NULL)
        return json_object_set_new(object, key, value);
    json_decref(value);
    return -1;
}

/* The value if rc says that it is whole; else NULL, and it is freed. */
static inline json_t *value_whole(json_t *value, int rc)
{
    if (rc == 0)
        return value;
    json_decref(value);
    return NULL;
}

/* The text of a member; "": there is none. */
static inline const char *value_string(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

#endif
