/*
 * webhook: the ValidatingWebhookConfiguration claimguard. Its caBundle has to be the authority's
 * certificates, or the API server does not believe claimguard's admission port; and the server's
 * certificate has to be for the Services that it names.
 *
 * Threads: one.
 */
#ifndef EXTENDER_CERTIFICATES_WEBHOOK_H
#define EXTENDER_CERTIFICATES_WEBHOOK_H

#include "extender/certificates/api_call.h"
#include "extender/certificates/hosts.h"

#define WEBHOOK_NAME "ValidatingWebhookConfiguration claimguard"

struct webhook {
    struct slice name, bundle /* in base64 */, service, service_ns;
    bool is_wrong; /* webhook_compare: the bundle is another one */
};

struct webhook_configuration {
    struct slice uid, version; /* empty: there is none, or it may not be read */
    struct webhook *items;
    size_t count;
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
