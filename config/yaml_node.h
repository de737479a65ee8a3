/*
 * yaml_node: a small YAML document as a tree. Each value keeps its line and column, so that an
 * error names its place in a file that a person wrote. Duplicate keys, merge keys (<<) and aliases
 * are refused. YAML_FILE_BYTES_MAX, YAML_DEPTH_MAX and the arena bound what a file can take.
 * Snapshots, which can be large, are read by cache/snapshot.
 */
#ifndef CONFIG_YAML_NODE_H
#define CONFIG_YAML_NODE_H

#include <stdint.h>

#include "config/base/arena.h"
#include "config/base/error.h"

enum {
    YAML_FILE_BYTES_MAX = 1024 * 1024,
    YAML_DEPTH_MAX = 32,
};

enum yaml_type { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
    enum yaml_type type;
    bool is_quoted;   /* a scalar that is a string, even if it looks like a number or a boolean */
    const char *path; /* of its file; the caller of yaml_load owns it */
    struct place at;
    struct slice key;        /* in a mapping; an item of a sequence has that of the sequence */
    struct place key_at;     /* line 0: it is no value of a mapping */
    struct slice text;       /* of a scalar */
    struct yaml_node *first; /* of a sequence's items or a mapping's values */
    struct yaml_node *next;  /* item or value of the same parent */
};

/*
 * Reads the file, which has exactly one document.
 * Ownership: the tree is in the arena.
 * Errors: ERROR_INVALID with FILE:LINE:COL, ERROR_SYSTEM, ERROR_TOO_BIG, ERROR_NO_MEMORY.
 */
int yaml_load(struct yaml_node **out, const char *path, struct arena *arena, struct error *err);

/* The same of a text. path: for messages, and of the nodes; borrowed. */
int yaml_load_text(struct yaml_node **out, const char *path, struct slice text, struct arena *arena,
                   struct error *err);

/* The value of a key; NULL: the mapping does not have it, or is not a mapping. */
const struct yaml_node *yaml_value(const struct yaml_node *mapping, const char *key);

/* The first item of a list; NULL: it has none, or is no list, or NULL. */
const struct yaml_node *yaml_items(const struct yaml_node *list);

/* Whether there is no value: no node, or null in any of YAML's forms, without quotes. */
bool yaml_is_null(const struct yaml_node *node);

/* Sets ERROR_INVALID with "FILE:LINE:COL: ...". */
int yaml_fail_at(struct error *err, const char *path, struct place at, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* The same, with the place of a node's value, or of its key. */
#define yaml_fail(err, node, ...)     yaml_fail_at((err), (node)->path, (node)->at, __VA_ARGS__)
#define yaml_fail_key(err, node, ...) yaml_fail_at((err), (node)->path, (node)->key_at, __VA_ARGS__)

#endif
