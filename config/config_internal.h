/*
 * The keys of the configuration file, as tables (config_options.c). The reader (config.c) and the
 * printer (config_print.c) use them; config_files.c merges files by them; config_check.c checks the
 * rest. Only these files include this.
 */
#ifndef CONFIG_CONFIG_INTERNAL_H
#define CONFIG_CONFIG_INTERNAL_H

#include "config/config.h"

enum option_type {
    OPTION_STRING,
    OPTION_BOOLEAN,
    OPTION_BYTES,    /* int64_t */
    OPTION_DURATION, /* int64_t, milliseconds */
    OPTION_WORD,     /* int: index into words */
    OPTION_WORDS,    /* unsigned: a bit for each word */
    OPTION_STRINGS,  /* struct slice *, followed by a size_t with their count */
    OPTION_SECTION,  /* its members are in the same struct */
    OPTION_ENTRIES,  /* struct defer_entry *, followed by a size_t with their count */
};

struct option {
    const char *key;
    enum option_type type;
    size_t offset;                /* in struct config, or in struct defer_entry */
    const char *const *words;     /* ends with NULL */
    const struct option *members; /* ends with a NULL key */
    const char *preset;           /* the default, as a file has it; NULL: empty, false, no items */
    int64_t least, most;          /* values of a quantity; most is also the limit of items */
};

/* The top-level keys of the file; ends with a NULL key. */
extern const struct option file_options[];

/* NULL: no option has that key. */
const struct option *option_find(const struct option *options, struct slice key);

/* Fails because the key of the node, in the file `path`, is none of the options. */
int option_unknown(const struct option *options, const char *path, const struct yaml_node *node,
                   struct error *err);

/* Checks apiVersion and kind of the file whose root this is. */
int config_check_type(const char *path, const struct yaml_node *root, struct error *err);

/* Merges texts into one tree, as config_load_tree does files. */
int config_merge_texts(struct yaml_node **out, const char *name, const struct config_text *texts,
                       size_t count, struct arena *arena, struct error *err);

/* Checks values that depend on each other. root: of the file at path.
 * Errors: ERROR_INVALID with FILE:LINE:COL. */
int config_check(const char *path, const struct yaml_node *root, const struct config *config,
                 struct error *err);

#endif
