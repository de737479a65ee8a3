/*
 * audit_checks: applies the rules of `claimguard audit` to an inventory.
 *
 * Pure: reads the inventory, and adds to the report. Threads: one.
 */
#ifndef EXTENDER_AUDIT_AUDIT_CHECKS_H
#define EXTENDER_AUDIT_AUDIT_CHECKS_H

#include "config/config.h"
#include "extender/audit/audit_report.h"

struct audit_options {
    struct slice schedulers;     /* names of others that call claimguard, joined by ',' */
    const struct config *config; /* claimguard's; NULL: not known */
};

/* Adds all findings and all gaps, sorted. The inventory is linked. */
void audit_check(const struct inventory *inventory, const struct audit_options *options,
                 struct audit_report *report);

#endif
