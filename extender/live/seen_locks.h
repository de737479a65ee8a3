/*
 * seen_locks: the locks of other pods (extender/bind/claim_lock.h) that were seen, and since when
 * they have not changed. A lock is identified by its claim, its pod, and the claim's version when
 * it was locked. All locks for a pod that is being created are one, since one request creates the
 * pod. Its age begins when the first claim with it is seen, by the watch, by this claimguard's own
 * write, or by a pod that asks for the claim; and it ends with its pod, once that was seen.
 *
 * Threads: any. The state's lock guards it.
 */
#ifndef EXTENDER_LIVE_SEEN_LOCKS_H
#define EXTENDER_LIVE_SEEN_LOCKS_H

#include "extender/state.h"

/* Of more in all, the oldest is forgotten, and its age begins again; of more in one namespace, the
 * oldest of that. */
enum { LOCKS_SEEN_MAX = 2000, NAMESPACE_LOCKS_MAX = LOCKS_SEEN_MAX / 2 };

struct seen_lock;

struct seen_locks {
    struct seen_lock *first; /* uthash */
};

/* Reads the annotation: UID/NAME. False: claimguard has not written it; anyone may. Both texts have
 * only the characters of UIDs and names, and are no longer. */
bool seen_locks_read_holder(struct slice holder, struct slice *uid, struct slice *name);

/* Whether the lock was seen for patience_ms; without memory, it was not. Or whether its pod was
 * there when it was seen before, and is not now. key: begins with the namespace and a slash, and is
 * remembered whole, so the caller bounds its length. Takes the state's lock. */
bool seen_locks_is_old(struct state *state, struct slice key, uint64_t patience_ms, bool is_there);

/* The key of all locks for a pod that is being created; {NULL, 0}: no memory. */
struct slice seen_locks_creation_key(struct slice ns, struct slice holder, struct arena *arena);

/* A claim is as the API server has it: it may have a lock of a pod that is being created. A pod
 * with a node is there. These take the lock. */
void seen_locks_see_claim(struct state *state, const struct claim_object *claim);
void seen_locks_see_pod(struct state *state, const struct meta *pod);

void seen_locks_dispose(struct seen_locks *seen);

#endif
