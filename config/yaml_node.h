/*
 * yaml_node: a small YAML document as a tree that remembers where each value stands, for files that
 * people write and must be told "FILE:LINE:COL" about. Duplicate keys, merge keys (<<) and aliases
 * are refused; depth, size and count of nodes are bounded. Snapshots, which can be large, do not
 * come through here.
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
    bool is_quoted;      /* a scalar that is a string, whatever it looks like */
    size_t line, column; /* from 1 */
    struct slice key;    /* in a mapping */
    size_t key_line, key_column;
    struct slice text;       /* of a scalar */
    struct yaml_node *first; /* of a sequence's items or a mapping's values */
    struct yaml_node *next;
};

/*
 * The one document of the file.
 * Ownership: the tree lies in the arena.
 * Errors: ERROR_INVALID with FILE:LINE:COL, ERROR_SYSTEM, ERROR_TOO_BIG.
 */
int yaml_load(struct yaml_node **out, const char *path, struct arena *arena, struct error *err);

/* ERROR_INVALID "FILE:LINE:COL: ..." for a value, or for its key. */
int yaml_fail(struct error *err, const char *path, const struct yaml_node *node, const char *format,
              ...) PRINTF_LIKE(4, 5);
int yaml_fail_key(struct error *err, const char *path, const struct yaml_node *node,
                  const char *format, ...) PRINTF_LIKE(4, 5);

#endif
