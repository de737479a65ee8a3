#include "config/base/watchdog.h"

#include <stddef.h>

#include "config/base/clock.h"

struct watched *watchdog_begin(struct watchdog *watchdog, const char *what)
{
    if (watchdog == NULL)
        return NULL;
    for (int tries = 0; tries < WATCHDOG_SLOTS; tries++) {
        struct watched *slot =
            &watchdog->slots[atomic_fetch_add(&watchdog->next, 1) % WATCHDOG_SLOTS];
        uint64_t nothing = 0;
        if (!atomic_compare_exchange_strong(&slot->since_ns, &nothing, monotonic_ns()))
            continue;
        atomic_store(&slot->what, what);
        return slot;
    }
    return NULL;
}

void watchdog_end(struct watched *watched)
{
    if (watched != NULL)
        atomic_store(&watched->since_ns, 0);
}

const char *watchdog_find(struct watchdog *watchdog, uint64_t now_ns, unsigned *seconds)
{
    for (int i = 0; i < WATCHDOG_SLOTS; i++) {
        struct watched *slot = &watchdog->slots[i];
        uint64_t since_ns = atomic_load(&slot->since_ns);
        if (since_ns == 0 || now_ns < since_ns + WATCHDOG_SECONDS * NS_PER_SECOND)
            continue;
        *seconds = (unsigned)((now_ns - since_ns) / NS_PER_SECOND);
        return atomic_load(&slot->what);
    }
    return NULL;
}
