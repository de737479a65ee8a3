/*
 * tls: what the scheduler's port shows of itself, and whom it lets in: the files of `server.tls`,
 * with GnuTLS, TLS 1.2 and 1.3.
 *
 * The files are read again when they change, and new connections are answered with what they hold
 * then; what cannot be used is reported, and what was in force stays.
 *
 * With clientCAFile, a client has to show a certificate for clients that this authority signed, and
 * the handshake fails otherwise: no byte of HTTP is read from anyone else. (libmicrohttpd's own
 * MHD_OPTION_HTTPS_MEM_TRUST only asks for a certificate, and lets in who shows none, or another.)
 *
 *     tls_hold      once a connection, at its handshake
 *     tls_show      the session's certificate
 *     tls_admits    the client's
 *     tls_let_go    when the connection is closed
 *
 * Threads: tls_refresh by one at a time; the others by any.
 */
#ifndef EXTENDER_HTTP_TLS_H
#define EXTENDER_HTTP_TLS_H

#include <gnutls/abstract.h>
#include <stdint.h>

#include "config/config.h"

enum { TLS_CHAIN_MAX = 16 /* certificates */ };

#define TLS_PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct tls;
struct tls_identity;

/* Ownership: tls_close. *out is NULL when the configuration asks for no TLS.
 * Errors: ERROR_INVALID, with the file and what is wrong with it. */
int tls_open(struct tls **out, const struct config *config, struct error *err);
void tls_close(struct tls *tls);

/* Reads the files again, if one of them has changed. Errors: as tls_open, once for each change;
 * nothing changes then. */
int tls_refresh(struct tls *tls, bool *has_changed, struct error *err);

/* When the certificate in force ends, in seconds since 1970; 0: tls is NULL. */
int64_t tls_not_after(struct tls *tls);

/* What is in force now; it stays until it is let go. NULL is fine. */
struct tls_identity *tls_hold(struct tls *tls);
void tls_let_go(struct tls_identity *identity);

/* Answers gnutls_certificate_retrieve_function2; check: is called with the client's certificate,
 * where one is needed. */
int tls_show(struct tls_identity *identity, gnutls_session_t session,
             gnutls_certificate_verify_function *check, gnutls_pcert_st **chain, unsigned *count,
             gnutls_privkey_t *key);

/* Whether the client's certificate is good; else why it is not, in the buffer. */
bool tls_admits(const struct tls_identity *identity, gnutls_session_t session, char *problem,
                size_t problem_bytes);

#endif
