/*
 * clock: what time it is. Only those ask who stand between the program and the world; all else is
 * told the time, so that tests can tell it, too.
 */
#ifndef CONFIG_BASE_CLOCK_H
#define CONFIG_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "config/base/slice.h"

/* Milliseconds since 1970. */
int64_t now_ms(void);

/* Nanoseconds of a clock that only runs forward, for durations and deadlines. */
uint64_t monotonic_ns(void);

#define NS_PER_MS UINT64_C(1000000)

/* Whole milliseconds until that time of this clock; 0: it has come. */
static inline int64_t ms_until(uint64_t at_ns)
{
    uint64_t now_ns = monotonic_ns();

    return now_ns >= at_ns ? 0 : (int64_t)((at_ns - now_ns) / NS_PER_MS);
}

/* A deadline on that clock, for pthread_cond_timedwait of a condition with CLOCK_MONOTONIC. */
static inline struct timespec monotonic_timespec(uint64_t at_ns)
{
    return (struct timespec){.tv_sec = (time_t)(at_ns / UINT64_C(1000000000)),
                             .tv_nsec = (long)(at_ns % UINT64_C(1000000000))};
}

/* Milliseconds since 1970 of an RFC 3339 time ("2026-11-20T10:00:00Z", "...T12:00:00.5+02:00"),
 * without its fraction of a second; 0: it is none. */
int64_t time_parse(struct slice text);

#endif
