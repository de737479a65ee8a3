/*
 * doctor_rules: the rules of `claimguard doctor`, for the findings, `--explain` and docs/doctor.md;
 * and how its findings say where something is.
 *
 * Threads: any.
 */
#ifndef EXTENDER_COMMANDS_DOCTOR_DOCTOR_RULES_H
#define EXTENDER_COMMANDS_DOCTOR_DOCTOR_RULES_H

#include "extender/report/findings.h"

struct yaml_node;

enum doctor_rule {
    /* a file of kube-scheduler */
    CG501,
    CG502,
    CG503,
    CG504,
    CG505,
    CG506,
    CG507,
    CG508,
    CG509,
    CG510,
    CG511,
    CG512,
    CG513,
    CG514,
    CG515,
    CG516,
    CG517,
    CG518,
    CG519,
    CG520,
    /* claimguard's own configuration, and what it has to agree with */
    CG601,
    CG602,
    CG603,
    CG604,
    CG605,
    CG606,
    CG607,
    CG608,
    CG609,
    CG610,
    CG611,
    CG612,
    CG613,
    CG614,
    CG615,
    /* the webhooks that call claimguard */
    CG701,
    CG702,
    CG703,
    CG704,
    CG705,
    CG706,
    CG707,
    CG708,
    CG709,
    /* marks, pods and their schedulers */
    CG801,
    CG802,
    CG803,
    CG804,
    CG805,
    CG806,
    CG807,
    CG808,
    /* what only a live cluster shows */
    CG901,
    CG902,
    CG903,
    CG904,
    CG905,
    CG906,
    CG907,
    DOCTOR_RULE_COUNT
};

extern const struct rule doctor_rules[DOCTOR_RULE_COUNT + 1]; /* see rules.h for its end */

/* Those of claimguard's Deployment and pods; those that need its configuration. */
#define RULES_OF_GUARD \
    (GAP_RULE(CG601) | GAP_RULES(CG607, CG608) | GAP_RULES(CG611, CG614) | GAP_RULE(CG806))
#define RULES_OF_CONFIG (GAP_RULES(CG601, CG607) | GAP_RULES(CG609, CG610) | GAP_RULE(CG707))

/* The line of a value's key, or of an item of a list. */
struct location finding_place(const struct yaml_node *node);

/* An object of the cluster. */
struct location finding_object(struct findings *findings, const char *kind, struct slice ns,
                               struct slice name);

#endif
