/*
 * audit_input: what `claimguard audit` reads: files, or a live cluster. Both show their progress if
 * stderr is a terminal.
 *
 * Threads: one.
 */
#ifndef EXTENDER_CLI_AUDIT_INPUT_H
#define EXTENDER_CLI_AUDIT_INPUT_H

#include "extender/audit/audit_report.h"
#include "extender/cli/commands.h"

struct audit_input {
    struct inventory *inventory;
    struct audit_report *report; /* counts the objects, and gets the kinds that are not known */
    size_t left_out;             /* objects of a live cluster that could not be decoded */
};

/* Reads the snapshot and the operands. Errors: as source_read; ERROR_INVALID: no object. */
int audit_read_files(struct audit_input *input, const struct arguments *arguments,
                     struct error *err);

/* Reads a live cluster; with --namespace, only the objects of that namespace, and those without
 * one. A kind that these credentials may not list is a gap. Errors: as inquiry_read. */
int audit_read_live(struct audit_input *input, const struct arguments *arguments,
                    struct error *err);

#endif
