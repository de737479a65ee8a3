/*
 * every_field: objects with all fields that decoders read, made from the decoders' tables. So a
 * rule is tested over fields that nobody had in mind when the test was written.
 *
 * Ownership: the caller's. Aborts if there is a field for which no value is known here.
 */
#ifndef SUPPORT_EVERY_FIELD_H
#define SUPPORT_EVERY_FIELD_H

#include <jansson.h>

#include "cache/json/pull_fields.h"

/* Each text, and each key that a user chooses, is `text`; a list has one entry. */
json_t *every_field(struct pull_table table, const char *text);

/* Adds what another decoder reads: of objects, and of the first objects of arrays. */
void every_field_merge(json_t *to, json_t *from);

#endif
