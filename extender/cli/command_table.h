/*
 * command_table: the commands and their options. The parser, the help, the completion and the man
 * pages are made from this table, so a new option is a new row.
 *
 * Threads: any; it is constant.
 */
#ifndef EXTENDER_CLI_COMMAND_TABLE_H
#define EXTENDER_CLI_COMMAND_TABLE_H

#include "extender/cli/commands.h"

enum { COMMAND_FLAGS_MAX = 24 };

enum flag_type { FLAG_TEXT, FLAG_SWITCH, FLAG_NAMES };

struct flag {
    const char *name;
    char letter; /* '\0': none */
    enum flag_type type;
    size_t offset;       /* in struct arguments; not for FLAG_NAMES */
    const char *metavar; /* NULL for a switch */
    const char *values;  /* words with blanks between them, or one of the below; NULL: any text */
    const char *help;
};

/* Values that are not a list of words. */
#define VALUES_FILES         "<file>"
#define VALUES_FOLDERS       "<folder>"
#define VALUES_CONTEXTS      "<context>" /* of the kubeconfig */
#define VALUES_PODS          "<pod>"     /* of the snapshot or the cluster */
#define VALUES_PODS_OR_FILES "<pod or file>"
#define VALUES_NAMESPACES    "<namespace>" /* of the claims and pods there */
#define VALUES_CLAIMS        "<claim>"
#define VALUES_NODES         "<node>"
#define VALUES_COMMANDS      "<command>"
#define VALUES_AUDIT_CODES   "<code>"
#define VALUES_AUDIT_RULES   "<rule of audit>" /* their codes, and "all" */
#define VALUES_DOCTOR_RULES  "<rule>"

struct command {
    const char *name, *synopsis, *summary;
    const char *details;      /* lines; those that begin with blanks are examples */
    const struct flag *flags; /* up to one without a name */
    const char *operand; /* its name: in brackets if it may be left out, with "..." at its end if it
                            may be repeated; NULL: it has none */
    const char *values;  /* of the operand, as above */
    int (*run)(const struct arguments *arguments);
};

/* Up to one without a name. */
extern const struct command command_table[];

/* NULL: there is none of that name. */
const struct command *command_find(const char *name);

#endif
