/* trust: what a peer thinks of a certificate. */
#ifndef TESTS_SUPPORT_TRUST_H
#define TESTS_SUPPORT_TRUST_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a peer that trusts the bundle accepts the certificate for that purpose, at GnuTLS's time;
 * both in PEM. host: NULL: any. */
bool certificate_is_trusted(const char *bundle, const char *text, const char *purpose,
                            const char *host);

/* The caBundle of that webhook of the ValidatingWebhookConfiguration claimguard, in base64; "":
 * none. */
const char *webhook_bundle(size_t webhook);

#endif
