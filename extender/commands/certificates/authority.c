#include "extender/commands/certificates/authority.h"

#include <arpa/inet.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { SERIAL_BYTES = 16, KEY_ID_BYTES = 64, OID_BYTES = 128, VERSION = 3 };

/* ---- names ---- */

/* The bytes of an IP address: 4 or 16, or 0 if the name is a DNS name. */
static size_t host_address(const char *name, unsigned char bytes[16])
{
    if (inet_pton(AF_INET, name, bytes) == 1)
        return 4;
    return inet_pton(AF_INET6, name, bytes) == 1 ? 16 : 0;
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A DNS name: labels of letters, digits and '-', which neither begin nor end with '-'. */
static bool is_dns_name(const char *name)
{
    size_t label = 0;

    if (name[0] == '*' && name[1] == '.')
        name += 2;
    for (const char *at = name; *at != '\0'; at++) {
        bool ends = at[1] == '\0' || at[1] == '.';
        if (*at == '.' ? label == 0
                       : !is_letter_or_digit(*at) && (*at != '-' || label == 0 || ends))
            return false;
        label = *at == '.' ? 0 : label + 1;
        if (label > 63)
            return false;
    }
    return label != 0;
}

static bool has(const struct hosts *hosts, const char *name)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (strcasecmp(hosts->names[i], name) == 0)
            return true;
    return false;
}

static int add(struct hosts *hosts, const char *name, struct error *err)
{
    if (has(hosts, name))
        return 0;
    if (hosts->count == HOSTS_MAX)
        return error_set(err, ERROR_TOO_BIG, "a certificate is for at most %d names", HOSTS_MAX);
    char *copy = hosts->names[hosts->count++];
    for (size_t i = 0; i < HOST_BYTES && (copy[i] = name[i]) != '\0'; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] - 'A' + 'a');
    return 0;
}

/* Adds an address of 4 or 16 bytes. Errors: as hosts_add. */
static int add_address(struct hosts *hosts, const void *bytes, size_t size, struct error *err)
{
    char text[INET6_ADDRSTRLEN];

    if ((size != 4 && size != 16) ||
        inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, text, sizeof text) == NULL)
        return error_set(err, ERROR_INVALID, "an IP address of %zu bytes", size);
    return add(hosts, text, err);
}

int hosts_add(struct hosts *hosts, const char *name, struct error *err)
{
    unsigned char bytes[16];
    size_t size = host_address(name, bytes);

    if (size != 0)
        return add_address(hosts, bytes, size, err);
    if (strlen(name) >= HOST_BYTES || !is_dns_name(name))
        return error_set(err, ERROR_INVALID, "%.80s: neither a DNS name nor an IP address", name);
    return add(hosts, name, err);
}

const char *hosts_missing(const struct hosts *hosts, const struct hosts *wanted)
{
    for (size_t i = 0; i < wanted->count; i++)
        if (!has(hosts, wanted->names[i]))
            return wanted->names[i];
    return NULL;
}

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

/* 0; or if rc is an error of GnuTLS, fills err with its text. */
static int check(int rc, const char *what, struct error *err)
{
    if (rc >= 0)
        return 0;
    if (rc == GNUTLS_E_MEMORY_ERROR)
        return error_no_memory(err);
    return error_set(err, ERROR_INVALID, "%s: %s", what, gnutls_strerror(rc));
}

static gnutls_datum_t datum_of(const char *text)
{
    return (gnutls_datum_t){(unsigned char *)(uintptr_t)text, (unsigned)strlen(text)};
}

/* Appends GnuTLS's text to *text, which is NULL at first, and overwrites GnuTLS's. */
static int append_text(char **text, gnutls_datum_t *from)
{
    size_t len = *text == NULL ? 0 : strlen(*text);
    char *joined = realloc(*text, len + from->size + 1);

    if (joined != NULL) {
        memcpy(joined + len, from->data, from->size);
        joined[len + from->size] = '\0';
        *text = joined;
    }
    gnutls_memset(from->data, 0, from->size);
    gnutls_free(from->data);
    return joined == NULL ? GNUTLS_E_MEMORY_ERROR : 0;
}

/* ---- a certificate and its key ---- */

/* As GnuTLS has them. Zeroed: none. Ownership: material_dispose. Functions on it without a struct
 * error return an error code of GnuTLS. */
struct material {
    gnutls_x509_crt_t *chain; /* the first is the certificate */
    unsigned count;
    gnutls_x509_privkey_t key;
};

static void material_dispose(struct material *material)
{
    for (unsigned i = 0; i < material->count; i++)
        gnutls_x509_crt_deinit(material->chain[i]);
    gnutls_free(material->chain);
    if (material->key != NULL)
        gnutls_x509_privkey_deinit(material->key);
}

