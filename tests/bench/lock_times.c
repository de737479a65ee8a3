#include "lock_times.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct run *runs, *run;

void holds_die(const char *what)
{
    (void)fprintf(stderr, "holds: %s\n", what);
    exit(1);
}

static double cpu_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static struct holds written, read_only;

static void begin_hold(struct holds *holds)
{
    holds->is_held = true;
    holds->started_us = cpu_us();
}

static void end_hold(struct holds *holds)
{
    double us = cpu_us() - holds->started_us;

    holds->is_held = false;
    holds->count++;
    if (us > SLOW_US && holds->slow_count < SLOW_MAX)
        holds->slow[holds->slow_count++] = (struct slow){holds->count, us};
}

int __real_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    int rc = __real_pthread_rwlock_wrlock(lock);
    begin_hold(&written);
    return rc;
}

int __real_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    int rc = __real_pthread_rwlock_rdlock(lock);
    begin_hold(&read_only);
    return rc;
}

int __real_pthread_rwlock_unlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    end_hold(written.is_held ? &written : &read_only);
    return __real_pthread_rwlock_unlock(lock);
}

void holds_forget(void)
{
    memset(&written, 0, sizeof written);
    memset(&read_only, 0, sizeof read_only);
}

/* What happened since the last one. */
void holds_report(const char *operation)
{
    if (run->count == OPERATIONS_MAX)
        holds_die("more operations than OPERATIONS_MAX");
    run->operations[run->count++] = (struct operation){operation, written, read_only};
    holds_forget();
}

static const struct holds *holds_of(unsigned i, size_t operation, bool writes)
{
    const struct operation *at = &runs[i].operations[operation];
    return writes ? &at->written : &at->read_only;
}

/* How long that hold took in the run; 0: not worth a note. */
static double time_of(const struct holds *holds, unsigned long at)
{
    for (size_t i = 0; i < holds->slow_count; i++)
        if (holds->slow[i].at == at)
            return holds->slow[i].us;
    return 0;
}

/* Each hold counts with its shortest time: what is long in one run only was the machine's. */
static void put_holds(size_t operation, bool writes)
{
    const struct holds *first = holds_of(0, operation, writes);
    double longest = 0;
    unsigned over_ms = 0;

    for (size_t i = 0; i < first->slow_count; i++) {
        double us = first->slow[i].us;
        for (unsigned other = 1; other < RUNS; other++) {
            const struct holds *again = holds_of(other, operation, writes);
            double again_us = time_of(again, first->slow[i].at);
            if (again->count == first->count && again_us < us) /* else, it was not the same */
                us = again_us;
        }
        longest = us > longest ? us : longest;
        over_ms += us > 1000;
    }
    if (first->count == 0)
        (void)printf(" | | |");
    else if (longest == 0)
        (void)printf(" | %lu | < %d µs | **0**", first->count, SLOW_US);
    else
        (void)printf(" | %lu | %.0f µs | **%u**", first->count, longest, over_ms);
}

void holds_put_table(void)
{
    for (size_t i = 0; i < runs[0].count; i++) {
        (void)printf("| %s", runs[0].operations[i].name);
        put_holds(i, true);
        put_holds(i, false);
        (void)printf(" |\n");
    }
    (void)printf("\nRSS: %.0f MiB when it was full, %.0f MiB with a hundredth of it, %.0f MiB "
                 "before.\n",
                 runs[0].full_mib, runs[0].few_mib, runs[0].empty_mib);
}
