/*
 * reach: why claimguard did not stop a second pod: lets the API server call each webhook that calls
 * claimguard, by a ValidatingWebhookConfiguration of the trial. That has the webhook's clientConfig
 * and failurePolicy Fail, and selects only the namespace of the trial, so the API server says what
 * goes wrong, and nobody else is refused anything. The requests are dry runs.
 *
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_VERIFY_REACH_H
#define EXTENDER_COMMANDS_VERIFY_REACH_H

#include "extender/commands/doctor/doctor.h"
#include "extender/commands/verify/races.h"

/* Adds CG906 and CG907 for the rows that do not hold. Errors: as those of the trial. */
int reach_explain(struct trial *trial, const struct webhook_entries *entries,
                  const struct verify_row *rows, struct findings *findings, struct error *err);

#endif
