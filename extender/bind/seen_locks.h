/*
 * seen_locks: the locks of other pods (claim_lock.h) that were seen, and since when they have not
 * changed. A lock is identified by its claim's version, which changes with it.
 *
 * Threads: any. The state's lock guards it.
 */
#ifndef EXTENDER_BIND_SEEN_LOCKS_H
#define EXTENDER_BIND_SEEN_LOCKS_H

#include "extender/state.h"

enum { LOCKS_SEEN_MAX = 2000 }; /* of more, the oldest is forgotten, and its age begins anew */

struct seen_lock;

struct seen_locks {
    struct seen_lock *first; /* uthash */
};

/* When the lock was seen first, of monotonic_ns: now, if it is new, or there is no memory. key: the
 * claim's namespace/name/version. Takes the state's lock. */
uint64_t seen_locks_since(struct state *state, struct slice key);

void seen_locks_dispose(struct seen_locks *seen);

#endif
