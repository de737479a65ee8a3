/*
 * connections: the open connections of one server. It closes those that are too slow, and one when
 * there are too many. A deadline is for a whole stage (the headers, the body, ...), so a client
 * that sends a byte now and then does not extend it.
 *
 * When there are too many, one is closed: if one address floods the port with connections without
 * any request, the oldest of these, so that who opens thousands and never finishes a TLS handshake
 * closes only their own; else the one that has used most of its time. A connection in STAGE_WORK
 * never is.
 *
 * To close means to shut the socket down; libmicrohttpd, which owns it, then ends the connection.
 *
 * Threads: any; the module's own thread checks the deadlines.
 */
#ifndef EXTENDER_SERVING_HTTP_CONNECTIONS_H
#define EXTENDER_SERVING_HTTP_CONNECTIONS_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/base/error.h"

enum {
    HEADER_SECONDS_MAX = 10, /* for STAGE_HELLO, and for STAGE_HEADERS */
    BODY_SECONDS_MAX = 10,
    ANSWER_SECONDS_MAX = 30, /* for the client to read the answer */
    IDLE_SECONDS_MAX = 120,  /* longer than 90 s, when a Go client closes an idle connection */
};

enum { CONNECTION_SHARES = 1024 };

enum stage {
    STAGE_HELLO,   /* accepted, until the first request line has arrived */
    STAGE_HEADERS, /* after the request line */
    STAGE_BODY,
    STAGE_WORK,   /* the client waits for the answer: no deadline */
    STAGE_ANSWER, /* the answer is being sent */
    STAGE_IDLE,   /* after an answer, until the next request line has arrived */
    STAGE_COUNT,
};

/* A connection. Ownership: the caller, which embeds it, zeroed, in its own struct. */
struct connection_entry {
    struct connection_entry *prev, *next;
    int socket;
    struct in6_addr address; /* the /64 of IPv6; IPv4 mapped into IPv6 */
    bool is_new;             /* no request has arrived on it yet, and it is not closed */
    enum stage stage;
    uint64_t since_ns; /* when the stage began */
    bool is_closed;
};

/* How many there can be; 0: no limit, but of max, which has to be given. */
struct connection_limits {
    unsigned max, per_address_max;
    unsigned new_per_address_max; /* without a request; more are not accepted, and less of several
                                     addresses */
    unsigned flood;               /* so many of one address without a request are a flood */
};

struct connections {
    pthread_mutex_t lock; /* guards the other members, and the entries */
    pthread_cond_t stops;
    struct connection_entry *first; /* utlist; the newest */
    struct connection_limits limits;
    uint16_t new_in[CONNECTION_SHARES]; /* new ones, by a hash of their addresses */
    unsigned new_count, new_addresses;  /* all of these, and how many hashes have some */
    uint32_t seed;                      /* of this hash */
    atomic_uint *gauge;                 /* number of connections that are not closed */
    uint64_t hurry_ns;                  /* when connections_hurry was called; UINT64_MAX: not yet */
    bool is_stopping;
    pthread_t thread;
};

/* Starts the thread. gauge: the number of open connections is kept there.
 * Ownership: connections_stop. Errors: ERROR_SYSTEM. */
int connections_start(struct connections *connections, const struct connection_limits *limits,
                      atomic_uint *gauge, struct error *err);

/* The caller has removed all connections before. */
void connections_stop(struct connections *connections);

/* Whether one more connection from that address may be accepted. */
bool connections_may_add(struct connections *connections, const struct sockaddr *address);

/* Adds an accepted connection; another one may be closed for it. The caller removes it before it
 * closes the socket. */
void connections_add(struct connections *connections, struct connection_entry *entry, int socket,
                     const struct sockaddr *address);
void connections_remove(struct connections *connections, struct connection_entry *entry);

/* The connection enters a stage, whose time begins. */
void connections_enter(struct connections *connections, struct connection_entry *entry,
                       enum stage stage);

/* For a shutdown: from now on, each stage has one second, except STAGE_WORK. */
void connections_hurry(struct connections *connections);

/* The number of connections with a request that is not answered completely. */
unsigned connections_busy(struct connections *connections);

#endif
