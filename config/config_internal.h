/*
 * The keys of the configuration file, as tables. config_options.c has them, and prints by them;
 * config.c reads by them, and config_files.c merges files; config_check.c checks the rest. Only
 * these files include this.
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
    OPTION_SECTION,  /* its members' offsets begin at its own */
    OPTION_ENTRIES,  /* struct defer_entry *, followed by a size_t with their count */
};

struct option {
    const char *key;
    enum option_type type;
    size_t offset;                /* in struct config, struct defer_entry or struct tls_files */
    const char *const *words;     /* ends with NULL */
    const struct option *members; /* ends with a NULL key */
    const char *preset;           /* the default, as a file has it; NULL: empty, false, no items */
    int64_t least, most;          /* values of a quantity; most is also the limit of items */
};

/* The top-level keys of the file; ends with a NULL key. */
extern const struct option file_options[];

/* NULL: no option has that key. */
const struct option *option_find(const struct option *options, struct slice key);

/* Fails because the key of the node is none of the options. */
int option_unknown(const struct option *options, const struct yaml_node *node, struct error *err);

/* Checks apiVersion and kind of the file whose root this is. */
int config_check_type(const struct yaml_node *root, struct error *err);

/*
 * Reads the file, the files *.yaml of the folder in the order of their names, or the texts, as one
 * tree. A value that two of them set is an error: none silently takes the place of another.
 * Ownership: the tree is in the arena, which has to be empty before.
 * Errors: as yaml_load; ERROR_INVALID with FILE:LINE:COL for what cannot be merged.
 */
int config_load_tree(struct yaml_node **out, const struct config_source *from, struct arena *arena,
                     struct error *err);

/* Checks values that depend on each other. root: of the tree of which the configuration is made.
 * Errors: ERROR_INVALID with FILE:LINE:COL. */
int config_check(const struct yaml_node *root, const struct config *config, struct error *err);

#endif
