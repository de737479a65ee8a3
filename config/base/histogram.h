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

/* The upper bounds of the buckets, in seconds. */
extern const double histogram_bounds[HISTOGRAM_BUCKETS];

/* Starts as all zero. */
struct histogram {
    atomic_uint_fast64_t buckets[HISTOGRAM_BUCKETS + 1]; /* not cumulative; the last one is +Inf */
    atomic_uint_fast64_t sum_ns;
};

void histogram_observe(struct histogram *histogram, uint64_t duration_ns);

#endif
