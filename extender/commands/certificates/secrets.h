/*
 * secrets: the certificates in a cluster, as Secrets of a namespace: claimguard-ca (the authority),
 * claimguard-tls (the server; manifests/tls mounts it) and claimguard-client (for a scheduler).
 * Each has tls.crt and tls.key; the last two also have the authority's certificates as ca.crt. A
 * Secret is patched with the resourceVersion that was read, so a change by anyone else in between
 * is not overwritten.
 *
 * The ValidatingWebhookConfiguration claimguard belongs to them: its caBundle has to be the
 * authority's certificates, or the API server does not believe claimguard's admission port; and the
 * server's certificate has to be for the Services that it names.
 *
 * Threads: one.
 */
#ifndef EXTENDER_COMMANDS_CERTIFICATES_SECRETS_H
#define EXTENDER_COMMANDS_CERTIFICATES_SECRETS_H

#include "cache/client/call.h"
#include "cache/json/pull_fields.h"
#include "extender/commands/certificates/refresh.h"

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

/* Writes the one, if it was made or is to be updated. Errors: ERROR_UNAVAILABLE. */
int secrets_write(const struct secrets *secrets, const struct certificates *certificates,
                  enum certificate which, struct api *api, struct error *err);

/* ---- the webhook configuration ---- */

#define WEBHOOK_NAME "ValidatingWebhookConfiguration claimguard"

struct webhook {
    struct slice name, bundle /* in base64 */, service, service_ns;
    bool is_wrong; /* webhook_compare: the bundle is another one */
};

struct webhook_configuration {
    struct slice uid, version; /* empty: there is none, or it may not be read */
    struct pull_items webhooks;
    size_t wrong_count;
    struct error refusal; /* of the API server, to read it (403); else its code is 0 */
};

/* Reads the configuration, if there is one. All lies in the arena of api.
 * Errors: ERROR_UNAVAILABLE, ERROR_INVALID. */
int webhook_read(struct webhook_configuration *out, struct api *api, struct error *err);

/* Adds the names of the Services: SERVICE.NAMESPACE.svc. Errors: as hosts_add. */
int webhook_add_hosts(const struct webhook_configuration *configuration, struct hosts *hosts,
                      struct error *err);

/* Finds the webhooks that have another bundle. */
void webhook_compare(struct webhook_configuration *configuration, struct slice bundle,
                     struct arena *arena);

/* Gives the bundle to those that have another one. Errors: ERROR_UNAVAILABLE. */
int webhook_write(const struct webhook_configuration *configuration, struct slice bundle,
                  struct api *api, struct error *err);

#endif
