/*
 * What authority.c and authority_pem.c share. Only these files include this. Functions without a
 * struct error return an error code of GnuTLS.
 */
#ifndef EXTENDER_CERTIFICATES_AUTHORITY_INTERNAL_H
#define EXTENDER_CERTIFICATES_AUTHORITY_INTERNAL_H

#include <gnutls/x509.h>

#include "extender/certificates/authority.h"

/* A certificate and its key, as GnuTLS has them. Zeroed: none. Ownership: material_dispose. */
struct material {
    gnutls_x509_crt_t *chain; /* the first is the certificate */
    unsigned count;
    gnutls_x509_privkey_t key;
};

void material_dispose(struct material *material);

/* Read the texts of a pair: its certificates, its key, both. */
int material_read_chain(struct material *out, const struct pem_pair *pair, struct error *err);
int material_read_key(struct material *out, const struct pem_pair *pair, struct error *err);
int material_read(struct material *out, const struct pem_pair *pair, struct error *err);

/* Replaces the texts of the pair. */
int material_write(struct pem_pair *out, const struct material *made);

/* Replaces the bundle by the certificate and those of the others that are valid at that time. */
int material_write_bundle(char **out, gnutls_x509_crt_t first, const struct material *others,
                          int64_t now_s);

/* Fills err with GnuTLS's text for rc. */
int material_fail(struct error *err, int rc, const char *what);

#endif
