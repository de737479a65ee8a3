/*
 * secrets: the certificates as Secrets of a namespace: claimguard-ca (the authority),
 * claimguard-tls (the server; manifests/tls mounts it) and claimguard-client (for a scheduler).
 * Each has tls.crt and tls.key; the last two also have the authority's certificates as ca.crt. A
 * Secret is patched with the resourceVersion that was read, so a change by anyone else in between
 * is not overwritten.
 *
 * Threads: one.
 */
#ifndef EXTENDER_CERTIFICATES_SECRETS_H
#define EXTENDER_CERTIFICATES_SECRETS_H

#include "extender/certificates/api_call.h"
#include "extender/certificates/refresh.h"

struct secrets {
    const char *ns; /* borrowed */
    struct secret {
        struct slice uid, version; /* empty: there is no Secret */
        struct slice bundle;       /* its ca.crt */
        struct slice names[3];     /* "Secret NS/NAME", and with ": tls.crt" and ": tls.key" */
    } items[CERTIFICATE_COUNT];
};

/* Reads what is there. Texts of secrets, and the names of the pairs, lie in the arena of api.
 * Errors: ERROR_UNAVAILABLE; ERROR_INVALID: not readable, or cert-manager's; certificates_wipe is
 * needed in any case. */
int secrets_read(struct secrets *out, const char *ns, struct certificates *certificates,
                 struct api *api, struct error *err);

/* After certificates_refresh: a Secret that is kept and has an old ca.crt is to be updated. */
void secrets_compare(const struct secrets *secrets, struct certificates *certificates);

/* Writes what was made or is to be updated. Errors: ERROR_UNAVAILABLE; what was written before
 * stays, and the next call continues with it. */
int secrets_write(const struct secrets *secrets, const struct certificates *certificates,
                  struct api *api, struct error *err);

#endif
