/*
 * watchdog: which threads have been at one piece of work for longer than any takes: a deadlock, or
 * a wait without an end. /livez says so, so that the process is started anew.
 *
 *     struct watched *watched = watchdog_begin(watchdog, "evictions");
 *     // work that ends within WATCHDOG_SECONDS, whatever happens
 *     watchdog_end(watched);
 *
 * Threads: any; nobody waits here.
 */
#ifndef CONFIG_BASE_WATCHDOG_H
#define CONFIG_BASE_WATCHDOG_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    WATCHDOG_SECONDS = 60, /* calls have a few, what asks the API server ten */
    WATCHDOG_SLOTS = 512,  /* connections, and a few threads more */
};

struct watched {
    _Atomic(uint64_t) since_ns; /* 0: free */
    _Atomic(const char *) what;
};

/* All zero: nothing is watched. */
struct watchdog {
    struct watched slots[WATCHDOG_SLOTS];
    atomic_uint next; /* where to look for a free one */
};

/* what: a static string. NULL, which watchdog_end takes, when watchdog is NULL or full. */
struct watched *watchdog_begin(struct watchdog *watchdog, const char *what);
void watchdog_end(struct watched *watched);

/* What has taken too long, as of now_ns on the clock of monotonic_ns, and for how many seconds;
 * NULL: nothing has. */
const char *watchdog_find(struct watchdog *watchdog, uint64_t now_ns, unsigned *seconds);

#endif
