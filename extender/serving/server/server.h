/*
 * server: serves verbs and pages over HTTP, with libmicrohttpd. Each connection has a thread, so no
 * call waits for another one. A second server, for probes and scrapes, stays reachable when the
 * scheduler uses all connections of the first.
 *
 * Some requests that libmicrohttpd 0.9.75 accepts are refused here (server_request.c). Slow
 * connections are closed, and connections above the limit (connections.h).
 *
 * With state->tls, the verbs are served over TLS (tls.h). The second server has no TLS. A third
 * one, for admission webhooks, has nothing else, and state->admission_tls.
 */
#ifndef EXTENDER_SERVING_SERVER_SERVER_H
#define EXTENDER_SERVING_SERVER_SERVER_H

#include "extender/serving/state.h"

enum {
    VERB_CONNECTIONS_MAX = 256,
    ADMISSION_CONNECTIONS_MAX = 256, /* API servers use one for each review under way */
    PAGE_CONNECTIONS_MAX = 64,
    PAGE_CONNECTIONS_PER_ADDRESS_MAX = 16,
    CONNECTION_BUFFER_BYTES = 64 * 1024, /* limits the headers; a larger one is not faster */
    DRAIN_SECONDS_MAX = 5,               /* a bind takes at most four */
    PAGES_DRAIN_SECONDS_MAX = 1
};

enum server_role {
    SERVER_VERBS,     /* verbs and pages */
    SERVER_PAGES,     /* pages only */
    SERVER_ADMISSION, /* reviews only */
};

struct server;

/*
 * Starts to listen on the address, in the form of config_split_address.
 * Ownership: server_stop. The state outlives the server.
 * Errors: ERROR_INVALID, ERROR_SYSTEM with the address.
 */
int server_start(struct server **out, struct state *state, struct slice address,
                 enum server_role role, struct error *err);

/* "127.0.0.1:8888", with the port that the system chose for port 0. */
const char *server_address(const struct server *server);

/* Stops accepting connections, and answers the requests on the accepted ones, for at most
 * DRAIN_SECONDS_MAX; a client has one second to send the rest of a request. Then it interrupts all
 * requests to the API server, of any thread (requests_interrupt), and frees. So it is called only
 * when claimguard ends. NULL is allowed. */
void server_stop(struct server *server);

#endif
