/*
 * versions: what the version of an API server lacks.
 *
 * Threads: one; versions_check: any.
 */
#ifndef EXTENDER_DOCTOR_VERSIONS_H
#define EXTENDER_DOCTOR_VERSIONS_H

#include "cache/client/kubeconfig.h"
#include "config/config.h"
#include "extender/doctor/findings.h"

struct server_version {
    unsigned minor;              /* of 1.MINOR; 0: not known */
    struct slice text;           /* "v1.37.1" */
    bool has_attributes_classes; /* serves VolumeAttributesClasses in v1 */
};

/* Asks the API server. Its answer, or a refusal (403), may leave the version unknown.
 * Ownership: the text is in the arena. Errors: ERROR_UNAVAILABLE. */
int versions_ask(struct server_version *out, const struct kubeconfig *kubeconfig,
                 struct arena *arena, struct error *err);

/* The rule CG902. */
void versions_check(const struct server_version *version, const struct config *config,
                    struct findings *findings);

#endif
