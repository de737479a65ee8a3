/*
 * doctor_rules: the rules of `claimguard doctor`, for the findings, `--explain` and docs/doctor.md.
 *
 * Threads: any.
 */
#ifndef EXTENDER_DOCTOR_DOCTOR_RULES_H
#define EXTENDER_DOCTOR_DOCTOR_RULES_H

#include "extender/report/rules.h"

extern const struct rule doctor_rules[]; /* see rules.h for its end */

#endif
