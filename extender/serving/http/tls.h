/*
 * tls: the certificate that a port shows, and the clients that it accepts, with GnuTLS, TLS 1.2
 * and 1.3: the files of `server.tls` (the scheduler's port) or `admission.tls`, or texts that a
 * caller gives (certificates: Secrets).
 *
 * Changed files are read again, and new connections use their contents. Files that cannot be used
 * are reported, and the old contents stay in force.
 *
 * With clientCAFile, a client must show a client certificate that this authority signed. Otherwise
 * the handshake fails, and no HTTP is read. (libmicrohttpd's MHD_OPTION_HTTPS_MEM_TRUST is not
 * enough: it requests a certificate, but accepts clients without one, or with another one.)
 *
 *     tls_hold      once for each connection, at its handshake
 *     tls_show      shows claimguard's certificate in the session
 *     tls_admits    checks the client's certificate
 *     tls_let_go    when the connection is closed
 *
 * Threads: tls_refresh and tls_give: one at a time; the others: any.
 */
#ifndef EXTENDER_SERVING_HTTP_TLS_H
#define EXTENDER_SERVING_HTTP_TLS_H

#include <gnutls/abstract.h>
#include <stdint.h>

#include "config/config.h"

enum { TLS_CHAIN_MAX = 16 /* certificates */ };

#define TLS_PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct tls;
struct tls_identity;

/* Reads the files. *out is NULL if there is no certificate among them. section: their key in the
 * configuration, a static string.
 * Ownership: tls_close. Errors: ERROR_INVALID or ERROR_SYSTEM, with the key and the file. */
int tls_open(struct tls **out, const struct tls_files *files, const char *section,
             struct error *err);
void tls_close(struct tls *tls);

/* Without files: handshakes fail until tls_give. origin: of the texts, for messages. Ownership,
 * errors: as tls_open. */
int tls_open_empty(struct tls **out, const char *origin, struct error *err);

/* In PEM. */
struct tls_texts {
    struct slice cert, key;
    struct slice client_ca; /* empty: anyone may connect */
};

/* Puts the texts in force. Errors: ERROR_INVALID; the identity in force stays. */
int tls_give(struct tls *tls, const struct tls_texts *texts, struct error *err);

/* Whether there is a certificate to show; true if tls is NULL. */
bool tls_is_ready(struct tls *tls);

/* Reads the files again if one of them has changed. Errors: as tls_open, once for each change; the
 * identity in force stays. */
int tls_refresh(struct tls *tls, bool *has_changed, struct error *err);

/* When the certificate in force expires, in seconds since 1970; 0: there is none. */
int64_t tls_not_after(struct tls *tls);

/* The identity in force; NULL: there is none yet. It stays valid until tls_let_go, which accepts
 * NULL, as tls_show does. */
struct tls_identity *tls_hold(struct tls *tls);
void tls_let_go(struct tls_identity *identity);

/* The result of a gnutls_certificate_retrieve_function2. If clients need a certificate, check is
 * called for it. */
int tls_show(struct tls_identity *identity, gnutls_session_t session,
             gnutls_certificate_verify_function *check, gnutls_pcert_st **chain, unsigned *count,
             gnutls_privkey_t *key);

/* Whether the client's certificate is accepted. If not, the reason is written to problem. */
bool tls_admits(const struct tls_identity *identity, gnutls_session_t session, char *problem,
                size_t problem_bytes);

#endif
