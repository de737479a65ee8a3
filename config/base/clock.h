/*
 * clock: the current time. Only code that talks to the network or to a user reads it; all other
 * functions take the time as a parameter, so that tests choose it.
 *
 * Threads: any.
 */
#ifndef CONFIG_BASE_CLOCK_H
#define CONFIG_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Milliseconds since 1970. */
int64_t now_ms(void);

/* Nanoseconds of CLOCK_MONOTONIC, which never jumps, for durations and deadlines. */
uint64_t monotonic_ns(void);

#define NS_PER_MS     UINT64_C(1000000)
#define NS_PER_SECOND UINT64_C(1000000000)

/* Whole milliseconds until that time of monotonic_ns; 0 if it has passed. */
static inline int64_t ms_until(uint64_t at_ns)
{
    uint64_t now_ns = monotonic_ns();

    return now_ns >= at_ns ? 0 : (int64_t)((at_ns - now_ns) / NS_PER_MS);
}

/* Makes a condition that uses CLOCK_MONOTONIC. */
static inline void clock_init_cond(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

/* A time of monotonic_ns for the pthread_cond_timedwait of such a condition. */
static inline struct timespec monotonic_timespec(uint64_t at_ns)
{
    return (struct timespec){.tv_sec = (time_t)(at_ns / NS_PER_SECOND),
                             .tv_nsec = (long)(at_ns % NS_PER_SECOND)};
}

#endif
