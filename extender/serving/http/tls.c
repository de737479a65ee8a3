#include "extender/serving/http/tls.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/base/file.h"
#include "config/base/scope.h"

enum { KEY_ID_BYTES = 64 };

enum tls_file { FILE_CERT, FILE_KEY, FILE_CLIENT_CA, FILE_COUNT };
static const char *const file_keys[FILE_COUNT] = {"certFile", "keyFile", "clientCAFile"};
static const char *const secret_keys[FILE_COUNT] = {"tls.crt", "tls.key", "ca.crt"};

/* What the files contained when they were read. */
struct tls_identity {
    atomic_uint holders; /* references */
    gnutls_pcert_st chain[TLS_CHAIN_MAX];
    unsigned chain_count;
    gnutls_privkey_t key;
    gnutls_x509_trust_list_t clients; /* authorities of clients; NULL: any client may connect */
    int64_t not_after;                /* seconds since 1970 */
};

struct tls {
    const char *section;           /* "server.tls"; without files: "Secret claimguard-tls" */
    pthread_mutex_t lock;          /* guards identity, not what it points to */
    struct tls_identity *identity; /* in force */
    char *paths[FILE_COUNT];       /* NULL: not configured */
    struct file_mark marks[FILE_COUNT];
};

/* ---- reading ---- */

void tls_let_go(struct tls_identity *identity)
{
    if (identity == NULL || atomic_fetch_sub(&identity->holders, 1) != 1)
        return;
    for (unsigned i = 0; i < identity->chain_count; i++)
        gnutls_pcert_deinit(&identity->chain[i]);
    gnutls_privkey_deinit(identity->key);
    if (identity->clients != NULL)
        gnutls_x509_trust_list_deinit(identity->clients, 1);
    free(identity);
}

/* problem: the text of GnuTLS. GnuTLS has one text for all files that cannot be read, so this finds
 * the errno itself. */
static int file_error(const struct tls *tls, enum tls_file file, const char *problem,
                      struct error *err)
{
    const char *path = tls->paths[file];

    if (path == NULL)
        return error_set(err, ERROR_INVALID, "%s: %s: %s", tls->section, secret_keys[file],
                         problem);
    if (access(path, R_OK) != 0)
        return error_system(err, errno, "%s.%s %s", tls->section, file_keys[file], path);
    return error_set(err, ERROR_INVALID, "%s.%s %s: %s", tls->section, file_keys[file], path,
                     problem);
}

static int read_chain(const struct tls *tls, struct tls_identity *identity,
                      const gnutls_datum_t *text, struct error *err)
{
    unsigned count = TLS_CHAIN_MAX;
    int rc = gnutls_pcert_list_import_x509_raw(identity->chain, &count, text, GNUTLS_X509_FMT_PEM,
                                               GNUTLS_X509_CRT_LIST_SORT);

    if (rc < 0)
        return file_error(tls, FILE_CERT, gnutls_strerror(rc), err);
    identity->chain_count = count;
    gnutls_x509_crt_t first;
    if (gnutls_pcert_export_x509(&identity->chain[0], &first) < 0)
        return error_no_memory(err);
    identity->not_after = gnutls_x509_crt_get_expiration_time(first);
    gnutls_x509_crt_deinit(first);
    return 0;
}

/* Whether the key belongs to the first certificate. */
static bool is_pair(const struct tls_identity *identity)
{
    unsigned char of_cert[KEY_ID_BYTES], of_key[KEY_ID_BYTES];
    size_t cert_bytes = sizeof of_cert, key_bytes = sizeof of_key;
    gnutls_pubkey_t pubkey;

    if (gnutls_pubkey_init(&pubkey) < 0)
        return false;
    bool is_known =
        gnutls_pubkey_import_privkey(pubkey, identity->key, 0, 0) == 0 &&
        gnutls_pubkey_get_key_id(pubkey, 0, of_key, &key_bytes) == 0 &&
        gnutls_pubkey_get_key_id(identity->chain[0].pubkey, 0, of_cert, &cert_bytes) == 0;
    gnutls_pubkey_deinit(pubkey);
    return is_known && slice_equal((struct slice){(char *)of_cert, cert_bytes},
                                   (struct slice){(char *)of_key, key_bytes});
}

