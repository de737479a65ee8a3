/*
 * rate: limits how often something happens (a token bucket): `burst` times at once, and
 * `per_second` on average.
 *
 * Threads: one at a time.
 */
#ifndef CONFIG_BASE_RATE_H
#define CONFIG_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct rate {
    double per_second, burst;
    double left; /* tokens */
    uint64_t refilled_ns;
};

void rate_init(struct rate *rate, double per_second, double burst, uint64_t now_ns);

/* How often it may happen now. */
double rate_left(struct rate *rate, uint64_t now_ns);

/* Whether it may happen now; if so, it is counted. */
bool rate_take(struct rate *rate, uint64_t now_ns);

#endif
