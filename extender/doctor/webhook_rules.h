/*
 * webhook_rules: what is wrong with the admission webhooks that call claimguard.
 *
 * Threads: any; pure, apart from the findings that they add.
 */
#ifndef EXTENDER_DOCTOR_WEBHOOK_RULES_H
#define EXTENDER_DOCTOR_WEBHOOK_RULES_H

#include "extender/doctor/installation_rules.h"

/* The rules CG701 to CG709. now_s: since 1970. */
void webhook_rules_check(const struct examined *examined, int64_t now_s, struct findings *findings);

/* The rule CG808. The cluster may be unknown. */
void webhook_rules_check_marks(const struct examined *examined, struct findings *findings);

#endif
