#include "extender/bind/seen_locks.h"

#include <stdlib.h>

struct seen_lock {
    uint64_t since_ns;
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

uint64_t seen_locks_since(struct state *state, struct slice key)
{
    struct seen_locks *seen = state->seen_locks;
    struct seen_lock *lock = NULL;

    (void)pthread_rwlock_wrlock(&state->lock);
    HASH_FIND(hh, seen->first, key.ptr, key.len, lock);
    if (lock == NULL && HASH_COUNT(seen->first) >= LOCKS_SEEN_MAX)
        forget(seen, seen->first);
    if (lock == NULL)
        lock = add(seen, key);
    uint64_t since_ns = lock == NULL ? monotonic_ns() : lock->since_ns;
    (void)pthread_rwlock_unlock(&state->lock);
    return since_ns;
}

void seen_locks_dispose(struct seen_locks *seen)
{
    while (seen->first != NULL)
        forget(seen, seen->first);
}
