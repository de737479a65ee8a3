/* What server.c and server_tls.c share; nobody else includes this. */
#ifndef EXTENDER_SERVER_SERVER_INTERNAL_H
#define EXTENDER_SERVER_SERVER_INTERNAL_H

#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdarg.h>

#include "config/base/rate.h"
#include "extender/http/connections.h"
#include "extender/server/server.h"
#include "extender/verbs/verbs.h"
#include "extender/zpages/pieces.h"

struct tls_identity;

struct server {
    struct state *state;
    enum server_role role;
    struct MHD_Daemon *daemon;
    struct connections connections;
    pthread_mutex_t refusals_lock; /* guards refusals */
    struct rate refusals;
    char address[NI_MAXHOST + 16];
};

/* A connection and the request on it; requests on one connection follow one another. */
struct connection {
    struct server *server;
    struct connection_entry entry;
    struct tls_identity *identity; /* NULL: plain text, or no handshake yet */
    struct scratch scratch;
    enum verb verb;      /* of the request, once its headers were let through */
    struct pieces *rest; /* of the page that is being sent; NULL: nothing is still to be written */
    size_t sent;         /* of what scratch.answer has of it */
};

/* NULL: there was no memory when it was accepted. */
struct connection *server_connection(struct MHD_Connection *mhd);

void server_tls_init(struct server *server);
void server_tls_dispose(struct server *server);

/* A handshake has begun: which certificate is shown (gnutls_certificate_retrieve_function3). */
int server_tls_hello(gnutls_session_t session, const gnutls_datum_t *authorities, int count,
                     const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                     gnutls_pcert_st **chain, unsigned *chain_count, gnutls_privkey_t *key);

/* What libmicrohttpd has to say; among it, that a handshake has failed. */
void server_tls_log(void *server, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#endif
