/*
 * callers: clients that call a server at the same time, each on a kept connection and as fast as it
 * is answered; and how long the calls took.
 */
#ifndef TESTS_BENCH_CALLERS_H
#define TESTS_BENCH_CALLERS_H

#include <stddef.h>
#include <stdint.h>

#include "config/base/buf.h"
#include "programs.h"

enum { CALLERS_MAX = 64, CALLERS_TURNS_MAX = 16 };

struct callers {
    uint16_t port;
    unsigned count;
    double seconds;
    const struct buf *requests; /* one for each caller */
};

/* Percentiles in microseconds. */
struct latency {
    double p50, p99, p999, max;
};

/* One turn. */
struct latency callers_run(const struct callers *callers);

/* Of several turns; `max` is the longest call of all. */
struct latencies {
    struct spread p50, p99, p999;
    double max;
};

struct latencies callers_spread(const struct latency *turns, size_t count);

#endif
