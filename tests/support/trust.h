/* trust: what a peer thinks of a certificate. */
#ifndef TESTS_SUPPORT_TRUST_H
#define TESTS_SUPPORT_TRUST_H

#include <stdbool.h>

/* Whether a peer that trusts the bundle accepts the certificate for that purpose, at GnuTLS's time;
 * both in PEM. host: NULL: any. */
bool certificate_is_trusted(const char *bundle, const char *text, const char *purpose,
                            const char *host);

#endif
