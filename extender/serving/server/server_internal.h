/* What server.c and server_request.c share. Only these files include this. */
#ifndef EXTENDER_SERVING_SERVER_SERVER_INTERNAL_H
#define EXTENDER_SERVING_SERVER_SERVER_INTERNAL_H

#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdarg.h>

#include "config/base/quota.h"
#include "extender/serving/admission/admit.h"
#include "extender/serving/http/connections.h"
#include "extender/serving/server/server.h"
#include "extender/serving/verbs/verbs.h"
#include "extender/serving/zpages/zpages.h"

struct tls_identity;

struct server {
    struct state *state;
    enum server_role role;
    struct tls *tls; /* borrowed; NULL: plain text */
    struct MHD_Daemon *daemon;
    struct connections connections;
    pthread_mutex_t refusals_lock; /* guards refusals */
    struct rate refusals;
    char address[NI_MAXHOST + 16];
};

/* A connection and the request on it. A connection has one request at a time. */
struct connection {
    struct server *server;
    struct connection_entry entry;
    struct tls_identity *identity; /* NULL: plain text, or no handshake yet */
    struct scratch scratch;
    enum verb verb;           /* of the request, after server_begin_request */
    struct admit_call review; /* the same, of SERVER_ADMISSION */
    struct pieces *rest;      /* the unwritten rest of the page that is being sent; NULL: none */
    size_t sent;              /* bytes of scratch.answer that are sent already */
};

/* The connection enters a stage, and gets the time of that stage (connections.h). */
void server_enter(struct connection *connection, enum stage stage);

/* The phases of a request: its headers, each part of its body (sets *size to 0), its end. A request
 * without a body may be answered at its headers. */
enum MHD_Result server_begin_request(struct connection *connection, struct MHD_Connection *mhd,
                                     const char *path, const char *method);
enum MHD_Result server_take_body(struct connection *connection, const char *data, size_t *size);
enum MHD_Result server_end_request(struct connection *connection, struct MHD_Connection *mhd);

#endif
