/*
 * running_rules: whether claimguard runs in the cluster: its Deployment, its pods, and what they
 * are installed with. By the objects' states: it calls nobody.
 *
 * Threads: any; pure, apart from the findings that they add.
 */
#ifndef EXTENDER_DOCTOR_RUNNING_RULES_H
#define EXTENDER_DOCTOR_RUNNING_RULES_H

#include "extender/doctor/installation_rules.h"

/* Whether there is no claimguard where one would be: neither a Deployment nor a pod. False if
 * Deployments were not read. */
bool running_is_absent(const struct installation *installation);

/* The rules CG611 to CG613. */
void running_rules_check(const struct examined *examined, struct findings *findings);

#endif
