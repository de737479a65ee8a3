/*
 * audit_rules: the rules of `claimguard audit`. From this table come --explain, the rules in SARIF,
 * and docs/audit.md.
 *
 * Threads: any.
 */
#ifndef EXTENDER_COMMANDS_AUDIT_AUDIT_RULES_H
#define EXTENDER_COMMANDS_AUDIT_AUDIT_RULES_H

#include "extender/report/findings.h"

/* In the order of their codes. Those about workloads are one range: CG102 to RULE_ROLLOUTS_LAST. */
enum audit_rule_index {
    RULE_BAD_IGNORE,         /* CG001 */
    RULE_SHARED_POD_CLAIM,   /* CG101 */
    RULE_POD_CLAIM_ROLLOUT,  /* CG102 */
    RULE_NODE_CLAIM_ROLLOUT, /* CG103 */
    RULE_POD_CLAIM_REPLICAS, /* CG104 */
    RULE_NODE_CLAIM_NODES,   /* CG105 */
    RULE_CRON_JOB_OVERLAP,   /* CG106 */
    RULE_ROLLOUTS_LAST = RULE_CRON_JOB_OVERLAP,
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

extern const struct rule audit_rules[RULE_COUNT + 1];

#endif
