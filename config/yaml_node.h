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

/* A place in a file, counted from 1. */
struct yaml_mark {
    size_t line, column;
};

struct yaml_node {
    enum yaml_type type;
    bool is_quoted;   /* a scalar that is a string, even if it looks like a number or a boolean */
    const char *path; /* of its file; borrowed from the caller of yaml_load */
    struct yaml_mark at;
    struct slice key; /* in a mapping */
    struct yaml_mark key_at;
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

/* Sets ERROR_INVALID with "FILE:LINE:COL: ...", the place of the value or of its key. FILE is the
 * node's own path, or `path` if it has none. */
int yaml_fail(struct error *err, const char *path, const struct yaml_node *node, const char *format,
              ...) PRINTF_LIKE(4, 5);
int yaml_fail_key(struct error *err, const char *path, const struct yaml_node *node,
                  const char *format, ...) PRINTF_LIKE(4, 5);

#endif
