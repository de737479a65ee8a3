/*
 * watchdog: finds threads that have worked on one task for longer than any task takes, because of a
 * deadlock or an endless wait. /livez fails then, so that the kubelet restarts the process.
 *
 *     struct watched *watched = watchdog_begin(watchdog, "preemption");
 *     // work that always ends within WATCHDOG_SECONDS
 *     watchdog_end(watched);
 *
 * Threads: any; no function blocks.
 */
#ifndef CONFIG_BASE_WATCHDOG_H
#define CONFIG_BASE_WATCHDOG_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    WATCHDOG_SECONDS = 60, /* a call takes a few seconds, a request to the API server ten */
    WATCHDOG_SLOTS = 512,  /* more than all connections and threads together */
};

struct watched {
    _Atomic(uint64_t) since_ns; /* 0: free */
    _Atomic(const char *) what;
};

/* Starts as all zero. */
struct watchdog {
    struct watched slots[WATCHDOG_SLOTS];
    atomic_uint next; /* where the next search for a free slot starts */
};

/* what: a static string. Returns NULL if watchdog is NULL or full; watchdog_end accepts that. */
struct watched *watchdog_begin(struct watchdog *watchdog, const char *what);
void watchdog_end(struct watched *watched);

/* A task that has taken too long at now_ns (monotonic_ns), and for how many seconds; NULL if there
 * is none. */
const char *watchdog_find(struct watchdog *watchdog, uint64_t now_ns, unsigned *seconds);

#endif
