/*
 * probe: calls claimguard as a kube-scheduler would, from this machine: at the host and port of its
 * urlPrefix, with its tlsConfig. It asks for /readyz, which changes nothing.
 *
 * Threads: one.
 */
#ifndef EXTENDER_DOCTOR_PROBE_H
#define EXTENDER_DOCTOR_PROBE_H

#include "extender/doctor/findings.h"
#include "extender/doctor/scheduler_file.h"

/* The rules CG903 to CG905. Errors: no memory, or no HTTP client. */
int probe_scheduler(const struct scheduler_file *scheduler, struct findings *findings,
                    struct error *err);

#endif
