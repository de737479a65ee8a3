/*
 * histogram: how long something took, in buckets that fit what a scheduler and an API server do.
 *
 * Threads: any.
 */
#ifndef CONFIG_BASE_HISTOGRAM_H
#define CONFIG_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 17 };

/* Their upper bounds, in seconds. */
extern const double histogram_bounds[HISTOGRAM_BUCKETS];

/* All zero: nothing was observed. */
struct histogram {
    atomic_uint_fast64_t buckets[HISTOGRAM_BUCKETS + 1]; /* not cumulated; the last one is +Inf */
    atomic_uint_fast64_t sum_ns;
};

void histogram_observe(struct histogram *histogram, uint64_t duration_ns);

#endif
