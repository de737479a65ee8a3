#include "extender/certificates/authority.h"

#include <gnutls/crypto.h>
#include <stdlib.h>

#include "extender/certificates/authority_internal.h"

enum { SERIAL_BYTES = 16, KEY_ID_BYTES = 64, VERSION = 3 };

/* ---- making ---- */

/* A certificate without content, and a new key for it. */
static int generate(struct material *out)
{
    out->chain = gnutls_calloc(1, sizeof(gnutls_x509_crt_t));
    if (out->chain == NULL)
        return GNUTLS_E_MEMORY_ERROR;
    int rc = gnutls_x509_crt_init(&out->chain[0]);
    if (rc < 0)
        return rc;
    out->count = 1;
    rc = gnutls_x509_privkey_init(&out->key);
    if (rc == 0)
        rc = gnutls_x509_privkey_generate(out->key, GNUTLS_PK_ECDSA,
                                          GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    return rc;
}

/* Sets what each certificate has of its own: a serial number that nobody can guess, which is
 * positive (RFC 5280, 4.1.2.2), and its time. */
static int set_frame(gnutls_x509_crt_t crt, const struct validity *validity)
{
    unsigned char serial[SERIAL_BYTES];
    int rc = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial);

    serial[0] = (unsigned char)((serial[0] & 0x3F) | 0x40);
    if (rc == 0)
        rc = gnutls_x509_crt_set_serial(crt, serial, sizeof serial);
    if (rc == 0)
        rc = gnutls_x509_crt_set_activation_time(crt, (time_t)validity->from_s);
    return rc < 0 ? rc : gnutls_x509_crt_set_expiration_time(crt, (time_t)validity->until_s);
}

static int set_subject(const struct material *made, const char *name)
{
    gnutls_x509_crt_t crt = made->chain[0];
    unsigned char id[KEY_ID_BYTES];
    size_t size = sizeof id;
    int rc = gnutls_x509_crt_set_version(crt, VERSION);

    if (rc == 0)
        rc = gnutls_x509_crt_set_key(crt, made->key);
    if (rc == 0)
        rc = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                           (unsigned)strlen(name));
    if (rc == 0)
        rc = gnutls_x509_crt_get_key_id(crt, 0, id, &size);
    return rc < 0 ? rc : gnutls_x509_crt_set_subject_key_id(crt, id, size);
}

static int set_usage(gnutls_x509_crt_t crt, bool is_authority)
{
    /* an authority signs no authority below it: path length 0 */
    int rc = gnutls_x509_crt_set_basic_constraints(crt, is_authority, is_authority ? 0 : -1);

    return rc < 0 ? rc
                  : gnutls_x509_crt_set_key_usage(crt, is_authority ? GNUTLS_KEY_KEY_CERT_SIGN |
                                                                          GNUTLS_KEY_CRL_SIGN
                                                                    : GNUTLS_KEY_DIGITAL_SIGNATURE);
}

static int set_hosts(gnutls_x509_crt_t crt, const struct hosts *hosts)
{
    int rc = 0;

    for (size_t i = 0; i < hosts->count && rc == 0; i++) {
        const char *name = hosts->names[i];
        unsigned char address[16];
        size_t size = host_address(name, address);
        unsigned flags = i == 0 ? GNUTLS_FSAN_SET : GNUTLS_FSAN_APPEND;
        rc = size != 0 ? gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, address,
                                                              (unsigned)size, flags)
                       : gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, name,
                                                              (unsigned)strlen(name), flags);
    }
    return rc;
}

/* Names the key that signs, if its certificate does: so a reader finds the right one of two
 * authorities of one name. */
static int set_issuer_key(gnutls_x509_crt_t crt, gnutls_x509_crt_t issuer)
{
    unsigned char id[KEY_ID_BYTES];
    size_t size = sizeof id;
    int rc = gnutls_x509_crt_get_subject_key_id(issuer, id, &size, NULL);

    if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        return 0;
    return rc < 0 ? rc : gnutls_x509_crt_set_authority_key_id(crt, id, size);
}

/* The digest is the one that fits the issuer's key. */
static int sign(const struct material *made, const struct material *issuer)
{
    return gnutls_x509_crt_sign2(made->chain[0], issuer->chain[0], issuer->key, GNUTLS_DIG_UNKNOWN,
                                 0);
}

int authority_make(struct pem_pair *out, const struct validity *validity, struct error *err)
{
    struct material made = {0};

    int rc = generate(&made);
    if (rc == 0)
        rc = set_subject(&made, "claimguard-ca");
    if (rc == 0)
        rc = set_usage(made.chain[0], true);
    if (rc == 0)
        rc = set_frame(made.chain[0], validity);
    if (rc == 0)
        rc = sign(&made, &made);
    if (rc == 0)
        rc = material_write(out, &made);
    material_dispose(&made);
    return rc < 0 ? material_fail(err, rc, out->crt_name) : 0;
}

