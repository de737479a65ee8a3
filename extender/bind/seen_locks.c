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

/* Forgets a lock, if there are too many for the new one. They are in the order of their age. */
static void make_room(struct seen_locks *seen, struct slice key)
{
    const char *slash = memchr(key.ptr, '/', key.len);
    size_t ns_len = slash == NULL ? key.len : (size_t)(slash - key.ptr) + 1;
    struct seen_lock *oldest = NULL;
    unsigned count = 0;

    if (HASH_COUNT(seen->first) < NAMESPACE_LOCKS_MAX)
        return;
    for (struct seen_lock *lock = seen->first; lock != NULL; lock = lock->hh.next) {
        if (lock->hh.keylen < ns_len || memcmp(lock->key, key.ptr, ns_len) != 0)
            continue;
        oldest = oldest == NULL ? lock : oldest;
        count++;
    }
    if (count >= NAMESPACE_LOCKS_MAX)
        forget(seen, oldest);
    else if (HASH_COUNT(seen->first) >= LOCKS_SEEN_MAX)
        forget(seen, seen->first);
}

bool seen_locks_is_old(struct state *state, struct slice key, uint64_t patience_ms, bool is_there)
{
    struct seen_locks *seen = state->seen_locks;
    struct seen_lock *lock = NULL;
    bool is_old = false;

    (void)pthread_rwlock_wrlock(&state->lock);
    HASH_FIND(hh, seen->first, key.ptr, key.len, lock);
    if (lock == NULL)
        make_room(seen, key);
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