static int read_clients(const struct tls *tls, struct tls_identity *identity,
                        const gnutls_datum_t *text, struct error *err)
{
    if (text->data == NULL && tls->paths[FILE_CLIENT_CA] == NULL)
        return 0;
    if (gnutls_x509_trust_list_init(&identity->clients, 0) < 0)
        return error_no_memory(err);
    int count = gnutls_x509_trust_list_add_trust_mem(identity->clients, text, NULL,
                                                     GNUTLS_X509_FMT_PEM, 0, 0);
    if (count <= 0)
        return file_error(tls, FILE_CLIENT_CA,
                          count < 0 ? gnutls_strerror(count) : "no certificate in it", err);
    return 0;
}

static int read_identity(const struct tls *tls, const gnutls_datum_t texts[FILE_COUNT],
                         struct tls_identity **out, struct error *err)
{
    struct tls_identity *identity = calloc(1, sizeof *identity);

    if (identity == NULL || gnutls_privkey_init(&identity->key) < 0) {
        free(identity);
        return error_no_memory(err);
    }
    atomic_init(&identity->holders, 1);
    int rc = read_chain(tls, identity, &texts[FILE_CERT], err);
    if (rc == 0) {
        int read = gnutls_privkey_import_x509_raw(identity->key, &texts[FILE_KEY],
                                                  GNUTLS_X509_FMT_PEM, NULL, 0);
        rc = read < 0 ? file_error(tls, FILE_KEY, gnutls_strerror(read), err) : 0;
    }
    if (rc == 0 && !is_pair(identity))
        rc = file_error(tls, FILE_KEY, "is not the key of the certificate in certFile", err);
    if (rc == 0)
        rc = read_clients(tls, identity, &texts[FILE_CLIENT_CA], err);
    if (rc < 0)
        tls_let_go(identity);
    else
        *out = identity;
    return rc;
}

/* Reads the files that are configured. */
static int load_files(const struct tls *tls, gnutls_datum_t texts[FILE_COUNT], struct error *err)
{
    for (int i = 0; i < FILE_COUNT; i++) {
        int rc = tls->paths[i] == NULL ? 0 : gnutls_load_file(tls->paths[i], &texts[i]);
        if (rc < 0)
            return file_error(tls, (enum tls_file)i, gnutls_strerror(rc), err);
    }
    return 0;
}

static int load_identity(const struct tls *tls, struct tls_identity **out, struct error *err)
{
    gnutls_datum_t texts[FILE_COUNT] = {{NULL, 0}};
    int rc = load_files(tls, texts, err);

    if (rc == 0)
        rc = read_identity(tls, texts, out, err);
    for (int i = 0; i < FILE_COUNT; i++) {
        if (texts[i].data != NULL)
            gnutls_memset(texts[i].data, 0, texts[i].size);
        gnutls_free(texts[i].data);
    }
    return rc;
}

/* ---- the identity in force ---- */

int tls_open_empty(struct tls **out, const char *section, struct error *err)
{
    struct tls *tls = calloc(1, sizeof *tls);

    *out = tls;
    if (tls == NULL)
        return error_no_memory(err);
    tls->section = section;
    (void)pthread_mutex_init(&tls->lock, NULL);
    return 0;
}

int tls_open(struct tls **out, const struct tls_files *files, const char *section,
             struct error *err)
{
    const struct slice paths[FILE_COUNT] = {files->cert, files->key, files->client_ca};
    struct tls *tls;

    *out = NULL;
    if (files->cert.len == 0)
        return 0;
    if (tls_open_empty(&tls, section, err) < 0)
        return err->code;
    bool has_memory = true;
    for (int i = 0; i < FILE_COUNT; i++)
        if (paths[i].len != 0)
            has_memory =
                (tls->paths[i] = strndup(paths[i].ptr, paths[i].len)) != NULL && has_memory;
    bool has_changed;
    int rc = has_memory ? tls_refresh(tls, &has_changed, err) : error_no_memory(err);
    if (rc < 0)
        tls_close(tls);
    else
        *out = tls;
    return rc;
}

void tls_close(struct tls *tls)
{
    if (tls == NULL)
        return;
    tls_let_go(tls->identity);
    for (int i = 0; i < FILE_COUNT; i++)
        free(tls->paths[i]);
    (void)pthread_mutex_destroy(&tls->lock);
    free(tls);
}

static void put_in_force(struct tls *tls, struct tls_identity *identity)
{
    (void)pthread_mutex_lock(&tls->lock);
    struct tls_identity *old = tls->identity;
    tls->identity = identity;
    (void)pthread_mutex_unlock(&tls->lock);
    tls_let_go(old);
}

