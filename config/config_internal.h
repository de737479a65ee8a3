/*
 * The keys of the configuration file: one table, for the reader (config.c) and the printer
 * (config_print.c), and what no table can say (config_check.c). Nobody else includes this.
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
    OPTION_STRINGS,  /* struct slice *, and its count behind it */
    OPTION_SECTION,  /* members, in the same struct */
    OPTION_ENTRIES,  /* struct defer_entry *, and its count behind it; members of each */
};

struct option {
    const char *key;
    enum option_type type;
    size_t offset;
    const char *const *words;
    const struct option *members; /* ends with a NULL key */
    const char *preset;           /* the default, as in a file; NULL: empty, false, none */
    int64_t least, most;          /* of OPTION_BYTES and OPTION_DURATION; most: items */
};

/* The file's own keys; ends with a NULL key. */
extern const struct option file_options[];

/* Whether the values of a file that was read go together. root: of that file. */
struct yaml_node;
int config_check(const char *path, const struct yaml_node *root, const struct config *config,
                 struct error *err);

#endif
