/*
 * callers: clients that call a server at the same time, each on a kept connection and as fast as it
 * is answered; and how long the calls took.
 */
#ifndef TESTS_BENCH_CALLERS_H
#define TESTS_BENCH_CALLERS_H

#include <stddef.h>
#include <stdint.h>

#include "config/base/buf.h"

enum { CALLERS_MAX = 64, CALLERS_TURNS_MAX = 16 };

struct callers {
    uint16_t port;
    unsigned count;
    double seconds;
    const struct buf *requests; /* one for each caller */
};

/* Percentiles in microseconds; calls a second of all callers. */
struct latency {
    double p50, p99, p999, max, rate;
};

/* One turn. */
struct latency callers_run(const struct callers *callers);

/* Of each percentile the median of the turns; of the longest the longest. spread_p999: the lowest
 * and the highest p99.9. */
struct latency callers_median(const struct latency *turns, size_t count, double spread_p999[2]);

#endif
