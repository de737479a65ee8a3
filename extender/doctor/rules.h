/*
 * rules: the rules of `claimguard doctor`. One table (rules.c) has their texts, for the findings,
 * `--explain` and docs/doctor.md.
 *
 * Threads: any.
 */
#ifndef EXTENDER_DOCTOR_RULES_H
#define EXTENDER_DOCTOR_RULES_H

#include "config/base/buf.h"

enum finding_level { FINDING_NOTE, FINDING_WARNING, FINDING_ERROR };

/* Texts are Markdown without headings, with lines of at most 100 columns. */
struct doctor_rule {
    const char *code;         /* "CG501": never used for another rule, also if this one goes */
    enum finding_level level; /* the highest one of its findings */
    const char *title;        /* what is wrong, in one line without a period */
    const char *why;          /* what breaks */
    const char *mend;         /* what to change */
};

/* In the order of their codes; ends with a rule whose code is NULL. */
extern const struct doctor_rule doctor_rules[];

/* NULL: there is no rule of that code, in capital or small letters. */
const struct doctor_rule *doctor_rule_find(const char *code);

/* "note", "warning" or "error". */
const char *finding_level_text(enum finding_level level);

/* Appends the rule's page; or all pages, with an empty line between two. */
void doctor_rule_put(const struct doctor_rule *rule, struct buf *out);
void doctor_rules_put(struct buf *out);

#endif
