/* The texts of certificates and keys. */
#include <stdio.h>
#include <stdlib.h>

#include "extender/certificates/authority_internal.h"

/* ---- texts ---- */

static void wipe(char **text)
{
    if (*text != NULL)
        gnutls_memset(*text, 0, strlen(*text));
    free(*text);
    *text = NULL;
}

void pem_pair_wipe(struct pem_pair *pair)
{
    wipe(&pair->key);
    wipe(&pair->crt);
}

int material_fail(struct error *err, int rc, const char *what)
{
    if (rc == GNUTLS_E_MEMORY_ERROR)
        return error_no_memory(err);
    return error_set(err, ERROR_INVALID, "%s: %s", what, gnutls_strerror(rc));
}

static gnutls_datum_t datum_of(const char *text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)};
}

/* Puts GnuTLS's text in the place of *text, and overwrites GnuTLS's. */
static int take_text(char **text, gnutls_datum_t *from)
{
    char *copy = strndup((const char *)from->data, from->size);

    gnutls_memset(from->data, 0, from->size);
    gnutls_free(from->data);
    if (copy == NULL)
        return GNUTLS_E_MEMORY_ERROR;
    wipe(text);
    *text = copy;
    return 0;
}

/* ---- a certificate and its key ---- */

void material_dispose(struct material *material)
{
    for (unsigned i = 0; i < material->count; i++)
        gnutls_x509_crt_deinit(material->chain[i]);
    gnutls_free(material->chain);
    if (material->key != NULL)
        gnutls_x509_privkey_deinit(material->key);
}

int material_read_chain(struct material *out, const struct pem_pair *pair, struct error *err)
{
    gnutls_datum_t text = datum_of(pair->crt);
    int rc = gnutls_x509_crt_list_import2(&out->chain, &out->count, &text, GNUTLS_X509_FMT_PEM, 0);

    if (rc < 0) {
        out->count = 0; /* GnuTLS has freed them */
        out->chain = NULL;
        return material_fail(err, rc, pair->crt_name);
    }
    if (out->count == 0 || out->count > BUNDLE_MAX)
        return error_set(err, ERROR_INVALID, "%s: %u certificates", pair->crt_name, out->count);
    return 0;
}

int material_read_key(struct material *out, const struct pem_pair *pair, struct error *err)
{
    gnutls_datum_t text = datum_of(pair->key);
    int rc = gnutls_x509_privkey_init(&out->key);

    if (rc == 0)
        rc = gnutls_x509_privkey_import2(out->key, &text, GNUTLS_X509_FMT_PEM, NULL,
                                         GNUTLS_PKCS_PLAIN);
    return rc < 0 ? material_fail(err, rc, pair->key_name) : 0;
}

int material_read(struct material *out, const struct pem_pair *pair, struct error *err)
{
    int rc = material_read_chain(out, pair, err);

    return rc < 0 ? rc : material_read_key(out, pair, err);
}

static int write_crt(char **out, gnutls_x509_crt_t crt)
{
    gnutls_datum_t text = {NULL, 0};
    int rc = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &text);

    return rc < 0 ? rc : take_text(out, &text);
}

static int write_key(char **out, gnutls_x509_privkey_t key)
{
    gnutls_datum_t text = {NULL, 0};
    int rc =
        gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &text);

    return rc < 0 ? rc : take_text(out, &text);
}

/* Appends a certificate to the bundle. */
static int append_crt(char **bundle, gnutls_x509_crt_t crt)
{
    char *text = NULL, *joined = NULL;
    int rc = write_crt(&text, crt);

    if (rc == 0 && asprintf(&joined, "%s%s", *bundle, text) < 0)
        rc = GNUTLS_E_MEMORY_ERROR;
    free(text);
    if (rc < 0)
        return rc;
    free(*bundle);
    *bundle = joined;
    return 0;
}

int material_write(struct pem_pair *out, const struct material *made)
{
    int rc = write_key(&out->key, made->key);

    return rc < 0 ? rc : write_crt(&out->crt, made->chain[0]);
}

int material_write_bundle(char **out, gnutls_x509_crt_t renewed, const struct material *others,
                          int64_t now_s)
{
    int rc = write_crt(out, renewed);

    for (unsigned i = 0; i < others->count && i < BUNDLE_MAX - 1 && rc == 0; i++)
        if (gnutls_x509_crt_get_expiration_time(others->chain[i]) > now_s)
            rc = append_crt(out, others->chain[i]);
    return rc;
}
