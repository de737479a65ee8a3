/*
 * baseline: a file of findings that are known, and do not count. A line of it is
 * "CG103 Deployment shop/web data": rule, object, and what the finding is about (a claim, a
 * driver). Lines that begin with # are comments. Neither the file nor the line of a finding
 * matters.
 *
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_AUDIT_BASELINE_H
#define EXTENDER_COMMANDS_AUDIT_BASELINE_H

#include "extender/commands/audit/audit_report.h"

/* Ignores the findings that the file has; lines that no finding is of become a gap.
 * Errors: ERROR_SYSTEM, ERROR_INVALID "FILE:LINE: ...", ERROR_NO_MEMORY. */
int baseline_read(struct audit_report *report, const char *path, struct error *err);

/* Writes all findings that are not ignored, sorted, and then ignores them. Errors: ERROR_SYSTEM,
 * ERROR_NO_MEMORY. */
int baseline_write(struct audit_report *report, const char *path, struct error *err);

#endif