int tls_refresh(struct tls *tls, bool *has_changed, struct error *err)
{
    struct tls_identity *identity = NULL;

    *has_changed = false;
    if (tls->paths[FILE_CERT] == NULL)
        return 0;
    *has_changed = tls->identity == NULL;
    for (int i = 0; i < FILE_COUNT;
         i++) { /* before they are read: what changes then is seen next */
        struct file_mark mark = file_mark(tls->paths[i]);
        *has_changed = *has_changed || !file_mark_equal(&mark, &tls->marks[i]);
        tls->marks[i] = mark;
    }
    if (!*has_changed)
        return 0;
    if (load_identity(tls, &identity, err) < 0)
        return err->code;
    put_in_force(tls, identity);
    return 0;
}

static gnutls_datum_t datum_of(struct slice text)
{
    return (gnutls_datum_t){text.len == 0 ? NULL : (unsigned char *)(uintptr_t)text.ptr,
                            (unsigned)text.len};
}

int tls_give(struct tls *tls, const struct tls_texts *given, struct error *err)
{
    const gnutls_datum_t texts[FILE_COUNT] = {
        [FILE_CERT] = datum_of(given->cert),
        [FILE_KEY] = datum_of(given->key),
        [FILE_CLIENT_CA] = datum_of(given->client_ca),
    };
    struct tls_identity *identity = NULL;

    if (read_identity(tls, texts, &identity, err) < 0)
        return err->code;
    put_in_force(tls, identity);
    return 0;
}

struct tls_identity *tls_hold(struct tls *tls)
{
    SCOPED_LOCK(&tls->lock);
    struct tls_identity *identity = tls->identity;
    if (identity != NULL)
        atomic_fetch_add(&identity->holders, 1);
    return identity;
}

int64_t tls_not_after(struct tls *tls)
{
    if (tls == NULL)
        return 0;
    struct tls_identity *identity = tls_hold(tls);
    int64_t not_after = identity == NULL ? 0 : identity->not_after;

    tls_let_go(identity);
    return not_after;
}

bool tls_is_ready(struct tls *tls)
{
    if (tls == NULL)
        return true;
    SCOPED_LOCK(&tls->lock);
    return tls->identity != NULL;
}

/* ---- a handshake ---- */

int tls_show(struct tls_identity *identity, gnutls_session_t session,
             gnutls_certificate_verify_function *check, gnutls_pcert_st **chain, unsigned *count,
             gnutls_privkey_t *key)
{
    if (identity == NULL)
        return GNUTLS_E_NO_CERTIFICATE_FOUND;
    if (identity->clients != NULL) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
        gnutls_session_set_verify_function(session, check);
    }
    *chain = identity->chain;
    *count = identity->chain_count;
    *key = identity->key;
    return 0;
}

/* Decodes the client's certificates, and returns their number; 0 if there are none, too many, or
 * one that cannot be decoded. */
static unsigned import_peers(gnutls_session_t session, gnutls_x509_crt_t *chain)
{
    unsigned offered = 0, count = 0;
    const gnutls_datum_t *peers = gnutls_certificate_get_peers(session, &offered);

    if (peers == NULL || offered > TLS_CHAIN_MAX)
        return 0;
    for (; count < offered; count++) {
        if (gnutls_x509_crt_init(&chain[count]) < 0)
            break;
        if (gnutls_x509_crt_import(chain[count], &peers[count], GNUTLS_X509_FMT_DER) < 0) {
            gnutls_x509_crt_deinit(chain[count]);
            break;
        }
    }
    if (count == offered)
        return count;
    while (count > 0)
        gnutls_x509_crt_deinit(chain[--count]);
    return 0;
}

bool tls_admits(const struct tls_identity *identity, gnutls_session_t session, char *problem,
                size_t problem_bytes)
{
    gnutls_typed_vdata_st purpose = {GNUTLS_DT_KEY_PURPOSE_OID,
                                     (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, 0};
    gnutls_x509_crt_t chain[TLS_CHAIN_MAX];
    gnutls_datum_t text = {NULL, 0};
    unsigned status = 0;
    unsigned count = import_peers(session, chain);

    int rc = count == 0 ? GNUTLS_E_CERTIFICATE_ERROR
                        : gnutls_x509_trust_list_verify_crt2(identity->clients, chain, count,
                                                             &purpose, 1, 0, &status, NULL);
    for (unsigned i = 0; i < count; i++)
        gnutls_x509_crt_deinit(chain[i]);
    if (rc == 0 && status == 0)
        return true;
    if (rc == 0)
        (void)gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
    (void)snprintf(problem, problem_bytes, "%s",
                   text.data != NULL ? (const char *)text.data : gnutls_strerror(rc));
    gnutls_free(text.data);
    return false;
}
