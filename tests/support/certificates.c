#include "support/certificates.h"

#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { PATH_BYTES = 256, DAY_S = 86400 };

static void must(int rc, const char *what)
{
    if (rc >= 0)
        return;
    (void)fprintf(stderr, "certificates: %s: %s\n", what, gnutls_strerror(rc));
    abort();
}

static void path_of(char *path, const char *folder, const char *name, const char *extension)
{
    (void)snprintf(path, PATH_BYTES, "%s/%s.%s", folder, name, extension);
}

static void write_text(const char *folder, const char *name, const char *extension,
                       gnutls_datum_t *text)
{
    char path[PATH_BYTES];

    path_of(path, folder, name, extension);
    FILE *file = fopen(path, "we");
    if (file == NULL || fwrite(text->data, 1, text->size, file) != text->size || fclose(file) != 0)
        abort();
    gnutls_free(text->data);
}

static void read_issuer(const char *folder, const char *name, gnutls_x509_crt_t crt,
                        gnutls_x509_privkey_t key)
{
    gnutls_datum_t text;
    char path[PATH_BYTES];

    path_of(path, folder, name, "crt");
    must(gnutls_load_file(path, &text), path);
    must(gnutls_x509_crt_import(crt, &text, GNUTLS_X509_FMT_PEM), path);
    gnutls_free(text.data);
    path_of(path, folder, name, "key");
    must(gnutls_load_file(path, &text), path);
    must(gnutls_x509_privkey_import(key, &text, GNUTLS_X509_FMT_PEM), path);
    gnutls_free(text.data);
}

static void describe(gnutls_x509_crt_t crt, const struct certificate *certificate)
{
    static const unsigned char loopback[4] = {127, 0, 0, 1};
    bool is_plain = certificate->begins_s == 0 && certificate->ends_s == 0;
    time_t now = time(NULL);
    unsigned char serial[8];

    must(getrandom(serial, sizeof serial, 0) == sizeof serial ? 0 : -1, "getrandom");
    serial[0] &= 0x7F;
    must(gnutls_x509_crt_set_version(crt, 3), "version");
    must(gnutls_x509_crt_set_serial(crt, serial, sizeof serial), "serial");
    must(gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, certificate->name,
                                       (unsigned)strlen(certificate->name)),
         "name");
    must(
        gnutls_x509_crt_set_activation_time(crt, now + (is_plain ? -DAY_S : certificate->begins_s)),
        "time");
    must(gnutls_x509_crt_set_expiration_time(crt, now + (is_plain ? DAY_S : certificate->ends_s)),
         "time");
    must(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, loopback, sizeof loopback,
                                              GNUTLS_FSAN_SET),
         "address");
    must(gnutls_x509_crt_set_basic_constraints(crt, certificate->is_authority, -1), "authority");
    if (certificate->is_authority)
        must(gnutls_x509_crt_set_key_usage(crt, GNUTLS_KEY_KEY_CERT_SIGN), "usage");
    else
        must(gnutls_x509_crt_set_key_purpose_oid(
                 crt,
                 certificate->is_for_clients ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER,
                 0),
             "purpose");
}

static void make(const char *folder, const struct certificate *certificate)
{
    gnutls_x509_crt_t crt, issuer;
    gnutls_x509_privkey_t key, issuer_key;
    gnutls_datum_t text;

    must(gnutls_x509_crt_init(&crt), "memory");
    must(gnutls_x509_crt_init(&issuer), "memory");
    must(gnutls_x509_privkey_init(&key), "memory");
    must(gnutls_x509_privkey_init(&issuer_key), "memory");
    must(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                      GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
         "key");
    must(gnutls_x509_crt_set_key(crt, key), "key");
    describe(crt, certificate);
    if (certificate->issuer != NULL)
        read_issuer(folder, certificate->issuer, issuer, issuer_key);
    must(certificate->issuer == NULL
             ? gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0)
             : gnutls_x509_crt_sign2(crt, issuer, issuer_key, GNUTLS_DIG_SHA256, 0),
         "signature");
    must(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &text), "export");
    write_text(folder, certificate->name, "crt", &text);
    must(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text), "export");
    write_text(folder, certificate->name, "key", &text);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_crt_deinit(issuer);
    gnutls_x509_privkey_deinit(key);
    gnutls_x509_privkey_deinit(issuer_key);
}

void certificates_make(char folder[CERTIFICATES_FOLDER_BYTES],
                       const struct certificate *certificates, size_t count)
{
    (void)snprintf(folder, CERTIFICATES_FOLDER_BYTES, "/tmp/claimguard-tls-XXXXXX");
    must(mkdtemp(folder) == NULL ? -1 : 0, "folder");
    for (size_t i = 0; i < count; i++)
        make(folder, &certificates[i]);
}

void certificates_remove(const char *folder)
{
    char command[PATH_BYTES];

    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    must(system(command) == 0 ? 0 : -1, command); /* NOLINT: a folder of ours */
}

void certificates_path(char path[CERTIFICATES_PATH_BYTES], const char *folder, const char *file)
{
    (void)snprintf(path, CERTIFICATES_PATH_BYTES, "%s/%s", folder, file);
}
