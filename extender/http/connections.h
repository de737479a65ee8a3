/*
 * connections: the connections of one server, how long each may take, and which one makes room when
 * they are too many. A deadline is for a whole stage (the headers, the body, ...), so no trickle of
 * bytes extends it. For a new connection, of those that do not wait for us the one that has used up
 * most of its time is closed.
 *
 * Closing is a shutdown of the socket; its owner, libmicrohttpd, then ends the connection.
 *
 * Threads: any; a thread of its own looks at the deadlines.
 */
#ifndef EXTENDER_HTTP_CONNECTIONS_H
#define EXTENDER_HTTP_CONNECTIONS_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/base/error.h"

enum {
    HEADER_SECONDS_MAX = 10, /* from the connection (or a request's line) to the headers' end */
    BODY_SECONDS_MAX = 10,
    ANSWER_SECONDS_MAX = 30, /* to take it */
    IDLE_SECONDS_MAX = 120,  /* longer than the 90 s that Go keeps idle connections */
};

enum stage {
    STAGE_HELLO,   /* accepted; lasts until the first request's line is there */
    STAGE_HEADERS, /* behind a request's line */
    STAGE_BODY,
    STAGE_WORK,   /* the client waits for us: no deadline */
    STAGE_ANSWER, /* it is being sent */
    STAGE_IDLE,   /* until the next request's line is there */
    STAGE_COUNT,
};

/* One of them: part of its owner's record, zeroed. */
struct connection_entry {
    struct connection_entry *next, **link;
    int socket;
    struct in6_addr address; /* of IPv6, the /64; of IPv4, as IPv6 writes it */
    enum stage stage;
    uint64_t since_ns; /* of the stage */
    bool is_closed;
};

struct connections {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t stops;
    struct connection_entry *first;
    unsigned max;
    unsigned per_address_max; /* 0: as many as there are in all */
    atomic_uint *gauge;       /* how many are not closed */
    uint64_t hurry_ns;        /* when connections_hurry was called; UINT64_MAX: not yet */
    bool is_stopping;
    pthread_t thread;
};

/* Starts the thread. gauge: is kept up to date. Ownership: connections_stop. */
int connections_start(struct connections *connections, unsigned max, unsigned per_address_max,
                      atomic_uint *gauge, struct error *err);

/* All connections were removed before. */
void connections_stop(struct connections *connections);

/* One was accepted; others may have to make room. It is removed before its socket is closed. */
void connections_add(struct connections *connections, struct connection_entry *entry, int socket,
                     const struct sockaddr *address);
void connections_remove(struct connections *connections, struct connection_entry *entry);

void connections_enter(struct connections *connections, struct connection_entry *entry,
                       enum stage stage);

/* For a shutdown: from now on, each stage but our own work has a second. */
void connections_hurry(struct connections *connections);

/* How many are in the middle of a request. */
unsigned connections_busy(struct connections *connections);

#endif
