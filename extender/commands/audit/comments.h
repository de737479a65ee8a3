/*
 * comments: what a YAML file says outside of its texts: whether it has braces of a template, and
 * what "# claimguard:ignore CG103 reason" in a YAML file says, and of which line. That is
 * its own line; or, if it stands alone, the next line of its document, else the last one before.
 *
 *     struct comments comments;
 *     if (comments_read(&comments, "web.yaml", arena, err) == 0) {
 *         return comments_between(&comments, 3, 28, arena).len;
 *     }
 *
 * Ownership: all is in the arena. Threads: one.
 */
#ifndef EXTENDER_COMMANDS_AUDIT_COMMENTS_H
#define EXTENDER_COMMANDS_AUDIT_COMMENTS_H

#include "config/base/arena.h"
#include "config/base/error.h"

struct comment {
    size_t line;        /* of which it is; 0: not known yet */
    struct slice entry; /* as in the annotation: "CG103: reason" */
};

struct comments {
    struct comment *items;
    size_t count;
    bool has_braces; /* "{{" stands where no text is: the file is a template */
};

/* A file that cannot be read, is JSON, or is standard input ("-"), has none.
 * Errors: ERROR_NO_MEMORY. */
int comments_read(struct comments *out, const char *path, struct arena *arena, struct error *err);

/* The entries of these lines, each with a line break behind it. {NULL, 0}: no memory; empty: there
 * are none. */
struct slice comments_between(const struct comments *comments, size_t first, size_t last,
                              struct arena *arena);

#endif
