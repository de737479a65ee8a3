/*
 * scope: what ends with the block in which it begins, at each return: a lock that is held, an
 * arena, a buffer.
 *
 *     pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
 *     if (true) {
 *         SCOPED_READ_LOCK(&lock);
 *         SCOPED_BUF(text, 4096);
 *     } // the text is freed, then the lock is released; a return would have done the same
 *
 * What began last ends first. Where the lock must not be held to the end of the block, call
 * pthread's own functions.
 *
 * Threads: any.
 */
#ifndef CONFIG_BASE_SCOPE_H
#define CONFIG_BASE_SCOPE_H

#include <pthread.h>

#include "config/base/arena.h"
#include "config/base/buf.h"

/* An empty arena, or buffer, with that maximum. */
#define SCOPED_ARENA(arena_, max_bytes_) \
    struct arena arena_ __attribute__((cleanup(arena_dispose))) = {.max_bytes = (max_bytes_)}
#define SCOPED_BUF(buf_, max_bytes_) \
    struct buf buf_ __attribute__((cleanup(buf_dispose))) = {.max_bytes = (max_bytes_)}

#define SCOPED_LOCK(mutex_) \
    pthread_mutex_t *const held_mutex __attribute__((cleanup(scope_end_mutex), unused)) = \
        scope_begin_mutex(mutex_)
#define SCOPED_READ_LOCK(lock_) \
    pthread_rwlock_t *const held_lock __attribute__((cleanup(scope_end_lock), unused)) = \
        scope_begin_read(lock_)
#define SCOPED_WRITE_LOCK(lock_) \
    pthread_rwlock_t *const held_lock __attribute__((cleanup(scope_end_lock), unused)) = \
        scope_begin_write(lock_)

static inline pthread_mutex_t *scope_begin_mutex(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_lock(mutex);
    return mutex;
}

static inline void scope_end_mutex(pthread_mutex_t *const *mutex)
{
    (void)pthread_mutex_unlock(*mutex);
}

static inline pthread_rwlock_t *scope_begin_read(pthread_rwlock_t *lock)
{
    (void)pthread_rwlock_rdlock(lock);
    return lock;
}

static inline pthread_rwlock_t *scope_begin_write(pthread_rwlock_t *lock)
{
    (void)pthread_rwlock_wrlock(lock);
    return lock;
}

static inline void scope_end_lock(pthread_rwlock_t *const *lock)
{
    (void)pthread_rwlock_unlock(*lock);
}

#endif