static int read_chain(struct material *out, const struct pem_pair *pair, struct error *err)
{
    gnutls_datum_t text = datum_of(pair->crt);
    int rc = gnutls_x509_crt_list_import2(&out->chain, &out->count, &text, GNUTLS_X509_FMT_PEM, 0);

    if (rc < 0) {
        out->count = 0; /* GnuTLS has freed them */
        out->chain = NULL;
        return check(rc, pair->crt_name, err);
    }
    if (out->count == 0 || out->count > BUNDLE_MAX)
        return error_set(err, ERROR_INVALID, "%s: %u certificates", pair->crt_name, out->count);
    return 0;
}

static int read_key(struct material *out, const struct pem_pair *pair, struct error *err)
{
    gnutls_datum_t text = datum_of(pair->key);
    int rc = gnutls_x509_privkey_init(&out->key);

    if (rc == 0)
        rc = gnutls_x509_privkey_import2(out->key, &text, GNUTLS_X509_FMT_PEM, NULL,
                                         GNUTLS_PKCS_PLAIN);
    return check(rc, pair->key_name, err);
}

static int read_pair(struct material *out, const struct pem_pair *pair, struct error *err)
{
    int rc = read_chain(out, pair, err);

    return rc < 0 ? rc : read_key(out, pair, err);
}

static int append_crt(char **text, gnutls_x509_crt_t crt)
{
    gnutls_datum_t pem = {NULL, 0};
    int rc = gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem);

    return rc < 0 ? rc : append_text(text, &pem);
}

/* Replaces the texts of the pair. */
static int write_pair(struct pem_pair *out, const struct material *made)
{
    gnutls_datum_t pem = {NULL, 0};
    int rc = gnutls_x509_privkey_export2_pkcs8(made->key, GNUTLS_X509_FMT_PEM, NULL,
                                               GNUTLS_PKCS_PLAIN, &pem);

    pem_pair_wipe(out);
    if (rc == 0)
        rc = append_text(&out->key, &pem);
    return rc < 0 ? rc : append_crt(&out->crt, made->chain[0]);
}

/* Writes the certificate and those of the others that are valid at that time to *out, which is NULL
 * at first. */
static int write_bundle(char **out, gnutls_x509_crt_t renewed, const struct material *others,
                        int64_t now_s)
{
    int rc = append_crt(out, renewed);

    for (unsigned i = 0; i < others->count && i < BUNDLE_MAX - 1 && rc == 0; i++)
        if (gnutls_x509_crt_get_expiration_time(others->chain[i]) > now_s)
            rc = append_crt(out, others->chain[i]);
    return rc;
}

/* ---- making ---- */

/* A certificate without content. */
static int init_chain(struct material *out)
{
    out->chain = gnutls_calloc(1, sizeof(gnutls_x509_crt_t));
    if (out->chain == NULL)
        return GNUTLS_E_MEMORY_ERROR;
    int rc = gnutls_x509_crt_init(&out->chain[0]);
    out->count = rc < 0 ? 0 : 1;
    return rc;
}

