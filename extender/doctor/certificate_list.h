/*
 * certificate_list: certificates of a PEM text, in its order: a bundle of authorities, or a
 * certificate and those between it and its authority.
 *
 * Ownership: certificate_list_free. Threads: one.
 */
#ifndef EXTENDER_DOCTOR_CERTIFICATE_LIST_H
#define EXTENDER_DOCTOR_CERTIFICATE_LIST_H

#include <gnutls/x509.h>
#include <stdint.h>

#include "config/base/slice.h"

enum { CERTIFICATE_SOON_S = 14 * 24 * 60 * 60 /* as in ClaimguardCertificateExpires */ };

/* All zero: empty. */
struct certificate_list {
    gnutls_x509_crt_t *items;
    unsigned count;
};

/* How long a certificate is valid yet. */
enum certificate_life { LIFE_LONG, LIFE_ENDS_SOON, LIFE_ENDED, LIFE_NOT_BEGUN };

/* False if the text has no certificate, or one that cannot be read; the list is then empty. */
bool certificate_list_read(struct certificate_list *out, struct slice pem);
void certificate_list_free(struct certificate_list *list);

/* Of the one that lives longest. The list is not empty. now_s: since 1970. */
enum certificate_life certificate_list_life(const struct certificate_list *list, int64_t now_s);

/* Whether one of the authorities has signed the first certificate of the chain, or one between has.
 * Their times do not matter. */
bool certificate_list_signs(const struct certificate_list *authorities,
                            const struct certificate_list *chain);

/* Whether both have a certificate of one key, as an authority and its renewed self do. */
bool certificate_list_shares_key(const struct certificate_list *a,
                                 const struct certificate_list *b);

/* Whether the first one is for that DNS name or IP address. */
bool certificate_list_is_for(const struct certificate_list *list, struct slice host);

#endif
