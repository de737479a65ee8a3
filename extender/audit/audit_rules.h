/*
 * audit_rules: the rules of `claimguard audit`. From this table come --explain, the rules in SARIF,
 * and docs/audit.md.
 *
 * Threads: any.
 */
#ifndef EXTENDER_AUDIT_AUDIT_RULES_H
#define EXTENDER_AUDIT_AUDIT_RULES_H

#include "config/base/buf.h"

enum audit_level { LEVEL_NOTE, LEVEL_WARNING, LEVEL_ERROR };

/* In the order of their codes. */
enum audit_rule_index {
    RULE_BAD_IGNORE,         /* CG001 */
    RULE_SHARED_POD_CLAIM,   /* CG101 */
    RULE_POD_CLAIM_ROLLOUT,  /* CG102 */
    RULE_NODE_CLAIM_ROLLOUT, /* CG103 */
    RULE_POD_CLAIM_REPLICAS, /* CG104 */
    RULE_NODE_CLAIM_NODES,   /* CG105 */
    RULE_CRON_JOB_OVERLAP,   /* CG106 */
    RULE_NO_CSI_DRIVER,      /* CG201 */
    RULE_NOT_EPHEMERAL,      /* CG202 */
    RULE_DRIVER_NOT_ON_NODE, /* CG203 */
    RULE_CLASS_MISSING,      /* CG301 */
    RULE_CLASS_OTHER_DRIVER, /* CG302 */
    RULE_CLASS_INFEASIBLE,   /* CG303 */
    RULE_CLASS_NOT_APPLIED,  /* CG304 */
    RULE_CLASS_DELETING,     /* CG305 */
    RULE_PAST_SCHEDULER,     /* CG401 */
    RULE_NO_MARK,            /* CG402 */
    RULE_COUNT
};

/* Texts are Markdown with lines of at most 100 columns. */
struct audit_rule {
    const char *code;       /* never used for another rule */
    enum audit_level level; /* the highest one of its findings */
    const char *title;      /* one line without a period */
    const char *what;       /* when it fires, and when it does not */
    const char *why;
    const char *mend;
    const char *link; /* a page of Kubernetes about it */
};

extern const struct audit_rule audit_rules[RULE_COUNT];

/* The rule of that code, in capital or small letters; NULL: there is none. */
const struct audit_rule *audit_rule_find(struct slice code);

/* "note", "warning", "error": as in SARIF. */
const char *audit_level_text(enum audit_level level);

/* Appends a rule's page in Markdown; or a table of all rules, and their pages. */
void audit_rule_put(const struct audit_rule *rule, struct buf *out);
void audit_rules_put(struct buf *out);

#endif
