/*
 * config_rules: what is wrong with claimguard's configuration, and between it and the schedulers'
 * files: addresses, TLS, locks.
 *
 * Threads: any; pure, apart from the findings that they add.
 */
#ifndef EXTENDER_DOCTOR_CONFIG_RULES_H
#define EXTENDER_DOCTOR_CONFIG_RULES_H

#include "config/config.h"
#include "extender/doctor/findings.h"
#include "extender/doctor/scheduler_file.h"

/* claimguard's configuration. */
struct config_file {
    const char *path;
    const struct config *config;
    const struct yaml_node *root; /* of the same file or folder; borrowed */
};

/* The line of a key; if the configuration does not have it, that of its section; without that,
 * the beginning. keys: from the root, up to a NULL. */
struct location config_place(const struct config_file *file, const char *const *keys);

/* The rules CG602 to CG606. */
void config_rules_check(const struct config_file *file, const struct scheduler_file *schedulers,
                        size_t scheduler_count, struct findings *findings);

#endif
