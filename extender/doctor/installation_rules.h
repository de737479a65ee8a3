/*
 * installation_rules: what is wrong with the marks of pods, and with the schedulers that pods name;
 * also against the schedulers' files.
 *
 * Threads: any; pure, apart from the findings that they add.
 */
#ifndef EXTENDER_DOCTOR_INSTALLATION_RULES_H
#define EXTENDER_DOCTOR_INSTALLATION_RULES_H

#include "extender/doctor/certificate_rules.h"
#include "extender/doctor/config_rules.h"
#include "extender/doctor/installation.h"

/* All that was read. */
struct examined {
    const struct scheduler_file *schedulers;
    size_t scheduler_count;
    const struct config_file *config; /* NULL: not given */
    const struct certificates_read *certificates;
    const struct installation *installation; /* NULL: no cluster */
};

/* The name of a policy that sets the mark and has a binding; NULL: there is none. */
const char *installation_find_marker(const struct installation *installation);

/* The rules CG801 to CG805 and CG807. */
void installation_rules_check(const struct examined *examined, struct findings *findings);

#endif
