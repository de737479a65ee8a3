/*
 * rules: what a command checks (`claimguard audit`, `claimguard doctor`): a table with a code, a
 * level and texts for each rule. From it come the findings' titles, `--explain`, and the pages of
 * docs/.
 *
 *     static const struct rule rules[] = {
 *         {"CG510", LEVEL_ERROR, "the extender is ignorable", NULL, "why", "mend", NULL},
 *         {.code = NULL},
 *     };
 *     return rules_explain(rules, "cg510", err);
 *
 * Threads: any; rules_explain writes to stdout.
 */
#ifndef EXTENDER_REPORT_RULES_H
#define EXTENDER_REPORT_RULES_H

#include <stdio.h>

#include "config/base/buf.h"
#include "config/base/error.h"

/* LEVEL_NEVER: of no finding; for --fail-on. */
enum level { LEVEL_NOTE, LEVEL_WARNING, LEVEL_ERROR, LEVEL_NEVER };

/* Texts are Markdown without headings, with lines of at most 100 columns. */
struct rule {
    const char *code;  /* "CG510": never used for another rule, also if this one goes */
    enum level level;  /* the highest one of its findings */
    const char *title; /* what is wrong, in one line without a period */
    const char *what;  /* when it fires; NULL: the title says so */
    const char *why;   /* what breaks */
    const char *mend;  /* what to change */
    const char *link;  /* to the documents of Kubernetes; NULL: none */
};

/* A table of rules is in the order of their codes, and ends with a rule whose code is NULL. */

/* In capital or small letters. NULL: there is no rule of that code. */
const struct rule *rule_find(const struct rule *rules, struct slice code);

/* "note", "warning", "error"; of LEVEL_NEVER "never". */
const char *level_text(enum level level);

/* Prints "1 error, 0 warnings, 2 notes". counts: of each level below LEVEL_NEVER. */
void level_print_counts(const size_t *counts, FILE *file);

/* Reads such a word. False for any other. */
bool level_parse(enum level *out, const char *word);

/* Appends the rule's page; or a table of all rules, and their pages. */
void rule_put(const struct rule *rule, struct buf *out);
void rules_put(const struct rule *rules, struct buf *out);

/* Prints the page of that rule, or what rules_put appends for "all".
 * Errors: ERROR_NOT_FOUND; ERROR_SYSTEM: it could not be written. */
int rules_explain(const struct rule *rules, const char *code, struct error *err);

#endif
