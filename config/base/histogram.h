/*
 * histogram: counts durations in buckets, for calls of a scheduler and requests to an API server.
 *
 * Threads: any.
 */
#ifndef CONFIG_BASE_HISTOGRAM_H
#define CONFIG_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 17 };

/* The upper bounds of the buckets, in seconds: from a filter call with a few nodes up to the
 * longest timeout of a scheduler. */
static const double histogram_bounds[HISTOGRAM_BUCKETS] = {
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
    0.05,    0.1,    0.25,    0.5,    1,     2.5,    5,     10,
};

/* Starts as all zero. */
struct histogram {
    atomic_uint_fast64_t buckets[HISTOGRAM_BUCKETS + 1]; /* not cumulative; the last one is +Inf */
    atomic_uint_fast64_t sum_ns;
};

static inline void histogram_observe(struct histogram *histogram, uint64_t duration_ns)
{
    unsigned bucket = 0;

    while (bucket < HISTOGRAM_BUCKETS && (double)duration_ns > histogram_bounds[bucket] * 1e9)
        bucket++;
    atomic_fetch_add_explicit(&histogram->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_ns, duration_ns, memory_order_relaxed);
}

#endif