/* The same, and a new key for it. */
static int generate(struct material *out)
{
    int rc = init_chain(out);
    if (rc == 0)
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

/* issuer: NULL: it is an authority. */
static int describe(const struct material *made, const struct material *issuer,
                    const struct wish *wish)
{
    gnutls_x509_crt_t crt = made->chain[0];
    const char *purpose = wish->hosts != NULL ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT;
    int rc = set_subject(made, wish->name);

    if (rc == 0)
        rc = set_usage(crt, issuer == NULL);
    if (rc == 0 && issuer != NULL)
        rc = gnutls_x509_crt_set_key_purpose_oid(crt, purpose, 0);
    if (rc == 0 && wish->hosts != NULL)
        rc = set_hosts(crt, wish->hosts);
    if (rc == 0 && issuer != NULL)
        rc = set_issuer_key(crt, issuer->chain[0]);
    return rc < 0 ? rc : set_frame(crt, &wish->validity);
}

int certificate_make(struct pem_pair *out, const struct pem_pair *authority,
                     const struct wish *wish, struct error *err)
{
    struct material made = {0}, issuer = {0};

    int rc = authority == NULL ? 0 : read_pair(&issuer, authority, err);
    if (rc == 0) {
        int written = generate(&made);
        if (written == 0)
            written = describe(&made, authority == NULL ? NULL : &issuer, wish);
        if (written == 0)
            written = sign(&made, authority == NULL ? &made : &issuer);
        if (written == 0)
            written = write_pair(out, &made);
        rc = check(written, out->crt_name, err);
    }
    material_dispose(&made);
    material_dispose(&issuer);
    return rc;
}

/* ---- renewing ---- */

/* All extensions as they are: they are of the key and its use. */
static int copy_extensions(gnutls_x509_crt_t to, gnutls_x509_crt_t from)
{
    int rc = 0;

    for (unsigned i = 0; rc == 0; i++) {
        char oid[OID_BYTES];
        size_t size = sizeof oid;
        unsigned is_critical = 0;
        gnutls_datum_t value = {NULL, 0};
        rc = gnutls_x509_crt_get_extension_info(from, i, oid, &size, &is_critical);
        if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
            return 0;
        if (rc == 0)
            rc = gnutls_x509_crt_get_extension_data2(from, i, &value);
        if (rc == 0)
            rc = gnutls_x509_crt_set_extension_by_oid(to, oid, value.data, value.size, is_critical);
        gnutls_free(value.data);
    }
    return rc;
}

/* A new certificate of the same name and key. One that was read cannot be changed: GnuTLS writes a
 * year from 2050 on in another form, for which that one has no place. */
static int copy_authority(struct material *out, const struct material *old,
                          const struct validity *validity)
{
    int rc = init_chain(out);
    if (rc == 0)
        rc = gnutls_x509_crt_set_version(out->chain[0], VERSION);
    if (rc == 0)
        rc = gnutls_x509_crt_set_key(out->chain[0], old->key);
    if (rc == 0) /* without a name of a proxy, this copies the name, byte by byte */
        rc = gnutls_x509_crt_set_proxy_dn(out->chain[0], old->chain[0], 0, NULL, 0);
    if (rc == 0)
        rc = copy_extensions(out->chain[0], old->chain[0]);
    return rc < 0 ? rc : set_frame(out->chain[0], validity);
}

int authority_renew(struct pem_pair *authority, const struct validity *validity, struct error *err)
{
    struct material renewed = {0}, old = {0};
    char *bundle = NULL;

    int rc = read_pair(&old, authority, err);
    if (rc == 0 && gnutls_x509_crt_check_issuer(old.chain[0], old.chain[0]) == 0)
        rc = error_set(err, ERROR_INVALID,
                       "%s: ends soon, or has ended, and another authority has to renew it",
                       authority->crt_name);
    if (rc == 0) {
        int made = copy_authority(&renewed, &old, validity);
        if (made == 0)
            made = gnutls_x509_crt_sign2(renewed.chain[0], renewed.chain[0], old.key,
                                         GNUTLS_DIG_UNKNOWN, 0);
        if (made == 0)
            made = write_bundle(&bundle, renewed.chain[0], &old, validity->from_s);
        rc = check(made, authority->crt_name, err);
    }
    if (rc == 0) {
        free(authority->crt);
        authority->crt = bundle;
    } else {
        free(bundle);
    }
    material_dispose(&renewed);
    material_dispose(&old);
    return rc;
}

static bool is_among(gnutls_x509_crt_t crt, const struct material *others)
{
    for (unsigned i = 0; i < others->count; i++)
        if (gnutls_x509_crt_equals(crt, others->chain[i]) != 0)
            return true;
    return false;
}

int bundle_join(char **bundle, struct slice other, int64_t now_s, struct error *err)
{
    const struct pem_pair pair = {.crt = *bundle, .crt_name = "a bundle"};
    gnutls_datum_t text = {(unsigned char *)(uintptr_t)other.ptr, (unsigned)other.len};
    struct material own = {0}, added = {0};
    int rc = read_chain(&own, &pair, err), appended = 0;

    if (rc == 0 &&
        gnutls_x509_crt_list_import2(&added.chain, &added.count, &text, GNUTLS_X509_FMT_PEM, 0) < 0)
        added = (struct material){.count = 0}; /* GnuTLS has freed them */
    for (unsigned i = 0, count = own.count; i < added.count && count < BUNDLE_MAX; i++)
        if (appended == 0 && !is_among(added.chain[i], &own) &&
            gnutls_x509_crt_get_expiration_time(added.chain[i]) > now_s) {
            appended = append_crt(bundle, added.chain[i]);
            count++;
        }
    material_dispose(&own);
    material_dispose(&added);
    return rc < 0 ? rc : check(appended, "a bundle", err);
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
    int rc = read_chain(&issuers, authority, err);

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
        if (type == GNUTLS_SAN_IPADDRESS && add_address(out, name, size, err) < 0)
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
    int rc = read_chain(&material, pair, err);
    if (rc == 0 && pair->key != NULL)
        rc = read_key(&material, pair, err);
    if (rc == 0 && material.count != 0) {
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
