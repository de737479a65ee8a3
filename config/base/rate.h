/*
 * rate: how often something may be done: so many at once, so many a second in the long run.
 *
 * One thread at a time.
 */
#ifndef CONFIG_BASE_RATE_H
#define CONFIG_BASE_RATE_H

#include <stdbool.h>
#include <stdint.h>

struct rate {
    double per_second, burst;
    double left; /* that may be done now */
    uint64_t refilled_ns;
};

void rate_init(struct rate *rate, double per_second, double burst, uint64_t now_ns);

/* Whether it may be done now; if so, it is counted. */
bool rate_take(struct rate *rate, uint64_t now_ns);

#endif
