/*
 * seen_locks: the locks of other pods (claim_lock.h) that were seen, and since when they have not
 * changed. A lock is identified by its claim, its pod, and the claim's version when it was locked.
 * All locks for a pod that is being created are one, since one request creates the pod.
 *
 * Threads: any. The state's lock guards it.
 */
#ifndef EXTENDER_BIND_SEEN_LOCKS_H
#define EXTENDER_BIND_SEEN_LOCKS_H

#include "extender/state.h"

/* Of more in all, the oldest is forgotten, and its age begins again; of more in one namespace, the
 * oldest of that. */
enum { LOCKS_SEEN_MAX = 2000, NAMESPACE_LOCKS_MAX = LOCKS_SEEN_MAX / 2 };

struct seen_lock;

struct seen_locks {
    struct seen_lock *first; /* uthash */
};

/* Whether the lock was seen for patience_ms; without memory, it was not. Or whether its pod was
 * there when the lock was seen before, and is not now. key: begins with the namespace and a slash,
 * and is remembered whole, so the caller bounds its length. Takes the state's lock. */
bool seen_locks_is_old(struct state *state, struct slice key, uint64_t patience_ms, bool is_there);

void seen_locks_dispose(struct seen_locks *seen);

#endif
