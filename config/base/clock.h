/*
 * clock: what time it is. Only those ask who stand between the program and the world; all else is
 * told the time, so that tests can tell it, too.
 */
#ifndef CONFIG_BASE_CLOCK_H
#define CONFIG_BASE_CLOCK_H

#include <stdint.h>

/* Milliseconds since 1970. */
int64_t now_ms(void);

/* Nanoseconds of a clock that only runs forward, for durations and deadlines. */
uint64_t monotonic_ns(void);

#endif
