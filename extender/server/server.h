/*
 * server: HTTP around verbs and pages, with libmicrohttpd: a thread for each connection, so that no
 * call waits behind another's. A second server, for probes and scrapes, stays reachable when the
 * scheduler takes all connections of the first.
 *
 * What libmicrohttpd 0.9.75 lets through is refused here: several or contradictory lengths, a
 * request without one, encodings other than chunked, bodies over the limit. Who is slow is closed,
 * and who takes more connections than there are, or than an address may have of the second server:
 * connections.h.
 *
 * With state->tls, the verbs are served over TLS (tls.h); probes and scrapes are not.
 */
#ifndef EXTENDER_SERVER_SERVER_H
#define EXTENDER_SERVER_SERVER_H

#include "extender/state.h"

enum {
    VERB_CONNECTIONS_MAX = 256,
    PAGE_CONNECTIONS_MAX = 64,
    PAGE_CONNECTIONS_PER_ADDRESS_MAX = 16,
    CONNECTION_BUFFER_BYTES = 64 * 1024, /* bounds the headers; larger buys no speed */
    DRAIN_SECONDS_MAX = 5,               /* a bind takes four */
    PAGES_DRAIN_SECONDS_MAX = 1
};

enum server_role {
    SERVER_VERBS, /* verbs and pages */
    SERVER_PAGES, /* pages only */
};

struct server;

/*
 * Starts to listen on address (config_split_address).
 * Ownership: server_stop. The state outlives the server.
 * Errors: ERROR_INVALID, ERROR_SYSTEM with the address.
 */
int server_start(struct server **out, struct state *state, struct slice address,
                 enum server_role role, struct error *err);

/* "127.0.0.1:8888", with the port that the system chose for port 0. */
const char *server_address(const struct server *server);

/* Stops accepting, answers what was accepted (for at most DRAIN_SECONDS_MAX; what is still to be
 * sent to us has a second), and frees. After that, whoever still waits for the API server is
 * interrupted (requests_interrupt), here and elsewhere: to be called when claimguard ends. NULL is
 * fine. */
void server_stop(struct server *server);

#endif
