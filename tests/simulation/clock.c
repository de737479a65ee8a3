/* Time, chance and locks, as the linker gives them to the replicas in the place of the libraries'.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "config/base/clock.h"
#include "simulation/fiber.h"
#include "simulation/world.h"

int64_t now_ms(void)
{
    return INT64_C(1790000000000) + (int64_t)(world.now_ns / MILLISECOND);
}

uint64_t monotonic_ns(void)
{
    return world.now_ns + SECOND; /* 0 means "never" here and there */
}

ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t bytes, unsigned flags)
{
    static bool has_seed; /* the process's first is the tables' seed, for all its worlds */

    (void)flags;
    memset(out, 42, bytes);
    if (has_seed) /* a fence's: each is another one */
        *(unsigned char *)out ^= (unsigned char)++world.randoms;
    has_seed = true;
    return (ssize_t)bytes;
}

struct wake {
    struct fiber *fiber;
    unsigned long waits;
};

static void wake(void *context)
{
    struct wake *wake = context;

    fiber_resume(wake->fiber, wake->waits);
    free(wake);
}

/* A thread that is about to take the lock may find that others were faster. */
static void come_in_between(void)
{
    struct fiber *fiber = fiber_current();

    if (fiber == NULL || !((struct replica *)fiber_owner(fiber))->is_up || !one_in(3))
        return;
    struct wake *later_on = malloc(sizeof *later_on);
    if (later_on == NULL)
        return;
    *later_on = (struct wake){fiber, fiber_waits(fiber)};
    later(below(2 * MILLISECOND), true, wake, later_on);
    fiber_wait();
}

int __real_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    come_in_between();
    return __real_pthread_rwlock_wrlock(lock);
}

int __real_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    come_in_between();
    return __real_pthread_rwlock_rdlock(lock);
}
