/* yaml_json_internal: what yaml_json.c and yaml_alias.c share. Only they include it. */
#ifndef CACHE_SNAPSHOT_YAML_JSON_INTERNAL_H
#define CACHE_SNAPSHOT_YAML_JSON_INTERNAL_H

#include "cache/snapshot/yaml_json.h"

/* The functions return NULL, or a problem (a static string). */

extern const char yaml_no_memory[];

uint64_t yaml_hash(struct slice text);

/* The value that starts next has this anchor, if its name is not NULL; the value that begins at
 * that offset of the output has ended. */
void yaml_anchor_begin(struct yaml_level *level, const yaml_char_t *name, size_t offset);
const char *yaml_anchor_end(struct yaml_json *writer, uint64_t name, size_t offset);

/* Writes the value of the anchor once more. */
const char *yaml_alias_put(struct yaml_json *writer, const yaml_char_t *name);

/* The value of `<<` has ended: takes it from the output. And its mapping ends: writes those of its
 * members whose keys the mapping does not have. */
const char *yaml_merge_take(struct yaml_json *writer, struct yaml_level *level);
const char *yaml_merge_put(struct yaml_json *writer, struct yaml_level *level);

/* Adds a mark for what is written next. Removes the marks from that offset on. */
const char *yaml_mark_put(struct yaml_json *writer, struct place place);
void yaml_marks_cut(struct yaml_json *writer, size_t offset);

/* Adds the hash of a key to those of the innermost mapping. */
const char *yaml_key_put(struct yaml_json *writer, uint64_t hash, struct place place);
int yaml_key_order(const void *a, const void *b);

#endif
