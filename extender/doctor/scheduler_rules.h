/*
 * scheduler_rules: what is wrong with a file of kube-scheduler that calls claimguard: its extender
 * entry, and the plugins that have to stay in effect. And what is wrong between the files and
 * claimguard's own configuration.
 *
 * Threads: any; pure, apart from the findings that they add.
 */
#ifndef EXTENDER_DOCTOR_SCHEDULER_RULES_H
#define EXTENDER_DOCTOR_SCHEDULER_RULES_H

#include "config/config.h"
#include "extender/doctor/findings.h"
#include "extender/doctor/installation.h"
#include "extender/doctor/scheduler_file.h"

#define MARK "claimguard.io/claims"

/*
 * Finds the first extender that is claimguard, and stores it in the file: it manages
 * claimguard.io/claims, its urlPrefix names claimguard, or its port is that of the configuration's
 * server.listen (config NULL: 8888).
 */
void scheduler_find_own(struct scheduler_file *file, const struct config *config,
                        struct arena *arena);

/* The rules CG502 to CG520, of one file. installation: NULL without a cluster. */
void scheduler_rules_check(const struct scheduler_file *file,
                           const struct installation *installation, struct findings *findings);

#endif