int authority_renew(struct pem_pair *authority, const struct validity *validity, struct error *err)
{
    struct material renewed = {0}, old = {0};

    int rc = material_read(&renewed, authority, err);
    if (rc == 0)
        rc = material_read_chain(&old, authority, err);
    if (rc == 0) {
        bool is_root = gnutls_x509_crt_check_issuer(renewed.chain[0], renewed.chain[0]) != 0;
        rc = !is_root ? error_set(err, ERROR_INVALID,
                                  "%s: ends soon, and another authority has to renew it",
                                  authority->crt_name)
                      : 0;
    }
    if (rc == 0) {
        int made = set_frame(renewed.chain[0], validity); /* all else stays as it is */
        if (made == 0)
            made = sign(&renewed, &renewed);
        if (made == 0)
            made = material_write_bundle(&authority->crt, renewed.chain[0], &old, validity->from_s);
        rc = made < 0 ? material_fail(err, made, authority->crt_name) : 0;
    }
    material_dispose(&renewed);
    material_dispose(&old);
    return rc;
}

static int describe_leaf(const struct material *made, const struct material *issuer,
                         const struct leaf *leaf)
{
    gnutls_x509_crt_t crt = made->chain[0];
    int rc = set_subject(made, leaf->name);

    if (rc == 0)
        rc = set_usage(crt, false);
    if (rc == 0)
        rc = gnutls_x509_crt_set_key_purpose_oid(
            crt, leaf->hosts != NULL ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT, 0);
    if (rc == 0 && leaf->hosts != NULL)
        rc = set_hosts(crt, leaf->hosts);
    if (rc == 0)
        rc = set_issuer_key(crt, issuer->chain[0]);
    return rc < 0 ? rc : set_frame(crt, &leaf->validity);
}

int authority_sign(struct pem_pair *out, const struct pem_pair *authority, const struct leaf *leaf,
                   struct error *err)
{
    struct material made = {0}, issuer = {0};

    int rc = material_read(&issuer, authority, err);
    if (rc == 0) {
        int written = generate(&made);
        if (written == 0)
            written = describe_leaf(&made, &issuer, leaf);
        if (written == 0)
            written = sign(&made, &issuer);
        if (written == 0)
            written = material_write(out, &made);
        rc = written < 0 ? material_fail(err, written, out->crt_name) : 0;
    }
    material_dispose(&made);
    material_dispose(&issuer);
    return rc;
}

/* ---- reading ---- */

static bool is_pair(const struct material *material)
{
    unsigned char of_crt[KEY_ID_BYTES], of_key[KEY_ID_BYTES];
    size_t crt_bytes = sizeof of_crt, key_bytes = sizeof of_key;

    return gnutls_x509_crt_get_key_id(material->chain[0], 0, of_crt, &crt_bytes) == 0 &&
           gnutls_x509_privkey_get_key_id(material->key, 0, of_key, &key_bytes) == 0 &&
           slice_equal((struct slice){(char *)of_crt, crt_bytes},
                       (struct slice){(char *)of_key, key_bytes});
}

/* Whether one of the authority's certificates has signed it. */
static int check_signature(bool *is_ours, gnutls_x509_crt_t crt, const struct pem_pair *authority,
                           struct error *err)
{
    struct material issuers = {0};
    unsigned status = 0;
    int rc = material_read_chain(&issuers, authority, err);

    *is_ours = rc == 0 &&
               gnutls_x509_crt_verify(crt, issuers.chain, issuers.count,
                                      GNUTLS_VERIFY_DISABLE_TIME_CHECKS |
                                          GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS,
                                      &status) == 0 &&
               status == 0;
    material_dispose(&issuers);
    return rc;
}

/* Reads the names that claimguard writes; others are of no interest. */
static int read_hosts(struct hosts *out, gnutls_x509_crt_t crt, struct error *err)
{
    for (unsigned i = 0; out->count < HOSTS_MAX; i++) {
        char name[HOST_BYTES] = "";
        size_t size = sizeof name - 1;
        int type = gnutls_x509_crt_get_subject_alt_name(crt, i, name, &size, NULL);
        if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
            return 0;
        if (type == GNUTLS_SAN_IPADDRESS && hosts_add_address(out, name, size, err) < 0)
            return err->code;
        if (type == GNUTLS_SAN_DNSNAME && hosts_add(out, name, err) < 0)
            return err->code;
    }
    return 0;
}

int certificate_read(struct certificate_facts *out, const struct pem_pair *pair,
                     const struct pem_pair *authority, struct error *err)
{
    struct material material = {0};

    *out = (struct certificate_facts){.is_ours = false};
    int rc = material_read_chain(&material, pair, err);
    if (rc == 0 && pair->key != NULL)
        rc = material_read_key(&material, pair, err);
    if (rc == 0) {
        gnutls_x509_crt_t crt = material.chain[0];
        out->validity.from_s = gnutls_x509_crt_get_activation_time(crt);
        out->validity.until_s = gnutls_x509_crt_get_expiration_time(crt);
        out->is_authority = gnutls_x509_crt_get_ca_status(crt, NULL) > 0;
        out->is_pair = material.key != NULL && is_pair(&material);
        out->is_for_servers =
            gnutls_x509_crt_check_key_purpose(crt, GNUTLS_KP_TLS_WWW_SERVER, 0) != 0;
        out->is_for_clients =
            gnutls_x509_crt_check_key_purpose(crt, GNUTLS_KP_TLS_WWW_CLIENT, 0) != 0;
        rc = read_hosts(&out->hosts, crt, err);
        if (rc < 0)
            (void)error_wrap(err, "%s", pair->crt_name);
        if (rc == 0 && authority != NULL)
            rc = check_signature(&out->is_ours, crt, authority, err);
    }
    material_dispose(&material);
    return rc;
}
