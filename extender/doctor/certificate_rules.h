/*
 * certificate_rules: what is wrong with the certificates that the schedulers' files and the
 * configuration name, as far as they lie on this machine, and between them.
 *
 * Threads: one; reads files.
 */
#ifndef EXTENDER_DOCTOR_CERTIFICATE_RULES_H
#define EXTENDER_DOCTOR_CERTIFICATE_RULES_H

#include "extender/doctor/certificate_list.h"
#include "extender/doctor/config_rules.h"

/* What was read; empty lists: not named, or not on this machine. */
struct certificates_read {
    struct certificate_list server, client_ca, admission; /* of the configuration */
    struct certificate_list authority; /* the CA of the first scheduler that has one */
    struct location authority_place;
    bool is_one_pair; /* server.tls and admission.tls name one file */
};

/* The rules CG609 and CG610. config: NULL if it was not given. now_s: since 1970.
 * Ownership: certificates_read_free. */
void certificate_rules_check(const struct config_file *config,
                             const struct scheduler_file *schedulers, size_t scheduler_count,
                             int64_t now_s, struct certificates_read *out,
                             struct findings *findings);
void certificates_read_free(struct certificates_read *read);

#endif
