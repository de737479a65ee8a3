/*
 * scheduler_schema: for what kube-scheduler refuses a file, so that it does not start: keys that it
 * does not know, values of another type, and values that it checks (kube-scheduler 1.37). It looks
 * at what concerns claimguard: profiles, plugins and extenders. tests/e2e compares it with the
 * real kube-scheduler.
 *
 * Threads: any.
 */
#ifndef EXTENDER_DOCTOR_SCHEDULER_SCHEMA_H
#define EXTENDER_DOCTOR_SCHEDULER_SCHEMA_H

#include "extender/doctor/findings.h"
#include "extender/doctor/scheduler_file.h"

/* Adds findings of the rule CG501. */
void scheduler_schema_check(const struct scheduler_file *file, struct findings *findings);

#endif
