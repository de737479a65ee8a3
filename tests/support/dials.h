/*
 * dials: connections to a port of loopback, from 127.0.0.2 and the next ones, on which nothing ever
 * comes: a flood.
 *
 *     struct dials dials = {.port = port, .per_second = 4000, .kept = 1000};
 *     dials_begin(&dials);
 *     ...
 *     dials_end(&dials);
 *
 * Threads: one of its own.
 */
#ifndef TESTS_SUPPORT_DIALS_H
#define TESTS_SUPPORT_DIALS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { DIALS_KEPT_MAX = 1000 };

struct dials {
    uint16_t port;
    unsigned per_second;
    unsigned addresses; /* from which they come, in turn; 0: one */
    unsigned kept;      /* of the last ones, so many stay open; at most DIALS_KEPT_MAX */
    pthread_t thread;
    atomic_bool is_over;
    atomic_uint count; /* so far */
};

void dials_begin(struct dials *dials);
void dials_end(struct dials *dials);

#endif
