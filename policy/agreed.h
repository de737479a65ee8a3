/*
 * agreed: where that lies on which claimguards agree: for serve, which reads and writes it, and for
 * doctor, which asks for the rights to it.
 *
 * Pure, as policies are.
 */
#ifndef POLICY_AGREED_H
#define POLICY_AGREED_H

#include "config/config.h"

#define AGREEMENT_NAME "claimguard-agreement" /* of the ConfigMap */

/* Its namespace: that of the kubeconfig's context, or of the service account. Each is empty where
 * there is none, or it is not known. */
static inline struct slice agreed_namespace(struct slice context, struct slice account)
{
    return context.len != 0 ? context : account.len != 0 ? account : SLICE("claimguard");
}

#endif
