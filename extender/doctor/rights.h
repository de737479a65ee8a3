/*
 * rights: whether claimguard's user may do in a cluster what its configuration makes it do
 * (manifests/rbac.yaml). The API server is asked by SubjectAccessReviews; if these are forbidden,
 * by SelfSubjectAccessReviews, about the user of the credentials.
 *
 * Threads: one.
 */
#ifndef EXTENDER_DOCTOR_RIGHTS_H
#define EXTENDER_DOCTOR_RIGHTS_H

#include "cache/client/kubeconfig.h"
#include "config/config.h"
#include "extender/doctor/findings.h"

struct rights {
    const char *user;     /* claimguard's; borrowed */
    bool is_self;         /* the reviews were about the user of the credentials instead */
    struct slice missing; /* "list pods, patch pods/status"; empty: none */
    bool is_fatal;        /* one is missing without which no pod is bound */
};

/* Asks about each right that the configuration needs. out->user has to be set.
 * Ownership: texts are in the arena. Errors: ERROR_UNAVAILABLE. */
int rights_ask(struct rights *out, const struct config *config, const struct kubeconfig *kubeconfig,
               struct arena *arena, struct error *err);

/* The rule CG901. */
void rights_check(const struct rights *rights, struct findings *findings);

#endif
