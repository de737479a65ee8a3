/*
 * upkeep: one round for the certificates of a cluster: reads the Secrets and the webhook
 * configuration, makes and renews what has to be, and writes it. `claimguard certificates` is one
 * round, `serve` (certificates: Secrets) makes one every few seconds.
 *
 * Several may do so at a time. Each write has the resourceVersion that was read, or creates, so of
 * two only one succeeds; the other one's round fails, and its next begins with what is there.
 *
 * When `serve` has a new authority (terms.replaces), the caBundle has the old one, too, for
 * CHANGE_OVER_S after the server's certificate was made: until the last replica shows that.
 *
 * Threads: one. No clock.
 */
#ifndef EXTENDER_COMMANDS_CERTIFICATES_UPKEEP_H
#define EXTENDER_COMMANDS_CERTIFICATES_UPKEEP_H

#include "extender/commands/certificates/secrets.h"

enum { CHANGE_OVER_S = 60 * 60 };

struct upkeep {
    struct certificates *certificates; /* the caller's to wipe, in any case */
    struct secrets secrets;
    struct webhook_configuration webhook; /* as it was read */
};

/* out: with certificates set. Its texts lie in the arena of api. terms: the names of Services that
 * webhooks call are added. Errors: ERROR_UNAVAILABLE; ERROR_INVALID: what is there cannot be used;
 * what was written before stays, and the next round continues with it. */
int upkeep_run(struct upkeep *out, const char *ns, struct certificate_terms *terms, bool is_dry_run,
               struct api *api, struct error *err);

#endif
