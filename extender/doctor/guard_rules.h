/*
 * guard_rules: what is wrong with claimguard's own Deployment and static pods: how many there are,
 * their memory, their version, and who schedules them.
 *
 * Threads: any; pure, apart from the findings that they add.
 */
#ifndef EXTENDER_DOCTOR_GUARD_RULES_H
#define EXTENDER_DOCTOR_GUARD_RULES_H

#include "extender/doctor/installation_rules.h"

/* The rules CG601, CG607, CG608 and CG806. */
void guard_rules_check(const struct examined *examined, struct findings *findings);

#endif
