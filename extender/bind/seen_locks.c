#include "extender/bind/seen_locks.h"

#include <stdlib.h>

struct seen_lock {
    uint64_t since_ns;
    bool was_there; /* the pod of the lock */
    UT_hash_handle hh;
    char key[];
};

static void forget(struct seen_locks *seen, struct seen_lock *lock)
{
    HASH_DEL(seen->first, lock);
    free(lock);
}

/* NULL: no memory. */
static struct seen_lock *add(struct seen_locks *seen, struct slice key)
{
    struct seen_lock *lock = calloc(1, sizeof *lock + key.len);

    if (lock == NULL)
        return NULL;
    lock->since_ns = monotonic_ns();
    memcpy(lock->key, key.ptr, key.len);
    HASH_ADD_KEYPTR(hh, seen->first, lock->key, key.len, lock);
    if (lock->hh.tbl != NULL)
        return lock;
    free(lock);
    return NULL;
}

bool seen_locks_is_old(struct state *state, struct slice key, uint64_t patience_ms, bool is_there)
{
    struct seen_locks *seen = state->seen_locks;
    struct seen_lock *lock = NULL;
    bool is_old = false;

    (void)pthread_rwlock_wrlock(&state->lock);
    HASH_FIND(hh, seen->first, key.ptr, key.len, lock);
    if (lock == NULL && HASH_COUNT(seen->first) >= LOCKS_SEEN_MAX)
        forget(seen, seen->first);
    if (lock == NULL)
        lock = add(seen, key);
    if (lock != NULL) {
        is_old = monotonic_ns() - lock->since_ns >= patience_ms * NS_PER_MS ||
                 (lock->was_there && !is_there);
        lock->was_there = lock->was_there || is_there;
    }
    (void)pthread_rwlock_unlock(&state->lock);
    return is_old;
}

void seen_locks_dispose(struct seen_locks *seen)
{
    while (seen->first != NULL)
        forget(seen, seen->first);
}
